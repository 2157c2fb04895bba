//! The engine in this process, on a current-thread runtime, as a program that embeds it has it.

use std::io;
use std::path::Path;

use plugd_engine::config::Config;
use plugd_engine::{Engine, Opening};
use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Status};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// An open engine; dropping it stops its plugins.
pub struct Host {
    /// The engine.
    pub engine: Engine,
    runtime: Runtime,
    _folder: Option<TempDir>,
}

impl Host {
    /// Opens an engine that starts nothing by itself, with a folder of its own.
    ///
    /// # Errors
    /// The folder cannot be made, or what [`Host::open_in`] gives.
    pub fn open(config: &str) -> io::Result<Host> {
        let folder = TempDir::new()?;
        configure(folder.path(), config)?;
        let mut host = Host::open_in(folder.path(), Opening::OnDemand)?;
        host._folder = Some(folder);
        Ok(host)
    }

    /// Opens an engine with the configuration and the state of a folder.
    ///
    /// # Errors
    /// The configuration does not hold, or the engine does not open with it.
    pub fn open_in(folder: &Path, opening: Opening) -> io::Result<Host> {
        let config = Config::load(&folder.join("plugd.toml")).map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let engine = runtime.block_on(Engine::open(config, opening)).map_err(io::Error::other)?;
        Ok(Host { engine, runtime, _folder: None })
    }

    /// Runs the engine's tasks until this is done; between such calls they stand still.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.runtime.block_on(self.engine.shutdown());
    }
}

/// Writes a config whose state is kept in the same folder.
///
/// # Errors
/// The file cannot be written.
pub fn configure(folder: &Path, plugins: &str) -> io::Result<()> {
    std::fs::write(folder.join("plugd.toml"), format!("[daemon]\nstate_dir = \"state\"\n\n{plugins}"))
}

/// The config of one plugin named `name`.
pub fn plugin_config(name: &str, program: &Path) -> String {
    // A Rust string literal of a path without control characters is a TOML basic string too.
    format!("[plugins.{name}]\ncommand = [{:?}]\n", program.display().to_string())
}

/// A call of an echo with `payload` bytes, under the usual deadline.
pub fn echo_call(plugin: &str, payload: usize) -> CallParams {
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
///
/// # Errors
/// Says how the call ended, or how much came back.
pub fn check(call: &CallParams, result: &CallResult) -> io::Result<()> {
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
