//! Leaving: when stdin ends, when SIGTERM comes, when it is asked to, and with nothing left behind.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use plugd_protocol::plugin::method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ear::Answer;
use crate::kit::{ANSWER, Kit, LEAVE, SHUTDOWN, describe_params, millis};
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::session::Session;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "leaves_when_stdin_ends",
        shows: "leaves when stdin ends",
        does: "Closes stdin while it has nothing to do, and waits for 3 s. The host may be gone.",
        anchor: "lives-and-clocks",
        fix: "leave your loop when reading gives end of file, and end all threads with it",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(leaves_when_stdin_ends(kit)),
    },
    Scenario {
        name: "leaves_when_stdin_ends_unused",
        shows: "leaves when stdin ends before anything was asked",
        does: "Starts it and closes stdin.",
        anchor: "lives-and-clocks",
        fix: "leave when reading gives end of file, whatever has come before",
        stage: Stage::Beside,
        needs: Needs::Manifest,
        run: |kit| Box::pin(leaves_when_stdin_ends_unused(kit)),
    },
    Scenario {
        name: "leaves_when_stdin_ends_in_a_call",
        shows: "leaves when stdin ends during a call",
        does: "Closes stdin right after a call: the longest known one of less than 2 s.",
        anchor: "lives-and-clocks",
        fix: "look for the end of stdin while a call runs, or be done within 3 s",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(leaves_when_stdin_ends_in_a_call(kit)),
    },
    Scenario {
        name: "leaves_when_stdin_ends_in_a_line",
        shows: "leaves when stdin ends within a line",
        does: "Closes stdin in the middle of a request.",
        anchor: "lives-and-clocks",
        fix: "take what stands before end of file without a line end for no message, and leave",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(leaves_when_stdin_ends_in_a_line(kit)),
    },
    Scenario {
        name: "leaves_at_sigterm",
        shows: "leaves at SIGTERM",
        does: "Sends SIGTERM to its process group and waits for 3 s. plugd does so where closing stdin did not help.",
        anchor: "lives-and-clocks",
        fix: "do not ignore SIGTERM; a handler that cleans up must end the process",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(leaves_at_sigterm(kit)),
    },
    Scenario {
        name: "answers_shutdown_and_leaves",
        shows: "answers `shutdown` and leaves",
        does: "Asks it to leave: the answer within 5 s, the end within a second, with exit status 0. Without knowing `shutdown` it is enough to answer -32601 and to leave when stdin ends.",
        anchor: "shutdown",
        fix: "release what you hold, answer {}, flush, exit with 0",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(answers_shutdown_and_leaves(kit)),
    },
    Scenario {
        name: "survives_a_second_shutdown",
        shows: "leaves in order when `shutdown` comes twice",
        does: "Sends `shutdown` twice in one write.",
        anchor: "shutdown",
        fix: "answer the first one and exit with 0, whatever else is in the pipe",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(survives_a_second_shutdown(kit)),
    },
    Scenario {
        name: "leaves_when_shut_down_in_a_call",
        shows: "leaves when `shutdown` comes during a call",
        does: "Sends a call and `shutdown` in one write. It happens where draining took too long.",
        anchor: "shutdown",
        fix: "answer `shutdown` while a call runs, or as soon as it is over",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(leaves_when_shut_down_in_a_call(kit)),
    },
];

/// One that answered `shutdown` and stays longer waits for the end of stdin.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The same where only the end counts, however it comes.
const SOON: Duration = Duration::from_millis(300);

/// The slowest call that one is still left in the middle of: it must be over before the grace is.
const CALL_IN_GRACE: Duration = Duration::from_secs(2);

/// Waits for the end after something that must lead to it.
async fn left(mut session: Session, within: Duration, after: &str) -> Came {
    let began = Instant::now();
    let gone = session.leaves(within).await;
    let took = began.elapsed();
    let status = session.status();
    let evidence = session.evidence();
    session.bury().await;
    if !gone {
        let found = Finding::failure(format!("it is still there {within:.0?} after {after}"));
        return Err(found.with(evidence));
    }
    let code = status.and_then(|status| status.code());
    Ok(match code {
        Some(0) | None => Verdict::Passed(Some(format!("left after {} ms", millis(took)))),
        Some(code) => {
            let found =
                Finding::warning(format!("after {after} it left with exit status {code} instead of 0"));
            Verdict::Found(vec![found.with(evidence)])
        }
    })
}

pub(super) async fn leaves_when_stdin_ends(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    session.close_stdin();
    left(session, LEAVE, "stdin was closed").await
}

pub(super) async fn leaves_when_stdin_ends_unused(kit: Kit) -> Came {
    let started = kit.described().map(|described| described.took).unwrap_or_default();
    let mut session = kit.bare().await?;
    session.close_stdin();
    left(session, LEAVE + started, "stdin was closed before anything was asked").await
}

/// A request that keeps it at work for a while, as far as that is known.
fn work(kit: &Kit) -> (&'static str, Value) {
    let fits = kit.tried().iter().filter_map(|tried| Some((tried, tried.answer.as_ref()?.1)));
    let slowest = fits.filter(|(_, took)| *took < CALL_IN_GRACE).max_by_key(|(_, took)| *took);
    let carrier = kit.carrier().map(|(operation, arguments)| (operation.as_str(), arguments));
    let call = slowest.map(|(tried, _)| (tried.operation.name.as_str(), &tried.arguments)).or(carrier);
    match call {
        Some((operation, arguments)) => {
            (method::CALL, kit.call_params(operation, arguments, kit.call_time()).0)
        }
        None => (method::DESCRIBE, describe_params()),
    }
}

pub(super) async fn leaves_when_stdin_ends_in_a_call(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    let (method, params) = work(&kit);
    session.send(method, &params);
    session.flush(ANSWER).await;
    session.close_stdin();
    left(session, LEAVE, &format!("stdin was closed right after a {method}")).await
}

pub(super) async fn leaves_when_stdin_ends_in_a_line(kit: Kit) -> Came {
    let mut session = kit.apart().await?;
    session.write_noted(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"desc");
    session.flush(ANSWER).await;
    session.close_stdin();
    let came = left(session, LEAVE, "stdin was closed within a line").await?;
    // How it ends then is its own affair.
    Ok(match came {
        Verdict::Found(_) => Verdict::PASSED,
        came => came,
    })
}

pub(super) async fn leaves_at_sigterm(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    session.signal(Signal::TERM, "SIGTERM");
    session.signal(Signal::CONT, "SIGCONT");
    let gone = session.leaves(LEAVE).await;
    let (status, evidence) = (session.status(), session.evidence());
    session.bury().await;
    if !gone {
        return Err(Finding::failure(format!("it is still there {LEAVE:.0?} after SIGTERM")).with(evidence));
    }
    let how = status.and_then(|status| status.signal()).map(|_| "by the signal itself".to_owned());
    Ok(Verdict::Passed(how))
}

pub(super) async fn answers_shutdown_and_leaves(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    let params = shutdown_params();
    let (answer, _) = session.ask(method::SHUTDOWN, &params, SHUTDOWN).await?;
    let unknown = matches!(&answer, Answer::Error(error) if error.code == -32601);
    match answer {
        Answer::Result(_) | Answer::Error(_) => {}
        Answer::Broken(broken) => return Err(session.broken("shutdown", &broken)),
    }
    if !unknown && session.leaves(AT_ONCE).await {
        return left(session, LEAVE, "shutdown").await;
    }
    session.close_stdin();
    let came = left(session, LEAVE, "shutdown was answered and stdin closed").await?;
    // Who does not know shutdown leaves when stdin ends, and that is soon.
    let found =
        (!unknown).then(|| Finding::warning("it answered shutdown, and left only when stdin was closed"));
    Ok(found.map_or(came, |found| Verdict::Found(vec![found])))
}

fn shutdown_params() -> Value {
    json!({"reason": "stop", "grace_ms": millis(SHUTDOWN)})
}

pub(super) async fn survives_a_second_shutdown(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    let first = session.send(method::SHUTDOWN, &shutdown_params());
    session.send(method::SHUTDOWN, &shutdown_params());
    session.answer(first, SHUTDOWN).await.map_err(|fault| fault.when("shutdown, sent twice in one write"))?;
    if !session.leaves(SOON).await {
        session.close_stdin();
    }
    left(session, LEAVE, "shutdown was sent twice").await
}

pub(super) async fn leaves_when_shut_down_in_a_call(kit: Kit) -> Came {
    let mut session = kit.ready().await?;
    let (method, params) = work(&kit);
    session.send(method, &params);
    let asked = session.send(method::SHUTDOWN, &shutdown_params());
    // It may leave without finishing its work, and then without an answer.
    let answered = session.answer(asked, SHUTDOWN).await;
    if let (Err(fault), None) = (answered, session.status()) {
        return Err(fault.when(&format!("shutdown right after a {method}")));
    }
    if !session.leaves(SOON).await {
        session.close_stdin();
    }
    left(session, LEAVE, &format!("shutdown right after a {method}")).await
}
