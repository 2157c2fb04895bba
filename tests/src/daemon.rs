//! A real `plugd serve` that ends with its test, and leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};
use crate::wait::{alive, group_members};

/// A daemon that serves a sandbox; stopped when it is dropped.
pub struct Daemon<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    _stdout: BufReader<ChildStdout>,
    /// Whether lines of level ERROR in its log are part of the test.
    errors_expected: bool,
}

impl<'a> Daemon<'a> {
    #[track_caller]
    pub(crate) fn start(sandbox: &'a Sandbox, mut command: Command, stderr: Stdio) -> Daemon<'a> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("plugd serve starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut ready = String::new();
        stdout.read_line(&mut ready).expect("its stdout is read");
        if ready.is_empty() {
            let status = child.wait().expect("it has ended");
            panic!("plugd serve ended with {status}: {}", sandbox.read("daemon.log"));
        }
        Daemon { sandbox, child, _stdout: stdout, errors_expected: false }
    }

    /// Lets the test go on although the daemon logs errors.
    pub fn expect_errors(&mut self) {
        self.errors_expected = true;
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its control socket.
    pub fn socket(&self) -> PathBuf {
        self.sandbox.socket()
    }

    /// What it holds open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("the daemon lives").count()
    }

    /// A line of its `/proc/PID/status`, such as `VmRSS` in KiB, or `Threads`.
    #[track_caller]
    pub fn proc_status(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the daemon lives");
        let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let value = value.unwrap_or_else(|| panic!("the kernel tells no {line}"));
        value.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// What the daemon itself logged about a plugin.
    pub fn said_of(&self, plugin: &str) -> Vec<String> {
        let of_plugin = format!("plugin={plugin} ");
        let log = self.sandbox.read("daemon.log");
        log.lines().filter(|line| format!("{line} ").contains(&of_plugin)).map(str::to_owned).collect()
    }

    /// Runs the program against it.
    pub fn plugd(&self, args: &[&str]) -> Ran {
        self.sandbox.plugd(args)
    }

    /// Runs the program under `--output json`, and takes its one document.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.sandbox.json(args)
    }

    /// How one plugin is, from `status`.
    #[track_caller]
    pub fn status(&self, plugin: &str) -> Value {
        let status = self.json(&["status", plugin]);
        status["plugins"][0].clone()
    }

    /// Waits until a plugin is in a state, and returns its status.
    #[track_caller]
    pub fn wait_for_state(&self, plugin: &str, state: &str) -> Value {
        let ends = Instant::now() + Duration::from_secs(30);
        loop {
            let status = self.status(plugin);
            if status["state"] == state {
                return status;
            }
            assert!(Instant::now() < ends, "{plugin} did not come to {state}: {status:#}");
        }
    }

    /// A connected client of its control API.
    pub async fn client(&self) -> Client {
        Client::connect(&self.sandbox.socket()).await.expect("the daemon is reachable")
    }

    /// Sends a signal to the daemon itself.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(raw_pid(&self.child), signal).expect("the daemon is alive");
    }

    /// Waits for its end and returns the exit code; -1 where a signal ended it.
    pub fn wait(&mut self) -> i32 {
        self.child.wait().expect("the daemon ends").code().unwrap_or(-1)
    }

    /// Stops it in order, and checks that it went well.
    #[track_caller]
    pub fn stop(mut self) {
        self.end();
    }

    #[track_caller]
    fn end(&mut self) {
        let plugins: Vec<u32> = self.children();
        if alive(self.child.id()) {
            let _gone = rustix::process::kill_process(raw_pid(&self.child), Signal::TERM);
        }
        let ends = Instant::now() + Duration::from_secs(30);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > ends {
                let _gone = self.child.kill();
                let _reaped = self.child.wait();
                panic!("the daemon did not end within 30 s: {}", self.sandbox.read("daemon.log"));
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        if std::thread::panicking() {
            eprintln!("the daemon's log:\n{}", self.sandbox.read("daemon.log"));
            return;
        }
        let left: Vec<u32> = plugins.into_iter().flat_map(group_members).collect();
        assert!(left.is_empty(), "processes are left behind: {left:?}");
        let log = self.sandbox.read("daemon.log");
        let error = log.lines().find(|line| line.contains("ERROR") || line.contains("panicked"));
        assert!(self.errors_expected || error.is_none(), "the daemon logged an error: {error:?}");
    }

    /// Its children that have ended and were not waited for.
    pub fn zombies(&self) -> Vec<u32> {
        let ended = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
        };
        self.children().into_iter().filter(ended).collect()
    }

    /// The plugins' processes: each leads a group of its own.
    fn children(&self) -> Vec<u32> {
        let pid = self.child.id();
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
        children
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn raw_pid(child: &Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid")
}
