//! One case, counted: its driver once under callgrind and once under strace.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use plugd_bench::daemon::Daemon;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::callgrind::{self, Part};
use crate::cases::{Case, Way};
use crate::drive::prepare;
use crate::programs::Programs;
use crate::strace::{self, Calls};

/// Cases that are counted side by side; counts do not mind.
const AT_ONCE: usize = 2;

/// What one call costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// Instructions in the thread that carries the calls.
    pub(crate) instructions: f64,
    /// Instructions in the process's other threads: what the record is written with.
    pub(crate) instructions_aside: f64,
    /// System calls of the thread that carries the calls.
    pub(crate) syscalls: f64,
    /// System calls of the process's other threads.
    pub(crate) syscalls_aside: f64,
    /// System calls of the plugin.
    pub(crate) syscalls_plugin: f64,
}

impl Figures {
    /// As precise as a recorded figure needs to be.
    fn rounded(self) -> Figures {
        let to = |places: f64, figure: f64| (figure * places).round() / places;
        Figures {
            instructions: to(1.0, self.instructions),
            instructions_aside: to(1.0, self.instructions_aside),
            syscalls: to(100.0, self.syscalls),
            syscalls_aside: to(100.0, self.syscalls_aside),
            syscalls_plugin: to(100.0, self.syscalls_plugin),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.0} instructions, {:>7.0} in other threads; system calls: {:>6.2}, {:>5.2} in other threads, {:>5.2} of the plugin",
            self.instructions,
            self.instructions_aside,
            self.syscalls,
            self.syscalls_aside,
            self.syscalls_plugin
        )
    }
}

/// A case that was counted, with what is left of it to look at.
pub(crate) struct Counted {
    pub(crate) figures: Figures,
    /// System calls of the thread that carries the calls, by name, of one call.
    pub(crate) by_name: Vec<(String, f64)>,
    /// What callgrind has written of that thread.
    pub(crate) profile: PathBuf,
    _folder: TempDir,
}

/// Counts these cases; the order stays.
pub(crate) fn count_all(cases: &[&Case]) -> io::Result<Vec<Counted>> {
    let left = Mutex::new(cases.iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().ok().and_then(|mut left| left.next());
                    let Some((index, case)) = next else { break };
                    crate::progress(&format!("counting {}", case.name));
                    let counted = count(case);
                    let Ok(mut done) = done.lock() else { break };
                    done.push((
                        index,
                        counted.map_err(|error| io::Error::other(format!("{}: {error}", case.name))),
                    ));
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_poisoned| io::Error::other("a case was not counted"))?;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, counted)| counted).collect()
}

/// Counts one case.
pub(crate) fn count(case: &Case) -> io::Result<Counted> {
    let programs = Programs::find()?;
    let folder = TempDir::new()?;
    // What the driver needs stays until it has ended.
    let (mut words, _daemon, _known) = match case.way {
        Way::Command => {
            let daemon = Daemon::start(&programs.plugd, &programs.echo_plugin)?;
            (daemon.plugd_call(), Some(daemon), None)
        }
        Way::Among { plugins } => {
            let known = prepare(plugins, &programs)?;
            let mut words = drive(&programs, case);
            words.push(known.path().into());
            (words, None, Some(known))
        }
        _ => (drive(&programs, case), None, None),
    };
    let parts = callgrind::count(&words, folder.path())?;
    let seen = strace::count(&words, folder.path())?;
    let whole = case.way == Way::Command;
    let per_call = |count: u64| count as f64 / case.calls as f64;

    let carrying = |part: &&Part| part.thread == 1 && (whole || part.number == 2);
    let instructions = parts.iter().filter(carrying).map(|part| part.instructions).sum();
    let aside = match case.way {
        Way::Engine { recorded: true } | Way::Socket => {
            // Of other threads callgrind knows no parts: what twice the calls add is theirs.
            words.extend(["--calls".into(), (case.calls * 2).to_string().into()]);
            let twice = TempDir::new()?;
            aside(&callgrind::count(&words, twice.path())?).saturating_sub(aside(&parts))
        }
        _ => 0,
    };
    let carries = parts.iter().find(carrying);
    let profile = carries.ok_or_else(|| io::Error::other("callgrind has not seen the marks"))?.file.clone();
    let (window, after) = match &seen[..] {
        [all] if whole => (all, None),
        [_, window, after, _] => (window, Some(after)),
        other => return Err(io::Error::other(format!("strace has seen {} marks, not 3", other.len() - 1))),
    };
    let total = |calls: &Calls| calls.values().sum::<u64>();
    let figures = Figures {
        instructions: per_call(instructions),
        instructions_aside: per_call(aside),
        syscalls: per_call(total(&window.first)),
        syscalls_aside: per_call(total(&window.aside) + after.map_or(0, |after| total(&after.aside))),
        syscalls_plugin: per_call(
            window
                .others
                .iter()
                .filter(|(name, _)| *name != "cost_client")
                .map(|(_, calls)| total(calls))
                .sum(),
        ),
    };
    let figures = figures.rounded();
    let by_name = window.first.iter().map(|(name, count)| (name.clone(), per_call(*count))).collect();
    Ok(Counted { figures, by_name, profile, _folder: folder })
}

/// What the threads took that carry no calls.
fn aside(parts: &[Part]) -> u64 {
    parts.iter().filter(|part| part.thread != 1).map(|part| part.instructions).sum()
}

fn drive(programs: &Programs, case: &Case) -> Vec<OsString> {
    vec![programs.this.clone().into(), "drive".into(), case.name.into()]
}
