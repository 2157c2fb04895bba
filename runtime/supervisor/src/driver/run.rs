//! One run of a plugin: its process, its three pipes and its calls, owned by one task.
//!
//! The loop picks one event and handles it without waiting. Reads take what is there; writes go
//! straight into the pipe while the plugin reads and are kept, bounded, while it does not. So
//! neither direction can hold up the other, and no call waits for another plugin's pipe.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plugd_protocol::control::LogStream;
use plugd_protocol::message::write_notification;
use plugd_protocol::plugin::{CancelParams, LogLevel, method};
use plugd_protocol::{CallId, PluginName};
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Sleep;

use super::door::{RunCall, RunDoor};
use super::exit::ExitRecord;
use super::health::Health;
use super::host::Host;
use super::in_flight::InFlight;
use super::launch::{NotSpawned, Pipes, Process, RunMark, Spawner};
use super::log_lines::{LineBudget, Tail, Whose};
use super::outbound::{Flushed, Outbound};
use super::plugins::{LiveSettings, RunSettings};
use super::reading::{Read, Streams};
use super::requests::HostAnswer;
use super::setup::{Command, Setup};
use crate::machine::{Fact, Generation, StopReason};

/// So many waiting calls share a write: measured, 8 to 16 cost the least for each. With fewer the
/// system calls weigh; with more, host and plugin take turns instead of working side by side.
const CALLS_PER_WRITE: usize = 8;

/// Calls often follow one another within this, and then use the same buffers.
const BUFFERS_KEPT: Duration = Duration::from_millis(100);

/// After so many frames everybody else has a turn: a flood from one plugin delays no other. The
/// number is that of Core Lightning, which does the same.
const FRAMES_IN_A_ROW_MAX: u32 = 100;

/// A process that has closed a pipe is about to end; if it has not by then, it is replaced.
const MUTE_GRACE: Duration = Duration::from_secs(1);

/// What a run tells the control task.
#[derive(Debug)]
pub(super) enum Told {
    /// Something was seen.
    Fact(Box<Report>),
    /// Nothing of the run is left: the last that is heard of it, after its end.
    Buried(PluginName, Generation),
}

/// Something that was seen of a run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) fact: Fact,
    pub(super) exit: Option<ExitRecord>,
    /// How long the step took that this fact ends.
    pub(super) took: Duration,
}

pub(super) struct Run {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) settings: Arc<RunSettings>,
    /// What can change meanwhile.
    pub(super) live: LiveSettings,
    pub(super) host: Arc<dyn Host>,
    pub(super) door: Arc<RunDoor>,
    facts: mpsc::Sender<Told>,
    /// Facts of this turn, not yet sent.
    pub(super) seen: Vec<Report>,
    pub(super) outbound: Outbound,
    pub(super) calls: InFlight,
    last_id: u64,
    pub(super) setup: Option<(u64, Setup)>,
    pub(super) step_began: Instant,
    pub(super) described: bool,
    pub(super) ready: bool,
    pub(super) answers_pings: bool,
    pub(super) health: Option<Health>,
    pub(super) draining: bool,
    pub(super) stopping: Option<StopReason>,
    pub(super) fault: Option<String>,
    /// When the room for frames is given back, if no call is in flight then.
    buffers_kept_until: Option<Instant>,
    /// Frames handled since other tasks had their turn.
    pub(super) frames_in_a_row: u32,
    /// When it is to be described again, for it said that its manifest changed.
    pub(super) describe_due: Option<Instant>,
    /// When it was last described again.
    pub(super) described_at: Option<Instant>,
    /// Lanes to close when their calls have ended, for it takes fewer calls now.
    pub(super) lanes_to_close: usize,
    /// Why the launcher did not become the plugin.
    pub(super) not_launched: Option<NotSpawned>,
    /// The pipe that the plugin closed, and when that was seen.
    mute: Option<(&'static str, Instant)>,
    pub(super) budget: LineBudget,
    /// Whether the log has a line of its own.
    pub(super) said_something: bool,
    pub(super) strays_in_a_row: u32,
    pub(super) first_stray: Option<String>,
    pub(super) tail: Tail,
    /// What the line was begun in that is not ended yet.
    pub(super) line_begun: Whose,
    /// Whether a call has come.
    pub(super) called: bool,
    pub(super) last_activity: Instant,
    /// The next thing due; may be early, never late.
    due: Option<Instant>,
    /// What the sleep is set to.
    armed: Option<Instant>,
    /// What the plugin asked of the host and has no answer yet; it ends with the run.
    pub(super) requests: JoinSet<HostAnswer>,
}

/// What a new run is made of.
pub(super) struct RunParts {
    pub(super) plugin: PluginName,
    pub(super) generation: Generation,
    pub(super) settings: Arc<RunSettings>,
    pub(super) host: Arc<dyn Host>,
    pub(super) door: Arc<RunDoor>,
    pub(super) facts: mpsc::Sender<Told>,
    pub(super) spawner: Spawner,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) calls: mpsc::Receiver<RunCall>,
}

/// What comes to a run from its own side of the pipes.
struct Inbox {
    commands: mpsc::Receiver<Command>,
    calls: mpsc::Receiver<RunCall>,
}

enum Turn {
    Read(Read),
    Command(Option<Command>),
    Call(Option<RunCall>),
    Writable,
    HostAnswer(Result<HostAnswer, JoinError>),
    Deadline,
    Abandoned,
}

/// Makes the process and serves it until it has ended; reports that exactly once.
pub(super) async fn run(parts: RunParts) {
    let RunParts { plugin, generation, settings, host, door, facts, spawner, commands, calls } = parts;
    let began = Instant::now();
    let mark = RunMark { plugin: plugin.clone(), generation };
    let (mut process, pipes) = match spawner.spawn(&settings.launch, &mark).await {
        Ok(spawned) => spawned,
        Err(NotSpawned { reason, passing }) => {
            let fact = Fact::NotSpawned { reason, passing };
            let took = began.elapsed();
            let report = Report { plugin: plugin.clone(), generation, fact, exit: None, took };
            // The control task outlives its runs, or nobody is left to tell.
            let _gone = facts.send(Told::Fact(Box::new(report))).await;
            let _gone = facts.send(Told::Buried(plugin, generation)).await;
            return;
        }
    };
    let Pipes { stdin, stdout, stderr } = pipes;
    let (enforced, not_enforced) = process.enforced();
    door.hold(enforced, not_enforced);
    let mut run = Run {
        plugin,
        generation,
        live: settings.live,
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
        answers_pings: false,
        health: None,
        buffers_kept_until: None,
        frames_in_a_row: 0,
        describe_due: None,
        described_at: None,
        lanes_to_close: 0,
        not_launched: None,
        draining: false,
        stopping: None,
        fault: None,
        mute: None,
        budget: LineBudget::new(Instant::now()),
        said_something: false,
        strays_in_a_row: 0,
        first_stray: None,
        tail: Tail::default(),
        line_begun: Whose::Before,
        called: false,
        last_activity: Instant::now(),
        due: None,
        armed: None,
        requests: JoinSet::new(),
    };
    run.report(Fact::Spawned { pid: process.pid() });
    run.describe();
    let streams = Streams::new(stdout, stderr, run.settings.frame_limit);
    run.serve(process, streams, Inbox { commands, calls }).await;
}

impl Run {
    async fn serve(&mut self, mut process: Process, mut streams: Streams, inbox: Inbox) {
        let Inbox { mut commands, mut calls } = inbox;
        let door = Arc::clone(&self.door);
        let mut commands_open = true;
        let mut sleep: Pin<Box<Sleep>> = Box::pin(tokio::time::sleep(Duration::ZERO));
        loop {
            if self.outbound.flush() == Flushed::Broken {
                self.closed("stdin");
            }
            self.send_seen().await;
            self.arm(&mut sleep);
            let turn = tokio::select! {
                read = streams.read(), if streams.open() => Turn::Read(read),
                call = calls.recv(), if !self.draining && self.outbound.has_room() => Turn::Call(call),
                command = commands.recv(), if commands_open => Turn::Command(command),
                Some(answer) = self.requests.join_next() => Turn::HostAnswer(answer),
                () = self.outbound.writable(), if self.outbound.waits() => Turn::Writable,
                () = sleep.as_mut(), if self.armed.is_some() => Turn::Deadline,
                () = door.abandoned.notified() => Turn::Abandoned,
                () = process.ended() => break,
            };
            match turn {
                Turn::Read(Read::Stdout) => self.read_stdout(&mut streams),
                Turn::Read(Read::Stderr) => self.read_stderr(&mut streams),
                Turn::Call(Some(call)) => {
                    self.read_waiting_stderr(&mut streams);
                    self.deliver_all(call, &mut calls);
                }
                Turn::Call(None) => self.draining = true,
                Turn::Command(Some(command)) => self.obey(command, &process, &mut calls),
                Turn::Command(None) => {
                    // The control task is gone: nobody will ask for anything any more.
                    commands_open = false;
                    process.signal_group(Signal::KILL);
                }
                Turn::HostAnswer(Ok(answer)) => self.send_host_answer(answer),
                Turn::HostAnswer(Err(error)) => {
                    tracing::error!(plugin = %self.plugin, %error, "a request of it is lost");
                }
                Turn::Writable => {}
                Turn::Deadline => {
                    // An answer that stands in the pipe is in time.
                    if streams.read_stdout_now() {
                        self.read_stdout(&mut streams);
                    }
                    self.release_buffers(&mut streams);
                    self.expire();
                }
                Turn::Abandoned => {
                    let cancel = self.calls.abandoned(Instant::now());
                    self.send_cancels(cancel, "its caller went away: the plugin is told to cancel it");
                }
            }
            if self.frames_in_a_row >= FRAMES_IN_A_ROW_MAX {
                self.frames_in_a_row = 0;
                tokio::task::yield_now().await;
            }
        }
        self.finish(&mut process, streams, calls).await;
    }

    fn read_stdout(&mut self, streams: &mut Streams) {
        if !streams.stdout_open {
            self.closed("stdout");
        }
        // What was written to stderr before an answer belongs to that call.
        self.read_waiting_stderr(streams);
        let begun = if streams.lines.is_begun() { self.only_call() } else { None };
        self.read_frames(&mut streams.frames);
        if let Some(call_id) = begun {
            self.end_line_of(call_id, streams);
        }
        if self.calls.is_empty() && self.buffers_kept_until.is_none() {
            let until = Instant::now() + BUFFERS_KEPT;
            self.buffers_kept_until = Some(until);
            self.due_at(until);
        }
    }

    /// Gives buffers back when no call has come for a while: an idle plugin holds none.
    fn release_buffers(&mut self, streams: &mut Streams) {
        if let Some(until) = self.buffers_kept_until
            && until <= Instant::now()
        {
            self.buffers_kept_until = None;
            if self.calls.is_empty() {
                streams.frames.release();
            }
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

    /// Tells the control task that nothing of this run is left.
    pub(super) async fn send_buried(&mut self) {
        // As above.
        let _gone = self.facts.send(Told::Buried(self.plugin.clone(), self.generation)).await;
    }

    pub(super) async fn send_seen(&mut self) {
        // Facts are rare: no room is kept for them.
        for report in std::mem::take(&mut self.seen) {
            // The control task outlives its runs, or nobody is left to tell.
            let _gone = self.facts.send(Told::Fact(Box::new(report))).await;
        }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Delivers a call and some of those that came with it, so that they share one write.
    pub(super) fn deliver_all(&mut self, first: RunCall, calls: &mut mpsc::Receiver<RunCall>) {
        let now = Instant::now();
        self.called = true;
        let waiting = std::iter::from_fn(|| calls.try_recv().ok());
        for call in std::iter::once(first).chain(waiting).take(CALLS_PER_WRITE) {
            let id = self.next_id();
            self.send_call(now, id, call);
        }
        self.count_in_flight(now);
    }

    /// Takes note that a call has ended, and what that makes possible.
    pub(super) fn call_ended(&mut self, now: Instant) {
        if self.lanes_to_close > 0 {
            self.lanes_to_close -= self.door.lanes.forget_permits(self.lanes_to_close);
        }
        self.count_in_flight(now);
        self.seen_alive(now);
        self.note_idle();
        self.report_if_drained();
    }

    fn count_in_flight(&mut self, now: Instant) {
        self.last_activity = now;
        self.door.in_flight.store(u32::try_from(self.calls.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub(super) fn report_if_drained(&mut self) {
        if self.draining && self.stopping.is_none() && !self.calls.awaited() {
            self.report(Fact::Drained);
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let cancel = self.calls.expire(now, self.door.heard());
        self.send_cancels(cancel, "not answered in time: the plugin is told to cancel it");
        let lanes = self.door.concurrency.load(Ordering::Relaxed) as usize;
        let grace = self.live.cancel_grace;
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
            // It may be needed all the same: then it is asked again after as long.
            self.last_activity = now;
            // A lane that is taken belongs to a call that is about to come.
            let lanes = self.door.concurrency.load(Ordering::Relaxed) as usize;
            if self.door.lanes.available_permits() >= lanes {
                self.report(Fact::Idle);
            }
        }
        self.describe_where_due(now);
        self.check_health(now);
        if let Some(count) = self.budget.gap(now) {
            self.log_gap(count);
        }
        let calls_due = if self.fault.is_none() { self.calls.due(now, grace) } else { None };
        let mute_due = self.mute.map(|(_, since)| since + MUTE_GRACE).filter(|due| *due > now);
        let describe_due = self.describe_due.filter(|_| self.setup.is_none());
        let log_due = self.budget.due();
        let waits = [self.idle_at(), self.health_due(), self.buffers_kept_until];
        let due = [calls_due, mute_due, describe_due, log_due].into_iter().chain(waits);
        self.due = due.flatten().min();
    }

    fn send_cancels(&mut self, calls: Vec<CallId>, why: &str) {
        if !calls.is_empty() {
            self.due_at(Instant::now() + self.live.cancel_grace);
        }
        for call_id in calls {
            self.log_of_call(&call_id, why);
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

    /// Has the idle timeout and the next ping looked at, where there are any.
    pub(super) fn note_idle(&mut self) {
        for due in [self.idle_at(), self.health_due()].into_iter().flatten() {
            self.due_at(due);
        }
    }

    /// Has everything that may be due looked at, for the settings have changed.
    pub(super) fn look_now(&mut self) {
        self.due_at(Instant::now());
    }

    fn idle_at(&self) -> Option<Instant> {
        let idle = self.live.idle_timeout?;
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
