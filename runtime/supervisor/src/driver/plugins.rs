//! The handle to all plugins: commands to the control task, calls past it.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::{GraphEdge, Stopped};
use plugd_protocol::plugin::LogLevel;
use tokio::sync::{mpsc, oneshot, watch};

use super::control::{self, Command};
use super::door::{Door, Lease, NotAdmitted, Patience};
use super::exit::ExitRecord;
use super::host::Host;
use super::launch::{Hosting, Launch, Spawner};
use super::limits::SANDBOX;
use crate::launcher::Sandbox;
use crate::machine::{Spec, View};

/// Commands waiting for the control task; a sender waits when it is full.
const COMMANDS_QUEUED: usize = 64;

/// What a run needs to know of its plugin's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// How its process is made.
    pub launch: Launch,
    /// The variables of its environment whose values are in no reason that is told of it.
    pub secret_env: Vec<String>,
    /// The plugin's own configuration as written, an object.
    pub config: Arc<serde_json::Value>,
    /// The plugin's own folder.
    pub data_dir: PathBuf,
    /// The language it is to speak.
    pub locale: String,
    /// The least level it should log.
    pub log_level: LogLevel,
    /// The longest frame in either direction, in bytes.
    pub frame_limit: usize,
    /// Whether the first stray line is a violation.
    pub strict: bool,
    /// What a run takes up while it lasts.
    pub live: LiveSettings,
}

/// What can change under a running plugin without its knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSettings {
    /// How long a cancelled call may hold the last lane.
    pub cancel_grace: Duration,
    /// After how long without calls it is stopped.
    pub idle_timeout: Option<Duration>,
    /// How many calls may wait for it.
    pub queue_length: u32,
    /// How often it is pinged while idle, where it declares that it answers.
    pub ping_interval: Duration,
    /// After how many pings without an answer it is replaced.
    pub ping_misses: u32,
}

/// One configured plugin: what the machine and what its runs need to know.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginSpec {
    /// For the machine.
    pub spec: Spec,
    /// For its runs.
    pub settings: RunSettings,
}

/// How one plugin is.
#[derive(Debug, Clone)]
pub struct PluginView {
    /// Its name.
    pub name: PluginName,
    /// What the machine knows.
    pub view: View,
    /// Why it is in its state, with its last words where they explain it.
    pub reason: Option<String>,
    /// The same without what it said in calls: that is for whoever made those, and for its operator.
    pub reason_for_callers: Option<String>,
    /// How its latest runs ended, oldest first; at most five.
    pub exits: Vec<ExitRecord>,
    /// How long `describe` took last.
    pub describe_took: Option<Duration>,
    /// How long `init` took last.
    pub init_took: Option<Duration>,
    /// Calls it takes at once.
    pub concurrency: u32,
    /// Calls in flight.
    pub in_flight: u32,
    /// Calls waiting.
    pub queued: u32,
    /// Lines on stdout of the current run that were no messages.
    pub stray_lines: u64,
    /// Answers of the current run that nobody waited for.
    pub unmatched_answers: u64,
    /// What the current run's process is held to, as what and how.
    pub enforced: BTreeMap<String, String>,
    /// What it should be held to and is not, as what and why.
    pub not_enforced: BTreeMap<String, String>,
}

impl PluginView {
    /// Whether its current run is held to changing no file.
    pub fn is_read_only(&self) -> bool {
        self.enforced.get(SANDBOX).is_some_and(|sandbox| *sandbox == Sandbox::ReadOnly.as_str())
    }
}

/// Who requires whom, and the order that follows.
#[derive(Debug, Clone)]
pub struct GraphView {
    /// Everybody in the order of starting, with the level; none for what can never start.
    pub order: Vec<(PluginName, Option<u32>)>,
    /// Requirements.
    pub edges: Vec<GraphEdge>,
    /// Each cycle, as the path round it.
    pub cycles: Vec<Vec<PluginName>>,
}

/// All plugins; cheap to clone, all clones are the same.
#[derive(Clone, Debug)]
pub struct Plugins {
    commands: mpsc::Sender<Command>,
    doors: watch::Receiver<Arc<HashMap<PluginName, Arc<Door>>>>,
}

/// The control task has ended: plugd is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("plugd is shutting down")]
pub struct Gone;

impl Plugins {
    /// Starts the control task, without any plugin.
    ///
    /// Must be called on a tokio runtime with I/O and time enabled; everything runs there.
    ///
    /// # Errors
    /// When the operating system gives no thread to spawn from.
    pub fn open(host: Arc<dyn Host>, salt: u64, hosting: Hosting) -> io::Result<Plugins> {
        let (commands, inbox) = mpsc::channel(COMMANDS_QUEUED);
        let (publish, doors) = watch::channel(Arc::new(HashMap::new()));
        tokio::spawn(control::run(host, Spawner::start(hosting)?, salt, inbox, publish));
        Ok(Plugins { commands, doors })
    }

    /// Applies a whole configuration as a difference.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn configure(&self, plugins: Vec<PluginSpec>) -> Result<(), Gone> {
        self.ask(|reply| Command::Configure { plugins, reply }).await
    }

    /// Starts plugins and waits until each is ready or has come to rest.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn start(&self, plugins: Vec<PluginName>) -> Result<Vec<PluginView>, Gone> {
        self.ask(|reply| Command::Start { plugins, reply }).await
    }

    /// Stops plugins, to stay stopped, and waits until their processes are gone.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn stop(&self, plugins: Vec<PluginName>) -> Result<Vec<Stopped>, Gone> {
        self.ask(|reply| Command::Stop { plugins, reply }).await
    }

    /// Stops plugins and starts them again, as [`Plugins::start`] does.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn restart(&self, plugins: Vec<PluginName>) -> Result<Vec<PluginView>, Gone> {
        self.ask(|reply| Command::Restart { plugins, reply }).await
    }

    /// Takes a plugin up anew and waits until that is done: in place where it declares that and only
    /// its own configuration changed, else by a new run that takes over once it is ready. If that one
    /// fails the old goes on, and the view's `restart_required` says why. One that does not run is
    /// described again.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn reload(&self, plugin: PluginName) -> Result<Vec<PluginView>, Gone> {
        self.ask(|reply| Command::Reload { plugin, reply }).await
    }

    /// Waits until nothing is under way any more for what was configured last: no replacement, no
    /// reload in place, no description.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn settled(&self, plugins: Vec<PluginName>) -> Result<Vec<PluginView>, Gone> {
        self.ask(|reply| Command::Settled { plugins, reply }).await
    }

    /// Waits until each of these plugins was described or cannot be.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn described(&self, plugins: Vec<PluginName>) -> Result<(), Gone> {
        self.ask(|reply| Command::Describe { plugins, reply }).await
    }

    /// How every plugin is, by name.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn views(&self) -> Result<Vec<PluginView>, Gone> {
        self.ask(|reply| Command::Views { reply }).await
    }

    /// Who requires whom.
    ///
    /// # Errors
    /// [`Gone`] when plugd is going.
    pub async fn graph(&self) -> Result<GraphView, Gone> {
        self.ask(|reply| Command::Graph { reply }).await
    }

    /// Stops everything, dependents first, and ends the control task; again: without graces.
    ///
    /// # Errors
    /// [`Gone`] when that has happened already.
    pub async fn shutdown(&self) -> Result<Vec<Stopped>, Gone> {
        self.ask(|reply| Command::Shutdown { reply }).await
    }

    /// Takes a lane of a plugin, waiting for it to be up and for the lane.
    ///
    /// # Cancel safety
    /// Safe: a caller that stops waiting gives up its place in line.
    ///
    /// # Errors
    /// [`NotAdmitted`], saying what it waited for.
    pub async fn admit(&self, plugin: &PluginName, patience: Patience) -> Result<Lease, NotAdmitted> {
        let door = self.doors.borrow().get(plugin).cloned().ok_or(NotAdmitted::Gone)?;
        door.admit(patience, &self.commands).await
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}
