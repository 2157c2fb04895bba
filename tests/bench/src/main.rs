//! The bench: what a call costs, against the same echo over bare pipes, in one run.
//!
//! `plugd-bench full` writes `docs/performance.md` and prints it; `plugd-bench quick` prints the
//! main figures as `name: value` lines; `plugd-bench sdks`, `record`, `starts`, `streams`, `crashes` and
//! `one-core` measure that part alone. Progress goes to stderr. There is no pass or fail.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures go to stdout, progress to stderr")]

mod bare;
mod contender;
mod crowd;
mod dialogue;
mod embedded;
mod facts;
mod interrupt;
mod lives;
mod one_core;
mod peer;
mod programs;
mod record;
mod report;
mod sdk_report;
mod sdks;
mod socket;
mod stats;
mod suite;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::programs::Programs;
use crate::suite::Plan;

fn main() -> ExitCode {
    // First of all: plugins are started through this program.
    plugd_engine::launcher::take_over();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        ["quick"] => quick(),
        ["full"] => full(),
        ["starts"] => starts(),
        ["record"] => record(),
        ["streams"] => streams(),
        ["crashes"] => crashes(),
        ["sdks"] => sdks(),
        ["one-core"] => one_core(),
        // What the bench starts as a fresh process to look at its memory.
        ["rss", plugin] => lives::measure_rss(Path::new(plugin)).map(|kib| println!("{kib}")),
        ["rss-of-a-run", folder] => {
            crowd::measure_rss_of_a_run(Path::new(folder)).map(|kib| println!("{kib}"))
        }
        _ => {
            eprintln!(
                "usage: plugd-bench quick | full | sdks | record | starts | streams | crashes | one-core"
            );
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plugd-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn quick() -> io::Result<()> {
    interrupt::watch()?;
    let findings = suite::measure(&Plan::quick(), &Programs::find()?)?;
    for (name, value) in report::main_figures(&findings) {
        println!("{name}: {value}");
    }
    Ok(())
}

fn full() -> io::Result<()> {
    interrupt::watch()?;
    let plan = Plan::full();
    let begun = Instant::now();
    let findings = suite::measure(&plan, &Programs::find()?)?;
    let facts = facts::of_this_machine();
    let text = report::page(&findings, &plan, &facts, begun.elapsed());
    std::fs::write(page_path(), &text)?;
    print!("{text}");
    Ok(())
}

/// Only the figures of many starts: for work on those.
fn starts() -> io::Result<()> {
    interrupt::watch()?;
    let crowd = suite::measure_crowd(&Programs::find()?.echo_plugin, 5)?;
    println!("{:?} {:?} {:?}", crowd.ratio().median, crowd.ours, crowd.theirs);
    Ok(())
}

/// Only the round trips over pipes and over sockets: for work on those.
fn streams() -> io::Result<()> {
    interrupt::watch()?;
    for (name, value) in report::stream_figures(&suite::measure_streams(&Programs::find()?)?) {
        println!("{name}: {value}");
    }
    Ok(())
}

/// Only the figures of crashes, without a spare and with one: for work on those.
fn crashes() -> io::Result<()> {
    interrupt::watch()?;
    let plugin = Programs::find()?.echo_plugin;
    for (name, spared) in [("without a spare", false), ("with one", true)] {
        let pair = suite::measure_crashes(&plugin, spared, 7, 11)?;
        println!("{name}: {} {:?} {:?}", pair.ratio(), pair.ours, pair.theirs);
    }
    Ok(())
}

/// Only the figures of a million recorded calls: for work on those.
fn record() -> io::Result<()> {
    interrupt::watch()?;
    for (name, value) in report::record_figures(&record::measure(5)?) {
        println!("{name}: {value}");
    }
    Ok(())
}

/// Only the handlers of each language: their part of the page, and the figures.
fn sdks() -> io::Result<()> {
    interrupt::watch()?;
    let sdks = sdks::measure()?;
    println!("{}", sdk_report::section(&sdks));
    for (name, value) in sdk_report::figures(&sdks) {
        println!("{name}: {value}");
    }
    Ok(())
}

/// Only the round trips on one core: their part of the page, and the figures.
fn one_core() -> io::Result<()> {
    interrupt::watch()?;
    let samples = one_core::measure(&Programs::find()?)?;
    println!("{}", report::on_one_core(&samples));
    for (name, value) in report::one_core_figures(&samples) {
        println!("{name}: {value}");
    }
    Ok(())
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md")
}

/// Says on stderr what is being done.
fn progress(what: &str) {
    eprintln!("{what}");
}
