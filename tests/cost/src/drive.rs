//! The side that is counted: an engine, a warm-up, and a given number of calls between marks.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use plugd_bench::host::{Host, check, configure, echo_call, plugin_config};
use plugd_bench::lines::Lines;
use plugd_daemon::{ControlSocket, Limits, Signals};
use plugd_engine::{Engine, Opening};
use plugd_protocol::control::{CallParams, CallsParams, ListParams, StatusParams};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::cases::{Case, Way};
use crate::mark::mark;
use crate::programs::Programs;

/// Calls before the first mark: by then buffers have grown, and schemas and statements are compiled.
const WARM_UP: usize = 128;

/// How long a call may be held: longer than valgrind takes for everything.
const HELD_MS: u64 = 30 * 60 * 1000;

/// As many calls as one plugin may have at once.
const LANES: usize = 256;

/// Makes the calls of a case, or another number of them, between marks.
pub(crate) fn drive(case: &Case, calls: Option<usize>, folder: Option<&Path>) -> io::Result<()> {
    let programs = Programs::find()?;
    let case = &Case { calls: calls.unwrap_or(case.calls), ..*case };
    match case.way {
        Way::Raw => raw(case, &programs),
        Way::Engine { recorded } => {
            let record = if recorded { "" } else { "[record]\nenabled = false\n\n" };
            let plugin = plugin_config("echo", &programs.echo_plugin);
            let host = Host::open(&format!("{record}{plugin}concurrency = 64\n"))?;
            between_marks(&host, case, "echo")
        }
        Way::Among { plugins } => {
            let folder =
                folder.ok_or_else(|| io::Error::other("this case needs a folder made by prepare"))?;
            let host = Host::open_in(folder, Opening::Everything)?;
            lists(&host, plugins)?;
            between_marks(&host, case, &format!("echo{}", plugins / 2))
        }
        Way::Beside { held } => beside(case, held, &programs),
        Way::Socket => socket(case, &programs),
        Way::Command => Err(io::Error::other("this case is a whole process: nothing drives it")),
    }
}

/// A folder in which so many plugins are configured and known.
pub(crate) fn prepare(plugins: usize, programs: &Programs) -> io::Result<TempDir> {
    let folder = TempDir::new()?;
    let all = (0..plugins).map(|index| plugin_config(&format!("echo{index}"), &programs.echo_plugin));
    configure(folder.path(), &format!("[record]\nenabled = false\n\n{}", all.collect::<String>()))?;
    let host = Host::open_in(folder.path(), Opening::Everything)?;
    lists(&host, plugins)?;
    Ok(folder)
}

/// Waits until every plugin is known.
fn lists(host: &Host, plugins: usize) -> io::Result<()> {
    let report = host.block_on(host.engine.list(&ListParams::default())).expect("the owner sees all");
    let offered = report.plugins.iter().filter(|plugin| !plugin.operations.is_empty()).count();
    if offered == plugins {
        Ok(())
    } else {
        Err(io::Error::other(format!("{offered} of {plugins} are listed")))
    }
}

/// Two pipes, no engine.
fn raw(case: &Case, programs: &Programs) -> io::Result<()> {
    let mut child = Command::new(&programs.raw_echo).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut to, from) = child.stdin.take().zip(child.stdout.take()).expect("both were piped");
    let (mut from, mut line) = (Lines::new(from), vec![b'x'; case.payload]);
    line.push(b'\n');
    let mut trips = |count| {
        for _ in 0..count {
            to.write_all(&line)?;
            from.next_line()?;
        }
        Ok::<_, io::Error>(())
    };
    trips(WARM_UP)?;
    mark();
    trips(case.calls)?;
    mark();
    mark();
    drop(to);
    child.wait().map(drop)
}

/// The counted calls of an engine in this process.
fn between_marks(host: &Host, case: &Case, plugin: &str) -> io::Result<()> {
    let call = Arc::new(echo_call(plugin, case.payload));
    host.block_on(async {
        calls(&host.engine, &call, case.in_flight, WARM_UP).await?;
        settle(&host.engine).await;
        mark();
        calls(&host.engine, &call, case.in_flight, case.calls).await?;
        mark();
        settle(&host.engine).await;
        mark();
        Ok(())
    })
}

/// Waits until what was recorded is written.
async fn settle(engine: &Engine) {
    // A reader waits for what was recorded before it; that it finds nothing without a record does not matter.
    let _row = engine.calls(CallsParams { limit: Some(1), ..CallsParams::default() }).await;
}

/// Makes `count` calls, so many at a time; the callers are tasks, as in a program.
async fn calls(engine: &Engine, call: &Arc<CallParams>, in_flight: usize, count: usize) -> io::Result<()> {
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        let (engine, call) = (engine.clone(), Arc::clone(call));
        callers.spawn(async move {
            for _ in 0..count / in_flight {
                // The engine takes a call by value, so a caller who calls again pays for the copy.
                check(&call, &engine.call(CallParams::clone(&call)).await)?;
            }
            Ok::<_, io::Error>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}

/// Counted calls beside many that have no answer: in the same run, and in the queue of another plugin.
fn beside(case: &Case, held: usize, programs: &Programs) -> io::Result<()> {
    let plugin = |name: &str| plugin_config(name, &programs.hold_plugin);
    // Longer than valgrind takes to get there.
    let patient = format!("queue_length = {}\nqueue_timeout = \"30m\"\n", held.max(1));
    let host =
        Host::open(&["[record]\nenabled = false\n\n", &plugin("hold"), &plugin("queue"), &patient].concat())?;
    let waiting = host.block_on(async {
        for name in ["hold", "queue"] {
            calls(&host.engine, &Arc::new(echo_call(name, case.payload)), 1, 1).await?;
        }
        let mut waiting = JoinSet::new();
        for index in 0..held {
            // One lane stays free for the calls that are counted.
            let name = if index < LANES - 1 { "hold" } else { "queue" };
            let mut call = CallParams::new(format!("{name}.hold"));
            call.arguments = Some(RawValue::from_string("{}".to_owned()).map_err(io::Error::other)?);
            call.timeout_ms = Some(HELD_MS);
            let engine = host.engine.clone();
            waiting.spawn(async move { engine.call(call).await });
        }
        wait_until_held(&host.engine, held, &mut waiting).await.map(|()| waiting)
    })?;
    let ended = between_marks(&host, case, "hold");
    drop(waiting);
    ended
}

/// Returns when so many calls have no answer, by the engine's own count.
async fn wait_until_held<T: Send + 'static>(
    engine: &Engine,
    held: usize,
    waiting: &mut JoinSet<T>,
) -> io::Result<()> {
    loop {
        let report =
            engine.status(&StatusParams::default()).await.map_err(|error| io::Error::other(error.message))?;
        let there: usize =
            report.plugins.iter().map(|plugin| (plugin.in_flight + plugin.queued) as usize).sum();
        if there == held {
            return Ok(());
        }
        if waiting.try_join_next().is_some() {
            return Err(io::Error::other("a call that is to be held has ended"));
        }
        tokio::task::yield_now().await;
    }
}

/// A daemon in this process and its client in another.
fn socket(case: &Case, programs: &Programs) -> io::Result<()> {
    let plugin = plugin_config("echo", &programs.echo_plugin);
    let host = Host::open(&format!("{plugin}start = \"eager\"\nconcurrency = 64\n"))?;
    let folder = TempDir::new()?;
    let path = folder.path().join("plugd.sock");
    let socket = ControlSocket::bind(&path).map_err(io::Error::other)?;
    let words = [path.into_os_string(), case.payload.to_string().into(), case.in_flight.to_string().into()];
    host.block_on(async {
        let signals = Signals::catch()?;
        let serving = tokio::spawn(plugd_daemon::serve(
            host.engine.clone(),
            socket,
            Limits::default(),
            signals,
            |_| (),
        ));
        let client = tokio::task::spawn_blocking({
            let program = programs.cost_client.clone();
            move || Client::start(&program, &words)
        });
        let client = client.await.map_err(io::Error::other)??;
        let client = client.calls(WARM_UP).await?;
        settle(&host.engine).await;
        mark();
        let client = client.calls(case.calls).await?;
        mark();
        settle(&host.engine).await;
        mark();
        client.end().await?;
        serving.await.map_err(io::Error::other)?.map(drop).map_err(io::Error::other)
    })
}

/// The client's process and its pipes.
struct Client {
    child: std::process::Child,
    to: std::process::ChildStdin,
    from: BufReader<std::process::ChildStdout>,
}

impl Client {
    fn start(program: &Path, words: &[OsString]) -> io::Result<Client> {
        let mut child =
            Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).expect("both were piped");
        Ok(Client { child, to, from: BufReader::new(from) })
    }

    /// Has it make calls, and waits aside until it has made them.
    async fn calls(mut self, count: usize) -> io::Result<Client> {
        aside(move || {
            writeln!(self.to, "{count}")?;
            let mut line = String::new();
            self.from.read_line(&mut line)?;
            if line == "done\n" {
                Ok(self)
            } else {
                Err(io::Error::other("the client failed: its stderr says how"))
            }
        })
        .await
    }

    /// Has it stop the daemon and end.
    async fn end(mut self) -> io::Result<()> {
        aside(move || {
            writeln!(self.to, "0")?;
            self.child.wait().map(drop)
        })
        .await
    }
}

/// Runs what waits in a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
