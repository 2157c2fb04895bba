//! What all scenarios share: the plugin, the thread that starts its processes, and what is known of it.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plugd_contract::Contract;
use plugd_protocol::negotiation::HOST_FEATURES;
use plugd_protocol::plugin::method;
use plugd_protocol::{Manifest, Operation, PluginName};
use plugd_supervisor::driver::{Hosting, Launch, RunMark, RunSettings, Spawner};
use plugd_supervisor::machine::Generation;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ear::{Answer, Ear};
use crate::example;
use crate::oddity::Oddities;
use crate::scenario::Finding;
use crate::session::Session;
use crate::{Calls, Options};

/// How long the protocol gives for `describe`.
pub(crate) const DESCRIBE: Duration = Duration::from_secs(10);

/// How long it gives for `init`, and again for each progress.
const INIT: Duration = Duration::from_secs(30);

/// How long for `init` altogether.
const INIT_MAX: Duration = Duration::from_secs(300);

/// How long an operation is waited for here.
const CALL: Duration = Duration::from_secs(10);

/// How long anything else is waited for: what needs no work.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// How long `shutdown` may take.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(5);

/// How long a process has to leave once stdin was closed or SIGTERM came.
pub(crate) const LEAVE: Duration = Duration::from_secs(3);

/// How long a cancelled call may hold its lane.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// How long those have to leave that were given back: whether they do is looked at elsewhere.
const SETTLED: Duration = Duration::from_millis(500);

/// A method that no version of the protocol will have.
pub(crate) const UNKNOWN_METHOD: &str = "plugd_check/unknown";

/// An operation that nobody declares.
pub(crate) const UNKNOWN_OPERATION: &str = "plugd_check_undeclared";

/// What all scenarios share; a clone is the same kit.
#[derive(Clone)]
pub(crate) struct Kit(Arc<Shared>);

struct Shared {
    name: PluginName,
    settings: RunSettings,
    options: Options,
    spawner: Spawner,
    scratch: TempDir,
    oddities: Oddities,
    /// Processes started so far.
    runs: AtomicU64,
    /// Calls made so far.
    calls: AtomicU64,
    /// Sessions that a scenario has done with, and the next can have.
    idle: Mutex<Vec<Session>>,
    described: OnceLock<Described>,
    config: OnceLock<Value>,
    refuses: AtomicBool,
    tried: OnceLock<Vec<Tried>>,
    carrier: OnceLock<(String, Value)>,
}

/// What the plugin says it is.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) raw: Box<RawValue>,
    pub(crate) manifest: Manifest,
    /// How long the process took until it had said so.
    pub(crate) took: Duration,
}

/// An operation that was called with its own examples.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) operation: Operation,
    pub(crate) arguments: Value,
    /// Its data, and how long it took; none where it did not give any.
    pub(crate) answer: Option<(Box<RawValue>, Duration)>,
}

impl Kit {
    pub(crate) fn new(name: PluginName, settings: RunSettings, options: Options) -> std::io::Result<Kit> {
        // A cgroup would only hide what is left behind.
        let hosting = Hosting { cgroups: false, stays: false, ..Hosting::default() };
        Ok(Kit(Arc::new(Shared {
            name,
            settings,
            options,
            spawner: Spawner::start(hosting)?,
            scratch: tempfile::Builder::new().prefix("plugd-check-").tempdir()?,
            oddities: Oddities::default(),
            runs: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            idle: Mutex::new(Vec::new()),
            described: OnceLock::new(),
            config: OnceLock::new(),
            refuses: AtomicBool::new(false),
            tried: OnceLock::new(),
            carrier: OnceLock::new(),
        })))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn settings(&self) -> &RunSettings {
        &self.0.settings
    }

    pub(crate) fn launch(&self) -> &Launch {
        &self.0.settings.launch
    }

    pub(crate) fn oddities(&self) -> &Oddities {
        &self.0.oddities
    }

    /// How long a call may take.
    pub(crate) fn call_time(&self) -> Duration {
        self.0.options.call_time.unwrap_or(CALL)
    }

    /// A process that has been told nothing yet.
    pub(crate) async fn bare(&self) -> Result<Session, Finding> {
        self.started(self.launch(), self.oddities()).await
    }

    /// An initialised one of which only its scenario learns what is odd: the host is odd there, too.
    pub(crate) async fn apart(&self) -> Result<Session, Finding> {
        let mut session = self.started(self.launch(), &Oddities::default()).await?;
        self.make_ready(&mut session).await?;
        Ok(session)
    }

    /// One of another command, whose oddities are noted there.
    pub(crate) async fn started(&self, launch: &Launch, oddities: &Oddities) -> Result<Session, Finding> {
        let run = 1 + self.0.runs.fetch_add(1, Ordering::Relaxed);
        let mark = RunMark { plugin: self.0.name.clone(), generation: Generation(run) };
        let spawned = self.0.spawner.spawn(launch, &mark).await;
        let spawned = spawned.map_err(|error| Finding::failure(error.reason))?;
        let manifest = self.described().map(|described| &described.manifest);
        let requires = manifest.map(|manifest| manifest.requires.keys().map(ToString::to_string).collect());
        let ear = Ear::new(oddities.clone(), requires.unwrap_or_default());
        Ok(Session::new(spawned, self.settings().frame_limit, ear))
    }

    /// One that was initialised.
    pub(crate) async fn ready(&self) -> Result<Session, Finding> {
        let mut session = self.bare().await?;
        self.make_ready(&mut session).await?;
        Ok(session)
    }

    /// Describes and initialises one.
    pub(crate) async fn make_ready(&self, session: &mut Session) -> Result<(), Finding> {
        session.result(method::DESCRIBE, &describe_params(), DESCRIBE).await?;
        self.init(session, self.config()).await
    }

    /// An initialised one that another scenario has done with, or a new one.
    pub(crate) async fn idle(&self) -> Result<Session, Finding> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(session) => Ok(session),
            None => self.ready().await,
        }
    }

    /// Gives one back with which nothing was wrong.
    pub(crate) fn give_back(&self, session: Session) {
        if session.is_up() {
            self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
    }

    /// Sends `init` and waits for its answer, longer where progress is reported.
    pub(crate) async fn init(&self, session: &mut Session, config: &Value) -> Result<(), Finding> {
        let id = session.send(method::INIT, &self.init_params(config)?);
        let mut heard = 0;
        let mut left = INIT_MAX;
        loop {
            let within = INIT.min(left);
            let answered = session.answer(id, within).await;
            left = left.saturating_sub(within);
            let progress = session.ear.told.get(method::PROGRESS).copied().unwrap_or_default();
            match answered {
                Ok((Answer::Result(_), _)) => return Ok(()),
                Ok((Answer::Error(error), _)) if error.code == -32601 => return Ok(()),
                Ok((Answer::Error(error), _)) => {
                    return Err(session.fault(format!("init was refused: {}", error.message)));
                }
                Ok((Answer::Broken(broken), _)) => return Err(session.broken("init", &broken)),
                Err(_) if progress > heard && session.is_up() && !left.is_zero() => heard = progress,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// The params of `init`, with a folder for data that is new.
    pub(crate) fn init_params(&self, config: &Value) -> Result<Value, Finding> {
        let settings = self.settings();
        let data_dir = self.data_dir()?;
        Ok(json!({
            "config": config, "data_dir": data_dir, "locale": settings.locale, "log_level": "info",
        }))
    }

    /// A folder for data, which nothing has used.
    fn data_dir(&self) -> Result<PathBuf, Finding> {
        let run = self.0.runs.fetch_add(1, Ordering::Relaxed);
        let folder = self.0.scratch.path().join(format!("data-{run}"));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| Finding::failure(format!("plugd check itself cannot make a folder: {error}")))?;
        Ok(folder)
    }

    /// Where all these folders are.
    pub(crate) fn data_dirs(&self) -> &std::path::Path {
        self.0.scratch.path()
    }

    pub(crate) fn described(&self) -> Option<&Described> {
        self.0.described.get()
    }

    /// What it declares; only for scenarios that need a manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.described().expect("a scenario that needs a manifest has one").manifest
    }

    pub(crate) fn set_described(&self, described: Described) {
        // It is set once, by the first scenario.
        let _first = self.0.described.set(described);
    }

    /// The configuration that `init` gets.
    pub(crate) fn config(&self) -> &Value {
        static NONE: OnceLock<Value> = OnceLock::new();
        self.0.config.get().unwrap_or_else(|| NONE.get_or_init(|| json!({})))
    }

    /// Makes the configuration: the one that was given, with defaults; else of the schema's own examples.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub(crate) fn make_config(&self) -> Result<(), String> {
        let given = &*self.settings().config;
        let Some(schema) = self.manifest().config_schema.as_deref() else {
            let _first = self.0.config.set(given.clone());
            return Ok(());
        };
        // A schema that does not compile is another scenario's affair.
        let Ok(contract) = Contract::compile(schema) else { return Ok(()) };
        let filled = plugd_contract::fill_defaults(schema, given);
        let wrong = match contract.check_value(&filled) {
            Ok(()) => {
                let _first = self.0.config.set(filled);
                return Ok(());
            }
            Err(problems) => problems,
        };
        let shown = example::object(schema).ok().filter(|shown| contract.check_value(shown).is_ok());
        match shown.filter(|_| given.as_object().is_none_or(serde_json::Map::is_empty)) {
            Some(shown) => {
                let _first = self.0.config.set(plugd_contract::fill_defaults(schema, &shown));
                Ok(())
            }
            None => {
                let told = wrong
                    .iter()
                    .map(|problem| format!("config{}: expected {}", problem.path, problem.expected));
                Err(told.collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// Whether it answers a method that it does not know, however.
    pub(crate) fn refuses(&self) -> bool {
        self.0.refuses.load(Ordering::Relaxed)
    }

    pub(crate) fn set_refuses(&self) {
        self.0.refuses.store(true, Ordering::Relaxed);
    }

    /// The operations that were called with their own examples.
    pub(crate) fn tried(&self) -> &[Tried] {
        self.0.tried.get().map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn set_tried(&self, tried: Vec<Tried>) {
        let _first = self.0.tried.set(tried);
    }

    /// A call that does no harm and is answered soon: what carries scenarios that are about calls as such.
    pub(crate) fn carrier(&self) -> Option<&(String, Value)> {
        self.0.carrier.get()
    }

    pub(crate) fn set_carrier(&self, operation: &str, arguments: Value) {
        let _first = self.0.carrier.set((operation.to_owned(), arguments));
    }

    /// Whether an operation may be called.
    pub(crate) fn may_call(&self, operation: &Operation) -> bool {
        match &self.options().call {
            Calls::None => false,
            Calls::ReadOnly => operation.effects.read_only == Some(true) && !operation.long_running,
            Calls::Named(_) => self.is_named(operation),
        }
    }

    /// Whether an operation is to be called because somebody named it.
    pub(crate) fn is_named(&self, operation: &Operation) -> bool {
        let name = operation.name.as_str();
        match &self.options().call {
            Calls::None | Calls::ReadOnly => false,
            Calls::Named(names) => names.iter().any(|named| named.rsplit('.').next() == Some(name)),
        }
    }

    /// The params of a call, and its id.
    pub(crate) fn call_params(
        &self,
        operation: &str,
        arguments: &Value,
        deadline: Duration,
    ) -> (Value, String) {
        let number = self.0.calls.fetch_add(1, Ordering::Relaxed);
        let call_id = format!("01936d5e-7c00-7000-8000-{number:012x}");
        let params = json!({
            "operation": operation,
            "arguments": arguments,
            "context": {"call_id": call_id, "deadline_ms": millis(deadline), "attempt": 1},
        });
        (params, call_id)
    }

    /// Lets what scenarios have given back leave by itself, so that all of it was heard.
    pub(crate) async fn settle(&self) {
        let idle = std::mem::take(&mut *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for mut session in idle {
            session.close_stdin();
            session.leaves(SETTLED).await;
            session.bury().await;
        }
    }

    /// Ends what is left, and waits until all is gone.
    pub(crate) async fn close(&self) {
        drop(std::mem::take(&mut *self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)));
        self.0.spawner.close().await;
    }
}

/// The params of `describe` as plugd sends them.
pub(crate) fn describe_params() -> Value {
    offering(&json!([1]), &json!(HOST_FEATURES))
}

/// The same with another offer.
pub(crate) fn offering(versions: &Value, features: &Value) -> Value {
    json!({
        "protocol": {"versions": versions, "features": features},
        "host": {"name": "plugd", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// A time in whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
