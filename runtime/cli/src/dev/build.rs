//! The command that makes a plugin's program: run to its end, its output shown as it comes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::Screen;
use crate::render::visible_line;

/// No build takes so long; one that hangs must not keep every later one from being begun.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// So long what it wrote last is waited for: something that it left behind may hold the pipe for good.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A longer line of output is shown in pieces.
const LINE_MAX: usize = 16 * 1024;

/// What is to be run, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    pub(crate) command: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// A build under way, with all that it started: it goes when this does.
struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Ends it, or what is left of it, and says how it ended.
    fn end(&mut self) -> io::Result<ExitStatus> {
        // Until it is waited for the number is its own, also where it has ended already.
        if !std::mem::replace(&mut self.ended, true) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have been ended before, and then nothing is done.
        let _ = self.end();
    }
}

impl Build {
    /// Runs it to its end; what it took, or why the program was not made.
    pub(crate) async fn run(&self, screen: &Screen) -> Result<Duration, String> {
        let line = plugd_engine::command_line(&self.command);
        screen.say(&format!("build: {line}"));
        let began = Instant::now();
        let status = self.finish(screen).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("{} is not installed, or not on PATH", self.command[0]),
            io::ErrorKind::TimedOut => format!("`{line}` was ended after {} s", LONGEST.as_secs()),
            _ => format!("`{line}` cannot be run: {error}"),
        })?;
        match status.success() {
            true => Ok(began.elapsed()),
            false => Err(format!("`{line}` failed ({status})")),
        }
    }

    async fn finish(&self, screen: &Screen) -> io::Result<ExitStatus> {
        let (reader, writer) = io::pipe()?;
        let mut output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut running = Running { child: self.spawn(writer)?, ended: false };
        let ended = end_of(&running.child)?;
        let ends = Instant::now() + LONGEST;
        let mut said = Vec::new();
        let mut open = true;
        loop {
            let read = async {
                match open {
                    true => output.read_buf(&mut said).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                read = read => {
                    open = matches!(read, Ok(count) if count > 0);
                    show(&mut said, screen);
                }
                _ = ended.readable() => break,
                () = tokio::time::sleep_until(ends.into()) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let last = async {
            while let Ok(1..) = output.read_buf(&mut said).await {
                show(&mut said, screen);
            }
        };
        let _ = timeout(LAST_WORDS, last).await;
        if !said.is_empty() {
            screen.say(&shown(&said));
        }
        running.end()
    }

    fn spawn(&self, writer: io::PipeWriter) -> io::Result<Child> {
        let (program, args) = self.command.split_first().expect("a command has a program");
        let mut command = Command::new(match program.contains('/') {
            true => self.folder.join(program),
            false => program.into(),
        });
        command.args(args).current_dir(&self.folder).stdin(Stdio::null());
        // A group of its own: Ctrl-C is for us, and all of it can be ended.
        command.stdout(writer.try_clone()?).stderr(writer).process_group(0).spawn()
    }
}

/// Becomes readable once the process has ended, which is then still to be waited for.
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that may give back another descriptor later; an OwnedFd that is never touched cannot"
)]
fn end_of(child: &Child) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(pidfd_open(Pid::from_child(child), PidfdFlags::NONBLOCK)?)
}

/// Shows the whole lines of what was said, and what is too long for one.
fn show(said: &mut Vec<u8>, screen: &Screen) {
    while let Some(end) = said.iter().position(|byte| *byte == b'\n') {
        let rest = said.split_off(end + 1);
        screen.say(&shown(&std::mem::replace(said, rest)));
    }
    if said.len() > LINE_MAX {
        screen.say(&shown(&std::mem::take(said)));
    }
}

fn shown(line: &[u8]) -> String {
    format!("  {}", visible_line(String::from_utf8_lossy(line).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(script: &str, folder: &std::path::Path) -> Build {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        Build { command, folder: folder.to_owned() }
    }

    #[tokio::test]
    async fn a_build_is_shown_and_its_failure_named() {
        let dir = tempfile::tempdir().unwrap();
        let screen = Screen::to_memory();
        build("echo one; printf two >&2; touch made", dir.path()).run(&screen).await.unwrap();
        assert!(dir.path().join("made").exists());
        let said = screen.said();
        assert_eq!(said[1..], ["  one".to_owned(), "  two".to_owned()], "{said:?}");
        let error = build("exit 3", dir.path()).run(&screen).await.unwrap_err();
        assert!(error.ends_with("failed (exit status: 3)"), "{error}");
        let nothing = Build { command: vec!["no-such-compiler".to_owned()], folder: dir.path().to_owned() };
        let error = nothing.run(&screen).await.unwrap_err();
        assert_eq!(error, "no-such-compiler is not installed, or not on PATH");
    }

    #[tokio::test]
    async fn nothing_of_a_build_that_is_given_up_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let screen = Screen::to_memory();
        let build = build("sleep 600 & echo $!; wait", dir.path());
        let mut running = Box::pin(build.run(&screen));
        let pid = loop {
            let _ = timeout(Duration::from_millis(20), &mut running).await;
            if let Some(line) = screen.said().get(1) {
                break line.trim().to_owned();
            }
        };
        drop(running);
        let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ends = Instant::now() + Duration::from_secs(20);
        // Its parent is gone, and whoever reaps it now may take its time.
        while !stat().is_empty() && !stat().contains(") Z ") {
            assert!(Instant::now() < ends, "{}", stat());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
