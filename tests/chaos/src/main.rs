//! `plugd-chaos`: kills what it can around a daemon under load, and says what held.
//!
//! Figures go to stdout as `name: value` lines. It fails when a promise was broken.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures go to stdout, what is broken to stderr"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use plugd_chaos::{Plan, run, write_page};

/// A trial shorter than this says too little about speed, and is not written down.
const SECONDS_TO_COUNT: u64 = 60;

/// Kill what can be killed around a daemon under load, and see what holds
#[derive(Debug, Parser)]
struct Args {
    /// How long things are killed; a quarter of that, at least 16 s, is without kills
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What all choices follow from; otherwise the clock's
    #[arg(long)]
    seed: Option<u64>,
    /// Kills a second
    #[arg(long, default_value_t = 2.0)]
    kills: f64,
    /// Clients that call at once
    #[arg(long, default_value_t = 24)]
    clients: usize,
    /// The program under trial; otherwise the one beside this one
    #[arg(long)]
    plugd: Option<PathBuf>,
}

fn main() -> ExitCode {
    match tried(Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("plugd-chaos: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything held.
fn tried(args: Args) -> io::Result<bool> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let plan = Plan {
        plugd: args.plugd.map_or_else(beside, Ok)?,
        seed: args.seed.unwrap_or(clock.as_secs() % 1_000_000),
        peace: Duration::from_secs((args.seconds / 4).clamp(16, 60)),
        trouble: Duration::from_secs(args.seconds),
        clients: args.clients,
        kills_per_second: args.kills,
        daemon_kills: u32::try_from(args.seconds / 10).unwrap_or(u32::MAX).max(1),
        judge_speed: args.seconds >= SECONDS_TO_COUNT,
    };
    println!("seed: {}", plan.seed);
    let report = run(&plan)?;
    for (name, value) in &report.figures {
        println!("{name}: {value}");
    }
    for broken in &report.broken {
        eprintln!("BROKEN: {broken}");
    }
    if args.seconds >= SECONDS_TO_COUNT {
        write_page(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md"), &plan, &report)?;
    }
    println!("broken: {}", report.broken.len());
    Ok(report.broken.is_empty())
}

fn beside() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("plugd");
    if program.is_file() {
        return Ok(program);
    }
    Err(io::Error::other(format!("{} is not built: `make chaos` builds it first", program.display())))
}
