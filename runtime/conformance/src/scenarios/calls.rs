//! Operations that may be called: whether they do what they declare.

use std::time::Duration;

use plugd_contract::Contract;
use plugd_protocol::Operation;
use plugd_protocol::plugin::method;
use plugd_supervisor::driver::{Launch, Sandbox};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Calls;
use crate::ear::Answer;
use crate::example::{as_sent, example_arguments};
use crate::kit::{CANCEL_GRACE, Kit, Tried, millis};
use crate::observe::{self, Snapshot};
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::scenarios::calling::{Outcome, call};
use crate::session::Session;
use crate::transcript::clipped;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "answers_calls",
        shows: "answers calls with its own examples",
        does: "Calls each operation that is declared read-only, or that `--call=NAME` names, with arguments made of the examples, defaults and choices of its `input_schema`. An error in its own words is a warning; one that says that the handler failed is not.",
        anchor: "call",
        fix: "answer with {\"data\": …}, or with an error that says what happened",
        stage: Stage::First,
        needs: Needs::Call,
        run: |kit| Box::pin(answers_calls(kit)),
    },
    Scenario {
        name: "fits_its_output_schema",
        shows: "gives data that fits its `output_schema`",
        does: "Checks what was answered against the schema that the operation declares.",
        anchor: "the-manifest",
        fix: "mend the data, or the schema",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(fits_its_output_schema(kit)),
    },
    Scenario {
        name: "is_idempotent_where_declared",
        shows: "answers the same a second time, where it declares idempotent",
        does: "Calls twice with the same arguments. plugd repeats such a call by itself after a crash.",
        anchor: "effects",
        fix: "leave `idempotent` out of what does not give and leave the same when it runs twice",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(is_idempotent_where_declared(kit)),
    },
    Scenario {
        name: "changes_nothing_where_read_only",
        shows: "changes no file, where it declares read-only",
        does: "Compares its folder and its data folder before and after, and calls it once more where the system lets it write nowhere.",
        anchor: "effects",
        fix: "leave `read_only` out of what changes something",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(changes_nothing_where_read_only(kit)),
    },
    Scenario {
        name: "runs_calls_beside_each_other",
        shows: "runs calls beside each other, where it declares lanes",
        does: "Takes the longest of the calls alone and several of them at once. Lanes that wait for each other make callers wait for answers that plugd thinks are under way.",
        anchor: "several-calls-at-once",
        fix: "work on calls in threads or tasks of their own, or declare features.concurrency 1",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(runs_calls_beside_each_other(kit)),
    },
    Scenario {
        name: "stops_when_cancelled",
        shows: "stops when it is cancelled, where it declares that",
        does: "Cancels the longest of the calls after a fifth of its time.",
        anchor: "cancel",
        fix: "read stdin while a call runs, and stop the call that `cancel` names; or do not declare features.cancel",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(stops_when_cancelled(kit)),
    },
    Scenario {
        name: "needs_little_memory",
        shows: "needs less than 256 MiB for a call",
        does: "Takes the most memory that the process has had before and after each call.",
        anchor: "the-process",
        fix: "read and write large data in parts",
        stage: Stage::Alone,
        needs: Needs::Call,
        run: |kit| Box::pin(needs_little_memory(kit)),
    },
];

/// What comes after an answer comes within this time.
const AFTERWARDS: Duration = Duration::from_millis(50);

/// A call that is answered sooner carries scenarios about calls as such.
const SOON: Duration = Duration::from_millis(200);

/// Only of a call that takes as long can be told whether others run beside it, or whether it is cut short.
const LONG: Duration = Duration::from_millis(100);

/// So many calls show whether they run beside each other.
const LANES_TRIED: u32 = 4;

/// What a busy machine spoils is tried again so often.
const TURNS: u32 = 3;

/// A call that takes so much more memory is worth a word, in KiB.
const MEMORY_MAX: u64 = 256 * 1024;

/// Why nothing is said about calls.
const NOTHING_ANSWERED: &str = "no operation that was called has answered with data";

pub(super) async fn answers_calls(kit: Kit) -> Came {
    let mut findings = unknown_names(&kit);
    let mut tried = Vec::new();
    let mut untold = Vec::new();
    let mut session: Option<Session> = None;
    for operation in kit.manifest().operations.iter().filter(|operation| kit.may_call(operation)) {
        let arguments = match made_of_examples(&kit, operation) {
            Ok(arguments) => arguments,
            Err(Unmade::Wrong(found)) => {
                findings.push(found);
                continue;
            }
            Err(Unmade::Untold(why)) => {
                untold.push(why);
                continue;
            }
        };
        let mut talk = match session.take() {
            Some(talk) => talk,
            None => kit.ready().await?,
        };
        let called = call(&kit, &mut talk, operation, &arguments).await;
        // What comes late is heard, too.
        talk.listen(AFTERWARDS).await;
        let sound = called.is_ok() && talk.is_up();
        let answer = match called {
            Ok(Outcome::Data(data, took)) => Some((data, took)),
            Ok(Outcome::Refused(found)) => {
                findings.push(found);
                None
            }
            Ok(Outcome::Lacking(why)) => {
                untold.push(format!("{} ({why})", operation.name));
                None
            }
            Err(found) => {
                findings.push(found);
                None
            }
        };
        tried.push(Tried { operation: operation.clone(), arguments, answer });
        if sound { session = Some(talk) } else { talk.bury().await }
    }
    if let Some(session) = session {
        kit.give_back(session);
    }
    let quick = tried.iter().find(|tried| tried.answer.as_ref().is_some_and(|(_, took)| *took < SOON));
    if let Some(tried) = quick {
        kit.set_carrier(tried.operation.name.as_str(), tried.arguments.clone());
    }
    let count = tried.iter().filter(|tried| tried.answer.is_some()).count();
    kit.set_tried(tried);
    Ok(match (findings.is_empty(), count) {
        (false, _) => Verdict::Found(findings),
        (true, 0) if untold.is_empty() => {
            Verdict::Skipped("no operation is declared read-only: name one, as --call=NAME".to_owned())
        }
        (true, 0) => Verdict::Skipped(format!("not tried: {}", untold.join(", "))),
        (true, _) if untold.is_empty() => Verdict::Passed(Some(format!("{count} called"))),
        (true, _) => Verdict::Passed(Some(format!("{count} called; not tried: {}", untold.join(", ")))),
    })
}

/// Why an operation has no arguments to be called with.
enum Unmade {
    /// That is wrong, or somebody wants it called.
    Wrong(Finding),
    /// Nobody needs them: which operation, and what it lacks.
    Untold(String),
}

/// Arguments made of what an operation's schema shows, as the host would send them.
fn made_of_examples(kit: &Kit, operation: &Operation) -> Result<Value, Unmade> {
    let name = &operation.name;
    match example_arguments(operation) {
        Ok(arguments) => as_sent(operation, arguments).map_err(|wrong| {
            let said = format!("the examples of {name} do not fit its own input_schema: {wrong}");
            let fix = "mend the examples, defaults or choices in input_schema, or what it demands";
            Unmade::Wrong(Finding::failure(said).fix(fix))
        }),
        Err(lacking) => {
            let why = format!("{lacking} is required and has no example");
            if !kit.is_named(operation) {
                return Err(Unmade::Untold(format!("{name} ({why})")));
            }
            let fix = format!("give {lacking} an example, under `examples` in input_schema");
            Err(Unmade::Wrong(Finding::warning(format!("{name} was not called: {why}")).fix(fix)))
        }
    }
}

/// Names that were given and that no operation has.
fn unknown_names(kit: &Kit) -> Vec<Finding> {
    let Calls::Named(names) = &kit.options().call else { return Vec::new() };
    let is_unknown = |name: &&String| {
        let bare = name.rsplit('.').next().unwrap_or_default();
        !kit.manifest().operations.iter().any(|operation| operation.name.as_str() == bare)
    };
    let unknown = names.iter().filter(is_unknown);
    unknown
        .map(|name| Finding::failure(format!("it has no operation {name}")).fix("name one that it declares"))
        .collect()
}

/// What was answered, with those operations for which something holds.
fn answered(kit: &Kit, holds: impl Fn(&Operation) -> bool) -> Vec<(&Tried, &RawValue, Duration)> {
    let with_data = kit.tried().iter().filter_map(|tried| {
        let (data, took) = tried.answer.as_ref()?;
        Some((tried, &**data, *took))
    });
    with_data.filter(|(tried, _, _)| holds(&tried.operation)).collect()
}

/// Calls once more, where only data will do.
async fn again(
    kit: &Kit,
    session: &mut Session,
    tried: &Tried,
) -> Result<(Box<RawValue>, Duration), Finding> {
    match call(kit, session, &tried.operation, &tried.arguments).await? {
        Outcome::Data(data, took) => Ok((data, took)),
        Outcome::Refused(found) => Err(found),
        Outcome::Lacking(why) => Err(session.fault(format!("{}: {why}", tried.operation.name)).only_warns()),
    }
}

pub(super) async fn fits_its_output_schema(kit: Kit) -> Came {
    // One that does not compile is another scenario's affair.
    let contract = |tried: &Tried| Contract::compile(tried.operation.output_schema.as_deref()?).ok();
    let declared: Vec<_> = answered(&kit, |_| true)
        .into_iter()
        .filter_map(|(tried, data, _)| Some((tried, data, contract(tried)?)))
        .collect();
    if declared.is_empty() {
        return Ok(Verdict::Skipped("no operation that was called declares an output_schema".to_owned()));
    }
    let mut findings = Vec::new();
    for (tried, data, contract) in declared {
        for problem in contract.check_output(data).err().unwrap_or_default() {
            let at = if problem.path.is_empty() { "as a whole" } else { &problem.path };
            let name = &tried.operation.name;
            let got = problem.got.map(|got| format!(", got {got}")).unwrap_or_default();
            let said = format!("the data of {name} at {at}: expected {}{got}", problem.expected);
            findings.push(Finding::failure(said).with([format!("← {}", clipped(data.get().as_bytes()))]));
        }
    }
    Ok(Verdict::of(findings))
}

pub(super) async fn is_idempotent_where_declared(kit: Kit) -> Came {
    let declared = answered(&kit, |operation| operation.effects.idempotent == Some(true));
    if declared.is_empty() {
        return Ok(Verdict::Skipped("no operation that was called declares to be idempotent".to_owned()));
    }
    let mut session = kit.ready().await?;
    let mut findings = Vec::new();
    for (tried, _, _) in declared {
        let (first, _) = again(&kit, &mut session, tried).await?;
        let (second, _) = again(&kit, &mut session, tried).await?;
        let parsed = |data: &RawValue| serde_json::from_str::<Value>(data.get()).unwrap_or_default();
        if parsed(&first) != parsed(&second) {
            let said = format!(
                "{} declares idempotent, and answers otherwise the second time",
                tried.operation.name
            );
            let shown = [&first, &second].map(|data| format!("← {}", clipped(data.get().as_bytes())));
            findings.push(Finding::warning(said).with(shown));
        }
    }
    kit.give_back(session);
    Ok(Verdict::of(findings))
}

pub(super) async fn changes_nothing_where_read_only(kit: Kit) -> Came {
    let declared = answered(&kit, |operation| operation.effects.read_only == Some(true));
    if declared.is_empty() {
        return Ok(Verdict::Skipped("no operation that was called declares to be read-only".to_owned()));
    }
    let folders = [kit.launch().cwd.as_path(), kit.data_dirs()];
    let mut note = None;
    let mut findings = Vec::new();
    let mut session = kit.ready().await?;
    for (tried, _, _) in &declared {
        let before = Snapshot::of(&folders);
        again(&kit, &mut session, tried).await?;
        let changes = before.zip(Snapshot::of(&folders)).map(|(before, after)| before.changes(&after));
        let Some(changes) = changes else {
            note = Some(format!("{} holds too many files to compare", folders[0].display()));
            continue;
        };
        if !changes.is_empty() {
            let said = format!("{} declares read_only, and changes files", tried.operation.name);
            findings.push(Finding::failure(said).with(changes.into_iter().take(5)));
        }
    }
    session.bury().await;
    let launch = Launch { sandbox: Sandbox::ReadOnly, ..kit.launch().clone() };
    match confined(&kit, &launch).await {
        Ok(mut session) => {
            for (tried, _, _) in declared {
                if let Err(found) = again(&kit, &mut session, tried).await {
                    findings.push(found.when("in a read-only sandbox").only_warns().fix(
                        "it writes somewhere although it declares read_only: keep that in memory, or leave read_only out",
                    ));
                }
            }
            session.bury().await;
        }
        Err(_) => note = Some("not tried in a read-only sandbox: it does not come up there".to_owned()),
    }
    Ok(if findings.is_empty() { Verdict::Passed(note) } else { Verdict::Found(findings) })
}

/// One that may not write, where it comes up so.
async fn confined(kit: &Kit, launch: &Launch) -> Result<Session, Finding> {
    let mut session = kit.started(launch, kit.oddities()).await?;
    kit.make_ready(&mut session).await?;
    Ok(session)
}

/// The call that takes longest, where that is long enough to see something.
fn longest(kit: &Kit) -> Option<&Tried> {
    let all = answered(kit, |_| true);
    all.into_iter()
        .filter(|(_, _, took)| *took >= LONG)
        .max_by_key(|(_, _, took)| *took)
        .map(|(tried, _, _)| tried)
}

fn nothing_long() -> Came {
    Ok(Verdict::Skipped(format!("no operation that was called takes {} ms to give data", millis(LONG))))
}

pub(super) async fn runs_calls_beside_each_other(kit: Kit) -> Came {
    let lanes = kit.manifest().features.concurrency.min(LANES_TRIED);
    if lanes == 1 {
        return Ok(Verdict::Skipped("it takes one call at a time".to_owned()));
    }
    let Some(tried) = longest(&kit) else { return nothing_long() };
    let mut session = kit.ready().await?;
    let name = tried.operation.name.as_str();
    let mut told = String::new();
    for _ in 0..TURNS {
        let (_, alone) = again(&kit, &mut session, tried).await?;
        let params = (0..lanes).map(|_| kit.call_params(name, &tried.arguments, kit.call_time()).0);
        let asked: Vec<u64> = params.map(|params| session.send(method::CALL, &params)).collect();
        let mut together = Duration::ZERO;
        for id in asked {
            let (_, took) = session.answer(id, kit.call_time() * lanes).await?;
            together = together.max(took);
        }
        told = format!(
            "{name} takes {} ms alone, and {lanes} at once take {} ms",
            millis(alone),
            millis(together)
        );
        if together < alone * lanes * 3 / 4 {
            kit.give_back(session);
            return Ok(Verdict::Passed(Some(told)));
        }
    }
    let declared = kit.manifest().features.concurrency;
    Ok(Verdict::Found(vec![
        session.fault(format!("it declares {declared} calls at once: {told}")).only_warns(),
    ]))
}

pub(super) async fn stops_when_cancelled(kit: Kit) -> Came {
    if !kit.manifest().features.cancel {
        return Ok(Verdict::Skipped("it does not declare features.cancel".to_owned()));
    }
    let Some(tried) = longest(&kit) else { return nothing_long() };
    let mut session = kit.ready().await?;
    let name = tried.operation.name.as_str();
    let mut told = String::new();
    for _ in 0..TURNS {
        let (_, whole) = again(&kit, &mut session, tried).await?;
        let (params, call_id) = kit.call_params(name, &tried.arguments, kit.call_time());
        let id = session.send(method::CALL, &params);
        session.listen(whole / 5).await;
        session.notify(method::CANCEL, &serde_json::json!({"call_id": call_id}));
        let answered = session.answer(id, whole + CANCEL_GRACE).await;
        let (answer, took) = answered.map_err(|fault| fault.when(&format!("{name} was cancelled")))?;
        if matches!(&answer, Answer::Error(error) if error.code == -32800) || took < whole * 3 / 5 {
            kit.give_back(session);
            return Ok(Verdict::Passed(Some(format!("{name} stopped after {} ms", millis(took)))));
        }
        told = format!(
            "{name} goes on for {} ms although it was cancelled after {} ms",
            millis(took),
            millis(whole / 5)
        );
    }
    Err(session.fault(told))
}

pub(super) async fn needs_little_memory(kit: Kit) -> Came {
    let all = answered(&kit, |_| true);
    if all.is_empty() {
        return Ok(Verdict::Skipped(NOTHING_ANSWERED.to_owned()));
    }
    let mut findings = Vec::new();
    let mut most = 0;
    for (tried, _, _) in all {
        let mut session = kit.ready().await?;
        let before = observe::memory(session.pid());
        again(&kit, &mut session, tried).await?;
        let after = observe::memory(session.pid());
        session.bury().await;
        let grown = before.zip(after).map_or(0, |((before, _), (_, peak))| peak.saturating_sub(before));
        most = most.max(grown);
        if grown > MEMORY_MAX {
            let said = format!("one call of {} takes {} MiB of memory", tried.operation.name, grown / 1024);
            findings.push(Finding::warning(said));
        }
    }
    let told = format!("a call takes up to {}.{} MiB", most / 1024, most % 1024 * 10 / 1024);
    Ok(if findings.is_empty() { Verdict::Passed(Some(told)) } else { Verdict::Found(findings) })
}
