//! Processes as Linux has them: what they are held to, and that nothing of them stays.
//!
//! A program that is its own launcher has its own `main`, so this one has no harness: it runs its
//! checks one after another. An argument picks those whose name contains it.

#![expect(clippy::unwrap_used, reason = "all of this is a test, although no harness says so")]
#![expect(clippy::print_stdout, reason = "what runs without a harness says itself how its checks went")]

mod bounds;
mod confined;
mod leftovers;
mod programs;
mod support;

use std::process::ExitCode;

use plugd_supervisor::launcher;

/// A check and what it protects.
type Check = (&'static str, fn());

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == support::WITHOUT_LAUNCHER) {
        support::serve_as_owner(&args[1..]);
    }
    if args.first().is_some_and(|arg| arg == confined::WITHOUT_LAUNCHER) {
        return confined::say_why_not();
    }
    launcher::take_over();
    if args.first().is_some_and(|arg| arg == support::OWNER) {
        support::serve_as_owner(&args[1..]);
    }
    let wanted = |name: &str| {
        let mut words = args.iter().filter(|arg| !arg.starts_with('-')).peekable();
        words.peek().is_none() || words.any(|word| name.contains(word.as_str()))
    };
    let mut failed = 0;
    // From some point on all orphans come to us; nothing leads back.
    let before = [programs::CHECKS, bounds::CHECKS, confined::CHECKS, leftovers::CHECKS_AMONG_OTHERS];
    let after = [leftovers::CHECKS_AS_REAPER];
    for (checks, reaper) in [(before.as_slice(), false), (after.as_slice(), true)] {
        if reaper {
            launcher::adopt_orphans().expect("Linux lets anybody be a reaper");
        }
        for (name, check) in checks.iter().copied().flatten().filter(|(name, _)| wanted(name)) {
            let outcome = std::panic::catch_unwind(check);
            println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
            failed += u8::from(outcome.is_err());
        }
    }
    ExitCode::from(failed)
}
