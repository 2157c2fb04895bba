//! The clocks of calls, which stand still while a person is asked on a call's behalf.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::host::Lineage;

/// A call's clock. It costs nothing before somebody is asked.
#[derive(Debug, Default)]
pub(super) struct CallClock(OnceLock<Mutex<Stood>>);

/// How long a clock stood still.
#[derive(Debug, Default)]
struct Stood {
    /// So many questions are open.
    open: u32,
    /// Since when, where any is.
    since: Option<Instant>,
    /// In all, before that.
    total: Duration,
}

impl CallClock {
    fn stop(&self, now: Instant) {
        let mut stood = lock(self.0.get_or_init(Mutex::default));
        stood.open += 1;
        stood.since.get_or_insert(now);
    }

    fn go_on(&self, now: Instant) {
        let Some(stood) = self.0.get() else { return };
        let mut stood = lock(stood);
        stood.open = stood.open.saturating_sub(1);
        if stood.open == 0
            && let Some(since) = stood.since.take()
        {
            stood.total += now.saturating_duration_since(since);
        }
    }

    fn stood(&self, now: Instant) -> Duration {
        let Some(stood) = self.0.get() else { return Duration::ZERO };
        let stood = lock(stood);
        stood.total + stood.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn stands(&self) -> bool {
        self.0.get().is_some_and(|stood| lock(stood).since.is_some())
    }
}

/// Each holder only adds and subtracts: a panic elsewhere leaves it whole.
fn lock(stood: &Mutex<Stood>) -> MutexGuard<'_, Stood> {
    stood.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the clocks of a call, and of all calls that wait for it, until it is dropped.
#[derive(Debug)]
pub(super) struct Held(Lineage);

impl Held {
    pub(super) fn clocks_of(lineage: &Lineage) -> Held {
        let now = Instant::now();
        lineage.clocks().for_each(|each| each.stop(now));
        Held(lineage.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let now = Instant::now();
        self.0.clocks().for_each(|each| each.go_on(now));
    }
}

/// A moment by the clock of a call: it moves away while a person is asked.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    /// The call whose clock counts is the last one of it.
    lineage: Lineage,
    /// How long that clock had stood when this was set.
    stood_before: Duration,
}

impl Deadline {
    /// A moment by the clock of the call that a lineage ends with.
    pub fn new(at: Instant, now: Instant, lineage: &Lineage) -> Deadline {
        Deadline { at, lineage: lineage.clone(), stood_before: stood(lineage, now) }
    }

    /// When it is, as things are now.
    pub fn moment(&self, now: Instant) -> Instant {
        self.at + stood(&self.lineage, now).saturating_sub(self.stood_before)
    }

    /// Whether its clock stands still now.
    pub(super) fn stands(&self) -> bool {
        self.lineage.clocks().next().is_some_and(CallClock::stands)
    }
}

fn stood(lineage: &Lineage, now: Instant) -> Duration {
    lineage.clocks().next().map_or(Duration::ZERO, |each| each.stood(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::PluginName;

    fn lineage(outer: &Lineage, plugin: &str) -> Lineage {
        outer.through(PluginName::new(plugin).unwrap())
    }

    #[test]
    fn a_deadline_moves_by_as_long_as_its_clock_stood() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let call = lineage(&Lineage::default(), "a");
        let deadline = Deadline::new(start + second, start, &call);
        let own = call.clocks().next().unwrap();
        own.stop(start + second / 2);
        own.stop(start + second);
        // Far later: half a second is still left.
        assert_eq!(deadline.moment(start + second * 90) - (start + second * 90), second / 2);
        own.go_on(start + second * 90);
        assert!(deadline.stands(), "one of two questions is open");
        own.go_on(start + second * 100);
        assert!(!deadline.stands());
        assert_eq!(deadline.moment(start + second * 500), start + second * 100 + second / 2);
        // What is set afterwards knows nothing of it.
        let later = Deadline::new(start + second * 600, start + second * 500, &call);
        assert_eq!(later.moment(start + second * 500), start + second * 600);
    }

    #[test]
    fn a_deadline_that_had_passed_when_somebody_was_asked_has_passed() {
        let start = Instant::now();
        let call = lineage(&Lineage::default(), "a");
        let deadline = Deadline::new(start, start, &call);
        call.clocks().next().unwrap().stop(start);
        let now = start + Duration::from_secs(9);
        assert!(deadline.moment(now) <= now);
    }

    #[test]
    fn asking_holds_the_clocks_of_all_that_wait_and_of_no_other() {
        let outer = lineage(&Lineage::default(), "outer");
        let (asks, works) = (lineage(&outer, "asks"), lineage(&outer, "works"));
        let now = Instant::now();
        let [outer, inner, beside] = [&outer, &asks, &works].map(|call| Deadline::new(now, now, call));
        let held = Held::clocks_of(&asks);
        assert!(outer.stands() && inner.stands() && !beside.stands());
        drop(held);
        assert!(!outer.stands() && !inner.stands());
    }
}
