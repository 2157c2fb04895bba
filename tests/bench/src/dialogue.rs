//! A program on bare pipes that is spoken to in its own protocol: a bare loop, a plugin, an MCP server.

use std::io;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memchr::memmem;
use serde_json::json;

use crate::bare::Bare;
use crate::contender::{Case, Contender, Figures, TripTimes};
use crate::lives::kill;

/// A program that has not answered so long after it should have is lost; an MCP server takes seconds to load.
const PATIENCE: Duration = Duration::from_secs(60);

/// So often a program is called before it is measured: virtual machines compile what is called often.
pub(crate) const WARM_UP_CALLS: u32 = 20_000;

/// Warming up takes no longer than this.
pub(crate) const WARM_UP_MAX: Duration = Duration::from_secs(4);

/// What each request says in the Model Context Protocol since it has no handshake.
const MCP_META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"}}"#;

/// Ids have the same number of digits at all times, and occur nowhere else in a line.
const FIRST_ID: u64 = 1_000_000_000;

/// As much of a wrong answer is shown, in bytes.
const SHOWN_MAX: usize = 300;

/// What a program understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    /// Calls as a plugin gets them, and nothing before.
    Loop,
    /// plugd's protocol.
    Plugin,
    /// The Model Context Protocol of 2025-11-25 with its handshake.
    Mcp,
    /// The Model Context Protocol of 2026-07-28, which has none.
    Mcp2026,
}

/// A running program that has answered many calls.
pub(crate) struct Dialogue {
    name: &'static str,
    speech: Speech,
    bare: Bare,
    last_id: u64,
}

impl Dialogue {
    /// Starts a program and sees it answer.
    ///
    /// # Errors
    /// It could not be started, or did not answer as it should.
    pub(crate) fn start(name: &'static str, speech: Speech, command: &mut Command) -> io::Result<Dialogue> {
        let bare = Bare::spawn_command(command)?;
        let mut dialogue = Dialogue { name, speech, bare, last_id: FIRST_ID };
        let _watch = Watch::over(dialogue.bare.pid(), PATIENCE);
        dialogue.open()?;
        let (begun, payload) = (Instant::now(), "x".repeat(32));
        for _ in 0..WARM_UP_CALLS {
            dialogue.call(&payload)?;
            if begun.elapsed() > WARM_UP_MAX {
                break;
            }
        }
        Ok(dialogue)
    }

    fn open(&mut self) -> io::Result<()> {
        let about = json!({ "name": "bench", "version": "1.0.0" });
        match self.speech {
            Speech::Loop | Speech::Mcp2026 => Ok(()),
            Speech::Plugin => {
                let protocol = json!({ "versions": [1], "features": ["host_calls", "log"] });
                self.ask("describe", json!({ "protocol": protocol, "host": about }))?;
                self.ask(
                    "init",
                    json!({ "config": {}, "data_dir": std::env::temp_dir(), "log_level": "info" }),
                )
            }
            Speech::Mcp => {
                self.ask(
                    "initialize",
                    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about }),
                )?;
                self.bare.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            }
        }
    }

    fn ask(&mut self, method: &str, params: serde_json::Value) -> io::Result<()> {
        self.last_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.bare.send(format!("{request}\n").as_bytes())?;
        self.receive("\"result\"")?;
        Ok(())
    }

    /// The line of the next call.
    fn next_call(&mut self, payload: &str) -> Vec<u8> {
        self.last_id += 1;
        let id = self.last_id;
        let (method, params) = match self.speech {
            Speech::Loop | Speech::Plugin => {
                // As the engine sends it.
                let context = format!(
                    r#"{{"call_id":"01936d5e-7c00-7000-8000-{:012}","deadline_ms":30000,"attempt":1}}"#,
                    id - FIRST_ID
                );
                let call = format!(
                    r#""operation":"echo","arguments":{{"payload":"{payload}"}},"context":{context}"#
                );
                ("call", call)
            }
            Speech::Mcp => ("tools/call", format!(r#""name":"echo","arguments":{{"payload":"{payload}"}}"#)),
            Speech::Mcp2026 => {
                let call =
                    format!(r#""name":"echo","arguments":{{"payload":"{payload}"}},"_meta":{MCP_META}"#);
                ("tools/call", call)
            }
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}\n")
            .into_bytes()
    }

    /// Makes one call and gives the time to its answer.
    fn call(&mut self, payload: &str) -> io::Result<Duration> {
        let line = self.next_call(payload);
        let sent = Instant::now();
        self.bare.send(&line)?;
        Ok(self.receive(payload)? - sent)
    }

    /// Waits for the answer to the last request, and gives the moment it came; what else comes is passed over.
    fn receive(&mut self, expected: &str) -> io::Result<Instant> {
        let id = self.last_id.to_string();
        loop {
            let line = self.bare.receive()?;
            let came = Instant::now();
            if memmem::find(line, id.as_bytes()).is_some() {
                check(line, expected)?;
                return Ok(came);
            }
        }
    }
}

/// Sees that an answer is no error and has in it what it should.
fn check(line: &[u8], expected: &str) -> io::Result<()> {
    let is_error = memmem::find(line, b"\"error\"").is_some();
    if !is_error && memmem::find(line, expected.as_bytes()).is_some() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_MAX)]);
    Err(io::Error::other(format!("the answer is not what it should be: {shown}")))
}

impl Contender for Dialogue {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let pid = self.bare.pid();
        let _watch = Watch::over(pid, slice + PATIENCE);
        let payload = "x".repeat(case.payload);
        let before = cpu_us(pid)?;
        let mut trips = TripTimes::begin(slice);
        let mut count = 0.0;
        while !trips.over() {
            trips.add(self.call(&payload)?);
            count += 1.0;
        }
        let cpu_us = (cpu_us(pid)? - before) / count;
        Ok(Figures { cpu_us, ..trips.figures() })
    }
}

/// The processor time that the threads of a process have taken, in microseconds.
fn cpu_us(pid: u32) -> io::Result<f64> {
    let mut sum = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanoseconds: f64 = text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        sum += nanoseconds / 1000.0;
    }
    Ok(sum)
}

/// Kills a child that keeps its host waiting: a blocking read has no deadline of its own.
///
/// It must be dropped before the child is reaped.
struct Watch {
    over: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn over(pid: u32, limit: Duration) -> Watch {
        let (over, news) = mpsc::channel();
        let thread = thread::spawn(move || {
            if news.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                crate::progress(&format!("no answer within {limit:?}: its process is killed"));
                // Failing means that it is dead already.
                let _ = kill(pid);
            }
        });
        Watch { over: Some(over), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
