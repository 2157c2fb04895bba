//! What is asked of a run besides calls: to describe itself, to open and reopen its resources, to
//! say that it is alive, and to leave.

use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plugd_protocol::RpcError;
use plugd_protocol::control::LogStream;
use plugd_protocol::error::rpc_code;
use plugd_protocol::message::{whole_result, write_request};
use plugd_protocol::negotiation::Offer;
use plugd_protocol::plugin::{
    DescribeParams, HostInfo, InitParams, LogLevel, ReloadParams, ShutdownParams, method,
};
use rustix::process::Signal;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::door::RunCall;
use super::health::{Due, Health};
use super::host::{RunEvent, Standing};
use super::launch::Process;
use super::plugins::{LiveSettings, RunSettings};
use super::run::Run;
use crate::machine::{Fact, StopReason};

/// What the control task tells a run.
#[derive(Debug)]
pub(super) enum Command {
    /// Open your resources.
    Init,
    /// This is the plugin's configuration from now on.
    Reconfigure(Arc<serde_json::Value>),
    /// These settings hold from now on.
    Live(Box<LiveSettings>),
    /// Take no more calls; report when none is in flight.
    Drain,
    /// Ask it to leave.
    AskToLeave(StopReason, Duration),
    /// Close its stdin.
    CloseStdin,
    /// Send SIGTERM and SIGCONT to its group.
    Terminate,
    /// Send SIGKILL to its group.
    Kill,
}

/// A request of ours, other than a call or a ping, that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    Describe,
    Init,
    Reload,
    Shutdown,
}

/// A plugin whose manifest keeps changing is described again no sooner than this.
const DESCRIBE_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

impl Run {
    pub(super) fn obey(&mut self, command: Command, process: &Process, calls: &mut mpsc::Receiver<RunCall>) {
        match command {
            Command::Init => self.init(),
            Command::Reconfigure(config) => self.reconfigure(&config),
            Command::Live(live) => self.take_up(*live),
            Command::Drain => self.drain(calls),
            Command::AskToLeave(reason, grace) => {
                self.stopping = Some(reason);
                let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                let params = ShutdownParams { reason: reason.as_str().into(), grace_ms };
                self.ask(Setup::Shutdown, method::SHUTDOWN, &params);
            }
            Command::CloseStdin => {
                // One that was not ready is not asked to leave: its end is plugd's doing all the same.
                self.ended_by_plugd(StopReason::Stop);
                self.outbound.close();
            }
            Command::Terminate => {
                self.ended_by_plugd(StopReason::Stop);
                process.signal_group(Signal::TERM);
                process.signal_group(Signal::CONT);
            }
            Command::Kill => {
                // Nothing it did: everything ends, and at once.
                self.ended_by_plugd(StopReason::Exit);
                process.signal_group(Signal::KILL);
            }
        }
    }

    /// Takes note that plugd ends it; a fault of its own, or a reason from before, is why.
    fn ended_by_plugd(&mut self, reason: StopReason) {
        if self.fault.is_none() && self.stopping.is_none() {
            self.stopping = Some(reason);
        }
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

    /// The plugin says that its manifest changed: it is described again soon, once for a burst.
    pub(super) fn manifest_changed(&mut self) {
        if self.ready && self.describe_due.is_none() {
            let due = self.described_at.map_or_else(Instant::now, |at| at + DESCRIBE_AGAIN_AFTER);
            self.describe_due = Some(due);
            self.due_at(due);
        }
    }

    /// Describes again what said that it changed.
    pub(super) fn describe_where_due(&mut self, now: Instant) {
        if self.describe_due.is_some_and(|due| due <= now) && self.ready && self.setup.is_none() {
            self.describe_due = None;
            self.described_at = Some(now);
            self.host.event(&self.plugin, self.generation, RunEvent::ManifestChanged);
            self.describe();
        }
    }

    pub(super) fn describe(&mut self) {
        let host = HostInfo { name: "plugd".into(), version: env!("CARGO_PKG_VERSION").into() };
        let params = DescribeParams { protocol: Offer::of_host(), host };
        self.ask(Setup::Describe, method::DESCRIBE, &params);
    }

    /// The id that the first answer to `describe` must have, while that is waited for.
    pub(super) fn describe_waits_for(&self) -> Option<u64> {
        let (id, setup) = self.setup.filter(|_| !self.described)?;
        (setup == Setup::Describe).then_some(id)
    }

    /// The answer to `describe` came, and cannot be used: there is nothing more to wait for.
    pub(super) fn describe_refused(&mut self, why: &str) {
        self.setup = None;
        self.report(Fact::DescribeRefused { reason: format!("its answer to describe is unusable: {why}") });
    }

    fn init(&mut self) {
        let data_dir = &self.settings.data_dir;
        let manifest = self.door.manifest();
        let prepared = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .map_err(|error| format!("cannot make its data folder {}: {error}", data_dir.display()))
            .and_then(|()| self.host.init_config(&self.plugin, &self.settings.config, manifest.as_deref()));
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

    fn reconfigure(&mut self, written: &serde_json::Value) {
        match self.host.init_config(&self.plugin, written, None) {
            Err(reason) => self.report(Fact::ReconfigureRefused { reason }),
            Ok(config) => self.ask(Setup::Reload, method::RELOAD, &ReloadParams { config }),
        }
    }

    fn take_up(&mut self, live: LiveSettings) {
        self.live = live;
        if let Some(health) = &mut self.health {
            health.set(live.ping_interval, live.ping_misses);
            health.seen_alive(Instant::now());
        }
        self.look_now();
    }

    fn drain(&mut self, calls: &mut mpsc::Receiver<RunCall>) {
        self.ready = false;
        self.door.lanes.close();
        calls.close();
        while let Ok(call) = calls.try_recv() {
            self.deliver_all(call, calls);
        }
        self.draining = true;
        self.report_if_drained();
    }

    /// Takes the answer to a request of ours that is no call.
    pub(super) fn read_setup(&mut self, setup: Setup, line: &[u8], error: Option<RpcError>) {
        // To know neither `init` nor `shutdown` is to have nothing to do there.
        let optional = matches!(setup, Setup::Init | Setup::Shutdown);
        let error = error.filter(|error| !optional || error.code != rpc_code::METHOD_NOT_FOUND);
        let error = error.map(|error| RpcError { message: self.without_secrets(error.message), ..error });
        let fact = match (setup, error) {
            (Setup::Describe, Some(error)) => Fact::DescribeRefused { reason: error.message },
            (Setup::Describe, None) => match whole_result(line) {
                Err(error) => Fact::DescribeRefused { reason: error.to_string() },
                Ok(manifest) => self.read_manifest(manifest),
            },
            (Setup::Init, Some(error)) => {
                let kept_from = match self.settings.launch.sandbox.may_have_refused(&error.message) {
                    false => "",
                    true => "; it runs in a read-only sandbox and cannot write files",
                };
                Fact::InitRefused { reason: format!("init failed: {}{kept_from}", error.message) }
            }
            (Setup::Init, None) => {
                self.ready = true;
                // However long the start took, it has been idle from here on.
                self.last_activity = Instant::now();
                self.note_idle();
                self.begin_pings();
                self.door.lanes.add_permits(self.door.concurrency.load(Ordering::Relaxed) as usize);
                Fact::Initialised
            }
            (Setup::Reload, Some(error)) => Fact::ReconfigureRefused { reason: error.message },
            (Setup::Reload, None) => Fact::Reconfigured,
            (Setup::Shutdown, _) => Fact::ShutdownAnswered,
        };
        self.report(fact);
        if let Some(due) = self.describe_due {
            self.due_at(due);
        }
    }

    /// What a plugin says of itself, without the values of its variables that are told to nobody.
    fn without_secrets(&self, text: String) -> String {
        let RunSettings { launch, secret_env, .. } = &*self.settings;
        let secret = launch.env.iter().filter(|(name, _)| secret_env.contains(name));
        let mut values: Vec<&str> =
            secret.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty()).collect();
        // One that is part of another would leave the rest of that.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text, |text, value| text.replace(value, HIDDEN))
    }

    fn read_manifest(&mut self, manifest: &RawValue) -> Fact {
        let standing = self.door.standing();
        match self.host.described(&self.plugin, self.generation, manifest, standing) {
            Err(reason) => {
                if self.ready {
                    let text = format!("its new manifest is not used: {reason}");
                    self.log(LogStream::Runtime, LogLevel::Warn, None, text);
                }
                Fact::DescribeRefused { reason }
            }
            Ok(accepted) => {
                self.described = true;
                self.answers_pings = accepted.ping;
                self.set_lanes(accepted.concurrency);
                if standing != Standing::Serving {
                    self.door.keep_manifest(manifest);
                }
                Fact::Described(accepted.declared)
            }
        }
    }

    /// Takes note of how many calls it takes at once; a run that is ready opens or closes lanes.
    fn set_lanes(&mut self, concurrency: u32) {
        let before = self.door.concurrency.swap(concurrency, Ordering::Relaxed);
        if !self.ready {
            return;
        }
        if let Some(more) = concurrency.checked_sub(before) {
            self.door.lanes.add_permits(more as usize);
        } else {
            // Those in use close when their calls have ended.
            let mut fewer = (before - concurrency) as usize;
            fewer -= self.door.lanes.forget_permits(fewer);
            self.lanes_to_close += fewer;
        }
    }

    fn begin_pings(&mut self) {
        if self.answers_pings {
            let health = Health::new(Instant::now(), self.live.ping_interval, self.live.ping_misses);
            self.due_at(health.next());
            self.health = Some(health);
        }
    }

    /// Pings a plugin that has nothing to do, where that is due.
    pub(super) fn check_health(&mut self, now: Instant) {
        if !self.ready || !self.calls.is_empty() || self.setup.is_some() {
            return self.seen_alive(now);
        }
        let Some(health) = &mut self.health else { return };
        match health.due(now) {
            Due::Nothing => {}
            Due::TooManyMissed => {
                let reason = format!("no answer to {} pings in a row", health.missed());
                self.misbehaved(reason);
            }
            Due::Ping => {
                let id = self.next_id();
                if let Some(health) = &mut self.health {
                    health.sent(id);
                }
                let params = serde_json::Map::new();
                if let Err(error) = write_request(self.outbound.buffer(), id, method::PING, &params) {
                    tracing::error!(plugin = %self.plugin, %error, "a ping cannot be written");
                }
            }
        }
    }

    /// It has, or just had, something to do.
    pub(super) fn seen_alive(&mut self, now: Instant) {
        if let Some(health) = &mut self.health {
            health.seen_alive(now);
        }
    }

    /// When its health is to be looked at.
    pub(super) fn health_due(&self) -> Option<Instant> {
        let watched = self.ready && self.fault.is_none() && self.calls.is_empty();
        self.health.as_ref().filter(|_| watched).map(Health::next)
    }
}
