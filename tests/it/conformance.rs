//! `plugd check` of a path: what the conformance kit finds, and what it leaves in peace.

mod causes;
mod kit;
mod plugins;
mod sins;
mod verdicts;

use plugd_tests::{Ran, Sandbox};
use serde_json::Value;

/// Checks a path, and gives the report; the processes of the plugin must be gone by then.
#[track_caller]
fn check(sandbox: &Sandbox, args: &[&str]) -> (Ran, Value) {
    let ran = sandbox.plugd(&[&["--output", "json", "check"], args].concat());
    let report = ran.json();
    assert!(report.get("error").is_none(), "{args:?}: {report:#}");
    assert_eq!(sandbox.processes_in(""), [0; 0], "{args:?} left processes behind");
    (ran, report)
}

/// The scenarios of a report about one plugin.
#[track_caller]
fn scenarios(report: &Value) -> &Vec<Value> {
    let scenarios = report["plugins"][0]["conformance"]["scenarios"].as_array();
    scenarios.unwrap_or_else(|| panic!("no scenarios: {report:#}"))
}

/// One of them.
#[track_caller]
fn scenario<'r>(report: &'r Value, name: &str) -> &'r Value {
    let found = scenarios(report).iter().find(|scenario| scenario["name"] == name);
    found.unwrap_or_else(|| panic!("no scenario {name}: {report:#}"))
}

/// The names of those that came out so, with what was found.
fn names<'r>(report: &'r Value, outcome: &str) -> Vec<(&'r str, String)> {
    let of_outcome = scenarios(report).iter().filter(|scenario| scenario["outcome"] == outcome);
    let name = |scenario: &'r Value| {
        (scenario["name"].as_str().unwrap_or_default(), format!("{:#}", scenario["findings"]))
    };
    of_outcome.map(name).collect()
}
