//! rmcp as a contender: a process of its own that measures when told to.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use plugd_bench::lines::Lines;
use serde_json::json;

use crate::contender::{Case, Contender, Figures, RMCP_BEST, RMCP_DEFAULT};

/// A running `rmcp_peer client`; dropping it ends it and, by the end of its stdin, its server.
pub(crate) struct Peer {
    name: &'static str,
    child: Child,
    orders: Option<ChildStdin>,
    figures: Lines<ChildStdout>,
}

impl Peer {
    /// In the setup that rmcp's documentation shows.
    pub(crate) fn start_default(program: &Path) -> io::Result<Peer> {
        Peer::start(RMCP_DEFAULT, program, "default")
    }

    /// In the fastest setup we found.
    pub(crate) fn start_best(program: &Path) -> io::Result<Peer> {
        Peer::start(RMCP_BEST, program, "best")
    }

    fn start(name: &'static str, program: &Path, setup: &str) -> io::Result<Peer> {
        let mut child = Command::new(program)
            .args(["client", setup])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (orders, figures) = child.stdin.take().zip(child.stdout.take()).expect("both were piped");
        Ok(Peer { name, child, orders: Some(orders), figures: Lines::new(figures) })
    }
}

impl Contender for Peer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let order = json!({
            "payload": case.payload,
            "in_flight": case.in_flight,
            "slice_ms": u64::try_from(slice.as_millis()).unwrap_or(u64::MAX),
        });
        let orders = self.orders.as_mut().expect("only dropping takes it");
        writeln!(orders, "{order}")?;
        let line =
            self.figures.next_line()?.ok_or_else(|| io::Error::other("it ended instead of answering"))?;
        Ok(serde_json::from_slice(line)?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It bounds its own leaving, and only a peer that leaves by itself can reap its server.
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}
