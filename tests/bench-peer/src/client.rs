//! The client that measures the server, one order at a time.

use std::future::Future;
use std::io::{self, BufRead, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{Peer, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::Setup;

/// An order takes at most this much longer than its slice; then the server is taken to hang.
const HANG_AFTER: Duration = Duration::from_secs(60);

/// What to measure.
#[derive(Debug, serde::Deserialize)]
struct Order {
    /// Bytes of payload in each call.
    payload: usize,
    /// Calls under way at any time.
    in_flight: usize,
    /// For how long, in milliseconds.
    slice_ms: u64,
}

/// What was measured.
#[derive(Debug, serde::Serialize)]
struct Figures {
    /// The median round trip, in microseconds.
    p50_us: f64,
    /// Calls answered per second.
    per_second: f64,
}

/// A connected server; dropping it ends the server.
struct Connection {
    service: RunningService<RoleClient, ()>,
    /// The server, where the transport does not own it.
    server: Option<Child>,
}

/// Connects, then answers orders until stdin ends.
pub(crate) fn run(setup: Setup) -> io::Result<()> {
    let runtime = setup.runtime()?;
    let connection = runtime.block_on(within(HANG_AFTER, connect(setup)))?;
    let peer = connection.service.peer().clone();
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let limit = HANG_AFTER + Duration::from_millis(order.slice_ms);
        let figures = runtime.block_on(within(limit, measure(&peer, &order)))?;
        writeln!(stdout, "{}", serde_json::to_string(&figures)?)?;
        stdout.flush()?;
    }
    runtime.block_on(within(HANG_AFTER, leave(connection)))
}

async fn connect(setup: Setup) -> io::Result<Connection> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["server", setup.name()]).kill_on_drop(true);
    match setup {
        Setup::Default => {
            let transport = TokioChildProcess::new(command)?;
            let service = ().serve(transport).await.map_err(io::Error::other)?;
            Ok(Connection { service, server: None })
        }
        Setup::Best => {
            let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let pipes = server.stdout.take().zip(server.stdin.take()).expect("both were piped");
            let service = ().serve(pipes).await.map_err(io::Error::other)?;
            Ok(Connection { service, server: Some(server) })
        }
    }
}

/// Lets go of the server and reaps it.
async fn leave(connection: Connection) -> io::Result<()> {
    connection.service.cancel().await.map_err(io::Error::other)?;
    if let Some(mut server) = connection.server {
        server.wait().await?;
    }
    Ok(())
}

async fn measure(peer: &Peer<RoleClient>, order: &Order) -> io::Result<Figures> {
    let call = call_with(order.payload);
    let slice = Duration::from_millis(order.slice_ms);
    let begun = Instant::now();
    let mut round_trips = if order.in_flight == 1 {
        // In the runtime's main task, where a program that makes one call at a time would have it.
        round_trips_until(peer.clone(), Arc::clone(&call), begun + slice).await?
    } else {
        let mut callers = JoinSet::new();
        for _ in 0..order.in_flight {
            callers.spawn(round_trips_until(peer.clone(), Arc::clone(&call), begun + slice));
        }
        let mut all = Vec::new();
        while let Some(ended) = callers.join_next().await {
            all.extend(ended.map_err(io::Error::other)??);
        }
        all
    };
    let took = begun.elapsed();
    let per_second = round_trips.len() as f64 / took.as_secs_f64();
    let middle = round_trips.len() / 2;
    let (_, p50, _) = round_trips.select_nth_unstable(middle);
    Ok(Figures { p50_us: p50.as_secs_f64() * 1e6, per_second })
}

/// Calls one after another until the time is over; at least once.
async fn round_trips_until(
    peer: Peer<RoleClient>,
    call: Arc<CallToolRequestParams>,
    end: Instant,
) -> io::Result<Vec<Duration>> {
    let mut round_trips = Vec::new();
    loop {
        let sent = Instant::now();
        let answer = peer.call_tool(CallToolRequestParams::clone(&call)).await.map_err(io::Error::other)?;
        let now = Instant::now();
        round_trips.push(now - sent);
        check(&call, &answer)?;
        if now >= end {
            return Ok(round_trips);
        }
    }
}

fn call_with(payload: usize) -> Arc<CallToolRequestParams> {
    let arguments = match json!({ "payload": "x".repeat(payload) }) {
        serde_json::Value::Object(arguments) => arguments,
        _ => unreachable!("the literal is an object"),
    };
    Arc::new(CallToolRequestParams::new("echo").with_arguments(arguments))
}

/// Sees that the payload came back whole, by its length.
fn check(call: &CallToolRequestParams, answer: &CallToolResult) -> io::Result<()> {
    let sent = call.arguments.as_ref().and_then(|arguments| arguments["payload"].as_str()).map(str::len);
    let came = answer.content.first().and_then(|block| block.as_text()).map(|text| text.text.len());
    if came == sent {
        Ok(())
    } else {
        Err(io::Error::other(format!("sent {sent:?} bytes, got {came:?} back")))
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::other(format!("the server did not answer within {} s", limit.as_secs()))),
    }
}
