//! The guard of costs: instructions and system calls of a call, held to what was recorded.
//!
//! Counts depend neither on the machine's speed nor on what else it does, so a regression shows in one run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures go to stdout, progress to stderr")]

mod callgrind;
mod cases;
mod drive;
mod layers;
mod mark;
mod measure;
mod process;
mod programs;
mod recorded;
mod setting;
mod strace;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::cases::{CASES, Case};
use crate::recorded::{Recorded, compare};
use crate::setting::Setting;

/// Count what a call costs in instructions and system calls
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compare every case with what is recorded; fails where one is off
    Check,
    /// Record every case anew in tests/cost/recorded.toml
    Record,
    /// Print the layers of a call, each with its system calls and its instructions
    Layers,
    /// Print where the instructions of a case go, by function, each call's share
    Profile {
        /// The case, such as engine-x64
        case: String,
        /// How many functions
        #[arg(long, default_value_t = 60)]
        top: usize,
    },
    /// Make the calls of a case between marks: what is counted
    #[command(hide = true)]
    Drive {
        case: String,
        folder: Option<PathBuf>,
        #[arg(long)]
        calls: Option<usize>,
    },
}

fn main() -> ExitCode {
    // First of all: plugins are started through this program.
    plugd_engine::launcher::take_over();
    let ended = match Args::parse().verb {
        Verb::Drive { case, folder, calls } => {
            found(&case).and_then(|case| drive::drive(case, calls, folder.as_deref()))
        }
        Verb::Check => check(),
        Verb::Record => record(),
        Verb::Layers => layers::print(),
        Verb::Profile { case, top } => found(&case).and_then(|case| profile(case, top)),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plugd-cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn found(name: &str) -> io::Result<&'static Case> {
    let names = || CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ");
    cases::find(name)
        .ok_or_else(|| io::Error::other(format!("there is no case {name}; there are {}", names())))
}

fn check() -> io::Result<()> {
    let recorded = Recorded::load(&Recorded::path())?;
    let now = count_everything()?;
    if recorded.counted_with != now.counted_with {
        eprintln!(
            "ATTENTION: instructions are NOT compared, only system calls: they were recorded with {}, and this \
             is {}. Record them anew with `make cost-record` where the change stays",
            recorded.counted_with, now.counted_with
        );
    }
    let cases: Vec<&Case> = CASES.iter().collect();
    let findings = compare(&recorded, &now, &cases);
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{} cases cost what is recorded", CASES.len());
            Ok(())
        }
        count => Err(io::Error::other(format!(
            "{count} figures are not as recorded in {}",
            Recorded::path().display()
        ))),
    }
}

fn record() -> io::Result<()> {
    count_everything()?.save(&Recorded::path())
}

/// Counts every case and prints what it costs.
fn count_everything() -> io::Result<Recorded> {
    let counted_with = Setting::of_this_machine(callgrind::version()?);
    let cases: Vec<&Case> = CASES.iter().collect();
    let counted = measure::count_all(&cases)?;
    let mut all = BTreeMap::new();
    for (case, counted) in cases.iter().zip(&counted) {
        println!("{:<22} {}", case.name, counted.figures);
        all.insert(case.name.to_owned(), counted.figures);
    }
    Ok(Recorded { counted_with, cases: all })
}

fn profile(case: &Case, top: usize) -> io::Result<()> {
    let counted = measure::count(case)?;
    println!("{}: {}", case.name, counted.figures);
    for (name, calls) in &counted.by_name {
        println!("  {name}: {calls:.3}");
    }
    let itself = callgrind::merged(callgrind::by_own(&counted.profile)?, |one, other| one + other);
    let all = callgrind::by_all(&counted.profile)?;
    for (what, functions) in [("itself", itself), ("with what it calls", all)] {
        println!("\ninstructions of a call, by function, {what}:");
        for function in functions.iter().take(top) {
            println!("{:>12.1}  {}", function.instructions as f64 / case.calls as f64, function.name);
        }
    }
    Ok(())
}

/// Says on stderr what is being done.
fn progress(what: &str) {
    eprintln!("{what}");
}
