//! The same echo through rmcp: the server, and a client that measures it when told to.
//!
//! `rmcp_peer client default|best` starts its own server as a child, then answers each order on
//! stdin (`{"payload":32,"in_flight":1,"slice_ms":100}`) with one line of figures on stdout
//! (`{"p50_us":…,"per_second":…}`), so that a harness can take turns with it. It leaves when
//! stdin ends.
//!
//! `default` is what the documentation shows: multi-thread tokio on both sides, `TokioChildProcess`
//! and `stdio()`. `best` is the fastest we found: current-thread tokio on both sides, plain
//! non-blocking pipes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "figures go to stdout, complaints to stderr")]

mod client;
mod server;

use std::io;
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

/// How rmcp is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setup {
    /// As its documentation shows it.
    Default,
    /// As fast as we could make it.
    Best,
}

impl Setup {
    fn named(name: &str) -> Option<Setup> {
        match name {
            "default" => Some(Setup::Default),
            "best" => Some(Setup::Best),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Setup::Default => "default",
            Setup::Best => "best",
        }
    }

    fn runtime(self) -> io::Result<Runtime> {
        match self {
            Setup::Default => Builder::new_multi_thread().enable_all().build(),
            Setup::Best => Builder::new_current_thread().enable_all().build(),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        ["client", setup] => Setup::named(setup).map(client::run),
        ["server", setup] => Setup::named(setup).map(server::run),
        _ => None,
    };
    match ended {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("rmcp_peer: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: rmcp_peer client|server default|best");
            ExitCode::from(2)
        }
    }
}
