//! The launcher: what happens in a plugin's process before the plugin.
//!
//! A process can be held to something only from within, before it executes the plugin's program.
//! Between fork and exec that would cost a fork of this whole program, so it is done by a program of
//! its own, which is this one again: started by the name `plugd-launcher` it waits on its stdin for
//! one order, carries it out and becomes the plugin. So one can be made ahead of its order. Programs that want that call [`take_over`] first thing in `main`.

use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use plugd_protocol::message::write_notification;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::driver::limits::{self, Limited};

/// The name by which this program knows that it is to be the launcher.
pub(crate) const NAME: &str = "plugd-launcher";

/// The notification by which the launcher says what it could not do; the plugin runs nevertheless.
pub(crate) const NOTE: &str = "launcher/note";

/// The notification by which it says that there is no plugin.
pub(crate) const FAILED: &str = "launcher/failed";

/// What a shell says of a command that cannot be executed.
const NOT_EXECUTED: i32 = 127;

/// Whether this program can be its own launcher.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Whether orphans come to this program.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// What a launcher is told when it is made; the order comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Post {
    /// Who made it.
    pub(crate) parent: u32,
    /// Whether it is killed when the thread that made it ends.
    pub(crate) die_with_parent: bool,
}

/// What to do before the plugin's program is executed, and that program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The folder of the cgroup to join.
    pub(crate) cgroup: Option<PathBuf>,
    /// What it is held to.
    pub(crate) rlimits: Vec<(Limited, u64)>,
    /// The folder to run in.
    pub(crate) cwd: PathBuf,
    /// The whole environment.
    pub(crate) env: Vec<(String, String)>,
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
}

/// So many bytes before an order say how long it is, in decimal: what follows it in the pipe is
/// the plugin's, and must not be read here.
const LENGTH_DIGITS: usize = 10;

impl Order {
    /// The order as a launcher reads it from its stdin.
    ///
    /// # Errors
    /// When a path in it is no UTF-8, or it is above any sensible length.
    pub(crate) fn write(&self) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self)?;
        let mut written = format!("{:0LENGTH_DIGITS$}", order.len()).into_bytes();
        if written.len() > LENGTH_DIGITS {
            return Err(io::Error::other("the environment and the arguments are too long"));
        }
        written.extend_from_slice(&order);
        Ok(written)
    }

    /// Waits for the order; `None` where none will come.
    fn read() -> Option<Order> {
        // Unbuffered: a buffer would hold what belongs to the plugin.
        let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let mut length = [0; LENGTH_DIGITS];
        stdin.read_exact(&mut length).ok()?;
        let length = std::str::from_utf8(&length).ok()?.parse().ok()?;
        let mut order = Vec::new();
        stdin.take(length).read_to_end(&mut order).ok()?;
        serde_json::from_slice(&order).ok()
    }
}

/// The parameters of [`NOTE`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    /// What the process is not held to.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
}

/// The parameters of [`FAILED`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    /// The operating system's error number.
    pub(crate) errno: i32,
}

/// Becomes the plugin where this process was started as the launcher; else returns at once.
///
/// Call it first thing in `main`: before a runtime, a thread or a look at the arguments. A program
/// that never calls it spawns its plugins directly, and `status` says what they are not held to.
pub fn take_over() {
    let mut args = std::env::args_os();
    if args.next().is_some_and(|name| name == NAME) {
        carry_out(args);
        std::process::exit(NOT_EXECUTED);
    }
    INSTALLED.store(true, Ordering::Relaxed);
}

/// Has orphans of plugins come to this process, which then kills and reaps them.
///
/// From then on every child of this process that plugd did not spawn counts as an orphan and is
/// reaped, so only a program without children of its own calls this.
///
/// # Errors
/// When the operating system refuses.
pub fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether orphans come to this process.
pub fn adopts_orphans() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

/// Whether [`take_over`] was called.
pub(crate) fn installed() -> bool {
    INSTALLED.load(Ordering::Relaxed)
}

/// Returns only where there is no sense in going on.
fn carry_out(mut args: std::env::ArgsOs) {
    let post = args.next().and_then(|post| serde_json::from_slice::<Post>(post.as_bytes()).ok());
    let Some(post) = post else { return };
    if post.die_with_parent {
        if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
            note("parent_death_signal", &error.to_string());
        }
        // One that died before this line sends no signal.
        if parent() != Some(post.parent) {
            return;
        }
    }
    close_fds::set_fds_cloexec(3, &[]);
    let Some(order) = Order::read() else { return };
    let errno = match obey(order) {
        Ok(never) => match never {},
        Err(errno) => errno,
    };
    say(FAILED, &Failed { errno: errno as i32 });
}

fn obey(order: Order) -> Result<Infallible, Errno> {
    if let Some(cgroup) = &order.cgroup
        && let Err(error) = std::fs::write(cgroup.join("cgroup.procs"), "0")
    {
        note("cgroup", &format!("cannot join {}: {error}", cgroup.display()));
    }
    for (limited, most) in order.rlimits {
        if let Err(error) = limits::hold(limited, most) {
            note(limited.name(), &error.to_string());
        }
    }
    std::env::set_current_dir(&order.cwd)
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::EINVAL);
    let program = c_string(order.program.as_os_str().as_bytes())?;
    let mut command = vec![program.clone()];
    for arg in &order.args {
        command.push(c_string(arg.as_bytes())?);
    }
    let mut environment = Vec::with_capacity(order.env.len());
    for (name, value) in &order.env {
        environment.push(c_string(format!("{name}={value}").as_bytes())?);
    }
    let path = order.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    // Rust ignores SIGPIPE from the start, and what is ignored stays so in the next program.
    sigpipe::reset();
    execute(&program, &command, &environment, path.unwrap_or_default())
}

fn parent() -> Option<u32> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
}

/// Executes the program itself, never a shell in its stead as `execvp` does where there is no `#!`.
fn execute(
    program: &CStr,
    command: &[CString],
    environment: &[CString],
    path: &str,
) -> Result<Infallible, Errno> {
    if program.to_bytes().contains(&b'/') {
        return nix::unistd::execve(program, command, environment);
    }
    let mut found = Errno::ENOENT;
    for folder in std::env::split_paths(path) {
        let file = OsString::from(folder.join(OsStr::from_bytes(program.to_bytes())));
        let Ok(file) = CString::new(file.into_vec()) else {
            continue;
        };
        let error = match nix::unistd::execve(&file, command, environment) {
            Ok(never) => match never {},
            Err(error) => error,
        };
        match error {
            Errno::ENOENT | Errno::ENOTDIR => {}
            Errno::EACCES => found = error,
            _ => return Err(error),
        }
    }
    Err(found)
}

fn note(what: &str, why: &str) {
    say(NOTE, &Note { what: what.to_owned(), why: why.to_owned() });
}

/// Writes one notification to stdout, where the plugin's own will follow.
fn say(method: &str, params: &impl Serialize) {
    let mut line = Vec::new();
    if write_notification(&mut line, method, params).is_ok() {
        // Nobody reads any more: then nobody needs to know.
        let _unheard = io::stdout().write_all(&line);
    }
}
