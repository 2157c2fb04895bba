//! Takes up what is saved: builds, has the engine replace the run, and says what came of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plugd_engine::Engine;
use plugd_engine::config::{Config, Dev, Environment, Found, StartMode};
use plugd_protocol::PluginName;
use plugd_protocol::control::{
    AddParams, DescribeParams, LintFinding, LintParams, LintReport, PluginState, PluginsParams, ReloadParams,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::hints::{NOT_HERE, in_message};
use super::sources::Snapshot;
use super::{Build, Known, Screen, Sources};
use crate::commands::add;
use crate::failure::Failure;
use crate::render::{self, Paint, visible_line};

/// How often the sources are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(150);

/// They are left alone until nothing about them has changed for so long: editors write in several steps.
const STILL_FOR: Duration = Duration::from_millis(200);

/// Orders that wait: there is one prompt, and it waits for each.
const ORDERS_QUEUED: usize = 4;

/// What is left to whoever writes it.
const MEND: &str = "mend it and save: then it is started";

/// So many changed files are named.
const NAMED_MAX: usize = 3;

/// After so many builds in a row that changed sources themselves, these count as built.
const BUILDS_OF_ITS_OWN: u32 = 2;

/// The plugin that is written, and what of it runs.
pub(crate) struct Taker {
    path: PathBuf,
    args: Vec<String>,
    name: PluginName,
    config: Config,
    sources: Sources,
    screen: Screen,
    paint: Paint,
    known: Known,
    /// What the latest run, or the latest attempt at one, was made from.
    applied: Snapshot,
    /// How many builds in a row were followed by changes that came while they ran.
    changed_by_build: u32,
    findings: Vec<LintFinding>,
    came: Came,
}

/// What came of what is saved.
#[derive(Debug, Clone, Default)]
pub(crate) struct Came {
    /// Why no run of it is there, where none is.
    pub(crate) down: Option<String>,
    /// Why it was not taken up, where it was not; the run before may go on.
    pub(crate) not_taken: Option<String>,
    /// What is left to be done then.
    pub(crate) advice: &'static str,
}

/// What the prompt wants of it.
enum Order {
    /// Take up what is saved by now.
    Settle,
    /// Take it up anew, changed or not.
    Reload,
}

/// Where it is said that an order was carried out, and what came of it.
type Done = oneshot::Sender<Came>;

/// The way to a taker that runs; it ends with this.
pub(crate) struct Orders {
    orders: mpsc::Sender<(Order, Done)>,
    task: JoinHandle<()>,
}

impl Orders {
    /// Answers once all that was saved before is taken up, or was found not to be fit for that.
    pub(crate) async fn settle(&self) -> Came {
        self.give(Order::Settle).await
    }

    /// Answers once the plugin was built and started anew, or could not be.
    pub(crate) async fn reload(&self) -> Came {
        self.give(Order::Reload).await
    }

    async fn give(&self, order: Order) -> Came {
        let (done, is_done) = oneshot::channel();
        // It is gone only where all of this goes.
        let _ = self.orders.send((order, done)).await;
        is_done.await.unwrap_or_default()
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Taker {
    /// Reads what the plugin at a path is. Its state is kept in `state_dir`.
    ///
    /// # Errors
    /// A [`Failure`] where there is nothing that could be run.
    pub(crate) fn of(
        path: &Path,
        args: &[String],
        state_dir: &Path,
        known: Known,
        screen: Screen,
        paint: Paint,
    ) -> Result<Taker, Failure> {
        let params = add::of_path(path, args)?;
        let config = config_of(&params, state_dir)?;
        let sources = Sources::of(path, dev_of(&config, &params.name).ignore);
        let applied = sources.look();
        Ok(Taker {
            path: path.to_owned(),
            args: args.to_vec(),
            name: params.name,
            config,
            sources,
            screen,
            paint,
            known,
            applied,
            changed_by_build: 0,
            findings: Vec::new(),
            came: Came::default(),
        })
    }

    /// The plugin's name.
    pub(crate) fn name(&self) -> &PluginName {
        &self.name
    }

    /// What an engine that runs this plugin alone is opened with.
    pub(crate) fn config(&self) -> Config {
        self.config.clone()
    }

    /// Builds it, where it has to be built, for the first time.
    pub(crate) async fn first_build(&mut self) -> bool {
        self.build().await
    }

    /// Waits until it is up, or cannot be, and says so; then goes on by itself.
    pub(crate) async fn begin(mut self, engine: Engine) -> Orders {
        self.start(&engine).await;
        let (orders, inbox) = mpsc::channel(ORDERS_QUEUED);
        Orders { orders, task: tokio::spawn(self.run(engine, inbox)) }
    }

    /// Starts it where it does not run, and says what came of it.
    async fn start(&mut self, engine: &Engine) {
        let began = Instant::now();
        match engine.start(&PluginsParams { plugins: vec![self.name.clone()] }).await {
            Ok(report) => match report.plugins.into_iter().find(|plugin| !is_up(plugin.state)) {
                None => self.up(engine, began).await,
                Some(plugin) => {
                    let reason = plugin.reason.unwrap_or_else(|| "it did not start".to_owned());
                    self.not_taken(engine, &reason).await;
                }
            },
            Err(error) => self.not_taken(engine, &error.message).await,
        }
    }

    /// Whether a run is there, or will be by itself.
    async fn is_down(&self, engine: &Engine) -> bool {
        let description = engine.describe(&DescribeParams::new(self.name.as_str())).await;
        let state = description.map(|description| description.plugin.state);
        state.is_ok_and(|state| {
            matches!(state, PluginState::Failed | PluginState::Stopped | PluginState::Blocked)
        })
    }

    async fn run(mut self, engine: Engine, mut inbox: mpsc::Receiver<(Order, Done)>) {
        loop {
            let order = tokio::select! {
                order = inbox.recv() => match order {
                    Some(order) => Some(order),
                    None => return,
                },
                () = tokio::time::sleep(LOOK_EVERY) => None,
            };
            let changed = self.changed().await;
            match &order {
                // What failed for a reason outside its sources may work now.
                Some((Order::Settle, _)) if changed.is_empty() && self.is_down(&engine).await => {
                    self.start(&engine).await;
                }
                Some((Order::Reload, _)) => self.take_up(&engine, &changed, true).await,
                Some((Order::Settle, _)) | None => self.take_up(&engine, &changed, false).await,
            }
            if let Some((_, done)) = order {
                let _ = done.send(self.came.clone());
            }
        }
    }

    /// The sources that changed since they were taken up, once they are still.
    async fn changed(&mut self) -> Vec<PathBuf> {
        let mut seen = self.look().await;
        if seen == self.applied {
            return Vec::new();
        }
        let mut since = Instant::now();
        while since.elapsed() < STILL_FOR {
            tokio::time::sleep(STILL_FOR / 4).await;
            let again = self.look().await;
            if again != seen {
                (seen, since) = (again, Instant::now());
            }
        }
        let changed = seen.changed_since(&self.applied);
        self.applied = seen;
        changed
    }

    async fn look(&self) -> Snapshot {
        let sources = self.sources.clone();
        tokio::task::spawn_blocking(move || sources.look()).await.unwrap_or_else(|_| self.applied.clone())
    }

    /// Takes up these changes; with `anew` also where there are none.
    async fn take_up(&mut self, engine: &Engine, changed: &[PathBuf], anew: bool) {
        if changed.is_empty() && !anew {
            return;
        }
        if !changed.is_empty() {
            self.screen.say(&self.paint.bold(&format!("changed: {}", named(changed))));
        }
        // What its table says may be how it is built.
        let table = match self.read_table(engine).await {
            Ok(generation) => generation,
            Err(failure) => return self.not_taken(engine, &failure.error.message).await,
        };
        if !self.build().await {
            return;
        }
        let began = Instant::now();
        let outcome = match table {
            // The new table came with a new run.
            Some(_) if changed.iter().all(|name| name == Path::new("plugin.toml")) && !anew => Ok(()),
            _ => engine.reload(&ReloadParams { plugin: Some(self.name.clone()) }).await.map(drop),
        };
        match outcome {
            // What was down stays so until somebody starts it.
            Ok(()) if self.came.down.is_some() => self.start(engine).await,
            Ok(()) => self.up(engine, began).await,
            Err(error) => self.not_taken(engine, &error.message).await,
        }
    }

    /// Reads its plugin.toml again and applies it; the run that came of it, where one did.
    async fn read_table(&mut self, engine: &Engine) -> Result<Option<u64>, Failure> {
        let params = add::of_path(&self.path, &self.args)?;
        let config = config_of(&params, &engine.config().state_dir)?;
        if config.plugins == self.config.plugins {
            return Ok(None);
        }
        self.sources.ignore = dev_of(&config, &self.name).ignore;
        self.config = config.clone();
        let report = engine.reload_with(config).await?;
        if let Some(reason) = report.failed.get(&self.name) {
            self.not_taken(engine, reason).await;
        }
        Ok(report.generations.get(&self.name).copied())
    }

    /// Runs the build command, if there is one; false where the program was not made.
    async fn build(&mut self) -> bool {
        let Dev { build, .. } = dev_of(&self.config, &self.name);
        let Some(plugin) = self.config.plugins.get(&self.name).filter(|_| !build.is_empty()) else {
            return true;
        };
        let build = Build { command: build, folder: plugin.cwd.clone() };
        match build.run(&self.screen).await {
            Ok(took) => {
                self.screen.say(&format!("built in {:.1} s", took.as_secs_f64()));
                self.note_what_the_build_changed().await;
                true
            }
            Err(reason) => {
                self.say_red(&reason);
                self.screen.say(&format!("  {MEND}"));
                (self.came.not_taken, self.came.advice) = (Some(reason), MEND);
                false
            }
        }
    }

    /// Lets a build that writes sources come to an end: what it writes each time is no change.
    async fn note_what_the_build_changed(&mut self) {
        let seen = self.look().await;
        let changed = seen.changed_since(&self.applied);
        if changed.is_empty() {
            self.changed_by_build = 0;
            return;
        }
        self.changed_by_build += 1;
        if self.changed_by_build >= BUILDS_OF_ITS_OWN {
            self.changed_by_build = 0;
            self.applied = seen;
            let hint = "name it under ignore in [dev] of plugin.toml";
            self.screen.say(&format!("the build itself changes {}: {hint}", named(&changed)));
        }
    }

    /// Says that it runs, and what could be said better where that differs from before.
    async fn up(&mut self, engine: &Engine, began: Instant) {
        self.came = Came::default();
        let Ok(description) = engine.describe(&DescribeParams::new(self.name.as_str())).await else { return };
        self.known.learn(&description.operations);
        let operations = description.operations.iter().map(|operation| operation.name.as_str());
        let operations: Vec<&str> = operations.collect();
        let took = began.elapsed().as_millis();
        let up = format!("{} runs ({took} ms): {}", self.name, operations.join(", "));
        self.screen.say(&self.paint.bold(&visible_line(&up)));
        for bad in &description.quarantined {
            self.say_red(&format!("{} is not offered: {}", bad.name, bad.reason));
        }
        let findings = match engine.lint(LintParams { plugins: vec![self.name.clone()] }).await {
            Ok(LintReport { findings, .. }) => findings,
            Err(_) => return,
        };
        if findings != self.findings {
            let shown = match findings.is_empty() {
                true => "lint: nothing is left to be said better\n".to_owned(),
                false => format!("lint:\n{}", render::lint_findings(&findings, self.paint)),
            };
            self.screen.say(&shown);
            self.findings = findings;
        }
    }

    /// Says why what is there now does not run. What ran before goes on; where nothing did, it is not tried
    /// in vain again and again.
    async fn not_taken(&mut self, engine: &Engine, reason: &str) {
        let description = engine.describe(&DescribeParams::new(self.name.as_str())).await;
        let state = description.map(|description| description.plugin.state).ok();
        self.say_red(reason);
        self.came.advice = if state == Some(PluginState::Blocked) { NOT_HERE } else { MEND };
        self.screen.say(&format!("  {}", self.came.advice));
        self.came.not_taken = Some(reason.to_owned());
        if state.is_some_and(is_up) {
            self.came.down = None;
            return;
        }
        self.came.down = Some(reason.to_owned());
        // It can only fail where there is nothing to be stopped.
        let _ = engine.stop(&PluginsParams { plugins: vec![self.name.clone()] }).await;
    }

    fn say_red(&self, text: &str) {
        let mut text = text.to_owned();
        in_message(&mut text);
        self.screen.say(&self.paint.red(&render::in_one_line(&text)));
    }
}

/// A configuration of this plugin alone, up at once.
fn config_of(params: &AddParams, state_dir: &Path) -> Result<Config, Failure> {
    let environment = Environment::of_process();
    let nothing = Found { file: None, searched: Vec::new() };
    let mut config =
        Config::open(&nothing, &environment)?.with_given(std::slice::from_ref(params), &environment)?;
    config.state_dir = state_dir.to_owned();
    for plugin in config.plugins.values_mut() {
        plugin.start = StartMode::Eager;
        (plugin.enabled, plugin.enabled_as_written) = (true, true);
    }
    Ok(config)
}

fn is_up(state: PluginState) -> bool {
    matches!(state, PluginState::Ready | PluginState::Busy | PluginState::Idle)
}

fn dev_of(config: &Config, name: &PluginName) -> Dev {
    config.plugins.get(name).map(|plugin| plugin.dev.clone()).unwrap_or_default()
}

/// A few files by name, and how many more there are.
fn named(files: &[PathBuf]) -> String {
    let shown: Vec<String> = files.iter().take(NAMED_MAX).map(|file| file.display().to_string()).collect();
    let more = files.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", visible_line(&shown.join(", ")))
}
