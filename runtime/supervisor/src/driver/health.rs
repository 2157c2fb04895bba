//! Pings to a plugin that declares that it answers them, while it has nothing else to do.

use std::time::{Duration, Instant};

/// Ids of pings that late answers are told by; older ones are forgotten.
const REMEMBERED: usize = 16;

/// How a plugin stands with its pings.
#[derive(Debug)]
pub(super) struct Health {
    interval: Duration,
    misses_allowed: u32,
    /// When the next one is due, if the plugin is idle then.
    next: Instant,
    /// Pings in a row that had no answer by the time of the next.
    missed: u32,
    /// Whether the latest one still waits for its answer.
    open: bool,
    /// The ids of pings whose answers have not come.
    unanswered: Vec<u64>,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// A ping.
    Ping,
    /// It missed too many.
    TooManyMissed,
}

impl Health {
    /// Nothing is owed yet; an interval of zero or no misses would be a kill, so both count as 1.
    pub(super) fn new(now: Instant, interval: Duration, misses: u32) -> Health {
        let mut health = Health {
            interval: Duration::ZERO,
            misses_allowed: 1,
            next: now,
            missed: 0,
            open: false,
            unanswered: Vec::new(),
        };
        health.set(interval, misses);
        health.seen_alive(now);
        health
    }

    /// Takes other numbers for what comes next.
    pub(super) fn set(&mut self, interval: Duration, misses: u32) {
        self.interval = interval.max(Duration::from_millis(1));
        self.misses_allowed = misses.max(1);
    }

    /// When it is to be looked at.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// It was busy or answered something: nothing is held against it.
    pub(super) fn seen_alive(&mut self, now: Instant) {
        self.missed = 0;
        self.open = false;
        self.next = now + self.interval;
    }

    /// What is due of a plugin that is idle.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        if self.next > now {
            return Due::Nothing;
        }
        self.next = now + self.interval;
        self.missed += u32::from(self.open);
        if self.missed >= self.misses_allowed { Due::TooManyMissed } else { Due::Ping }
    }

    /// A ping with this id is on its way.
    pub(super) fn sent(&mut self, id: u64) {
        self.open = true;
        if self.unanswered.len() == REMEMBERED {
            self.unanswered.remove(0);
        }
        self.unanswered.push(id);
    }

    /// Whether an answer is that to a ping; one proves it alive, an error too.
    pub(super) fn answered(&mut self, id: u64, now: Instant) -> bool {
        let Some(at) = self.unanswered.iter().position(|sent| *sent == id) else { return false };
        self.unanswered.remove(at);
        self.seen_alive(now);
        true
    }

    /// How many in a row had no answer.
    pub(super) fn missed(&self) -> u32 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn three_misses_in_a_row_are_too_many() {
        let start = Instant::now();
        let mut health = Health::new(start, TEN, 3);
        assert_eq!(health.due(start), Due::Nothing);
        for step in 1..=3 {
            assert_eq!(health.due(start + TEN * step), Due::Ping);
            health.sent(u64::from(step));
        }
        assert_eq!(health.due(start + TEN * 4), Due::TooManyMissed);
        assert_eq!(health.missed(), 3);
    }

    #[test]
    fn an_answer_makes_all_misses_forgotten() {
        let start = Instant::now();
        let mut health = Health::new(start, TEN, 2);
        assert_eq!(health.due(start + TEN), Due::Ping);
        health.sent(1);
        assert_eq!(health.due(start + TEN * 2), Due::Ping);
        health.sent(2);
        assert!(health.answered(1, start + TEN * 2), "a late one is an answer too");
        assert!(!health.answered(7, start + TEN * 2));
        assert_eq!(health.due(start + TEN * 3), Due::Ping);
        assert_eq!(health.missed(), 0);
    }

    #[test]
    fn a_call_in_between_counts_as_alive() {
        let start = Instant::now();
        let mut health = Health::new(start, TEN, 1);
        assert_eq!(health.due(start + TEN), Due::Ping);
        health.sent(1);
        health.seen_alive(start + TEN * 2);
        assert_eq!(health.due(start + TEN * 3), Due::Ping);
        assert!(health.answered(1, start + TEN * 3));
    }
}
