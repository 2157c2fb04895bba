//! Runs the scenarios: what others build on first, then many beside each other, then what measures.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::{ConformanceReport, ScenarioOutcome, ScenarioReport};
use plugd_supervisor::driver::RunSettings;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Options;
use crate::kit::{Kit, millis};
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::scenarios::scenarios;

/// So many scenarios run beside each other: each has a process or two.
const BESIDE: usize = 4;

/// The same of a plugin that takes longer than this to start: it keeps the processor busy.
const BESIDE_SLOW: usize = 2;
const SLOW: Duration = Duration::from_millis(500);

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// A secret of fewer bytes would hide half of what is shown.
const SECRET_MIN: usize = 4;

/// Runs the scenarios against a plugin, and reports each of them; `None` where it was interrupted.
///
/// `settings` say how its process is made, what configuration it gets, and what of its environment is
/// secret. When it returns, no process of the plugin is left; where the future is dropped, they are killed.
///
/// # Errors
/// When the operating system gives no thread or no temporary folder.
pub async fn check(
    name: PluginName,
    settings: RunSettings,
    options: Options,
    interrupted: impl Future<Output = ()>,
) -> io::Result<Option<ConformanceReport>> {
    let began = Instant::now();
    let kit = Kit::new(name, settings, options)?;
    let came = tokio::select! {
        came = run_all(&kit) => Some(came),
        () = interrupted => None,
    };
    kit.close().await;
    let Some(mut came) = came else { return Ok(None) };
    let chosen = scenarios().filter(|scenario| is_chosen(&kit, scenario));
    let reports = chosen.map(|scenario| came.remove(scenario.name).unwrap_or_else(|| own_fault(scenario)));
    let mut scenarios: Vec<ScenarioReport> = reports.collect();
    conceal(&kit, &mut scenarios);
    let ok = scenarios.iter().all(|report| report.outcome != ScenarioOutcome::Failed);
    Ok(Some(ConformanceReport { ok, took_ms: millis(began.elapsed()), scenarios }))
}

/// Each scenario with what came of it; what others build on is run whether it was chosen or not.
async fn run_all(kit: &Kit) -> BTreeMap<&'static str, ScenarioReport> {
    let mut came = BTreeMap::new();
    let mut is_ready = false;
    for scenario in scenarios().filter(|scenario| scenario.stage == Stage::First) {
        let report = run(kit, scenario, is_ready).await;
        is_ready |= scenario.name == "answers_init" && is_good(&report);
        came.insert(scenario.name, report);
    }
    let at = |stage: Stage| {
        scenarios().filter(move |scenario| scenario.stage == stage && is_chosen(kit, scenario))
    };
    let is_slow = kit.described().is_some_and(|described| described.took > SLOW);
    let lanes = Arc::new(Semaphore::new(if is_slow { BESIDE_SLOW } else { BESIDE }));
    let mut beside = JoinSet::new();
    for scenario in at(Stage::Beside) {
        let (kit, lanes) = (kit.clone(), Arc::clone(&lanes));
        beside.spawn(async move {
            // It is never closed; without a lane it would only be less orderly.
            let _lane = lanes.acquire().await;
            (scenario.name, run(&kit, scenario, is_ready).await)
        });
    }
    while let Some(ended) = beside.join_next().await {
        // One that panicked is told of where its report is looked for.
        came.extend(ended.ok());
    }
    for scenario in at(Stage::Alone).chain(at(Stage::Slow)) {
        came.insert(scenario.name, run(kit, scenario, is_ready).await);
    }
    kit.settle().await;
    for scenario in at(Stage::Last) {
        came.insert(scenario.name, run(kit, scenario, is_ready).await);
    }
    came
}

/// Whether a scenario was asked for.
fn is_chosen(kit: &Kit, scenario: &Scenario) -> bool {
    let only = &kit.options().only;
    only.is_empty() || only.iter().any(|name| name == scenario.name)
}

fn is_good(report: &ScenarioReport) -> bool {
    matches!(report.outcome, ScenarioOutcome::Passed | ScenarioOutcome::Warned)
}

async fn run(kit: &Kit, scenario: &Scenario, is_ready: bool) -> ScenarioReport {
    let began = Instant::now();
    let came = match unmet(kit, scenario, is_ready) {
        Some(why) => Ok(Verdict::Skipped(why)),
        None => (scenario.run)(kit.clone()).await,
    };
    report(scenario, came, millis(began.elapsed()))
}

/// What is said of a scenario that takes long where it is to be quick.
pub const LEFT_OUT: &str = "it takes long, and --quick was given";

/// What is missing for a scenario to say anything.
fn unmet(kit: &Kit, scenario: &Scenario, is_ready: bool) -> Option<String> {
    let why = match scenario.needs {
        Needs::Nothing => return None,
        Needs::Manifest | Needs::Ready | Needs::Refusing | Needs::Call if kit.described().is_none() => {
            "it did not describe itself"
        }
        Needs::Ready | Needs::Refusing | Needs::Call if !is_ready => "it did not come up",
        Needs::Refusing if !kit.refuses() => {
            "it leaves a method that it does not know unanswered: mend refuses_an_unknown_method first"
        }
        Needs::Call if kit.options().call == crate::Calls::None => "nothing is called without --call",
        Needs::Manifest | Needs::Ready | Needs::Refusing | Needs::Call
            if scenario.is_slow() && kit.options().quick =>
        {
            LEFT_OUT
        }
        Needs::Manifest | Needs::Ready | Needs::Refusing | Needs::Call => return None,
    };
    Some(why.to_owned())
}

fn report(scenario: &Scenario, came: Came, took_ms: u64) -> ScenarioReport {
    let verdict = came.unwrap_or_else(|found| Verdict::Found(vec![found]));
    let (outcome, note, findings) = match verdict {
        Verdict::Passed(note) => (ScenarioOutcome::Passed, note, Vec::new()),
        Verdict::Skipped(why) => (ScenarioOutcome::Skipped, Some(why), Vec::new()),
        Verdict::Found(found) => {
            let findings: Vec<_> = found.into_iter().map(|found| found.report(scenario)).collect();
            let fails = findings.iter().any(|finding| finding.fails);
            (if fails { ScenarioOutcome::Failed } else { ScenarioOutcome::Warned }, None, findings)
        }
    };
    let (name, shows) = (scenario.name.to_owned(), scenario.shows.to_owned());
    ScenarioReport { name, shows, outcome, spec: scenario.spec(), took_ms, note, findings }
}

/// A scenario that did not come to an end is a fault of this kit.
fn own_fault(scenario: &Scenario) -> ScenarioReport {
    let found =
        Finding::failure("plugd check itself failed in this scenario").fix("report it as a fault of plugd");
    report(scenario, Err(found), 0)
}

/// Takes secrets of the plugin's environment out of what is shown.
fn conceal(kit: &Kit, scenarios: &mut [ScenarioReport]) {
    let settings = kit.settings();
    let is_secret =
        |(name, value): &&(String, String)| settings.secret_env.contains(name) && value.len() >= SECRET_MIN;
    for (_, secret) in settings.launch.env.iter().filter(is_secret) {
        for finding in scenarios.iter_mut().flat_map(|report| &mut report.findings) {
            finding.message = finding.message.replace(secret, HIDDEN);
            for line in &mut finding.evidence {
                *line = line.replace(secret, HIDDEN);
            }
        }
    }
}
