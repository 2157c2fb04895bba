//! patrol: visits endpoints and says how each of them is. An example plugin whose operation is an `async fn`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use plugd_sdk::{AsyncContext, Error, Plugin, Reply, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How the plugin is set up.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// Milliseconds after which an endpoint that has not answered is down.
    #[serde(default = "three_seconds")]
    #[schemars(range(min = 10, max = 60_000))]
    patience_ms: u64,
}

fn three_seconds() -> u64 {
    3_000
}

/// What became of a visit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Visit {
    /// Where.
    url: String,
    /// Whether it answered with a status below 400.
    up: bool,
    /// The HTTP status, if it answered.
    status: Option<u16>,
    /// Milliseconds until it answered, or until it was given up.
    took_ms: u64,
    /// What went wrong, if it did not answer.
    problem: Option<String>,
}

/// Visits HTTP endpoints, all at once, and tells for each whether it is up. Gives the status of each and how long
/// it took; a redirect is not followed.
#[operation(
    title = "Patrol of endpoints",
    when_to_use = "Somebody asks whether services or interfaces are reachable, or wants them looked at one by one.",
    when_not_to_use = "The content of an address is wanted: this reads the first line of the answer only.",
    examples("are all of our interfaces up", "巡检一下这几个接口"),
    category = "operations",
    timeout_ms = 600_000,
    stall_timeout_ms = 70_000,
    long_running,
    read_only,
    idempotent,
    open_world
)]
async fn visit_endpoints(
    /// Their addresses; only http is spoken.
    #[arg(length = 1..=100, example = ["http://localhost:8080/health"])]
    urls: Vec<String>,
    config: &Config,
    cx: &AsyncContext,
) -> Result<Reply<Vec<Visit>>, Error> {
    if let Some(url) = urls.iter().find(|url| address(url).is_none()) {
        return Err(Error::new("no_address", format!("{url} cannot be visited"))
            .hint("give addresses such as http://localhost:8080/health"));
    }
    // Dropped with this call when it is cancelled, and all that still run with it.
    let mut under_way = JoinSet::new();
    for (number, url) in urls.iter().cloned().enumerate() {
        let patience = Duration::from_millis(config.patience_ms);
        under_way.spawn(async move { (number, visit(url, patience).await) });
    }
    let mut visits = vec![None; urls.len()];
    let mut done = 0;
    while let Some(ended) = under_way.join_next().await {
        let (number, visit) = ended?;
        done += 1;
        cx.partial(&visit)?;
        cx.progress(done, urls.len() as u64, &visit.url);
        visits[number] = Some(visit);
    }
    let visits: Vec<Visit> = visits.into_iter().flatten().collect();
    let up = visits.iter().filter(|visit| visit.up).count();
    let summary = format!("{up} of {} endpoints are up", visits.len());
    Ok(Reply::new(visits).summary(summary))
}

/// The host with its port, and the path, of an address.
fn address(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://").filter(|rest| !rest.contains(char::is_whitespace))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port = if host.contains(':') { "" } else { ":80" };
    (!host.is_empty()).then(|| (format!("{host}{port}"), format!("/{path}")))
}

async fn visit(url: String, patience: Duration) -> Visit {
    let begin = Instant::now();
    let (status, problem) = match timeout(patience, status_of(&url)).await {
        Ok(Ok(status)) => (Some(status), None),
        Ok(Err(error)) => (None, Some(error.to_string())),
        Err(_) => (None, Some("no answer in time".to_owned())),
    };
    let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    Visit { url, up: status.is_some_and(|status| status < 400), status, took_ms, problem }
}

/// Asks for a page and reads the first line of the answer.
async fn status_of(url: &str) -> std::io::Result<u16> {
    let (host, path) = address(url).ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut stream = TcpStream::connect(&host).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await?;
    let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("what came was no answer of HTTP"))
}

fn plugin() -> Plugin<Config> {
    Plugin::new("patrol", env!("CARGO_PKG_VERSION"))
        .description("Visits endpoints and says how they are.")
        .stops_when_cancelled()
        .concurrency(4)
        .init(|config: Config, _| Ok(config))
        .operation(visit_endpoints::operation())
}

fn main() -> ExitCode {
    plugin().serve()
}

#[cfg(test)]
mod tests;
