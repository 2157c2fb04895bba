//! The engine in this process, on a current-thread runtime, as a program that embeds it has it.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_engine::config::Config;
use plugd_engine::{Engine, Opening};
use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Status};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::contender::{Case, Contender, Figures, TripTimes};

/// An open engine; dropping it stops its plugins.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    runtime: Runtime,
    _folder: Option<TempDir>,
}

impl Host {
    /// Opens an engine that starts nothing by itself, with a folder of its own.
    pub(crate) fn open(config: &str) -> io::Result<Host> {
        let folder = TempDir::new()?;
        configure(folder.path(), config)?;
        let mut host = Host::open_in(folder.path(), Opening::OnDemand)?;
        host._folder = Some(folder);
        Ok(host)
    }

    /// Opens an engine with the configuration and the state of a folder.
    pub(crate) fn open_in(folder: &Path, opening: Opening) -> io::Result<Host> {
        let config = Config::load(&folder.join("plugd.toml")).map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let engine = runtime.block_on(Engine::open(config, opening)).map_err(io::Error::other)?;
        Ok(Host { engine, runtime, _folder: None })
    }

    /// Runs the engine's tasks until this is done; between such calls they stand still.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.runtime.block_on(self.engine.shutdown());
    }
}

/// Writes a config whose state is kept in the same folder.
pub(crate) fn configure(folder: &Path, plugins: &str) -> io::Result<()> {
    std::fs::write(folder.join("plugd.toml"), format!("[daemon]\nstate_dir = \"state\"\n\n{plugins}"))
}

/// The config of one plugin named `name`.
pub(crate) fn plugin_config(name: &str, program: &Path) -> String {
    // A Rust string literal of a path without control characters is a TOML basic string too.
    format!("[plugins.{name}]\ncommand = [{:?}]\n", program.display().to_string())
}

/// A call of an echo with `payload` bytes, under the usual deadline.
pub(crate) fn echo_call(plugin: &str, payload: usize) -> CallParams {
    let arguments = format!(r#"{{"payload":"{}"}}"#, "x".repeat(payload));
    CallParams {
        arguments: Some(RawValue::from_string(arguments).expect("an object of one plain string is JSON")),
        timeout_ms: Some(30_000),
        // Pages would be what is measured, not the payload.
        whole: true,
        ..CallParams::new(format!("{plugin}.echo"))
    }
}

/// Sees that a call went well and its arguments came back whole, by their length.
pub(crate) fn check(call: &CallParams, result: &CallResult) -> io::Result<()> {
    if result.status != Status::Ok {
        return Err(io::Error::other(format!("the call ended in {:?}: {:?}", result.status, result.error)));
    }
    let length = |raw: &Option<Box<RawValue>>| raw.as_ref().map(|raw| raw.get().len());
    let (sent, came) = (length(&call.arguments), length(&result.data));
    if came == sent {
        Ok(())
    } else {
        Err(io::Error::other(format!("sent {sent:?} bytes, got {came:?} back")))
    }
}

/// The engine as a contender, with one of its plugins.
pub(crate) struct EngineEcho {
    pub(crate) name: &'static str,
    pub(crate) host: Rc<Host>,
    pub(crate) plugin: &'static str,
}

impl Contender for EngineEcho {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let call = Arc::new(echo_call(self.plugin, case.payload));
        let engine = &self.host.engine;
        // Callers are tasks, as in a program: the future that the runtime blocks on wakes it twice.
        self.host.block_on(async {
            let mut all = TripTimes::begin(slice);
            let mut callers = JoinSet::new();
            for _ in 0..case.in_flight {
                callers.spawn(trips(engine.clone(), Arc::clone(&call), slice));
            }
            while let Some(ended) = callers.join_next().await {
                all.join(ended.map_err(io::Error::other)??);
            }
            Ok(all.figures())
        })
    }
}

/// Calls one after another until the slice is over.
async fn trips(engine: Engine, call: Arc<CallParams>, slice: Duration) -> io::Result<TripTimes> {
    let mut trips = TripTimes::begin(slice);
    while !trips.over() {
        // The engine takes a call by value, so a caller who calls again pays for the copy.
        let sent = Instant::now();
        let result = engine.call(CallParams::clone(&call)).await;
        trips.add(sent.elapsed());
        check(&call, &result)?;
    }
    Ok(trips)
}
