//! One run of a plugin: its process, its three pipes and its calls, owned by one task.
//!
//! The loop picks one event and handles it without waiting. Reads take what is there; writes go
//! straight into the pipe while the plugin reads and are kept, bounded, while it does not. So
//! neither direction can hold up the other, and no call waits for another plugin's pipe.

use std::os::unix::fs::DirBuilderExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plugd_protocol::control::LogStream;
use plugd_protocol::message::{write_notification, write_request};
use plugd_protocol::negotiation::Offer;
use plugd_protocol::plugin::{
    CancelParams, DescribeParams, HostInfo, InitParams, LogLevel, ShutdownParams, method,
};
use plugd_protocol::{CallId, Decoder, PluginName, RpcError};
use rustix::process::Signal;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::door::{RunCall, RunDoor};
use super::exit::ExitRecord;
use super::host::{Host, HostReply};
use super::in_flight::InFlight;
use super::launch::{NotSpawned, Pipes, Process, Spawner};
use super::log_lines::{LineBudget, LineSplitter, Tail};
use super::outbound::{Flushed, Outbound};
use super::plugins::RunSettings;
use crate::machine::{Fact, Generation, StopReason};

/// Answers to `host/call`s on their way back; as many calls of one run can be outside at once.
pub(super) const HOST_CALLS_MAX: usize = 64;

/// So many waiting calls share a write: measured, 8 to 16 cost the least for each. With fewer the
/// system calls weigh; with more, host and plugin take turns instead of working side by side.
const CALLS_PER_WRITE: usize = 8;

/// A process that has closed a pipe is about to end; if it has not by then, it is replaced.
const MUTE_GRACE: Duration = Duration::from_secs(1);

/// What the control task tells a run.
#[derive(Debug)]
pub(super) enum Command {
    Init,
    Drain,
    AskToLeave(StopReason, Duration),
    CloseStdin,
    Terminate,
    Kill,
}

/// What a run tells the control task.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) fact: Fact,
    pub(super) exit: Option<ExitRecord>,
    /// How long the step took that this fact ends.
    pub(super) took: Duration,
}

/// A request of ours, other than a call, that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    Describe,
    Init,
    Shutdown,
}

/// An answer to a `host/call`, to be sent back.
pub(super) struct HostAnswer {
    pub(super) id: Box<RawValue>,
    pub(super) outcome: Result<HostReply, RpcError>,
}

pub(super) struct Run {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) settings: Arc<RunSettings>,
    pub(super) host: Arc<dyn Host>,
    pub(super) door: Arc<RunDoor>,
    facts: mpsc::Sender<Report>,
    /// Facts of this turn, not yet sent.
    pub(super) seen: Vec<Report>,
    pub(super) outbound: Outbound,
    pub(super) calls: InFlight,
    last_id: u64,
    pub(super) setup: Option<(u64, Setup)>,
    pub(super) step_began: Instant,
    pub(super) described: bool,
    pub(super) ready: bool,
    draining: bool,
    pub(super) stopping: Option<StopReason>,
    pub(super) fault: Option<String>,
    /// The pipe that the plugin closed, and when that was seen.
    mute: Option<(&'static str, Instant)>,
    pub(super) budget: LineBudget,
    pub(super) strays_in_a_row: u32,
    pub(super) first_stray: Option<String>,
    pub(super) tail: Tail,
    last_activity: Instant,
    /// The next thing due; may be early, never late.
    due: Option<Instant>,
    /// What the sleep is set to.
    armed: Option<Instant>,
    pub(super) host_answers: mpsc::Sender<HostAnswer>,
    /// Each `host/call` outside holds one more count of this.
    pub(super) outside: Arc<()>,
}

/// What a new run is made of.
pub(super) struct RunParts {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) settings: Arc<RunSettings>,
    pub(super) host: Arc<dyn Host>,
    pub(super) door: Arc<RunDoor>,
    pub(super) facts: mpsc::Sender<Report>,
    pub(super) spawner: Spawner,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) calls: mpsc::Receiver<RunCall>,
    pub(super) abandoned: mpsc::Receiver<()>,
}

/// What comes to a run from its own side of the pipes.
struct Inbox {
    commands: mpsc::Receiver<Command>,
    calls: mpsc::Receiver<RunCall>,
    answers: mpsc::Receiver<HostAnswer>,
    abandoned: mpsc::Receiver<()>,
}

enum Turn {
    Ended,
    Command(Option<Command>),
    Call(Option<RunCall>),
    Stdout(std::io::Result<usize>),
    Stderr(std::io::Result<usize>),
    Writable,
    HostAnswer(HostAnswer),
    Deadline,
    Abandoned,
}

/// Makes the process and serves it until it has ended; reports that exactly once.
pub(super) async fn run(parts: RunParts) {
    let RunParts { plugin, generation, settings, host, door, facts, spawner, commands, calls, abandoned } =
        parts;
    let began = Instant::now();
    let (process, pipes) = match spawner.spawn(&settings.launch).await {
        Ok(spawned) => spawned,
        Err(NotSpawned { reason, passing }) => {
            let fact = Fact::NotSpawned { reason, passing };
            let report = Report { plugin, generation, fact, exit: None, took: began.elapsed() };
            // The control task outlives its runs, or nobody is left to tell.
            let _gone = facts.send(report).await;
            return;
        }
    };
    let Pipes { stdin, stdout, stderr } = pipes;
    let (host_answers, answers) = mpsc::channel(HOST_CALLS_MAX);
    let mut run = Run {
        plugin,
        generation,
        settings,
        host,
        door,
        facts,
        seen: Vec::new(),
        outbound: Outbound::new(stdin),
        calls: InFlight::default(),
        last_id: 0,
        setup: None,
        step_began: Instant::now(),
        described: false,
        ready: false,
        draining: false,
        stopping: None,
        fault: None,
        mute: None,
        budget: LineBudget::new(Instant::now()),
        strays_in_a_row: 0,
        first_stray: None,
        tail: Tail::default(),
        last_activity: Instant::now(),
        due: None,
        armed: None,
        host_answers,
        outside: Arc::new(()),
    };
    run.report(Fact::Spawned { pid: process.pid() });
    run.ask(Setup::Describe, method::DESCRIBE, &describe_params());
    run.serve(process, stdout, stderr, Inbox { commands, calls, answers, abandoned }).await;
}

fn describe_params() -> DescribeParams {
    let host = HostInfo { name: "plugd".into(), version: env!("CARGO_PKG_VERSION").into() };
    DescribeParams { protocol: Offer::of_host(), host }
}

impl Run {
    async fn serve(
        &mut self,
        mut process: Process,
        mut stdout: pipe::Receiver,
        mut stderr: pipe::Receiver,
        inbox: Inbox,
    ) {
        let Inbox { mut commands, mut calls, mut answers, mut abandoned } = inbox;
        let mut decoder = Decoder::new(self.settings.frame_limit);
        let mut splitter = LineSplitter::default();
        let mut stderr_buffer = Vec::new();
        let (mut stdout_open, mut stderr_open, mut commands_open) = (true, true, true);
        let mut sleep: Pin<Box<Sleep>> = Box::pin(tokio::time::sleep(Duration::ZERO));
        loop {
            if self.outbound.flush() == Flushed::Broken {
                self.closed("stdin");
            }
            self.send_seen().await;
            self.arm(&mut sleep);
            let turn = tokio::select! {
                read = stdout.read_buf(decoder.room()), if stdout_open => Turn::Stdout(read),
                call = calls.recv(), if !self.draining && self.outbound.has_room() => Turn::Call(call),
                command = commands.recv(), if commands_open => Turn::Command(command),
                Some(answer) = answers.recv() => Turn::HostAnswer(answer),
                read = stderr.read_buf(&mut stderr_buffer), if stderr_open => Turn::Stderr(read),
                () = self.outbound.writable(), if self.outbound.waits() => Turn::Writable,
                () = sleep.as_mut(), if self.armed.is_some() => Turn::Deadline,
                Some(()) = abandoned.recv() => Turn::Abandoned,
                () = process.ended() => Turn::Ended,
            };
            match turn {
                Turn::Stdout(read) => {
                    stdout_open = matches!(read, Ok(count) if count > 0);
                    if !stdout_open {
                        self.closed("stdout");
                    }
                    if stderr_open {
                        self.read_stderr_first(&stderr, &mut splitter, &mut stderr_buffer);
                    }
                    self.read_frames(&mut decoder);
                }
                Turn::Stderr(read) => {
                    stderr_open = matches!(read, Ok(count) if count > 0);
                    self.read_stderr(&mut splitter, &mut stderr_buffer);
                }
                Turn::Call(Some(call)) => self.deliver_all(call, &mut calls),
                Turn::Call(None) => self.draining = true,
                Turn::Command(Some(command)) => self.obey(command, &process, &mut calls),
                Turn::Command(None) => {
                    // The control task is gone: nobody will ask for anything any more.
                    commands_open = false;
                    process.signal_group(Signal::KILL);
                }
                Turn::HostAnswer(answer) => self.send_host_answer(answer),
                Turn::Writable => {}
                Turn::Deadline => {
                    self.read_what_is_there(&stdout, &mut decoder);
                    self.expire();
                }
                Turn::Abandoned => {
                    let cancel = self.calls.abandoned(Instant::now());
                    self.send_cancels(cancel);
                }
                Turn::Ended => break,
            }
        }
        self.last_words(&mut decoder, &mut stdout, &mut splitter, &mut stderr);
        self.finish(&mut process, calls).await;
    }

    /// Reads once more before a deadline counts: an answer that stands in the pipe is in time.
    fn read_what_is_there(&mut self, stdout: &pipe::Receiver, decoder: &mut Decoder) {
        if stdout.try_read_buf(decoder.room()).is_ok_and(|count| count > 0) {
            self.read_frames(decoder);
        }
    }

    /// Tells the control task, after this turn, what was seen.
    pub(super) fn report(&mut self, fact: Fact) {
        let took = self.step_began.elapsed();
        self.seen.push(Report {
            plugin: self.plugin.clone(),
            generation: self.generation,
            fact,
            exit: None,
            took,
        });
    }

    pub(super) async fn send_seen(&mut self) {
        for report in self.seen.drain(..) {
            // The control task outlives its runs, or nobody is left to tell.
            let _gone = self.facts.send(report).await;
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Sends a request of ours that is no call.
    fn ask(&mut self, setup: Setup, method: &str, params: &impl serde::Serialize) {
        let id = self.next_id();
        self.step_began = Instant::now();
        self.setup = Some((id, setup));
        if let Err(error) = write_request(self.outbound.buffer(), id, method, params) {
            tracing::error!(plugin = %self.plugin, %error, method, "a request cannot be written");
        }
    }

    fn obey(&mut self, command: Command, process: &Process, calls: &mut mpsc::Receiver<RunCall>) {
        match command {
            Command::Init => self.init(),
            Command::Drain => {
                self.ready = false;
                self.door.lanes.close();
                calls.close();
                while let Ok(call) = calls.try_recv() {
                    self.deliver_all(call, calls);
                }
                self.draining = true;
                self.report_if_drained();
            }
            Command::AskToLeave(reason, grace) => {
                self.stopping = Some(reason);
                let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                let params = ShutdownParams { reason: reason.as_str().into(), grace_ms };
                self.ask(Setup::Shutdown, method::SHUTDOWN, &params);
            }
            Command::CloseStdin => self.outbound.close(),
            Command::Terminate => {
                process.signal_group(Signal::TERM);
                process.signal_group(Signal::CONT);
            }
            Command::Kill => {
                if self.fault.is_none() && self.stopping.is_none() {
                    // Nothing it did: everything ends, and at once.
                    self.stopping = Some(StopReason::Exit);
                }
                process.signal_group(Signal::KILL);
            }
        }
    }

    fn init(&mut self) {
        let data_dir = &self.settings.data_dir;
        let prepared = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .map_err(|error| format!("cannot make its data folder {}: {error}", data_dir.display()))
            .and_then(|()| self.host.init_config(&self.plugin));
        match prepared {
            Err(reason) => self.report(Fact::InitRefused { reason }),
            Ok(config) => {
                let params = InitParams {
                    config,
                    data_dir: data_dir.display().to_string(),
                    locale: self.settings.locale.clone(),
                    log_level: self.settings.log_level,
                };
                self.ask(Setup::Init, method::INIT, &params);
            }
        }
    }

    /// Delivers a call and some of those that came with it, so that they share one write.
    fn deliver_all(&mut self, first: RunCall, calls: &mut mpsc::Receiver<RunCall>) {
        let now = Instant::now();
        let waiting = std::iter::from_fn(|| calls.try_recv().ok());
        for call in std::iter::once(first).chain(waiting).take(CALLS_PER_WRITE) {
            let id = self.next_id();
            self.send_call(now, id, call);
        }
        self.count_in_flight(now);
    }

    /// Takes note that a call has ended, and what that makes possible.
    pub(super) fn call_ended(&mut self, now: Instant) {
        self.count_in_flight(now);
        self.note_idle();
        self.report_if_drained();
    }

    fn count_in_flight(&mut self, now: Instant) {
        self.last_activity = now;
        self.door.in_flight.store(u32::try_from(self.calls.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    fn report_if_drained(&mut self) {
        if self.draining && self.stopping.is_none() && !self.calls.awaited() {
            self.report(Fact::Drained);
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let cancel = self.calls.expire(now, self.door.heard());
        self.send_cancels(cancel);
        let lanes = self.door.concurrency.load(Ordering::Relaxed) as usize;
        let grace = self.settings.cancel_grace;
        if self.fault.is_none() && !self.calls.is_empty() && self.calls.stuck(now, lanes, grace) {
            self.misbehaved(format!("stuck: no answer within {grace:?} after cancel"));
        }
        if let Some((pipe, since)) = self.mute
            && since + MUTE_GRACE <= now
            && self.stopping.is_none()
        {
            self.misbehaved(format!("it closed its {pipe} and lives on, so it can never answer"));
        }
        if let Some(idle) = self.idle_at()
            && idle <= now
        {
            self.ready = false;
            self.report(Fact::Idle);
        }
        let calls_due = if self.fault.is_none() { self.calls.due(now, grace) } else { None };
        let mute_due = self.mute.map(|(_, since)| since + MUTE_GRACE).filter(|due| *due > now);
        self.due = [calls_due, self.idle_at(), mute_due].into_iter().flatten().min();
    }

    fn send_cancels(&mut self, calls: Vec<CallId>) {
        if !calls.is_empty() {
            self.due_at(Instant::now() + self.settings.cancel_grace);
        }
        for call_id in calls {
            let written =
                write_notification(self.outbound.buffer(), method::CANCEL, &CancelParams { call_id });
            if let Err(error) = written {
                tracing::error!(plugin = %self.plugin, %error, "a cancel cannot be written");
            }
        }
        self.report_if_drained();
    }

    /// Takes note that the plugin closed one of its pipes. If it lives on, it can never answer.
    fn closed(&mut self, pipe: &'static str) {
        if self.mute.is_none() {
            let since = Instant::now();
            self.mute = Some((pipe, since));
            self.due_at(since + MUTE_GRACE);
        }
    }

    /// Reports a violation, once.
    pub(super) fn misbehaved(&mut self, reason: String) {
        if self.fault.is_none() {
            self.log(LogStream::Runtime, LogLevel::Warn, None, reason.clone());
            self.fault = Some(reason.clone());
            self.report(Fact::Misbehaved { reason });
        }
    }

    /// Has the idle timeout looked at, where there is one.
    pub(super) fn note_idle(&mut self) {
        if let Some(idle) = self.idle_at() {
            self.due_at(idle);
        }
    }

    fn idle_at(&self) -> Option<Instant> {
        let idle = self.settings.idle_timeout?;
        (self.ready && self.calls.is_empty()).then(|| self.last_activity + idle)
    }

    /// Takes note that something is due then.
    pub(super) fn due_at(&mut self, instant: Instant) {
        if self.due.is_none_or(|due| instant < due) {
            self.due = Some(instant);
        }
    }

    /// Sets the sleep to the next thing due.
    ///
    /// It may ring early, for a call that has ended since: then it is only set anew. So a call
    /// that ends in time costs no timer.
    fn arm(&mut self, sleep: &mut Pin<Box<Sleep>>) {
        if self.due != self.armed {
            self.armed = self.due;
            if let Some(due) = self.due {
                sleep.as_mut().reset(due.into());
            }
        }
    }
}
