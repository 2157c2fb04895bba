//! The engine in this process as a contender.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_bench::host::{Host, check, echo_call};
use plugd_engine::Engine;
use plugd_protocol::control::CallParams;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

use crate::contender::{Case, Contender, Figures, TripTimes};

/// The engine, with one of its plugins.
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
            let before = processor_time();
            let mut all = TripTimes::begin(slice);
            let mut callers = JoinSet::new();
            for _ in 0..case.in_flight {
                callers.spawn(trips(engine.clone(), Arc::clone(&call), slice));
            }
            while let Some(ended) = callers.join_next().await {
                all.join(ended.map_err(io::Error::other)??);
            }
            let taken = processor_time().saturating_sub(before);
            let cpu_us = taken.as_secs_f64() * 1e6 / all.count() as f64;
            Ok(Figures { cpu_us, ..all.figures() })
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

/// What this process has taken of all processors, its threads together.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
