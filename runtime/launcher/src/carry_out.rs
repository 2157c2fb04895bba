//! Carrying out an order, in the process that becomes the plugin.

use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use rustix::process::Signal;
use serde::Serialize;

use crate::{FAILED, Failed, NAME, NOTE, Note, Order, Post, hold, sandbox};

/// What a shell says of a command that cannot be executed.
const NOT_EXECUTED: i32 = 127;

/// Becomes the plugin where this process was started as the launcher; else returns at once.
pub fn take_over() {
    let mut args = std::env::args_os();
    if args.next().is_some_and(|name| name == NAME) {
        carry_out(args);
        std::process::exit(NOT_EXECUTED);
    }
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
    let failed = match obey(order) {
        Ok(never) => match never {},
        Err(failed) => failed,
    };
    say(FAILED, &failed);
}

fn obey(order: Order) -> Result<Infallible, Failed> {
    if let Some(cgroup) = &order.cgroup
        && let Err(error) = std::fs::write(cgroup.join("cgroup.procs"), "0")
    {
        note("cgroup", &format!("cannot join {}: {error}", cgroup.display()));
    }
    // Here: the cgroup is joined by writing to a file, and a limit may leave no descriptor for this.
    sandbox::confine(order.sandbox).map_err(Failed::Sandbox)?;
    for (limited, most) in &order.rlimits {
        if let Err(error) = hold(*limited, *most) {
            note(limited.name(), &error.to_string());
        }
    }
    become_plugin(&order).map_err(|errno| Failed::Errno(errno as i32))
}

fn become_plugin(order: &Order) -> Result<Infallible, Errno> {
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
    let notification = serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let Ok(mut line) = serde_json::to_vec(&notification) {
        line.push(b'\n');
        // Nobody reads any more: then nobody needs to know.
        let _unheard = io::stdout().write_all(&line);
    }
}
