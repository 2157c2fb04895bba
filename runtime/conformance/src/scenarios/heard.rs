//! What was heard in all conversations together: lines that are none, answers that nobody wanted.

use crate::kit::{Kit, LEAVE};
use crate::oddity::{Heard, Oddity};
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "writes_messages_only",
        shows: "writes nothing but messages to stdout",
        does: "Takes every line of every scenario for what it is.",
        anchor: "frames",
        fix: "write messages alone to stdout: keep a private copy of it and point stdout at stderr before anything prints",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(writes_messages_only(kit)),
    },
    Scenario {
        name: "answers_are_whole",
        shows: "writes each answer as one whole and valid line",
        does: "Looks at every line that has the id of a request, and at lines above the frame limit.",
        anchor: "frames",
        fix: "write one JSON object a line, nothing before or after it on that line, with `result` or `error`",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(answers_are_whole(kit)),
    },
    Scenario {
        name: "answers_match_requests",
        shows: "answers each request once, with its own id",
        does: "Looks at the id of every answer.",
        anchor: "messages",
        fix: "answer each request exactly once, with its own id and not one that is written into the program",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(answers_match_requests(kit)),
    },
    Scenario {
        name: "tells_of_its_own_calls",
        shows: "sends notifications that the host can use",
        does: "Looks at every `log`, `progress` and `partial`, and at requests: their form, and whether their call is one that it has or had.",
        anchor: "plugin-to-host",
        fix: "put the `call_id` of the call's own context into what belongs to it",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(tells_of_its_own_calls(kit)),
    },
    Scenario {
        name: "asks_the_host_for_what_there_is",
        shows: "asks the host only for what it declares",
        does: "Looks at every `host/call`: its plugin must be required, and no more than 64 may be under way.",
        anchor: "hostcall",
        fix: "name what you use under `requires`, and wait for answers before asking for more",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(asks_the_host_for_what_there_is(kit)),
    },
    Scenario {
        name: "fails_in_good_form",
        shows: "says in its errors what callers can use, and no more",
        does: "Looks at every error: its message, the members of its data, and whether it holds a stack trace or a path of the machine. They go to callers, models included.",
        anchor: "errors",
        fix: "give each error a message, and under data a name in snake case, a hint, and retryable",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(fails_in_good_form(kit)),
    },
    Scenario {
        name: "leaves_nothing_behind",
        shows: "leaves no process behind",
        does: "Lets it leave once more, and looks for what it started whenever it has left by itself. plugd kills what is left, but what outlives its plugin also outlives its data.",
        anchor: "the-process",
        fix: "end what you start before you leave, and wait for it",
        stage: Stage::Last,
        needs: Needs::Nothing,
        run: |kit| Box::pin(leaves_nothing_behind(kit)),
    },
];

/// A finding about one kind of what was heard, where there was any.
fn heard(kit: &Kit, kind: Oddity, what: &str) -> Option<Finding> {
    let tally = kit.oddities().of(kind)?;
    let times = if tally.count == 1 { "once".to_owned() } else { format!("{} times", tally.count) };
    let found = Finding::failure(format!("{what}, {times}")).with(tally.shown);
    Some(match tally.fix {
        Some(fix) => found.fix(fix),
        None => found,
    })
}

/// What is wrong; nothing heard is nothing wrong, and nothing right either.
fn verdict(
    kit: &Kit,
    (needed, why): (Heard, &str),
    findings: impl IntoIterator<Item = Option<Finding>>,
) -> Came {
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    if findings.is_empty() && !kit.oddities().has_heard(needed) {
        return Ok(Verdict::Skipped(why.to_owned()));
    }
    Ok(Verdict::of(findings))
}

/// What is said of an answer where there was none.
const NO_ANSWER: (Heard, &str) = (Heard::Answer, "it answered nothing");

pub(super) async fn writes_messages_only(kit: Kit) -> Came {
    let stray = heard(&kit, Oddity::Stray, "a line on stdout that is no message");
    verdict(&kit, (Heard::Line, "it wrote nothing to stdout"), [stray])
}

pub(super) async fn answers_are_whole(kit: Kit) -> Came {
    let broken = heard(&kit, Oddity::BrokenAnswer, "an answer that is no valid message");
    let limit = kit.settings().frame_limit;
    let long = heard(&kit, Oddity::TooLong, &format!("a line above the limit of {limit} bytes"));
    verdict(
        &kit,
        NO_ANSWER,
        [broken, long.map(|found| found.fix("give large data in parts, or its place instead of it"))],
    )
}

pub(super) async fn answers_match_requests(kit: Kit) -> Came {
    let changed = heard(&kit, Oddity::IdChanged, "an answer whose id is not the one that was asked with");
    let findings = [
        changed.map(|found| found.fix("keep the id as it came, its type included, and write just that")),
        heard(&kit, Oddity::Unmatched, "an answer with an id that nobody asked with"),
        heard(&kit, Oddity::Twice, "a second answer to one request"),
    ];
    verdict(&kit, NO_ANSWER, findings)
}

pub(super) async fn tells_of_its_own_calls(kit: Kit) -> Came {
    let unknown = heard(&kit, Oddity::UnknownMethod, "a method that the protocol does not have");
    let unreadable = heard(&kit, Oddity::UnreadableParams, "a message whose params are not of its form");
    let findings = [
        heard(&kit, Oddity::ForeignCall, "something told of a call that it does not have"),
        unknown.map(|found| found.only_warns().fix("plugd passes it over: leave it out")),
        unreadable.map(|found| found.fix("give each member the type that its table says")),
    ];
    verdict(&kit, (Heard::Telling, "it sent no notification, and no request of its own"), findings)
}

pub(super) async fn fails_in_good_form(kit: Kit) -> Came {
    let form = heard(&kit, Oddity::ErrorForm, "an error that is not of its form");
    let tells = heard(&kit, Oddity::ErrorTells, "an error that tells what belongs into the log");
    let tells = tells
        .map(|found| found.only_warns().fix("say what happened in one line, and write the rest to stderr"));
    verdict(&kit, (Heard::Error, "it answered with no error"), [form.map(Finding::only_warns), tells])
}

pub(super) async fn leaves_nothing_behind(kit: Kit) -> Came {
    // Those that failed elsewhere were killed: this one leaves by itself.
    if kit.described().is_some()
        && let Ok(mut session) = kit.ready().await
    {
        session.close_stdin();
        session.leaves(LEAVE).await;
        session.bury().await;
    }
    let inside = heard(&kit, Oddity::LeftBehind, "a process of its group goes on after it has ended");
    let outside =
        heard(&kit, Oddity::LeftOutside, "a process outside of its group goes on after it has ended");
    let none = (Heard::End, "no process of it has left by itself");
    verdict(&kit, none, [inside.map(Finding::only_warns), outside])
}

pub(super) async fn asks_the_host_for_what_there_is(kit: Kit) -> Came {
    let undeclared = heard(&kit, Oddity::Undeclared, "host/call of a plugin that it does not require");
    let crowd = kit.oddities().of(Oddity::Crowd).map(|tally| {
        let said = "more than 64 requests to the host at once: what is above that is refused";
        Finding::warning(said).with(tally.shown).fix("wait for answers before asking for more")
    });
    let undeclared = undeclared.map(|found| found.fix("name it under `requires` in the manifest"));
    verdict(&kit, (Heard::HostCall, "it made no host/call"), [undeclared, crowd])
}
