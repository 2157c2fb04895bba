//! A few seconds of the trial by kills that `make chaos` makes at length.

use std::time::Duration;

use plugd_chaos::Plan;
use plugd_tests::plugd;

/// Kills of plugins and of the daemon under load: every call ends once and by name, nothing that
/// must not run twice does, and no process, descriptor or memory is left.
#[test]
fn nothing_is_lost_or_left_while_everything_is_killed() {
    let plan = Plan {
        plugd: plugd(),
        seed: 20_241_215,
        peace: Duration::from_secs(1),
        trouble: Duration::from_secs(4),
        clients: 8,
        kills_per_second: 4.0,
        daemon_kills: 1,
        judge_speed: false,
    };
    let report = plugd_chaos::run(&plan).expect("the trial can be made");
    let figures: Vec<String> =
        report.figures.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert!(report.broken.is_empty(), "{}\n{}", report.broken.join("\n"), figures.join("\n"));
}
