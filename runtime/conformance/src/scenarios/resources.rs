//! What it takes while it does nothing, and whether what it takes grows.

use std::time::{Duration, Instant};

use plugd_protocol::plugin::method;
use serde_json::json;

use crate::kit::{ANSWER, Kit, UNKNOWN_METHOD, describe_params};
use crate::observe;
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::session::Session;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "is_quiet_when_idle",
        shows: "is quiet while it has nothing to do",
        does: "Watches stdout, stderr and the processor for 0.4 s after `init`.",
        anchor: "plugin-to-host",
        fix: "say what happens, not that nothing does; wait by blocking, never by asking again and again",
        stage: Stage::Alone,
        needs: Needs::Ready,
        run: |kit| Box::pin(is_quiet_when_idle(kit)),
    },
    Scenario {
        name: "does_not_grow",
        shows: "does not grow by being asked",
        does: "Takes its memory at rest and after it was described 1,000 times, or as often as fits into 1.5 s.",
        anchor: "the-process",
        fix: "keep nothing of a request once it is answered; a heap that is only not collected yet has a setting for its size",
        stage: Stage::Alone,
        needs: Needs::Refusing,
        run: |kit| Box::pin(does_not_grow(kit)),
    },
    Scenario {
        name: "keeps_no_descriptors",
        shows: "closes what it opens",
        does: "Counts its open descriptors before and after 80 requests, or as many as fit into a second.",
        anchor: "the-process",
        fix: "close each file, socket and pipe that a request opens",
        stage: Stage::Alone,
        needs: Needs::Refusing,
        run: |kit| Box::pin(keeps_no_descriptors(kit)),
    },
];

/// How long it has to calm down after `init`.
const CALM: Duration = Duration::from_millis(100);

/// How long it is watched.
const WATCHED: Duration = Duration::from_millis(400);

/// So many lines in that time are a flood: progress is welcome a few times a second.
const LINES_MAX: u64 = 40;

/// So many bytes on stderr in that time are one.
const STDERR_MAX: u64 = 64 * 1024;

/// So much of the processor while it has nothing to do is too much, in hundredths.
const PROCESSOR_MAX: u64 = 50;

/// How many times it is described to see whether it grows, and for how long at most.
const DESCRIBED: usize = 1_000;
const DESCRIBED_FOR: Duration = Duration::from_millis(1_500);

/// So many requests show whether each leaves a descriptor open; no more are made than fit into that time.
const ASKED: usize = 80;
const ASKED_FOR: Duration = Duration::from_secs(1);

/// Requests that wait for their answers at a time.
const BATCH: usize = 10;

/// Growth that shows more than a heap that is not full yet, in KiB.
const GROWTH_MAX: u64 = 32 * 1024;

/// More than this of an idle plugin is worth a word, in KiB.
const IDLE_MAX: u64 = 512 * 1024;

/// So many descriptors more than before are a leak.
const DESCRIPTORS_MAX: usize = 8;

pub(super) async fn is_quiet_when_idle(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    session.listen(CALM).await;
    let (lines, aside) = (session.ear.messages + session.ear.strays, session.stderr_bytes);
    let used = observe::processor_ms(session.pid());
    session.listen(WATCHED).await;
    let mut findings = Vec::new();
    let lines = session.ear.messages + session.ear.strays - lines;
    if lines > LINES_MAX {
        findings
            .push(session.fault(format!("{lines} lines on stdout in {WATCHED:.1?}, while nothing is asked")));
    }
    let aside = session.stderr_bytes - aside;
    if aside > STDERR_MAX {
        let said = format!("{aside} bytes on stderr in {WATCHED:.1?}, while nothing is asked");
        findings.push(session.fault(said));
    }
    let now = observe::processor_ms(session.pid());
    let busy = used.zip(now).map_or(0, |(before, now)| now.saturating_sub(before));
    if busy * 100 > PROCESSOR_MAX * u64::try_from(WATCHED.as_millis()).unwrap_or(1) {
        let said = format!("{busy} ms of the processor in {WATCHED:.1?}, while it has nothing to do");
        findings.push(Finding::warning(said));
    }
    session.bury().await;
    Ok(Verdict::of(findings))
}

/// Asks for the manifest again and again; gives how often, and what it held before, halfway and after.
async fn described_often(kit: &Kit, session: &mut Session) -> Result<(usize, [u64; 3]), Finding> {
    let memory = |session: &Session| observe::memory(session.pid()).map_or(0, |(now, _)| now);
    let mut held = [memory(session); 3];
    let until = Instant::now() + DESCRIBED_FOR;
    let halfway = Instant::now() + DESCRIBED_FOR / 2;
    let mut count = 0;
    while count < DESCRIBED && Instant::now() < until {
        let asked: Vec<u64> =
            (0..BATCH).map(|_| session.send(method::DESCRIBE, &describe_params())).collect();
        for id in asked {
            session
                .answer(id, kit.call_time())
                .await
                .map_err(|fault| fault.when("described again and again"))?;
        }
        count += BATCH;
        if count <= DESCRIBED / 2 && Instant::now() <= halfway {
            held[1] = memory(session);
        }
    }
    held[2] = memory(session);
    Ok((count, held))
}

pub(super) async fn does_not_grow(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    // What it needs once it needs now.
    for _ in 0..BATCH {
        session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await?;
    }
    let (count, [before, halfway, after]) = described_often(&kit, &mut session).await?;
    session.bury().await;
    let mib = |kib: u64| format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024);
    let told = format!("{} at rest, {} after {count} times describe", mib(before), mib(after));
    let grown = after.saturating_sub(before);
    let goes_on = after.saturating_sub(halfway) * 3 > grown;
    let mut findings = Vec::new();
    if grown > GROWTH_MAX && goes_on {
        findings.push(Finding::warning(format!("its memory grows: {told}")));
    }
    if before > IDLE_MAX {
        findings.push(Finding::warning(format!("it needs much memory: {told}")));
    }
    Ok(if findings.is_empty() { Verdict::Passed(Some(told)) } else { Verdict::Found(findings) })
}

pub(super) async fn keeps_no_descriptors(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await?;
    let before = observe::descriptors(session.pid());
    let until = Instant::now() + ASKED_FOR;
    let mut count = 0;
    while count < ASKED && Instant::now() < until {
        session.ask(method::DESCRIBE, &describe_params(), ANSWER).await?;
        session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await?;
        count += 2;
    }
    let after = observe::descriptors(session.pid());
    kit.give_back(session);
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(Verdict::Skipped("its descriptors cannot be seen from here".to_owned()));
    };
    if after > before + DESCRIPTORS_MAX {
        let said = format!("{before} descriptors open before {count} requests, {after} after");
        return Ok(Verdict::Found(vec![Finding::warning(said)]));
    }
    Ok(Verdict::Passed(Some(format!("{after} descriptors open"))))
}
