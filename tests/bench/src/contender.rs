//! Contenders, and how they take turns.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::stats::Spread;

pub(crate) const RAW: &str = "raw";
pub(crate) const ENGINE: &str = "engine";
pub(crate) const UNRECORDED: &str = "engine, no record";
pub(crate) const ENGINE_SDK: &str = "engine, SDK plugin";
pub(crate) const SOCKETPAIR: &str = "engine, socketpair";
pub(crate) const SOCKET: &str = "socket";
pub(crate) const RMCP_DEFAULT: &str = "rmcp default";
pub(crate) const RMCP_BEST: &str = "rmcp best";

/// Something that carries an echo there and back.
pub(crate) trait Contender {
    /// What tables call it.
    fn name(&self) -> &'static str;

    /// Whether it can be measured so.
    fn takes(&self, _case: Case) -> bool {
        true
    }

    /// Makes calls for about `slice`, at least one.
    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures>;
}

/// One way to load a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    /// Bytes of payload in each call.
    pub(crate) payload: usize,
    /// Calls under way at any time.
    pub(crate) in_flight: usize,
}

/// What one turn gave.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub(crate) struct Figures {
    /// The median round trip, in microseconds.
    pub(crate) p50_us: f64,
    /// Calls answered per second.
    pub(crate) per_second: f64,
    /// The mean round trip, in microseconds; 0 where it was not looked at.
    #[serde(default)]
    pub(crate) mean_us: f64,
    /// The processor time that a call takes of the program that is measured, in microseconds; 0 where it was
    /// not looked at.
    #[serde(default)]
    pub(crate) cpu_us: f64,
}

/// Round trips as they are timed within one turn.
pub(crate) struct TripTimes {
    begun: Instant,
    slice: Duration,
    trips: Vec<Duration>,
}

impl TripTimes {
    pub(crate) fn begin(slice: Duration) -> TripTimes {
        TripTimes { begun: Instant::now(), slice, trips: Vec::with_capacity(1024) }
    }

    /// Whether the turn is over; never before the first trip.
    pub(crate) fn over(&self) -> bool {
        !self.trips.is_empty() && self.begun.elapsed() >= self.slice
    }

    pub(crate) fn add(&mut self, trip: Duration) {
        self.trips.push(trip);
    }

    /// Takes in the trips of a caller that ran beside this one.
    pub(crate) fn join(&mut self, other: TripTimes) {
        self.trips.extend(other.trips);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.trips.len()
    }

    /// Of at least one trip; the rate counts up to now.
    pub(crate) fn figures(mut self) -> Figures {
        let per_second = self.trips.len() as f64 / self.begun.elapsed().as_secs_f64();
        let mean_us = self.trips.iter().sum::<Duration>().as_secs_f64() * 1e6 / self.trips.len() as f64;
        let middle = self.trips.len() / 2;
        let (_, p50, _) = self.trips.select_nth_unstable(middle);
        Figures { p50_us: p50.as_secs_f64() * 1e6, per_second, mean_us, cpu_us: 0.0 }
    }
}

/// Which contenders meet in which case.
pub(crate) struct Heat {
    pub(crate) case: Case,
    /// By name, in the order of their turns.
    pub(crate) contenders: Vec<&'static str>,
}

/// Every figure of every repetition.
#[derive(Default)]
pub(crate) struct Samples(BTreeMap<(&'static str, Case), Vec<Figures>>);

impl Samples {
    /// Takes in what one turn gave.
    pub(crate) fn add(&mut self, name: &'static str, case: Case, figures: Figures) {
        self.0.entry((name, case)).or_default().push(figures);
    }

    /// The median round trips in microseconds, one a repetition; empty where not measured.
    pub(crate) fn p50_us(&self, name: &'static str, case: Case) -> Vec<f64> {
        self.values(name, case, |figures| figures.p50_us)
    }

    /// Calls per second, one a repetition; empty where not measured.
    pub(crate) fn per_second(&self, name: &'static str, case: Case) -> Vec<f64> {
        self.values(name, case, |figures| figures.per_second)
    }

    /// One of the figures, one a repetition; empty where not measured.
    pub(crate) fn values(&self, name: &'static str, case: Case, of: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.0.get(&(name, case)).into_iter().flatten().map(of).collect()
    }
}

/// Lets the contenders of each heat take turns, repetition after repetition.
///
/// The turns of one heat follow each other directly, so that a machine that changes speed changes
/// it for all of them.
pub(crate) fn take_turns(
    contenders: &mut [Box<dyn Contender>],
    heats: &[Heat],
    repetitions: usize,
    slice: Duration,
) -> io::Result<Samples> {
    let mut samples = Samples::default();
    for repetition in 0..=repetitions {
        crate::progress(&match repetition {
            0 => "calls: warming up".to_owned(),
            _ => format!("calls: repetition {repetition} of {repetitions}"),
        });
        for heat in heats {
            for name in &heat.contenders {
                let Some(contender) = contenders.iter_mut().find(|contender| contender.name() == *name)
                else {
                    return Err(io::Error::other(format!("no contender is called {name:?}")));
                };
                if !contender.takes(heat.case) {
                    continue;
                }
                interrupt::check()?;
                let figures = contender
                    .measure(heat.case, slice)
                    .map_err(|error| io::Error::other(format!("{name}, {:?}: {error}", heat.case)))?;
                if repetition > 0 {
                    samples.add(name, heat.case, figures);
                }
            }
        }
    }
    Ok(samples)
}

/// Two things timed in turn, a value of each per repetition.
pub(crate) struct Pair {
    pub(crate) ours: Vec<f64>,
    pub(crate) theirs: Vec<f64>,
}

impl Pair {
    /// Times both in turn `each` times a repetition and keeps the medians, in microseconds.
    pub(crate) fn measure(
        what: &str,
        repetitions: usize,
        each: usize,
        mut ours: impl FnMut() -> io::Result<Duration>,
        mut theirs: impl FnMut() -> io::Result<Duration>,
    ) -> io::Result<Pair> {
        let mut pair = Pair { ours: Vec::new(), theirs: Vec::new() };
        let named = |error: io::Error| io::Error::other(format!("{what}: {error}"));
        ours().map_err(named)?;
        theirs().map_err(named)?;
        for repetition in 1..=repetitions {
            crate::progress(&format!("{what}: repetition {repetition} of {repetitions}"));
            let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
            for _ in 0..each {
                interrupt::check()?;
                our_times.push(ours().map_err(named)?.as_secs_f64() * 1e6);
                their_times.push(theirs().map_err(named)?.as_secs_f64() * 1e6);
            }
            pair.ours.push(Spread::of(&our_times).median);
            pair.theirs.push(Spread::of(&their_times).median);
        }
        Ok(pair)
    }

    /// Ours by theirs, repetition by repetition.
    pub(crate) fn ratio(&self) -> Spread {
        Spread::of_ratios(&self.ours, &self.theirs)
    }
}
