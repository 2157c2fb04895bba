//! How long calls took, counted in steps that grow with the time.
//!
//! Up to 32 µs each microsecond counts by itself; from there each doubling has 32 steps. So a time
//! read back is at most 1/32 (3.2 %) too long and never too short.

use crate::packed::{put_varint, take_varint};

/// So many bits of a time are kept below its highest.
const BITS: u32 = 5;

/// Steps of a doubling.
const STEPS: u64 = 1 << BITS;

/// More steps than the longest time needs.
const STEPS_END: usize = 64 << BITS;

/// Counts by step. A count is below zero where more is to be taken away than was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Times(Vec<i64>);

impl Times {
    /// Counts a time, or takes it back.
    pub(crate) fn count(&mut self, micros: u64, by: i64) {
        *self.at(step(micros)) += by;
    }

    /// Adds what others were counted.
    pub(crate) fn add(&mut self, other: &Times) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// So that it takes few bytes: steps as distances, each with its count; what is not above zero is left out.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for (step, count) in self.counts().filter(|(_, count)| *count > 0) {
            put_varint(&mut bytes, step - last);
            put_varint(&mut bytes, count);
            last = step;
        }
        bytes
    }

    /// Adds what was packed, as far as it can be read.
    pub(crate) fn add_packed(&mut self, mut bytes: &[u8]) {
        let mut step = 0_u64;
        while let Some(distance) = take_varint(&mut bytes) {
            let Some(count) = take_varint(&mut bytes) else { break };
            step = step.saturating_add(distance);
            let (Ok(step @ ..STEPS_END), Ok(count)) = (usize::try_from(step), i64::try_from(count)) else {
                break;
            };
            *self.at(step) += count;
        }
    }

    fn at(&mut self, step: usize) -> &mut i64 {
        if self.0.len() <= step {
            self.0.resize(step + 1, 0);
        }
        &mut self.0[step]
    }

    /// The steps with their counts, those below zero as none.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..).zip(self.0.iter().map(|count| u64::try_from(*count).unwrap_or(0)))
    }

    /// How many were counted.
    pub(crate) fn all(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// So many of a hundred took at most this.
    pub(crate) fn percentile(&self, percent: u64) -> u64 {
        let all = self.all();
        let wanted = all.saturating_mul(percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (step, count) in self.counts() {
            seen += count;
            if seen >= wanted {
                return longest(step);
            }
        }
        0
    }
}

/// The step that a time belongs to.
fn step(micros: u64) -> usize {
    let step = match micros.checked_ilog2() {
        Some(highest) if highest >= BITS => {
            u64::from(highest - BITS + 1) * STEPS + ((micros >> (highest - BITS)) & (STEPS - 1))
        }
        _ => micros,
    };
    usize::try_from(step).unwrap_or(STEPS_END)
}

/// The longest time of a step.
fn longest(step: u64) -> u64 {
    if step < STEPS {
        return step;
    }
    let doubling = step / STEPS - 1;
    let next = u128::from(STEPS + step % STEPS + 1) << doubling;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_at_most_a_thirtysecond_too_long() {
        let times = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + (1 << bit) / 3]);
        for micros in times.chain([0, u64::MAX]) {
            let read = longest(step(micros) as u64);
            assert!(read >= micros && read - micros <= micros / 32, "{micros} read as {read}");
        }
        let steps: Vec<usize> = (0..5_000).map(step).collect();
        assert!(steps.is_sorted());
    }

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let mut times = Times::default();
        for micros in 1..=1_000 {
            times.count(micros, 1);
        }
        for (percent, exact) in [(50, 500), (95, 950), (100, 1_000)] {
            let read = times.percentile(percent);
            assert!((exact..=exact + exact / 32).contains(&read), "p{percent}: {read}");
        }
        assert_eq!(Times::default().percentile(50), 0);
    }

    #[test]
    fn packing_keeps_counts_and_forgets_what_was_taken_away() {
        let mut times = Times::default();
        times.count(7, 3);
        times.count(70_000, 2);
        times.count(9, 1);
        times.count(9, -1);
        let mut read = Times::default();
        read.add_packed(&times.pack());
        let mut expected = Times::default();
        expected.count(7, 3);
        expected.count(70_000, 2);
        assert_eq!(read, expected);
        read.add(&expected);
        assert_eq!(read.percentile(50), 7);
        let mut none = Times::default();
        none.add_packed(&[0xFF; 40]);
        assert_eq!(none, Times::default());
    }
}
