//! Round trips with both sides on one core: what waking another core takes is left out.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use plugd_bench::host::{Host, plugin_config};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::bare::Raw;
use crate::contender::{
    Contender, ENGINE, Heat, RAW, RMCP_BEST, RMCP_DEFAULT, Samples, UNRECORDED, take_turns,
};
use crate::embedded::EngineEcho;
use crate::peer::Peer;
use crate::programs::Programs;
use crate::suite::alone;

/// Who takes part, in the order of their turns.
pub(crate) const CONTENDERS: [&str; 5] = [RAW, ENGINE, UNRECORDED, RMCP_BEST, RMCP_DEFAULT];

/// The payloads, in bytes: with larger ones it is no longer wake-ups that differ.
pub(crate) const PAYLOADS: [usize; 2] = [32, 1024];

/// Turns of each, the warm-up not counted.
pub(crate) const REPETITIONS: usize = 15;

/// How long a turn takes.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// This thread, and what it starts, on one core until it is dropped.
pub(crate) struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub(crate) fn to_one_core() -> io::Result<Pinned> {
        let before = sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core));
        let mut one = CpuSet::new();
        one.set(last.expect("a thread that runs may run somewhere"));
        sched_setaffinity(None, &one)?;
        Ok(Pinned { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Starts everybody on one core and lets them take turns there; all have ended when it returns.
pub(crate) fn measure(programs: &Programs) -> io::Result<Samples> {
    let _pinned = Pinned::to_one_core()?;
    let config = plugin_config("echo", &programs.echo_plugin);
    let host = Rc::new(Host::open(&config)?);
    let unrecorded = Rc::new(Host::open(&format!("[record]\nenabled = false\n{config}"))?);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Raw::start(&programs.raw_echo)?),
        Box::new(EngineEcho { name: ENGINE, host, plugin: "echo" }),
        Box::new(EngineEcho { name: UNRECORDED, host: unrecorded, plugin: "echo" }),
        Box::new(Peer::start_best(&programs.rmcp_peer)?),
        Box::new(Peer::start_default(&programs.rmcp_peer)?),
    ];
    let heats = PAYLOADS.map(|payload| Heat { case: alone(payload), contenders: CONTENDERS.to_vec() });
    take_turns(&mut contenders, &heats, REPETITIONS, SLICE)
}
