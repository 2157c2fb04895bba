//! When a plugin that failed is started again, and when it is given up.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;

use super::Generation;

/// How a plugin is started again; the defaults are those of the documentation.
#[derive(Debug, Clone, PartialEq)]
pub struct RestartPolicy {
    /// Whether it is started again at all.
    pub mode: RestartMode,
    /// The first delay; each failure in a row doubles it.
    pub backoff: Duration,
    /// The longest delay, before jitter.
    pub backoff_cap: Duration,
    /// How far a delay may deviate, as a share of it (0 to 1).
    pub jitter: f64,
    /// A run that was ready this long is followed by the next at once.
    pub stable_after: Duration,
    /// A run that is ready this long makes all failures forgotten.
    pub reset_after: Duration,
    /// Failures older than this do not count.
    pub window: Duration,
    /// More failures than this within the window, and it is given up.
    pub max: u32,
    /// How often one that was given up is tried.
    pub probe_interval: Duration,
}

impl Default for RestartPolicy {
    fn default() -> RestartPolicy {
        RestartPolicy {
            mode: RestartMode::OnFailure,
            backoff: Duration::from_millis(250),
            backoff_cap: Duration::from_secs(30),
            jitter: 0.2,
            stable_after: Duration::from_secs(10),
            reset_after: Duration::from_secs(60),
            window: Duration::from_secs(180),
            max: 5,
            probe_interval: Duration::from_secs(300),
        }
    }
}

/// Whether a plugin that ended unasked is started again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RestartMode {
    /// Whatever its exit status, 125 included.
    Always,
    /// Not before an operator starts it.
    Never,
    /// After any unasked end but exit status 125.
    #[default]
    OnFailure,
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is started again at once.
    AtOnce,
    /// It is started again after this long.
    After(Duration),
    /// It failed this often within the window, and is only probed from now on.
    GiveUp {
        /// How many failures, this one included.
        failures: usize,
    },
    /// Its policy is not to start it again.
    StayDown,
}

/// The failures of one plugin that still count.
#[derive(Debug, Clone, Default)]
pub struct RestartHistory {
    /// When it failed, oldest first; never more than the policy's `max` + 1.
    failures: VecDeque<Instant>,
    /// How often in a row, whenever that was.
    consecutive: u32,
    /// Set from the moment it is given up until that is forgotten: what it was given up for.
    given_up: Option<Arc<str>>,
}

impl RestartHistory {
    /// Notes a failure and says what follows; `deviation` is -1 to 1, the share of the jitter taken.
    pub fn judge(
        &mut self,
        policy: &RestartPolicy,
        now: Instant,
        ready_for: Option<Duration>,
        deviation: f64,
    ) -> Verdict {
        if ready_for.is_some_and(|ready| ready >= policy.reset_after) {
            self.clear();
        }
        self.consecutive = self.consecutive.saturating_add(1);
        self.failures.push_back(now);
        let limit = usize::try_from(policy.max).unwrap_or(usize::MAX);
        while self.failures.front().is_some_and(|&at| too_old(at, now, policy.window))
            || self.failures.len() > limit.saturating_add(1)
        {
            self.failures.pop_front();
        }
        if policy.mode == RestartMode::Never {
            Verdict::StayDown
        } else if self.failures.len() > limit || self.given_up.is_some() {
            Verdict::GiveUp { failures: self.failures.len() }
        } else if ready_for.is_some_and(|ready| ready >= policy.stable_after) {
            Verdict::AtOnce
        } else {
            Verdict::After(delay(policy, self.consecutive - 1, deviation))
        }
    }

    /// Forgets everything, as after a long time ready or when an operator starts it.
    pub fn clear(&mut self) {
        *self = RestartHistory::default();
    }

    /// Whether there is nothing to forget.
    pub fn is_clear(&self) -> bool {
        self.consecutive == 0 && self.failures.is_empty() && self.given_up.is_none()
    }

    /// How many failures lie within the window.
    pub fn within(&self, window: Duration, now: Instant) -> u32 {
        let count = self.failures.iter().filter(|&&at| !too_old(at, now, window)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Remembers that it was given up, and why.
    pub(super) fn give_up(&mut self, reason: &str) {
        self.given_up = Some(reason.into());
    }

    /// Takes it up anew: its failures still count, but the next one need not be the last.
    pub(super) fn take_up(&mut self) {
        self.given_up = None;
    }

    /// What it was given up for, as long as that stands.
    pub(super) fn given_up(&self) -> Option<&Arc<str>> {
        self.given_up.as_ref()
    }
}

fn too_old(at: Instant, now: Instant, window: Duration) -> bool {
    now.saturating_duration_since(at) >= window
}

/// The delay after `doublings` earlier failures in a row.
fn delay(policy: &RestartPolicy, doublings: u32, deviation: f64) -> Duration {
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    let plain = policy.backoff.saturating_mul(factor).min(policy.backoff_cap);
    let jitter = if policy.jitter.is_finite() { policy.jitter.clamp(0.0, 1.0) } else { 0.0 };
    let seconds = plain.as_secs_f64() * (1.0 + jitter * deviation.clamp(-1.0, 1.0));
    Duration::try_from_secs_f64(seconds).unwrap_or(plain)
}

/// The deviation of one run: even over -1 to 1, the same for the same salt, plugin and generation.
pub(super) fn deviation(salt: u64, plugin: &PluginName, generation: Generation) -> f64 {
    let mut hasher = DefaultHasher::new();
    (salt, plugin, generation).hash(&mut hasher);
    // 32 bits fill the range evenly enough, and convert without loss.
    let share = f64::from((hasher.finish() >> 32) as u32) / f64::from(u32::MAX);
    share * 2.0 - 1.0
}
