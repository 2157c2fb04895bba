//! A client of the control socket that makes as many calls as a line on its stdin says, and then says so.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

use plugd_bench::host::{check, echo_call};
use plugd_daemon::client::Client;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [socket, payload, in_flight] = &words[..] else {
        return Err(io::Error::other("usage: cost_client SOCKET PAYLOAD IN_FLIGHT"));
    };
    let (socket, payload) = (PathBuf::from(socket), payload.parse().map_err(io::Error::other)?);
    let in_flight: usize = in_flight.parse().map_err(io::Error::other)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let client = Arc::new(runtime.block_on(Client::connect(&socket)).map_err(io::Error::other)?);
    for line in io::stdin().lock().lines() {
        let count: usize = line?.parse().map_err(io::Error::other)?;
        if count == 0 {
            break;
        }
        runtime.block_on(calls(&client, payload, in_flight, count))?;
        writeln!(io::stdout(), "done")?;
        io::stdout().flush()?;
    }
    runtime.block_on(client.shutdown()).map(drop).map_err(io::Error::other)
}

/// Makes `count` calls, so many at a time.
async fn calls(client: &Arc<Client>, payload: usize, in_flight: usize, count: usize) -> io::Result<()> {
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        let (client, call) = (Arc::clone(client), echo_call("echo", payload));
        callers.spawn(async move {
            for _ in 0..count / in_flight {
                check(&call, &client.call(&call).await.map_err(io::Error::other)?)?;
            }
            Ok::<_, io::Error>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}
