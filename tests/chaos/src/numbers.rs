//! Random numbers from a seed, and what is counted off from a list of times.

use std::time::Duration;

/// The same numbers every time for a seed (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    /// One's own numbers, which do not depend on how many others draw.
    pub(crate) fn of(seed: u64, who: u64) -> Numbers {
        Numbers(Numbers(seed ^ who.wrapping_mul(0xD1B5_4A32_D192_ED03)).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.below(list.len() as u64);
        &list[usize::try_from(at).expect("below a length")]
    }

    /// So many milliseconds or up to as many more.
    pub(crate) fn millis(&mut self, least: u64, more: u64) -> Duration {
        Duration::from_millis(least + self.below(more))
    }
}

/// The time that so many in a hundred stay within; none of no times.
pub(crate) fn percentile(times: &mut [Duration], hundredths: usize) -> Option<Duration> {
    times.sort_unstable();
    let at = (times.len() * hundredths).div_ceil(100).saturating_sub(1);
    times.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_every_time() {
        let draw = || -> Vec<u64> {
            let mut numbers = Numbers::of(7, 3);
            (0..5).map(|_| numbers.below(100)).collect()
        };
        assert_eq!(draw(), draw());
        assert_ne!(Numbers::of(7, 3).next(), Numbers::of(7, 4).next());
    }

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let mut times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut times, 99), Some(Duration::from_millis(198)));
        assert_eq!(percentile(&mut times, 50), Some(Duration::from_millis(100)));
        assert_eq!(percentile(&mut [], 99), None);
    }
}
