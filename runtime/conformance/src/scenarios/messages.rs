//! Requests and notifications: each gets what the protocol says, whatever it is about.

use std::time::Duration;

use plugd_protocol::plugin::method;
use serde_json::{Value, json};

use crate::ear::Answer;
use crate::kit::{ANSWER, CANCEL_GRACE, Kit, UNKNOWN_METHOD, UNKNOWN_OPERATION, describe_params, millis};
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::session::Session;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "refuses_an_unknown_method",
        shows: "answers an unknown method with -32601",
        does: "Sends a request that no version of the protocol has. Later versions will send such requests, and count on that answer. Many scenarios ask so, for it has no effects: they are skipped where nothing comes.",
        anchor: "messages",
        fix: "answer each request whose method you do not know with error -32601",
        stage: Stage::First,
        needs: Needs::Ready,
        run: |kit| Box::pin(refuses_an_unknown_method(kit)),
    },
    Scenario {
        name: "passes_over_unknown_notifications",
        shows: "says nothing to an unknown notification",
        does: "Sends three notifications that it cannot know, one of them named `event`, and then a request.",
        anchor: "messages",
        fix: "pass over a message without an `id` whose method you do not know: no answer, no error",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(passes_over_unknown_notifications(kit)),
    },
    Scenario {
        name: "refuses_an_unknown_operation",
        shows: "answers a call of an operation that it does not have with an error",
        does: "Calls an operation that it does not declare. plugd never does, but what answers anything hides mistakes. It also shows whether scenarios about calls can use such a call, which runs nothing.",
        anchor: "errors",
        fix: "answer a `call` whose operation you do not know with error -32601",
        stage: Stage::First,
        needs: Needs::Ready,
        run: |kit| Box::pin(refuses_an_unknown_operation(kit)),
    },
    Scenario {
        name: "gives_back_ids_as_they_came",
        shows: "gives back ids exactly as they came",
        does: "Asks with ids from 0 to 9007199254740991, each of which must come back digit by digit, and with two longer ones, where losing digits is a warning.",
        anchor: "messages",
        fix: "keep the id's own text, or a number type that holds 64 bits, and write it as it came: 0 is an id, too",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(gives_back_ids_as_they_came(kit)),
    },
    Scenario {
        name: "answers_without_params",
        shows: "does without `params`",
        does: "Sends a request and a notification without `params`, which plugd never does, but JSON-RPC allows.",
        anchor: "messages",
        fix: "take absent `params` for an empty object",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(answers_without_params(kit)),
    },
    Scenario {
        name: "answers_after_the_deadline",
        shows: "answers a call whose time is over",
        does: "Calls with 0 and with 1 ms left. It may give up at once, but it must answer.",
        anchor: "call",
        fix: "answer every call, with an error if you give up",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(answers_after_the_deadline(kit)),
    },
    Scenario {
        name: "takes_a_full_context",
        shows: "takes every member of a call's context",
        does: "Calls with session, trace, caller, key, locale, a second attempt, a call id of any text, and unknown members.",
        anchor: "call",
        fix: "read the members of `context` that you need; `call_id` is any text",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(takes_a_full_context(kit)),
    },
    Scenario {
        name: "passes_over_a_cancel_of_no_call",
        shows: "passes over a cancel of a call that it does not have",
        does: "Cancels a call that never was, and one that it has answered: that cancel crossed the answer.",
        anchor: "cancel",
        fix: "pass over a `cancel` whose call you do not have",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(passes_over_a_cancel_of_no_call(kit)),
    },
    Scenario {
        name: "answers_a_cancelled_call",
        shows: "answers a call that was cancelled",
        does: "Sends a call and its cancel in one write. The answer frees the lane: a plugin that owes one is killed in the end.",
        anchor: "cancel",
        fix: "answer a cancelled call all the same: with error -32800, or with what you have",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(answers_a_cancelled_call(kit)),
    },
    Scenario {
        name: "answers_ping",
        shows: "answers `ping`, where it declares that",
        does: "Pings it while it has nothing to do.",
        anchor: "ping",
        fix: "answer `ping` with {}, or do not declare features.ping",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(answers_ping(kit)),
    },
    Scenario {
        name: "answers_reload",
        shows: "takes its configuration anew, where it declares that",
        does: "Reloads it with the configuration that it has, which must go well, and with one that does not fit, after which it must go on.",
        anchor: "reload",
        fix: "take a new configuration up whole or refuse it with an error, and go on either way",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(answers_reload(kit)),
    },
    Scenario {
        name: "answers_several_requests_of_one_write",
        shows: "answers several requests that come together",
        does: "Writes a dozen requests and notifications at once. Whoever reads what is there and takes it for one message loses the others.",
        anchor: "frames",
        fix: "split what you read at each line feed, and take each line for a message",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(answers_several_requests_of_one_write(kit)),
    },
    Scenario {
        name: "answers_as_many_calls_as_declared",
        shows: "answers as many calls at once as it declares",
        does: "Sends as many calls as features.concurrency says, up to 16, in one write.",
        anchor: "several-calls-at-once",
        fix: "write each line whole, under one lock; or declare fewer",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(answers_as_many_calls_as_declared(kit)),
    },
];

/// Ids that every host may use: the first one, and those that no double changes.
const IDS: &[u64] = &[0, 255, 65_536, 4_294_967_296, 9_007_199_254_740_991];

/// Ids that a double cannot hold: no host has counted so far, but an id is given back as it came.
const LONG_IDS: &[u64] = &[9_007_199_254_740_993, u64::MAX];

/// So many calls at once are tried, whatever is declared: more show nothing more.
const LANES_TRIED: u32 = 16;

/// How long something is waited for that should not come.
const SILENCE: Duration = Duration::from_millis(50);

pub(super) async fn refuses_an_unknown_method(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let (answer, _) = session.ask(UNKNOWN_METHOD, &json!({"any": [1, "三"]}), ANSWER).await?;
    kit.set_refuses();
    match answer {
        Answer::Error(error) if error.code == -32601 => {}
        Answer::Error(error) => {
            let said =
                format!("an unknown method must be refused with -32601, and it came with {}", error.code);
            return Err(session.fault(said));
        }
        Answer::Result(_) => return Err(session.fault("it gave a result to a method that nobody knows")),
        Answer::Broken(broken) => return Err(session.broken("an unknown method", &broken)),
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn passes_over_unknown_notifications(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let before = answers(&session);
    session.notify("plugd_check/told", &json!({"any": {"id": 3}}));
    session.notify("event", &json!({"kind": "plugd_check", "data": null}));
    session.notify("$/plugd_check", &json!({}));
    let asked = session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await;
    asked.map_err(|fault| fault.when("after three unknown notifications"))?;
    session.listen(SILENCE).await;
    if answers(&session) > before + 1 {
        return Err(session.fault("it answered a notification: those have no id, and get no answer"));
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

/// How many messages came that are no notifications of the protocol.
fn answers(session: &Session) -> u64 {
    session.ear.messages.saturating_sub(session.ear.told.values().sum())
}

/// Finds a call that carries what is about calls as such: one that nobody declared is refused at once.
pub(super) async fn refuses_an_unknown_operation(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let (params, _) = kit.call_params(UNKNOWN_OPERATION, &json!({}), kit.call_time());
    let (answer, _) = match session.ask(method::CALL, &params, ANSWER).await {
        Ok(answered) => answered,
        // plugd itself lets no such call through.
        Err(fault) if session.status().is_none() => return Ok(Verdict::Found(vec![fault.only_warns()])),
        Err(fault) => return Err(fault),
    };
    kit.set_carrier(UNKNOWN_OPERATION, json!({}));
    match answer {
        Answer::Error(_) => {}
        Answer::Result(_) => {
            let found = session.fault("it gave a result for an operation that it does not have");
            return Ok(Verdict::Found(vec![found.only_warns()]));
        }
        Answer::Broken(broken) => return Err(session.broken("an unknown operation", &broken)),
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn gives_back_ids_as_they_came(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let mut findings = Vec::new();
    let mut others = Vec::new();
    for id in IDS {
        let line = session.request_with(*id, UNKNOWN_METHOD, &json!({}));
        session.write(&line);
        if let Err(fault) = session.answer(*id, ANSWER).await {
            match findings.is_empty() {
                true => findings.push(fault.when(&format!("id {id}"))),
                false => others.push(id.to_string()),
            }
            // What came instead would be taken for the answer to the next.
            session = kit.ready().await?;
        }
    }
    if !others.is_empty() {
        findings.push(Finding::failure(format!("the same with the ids {}", others.join(", "))));
    }
    let mut apart = kit.apart().await?;
    for id in LONG_IDS {
        let line = apart.request_with(*id, UNKNOWN_METHOD, &json!({}));
        apart.write(&line);
        // What is given back in its place is an answer all the same, and as soon there.
        let before = answers(&apart);
        apart.wait(ANSWER, |session| answers(session) > before).await;
        if apart.ear.answer(*id).is_none() {
            let said = format!("id {id} comes back as another one");
            findings.push(apart.fault(said).only_warns());
        }
    }
    apart.bury().await;
    if findings.is_empty() {
        kit.give_back(session);
    }
    Ok(Verdict::of(findings))
}

pub(super) async fn answers_without_params(kit: Kit) -> Came {
    let mut session = kit.apart().await?;
    let (id, _) = session.request(UNKNOWN_METHOD, &json!({}));
    let lines = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"plugd_check/told\"}}\n{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{UNKNOWN_METHOD}\"}}\n"
    );
    session.write_noted(lines.as_bytes());
    if let Err(fault) = session.answer(id, ANSWER).await {
        // plugd always sends them.
        return Ok(Verdict::Found(vec![fault.when("messages without params").only_warns()]));
    }
    session.bury().await;
    Ok(Verdict::PASSED)
}

/// A call of the kind that does no harm, where there is one.
fn carried(kit: &Kit, deadline: Duration) -> Option<(Value, String)> {
    let (operation, arguments) = kit.carrier()?;
    Some(kit.call_params(operation, arguments, deadline))
}

fn without_a_carrier() -> Came {
    Ok(Verdict::Skipped("there is no call that is known to be answered soon".to_owned()))
}

pub(super) async fn answers_after_the_deadline(kit: Kit) -> Came {
    let Some((mut params, _)) = carried(&kit, Duration::ZERO) else { return without_a_carrier() };
    let mut session = kit.idle().await?;
    for left in [0, 1] {
        params["context"]["deadline_ms"] = json!(left);
        params["context"]["call_id"] = json!(carried(&kit, Duration::ZERO).map(|(_, id)| id));
        let answered = session.ask(method::CALL, &params, kit.call_time()).await;
        answered.map_err(|fault| fault.when(&format!("a call with {left} ms left")))?;
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn takes_a_full_context(kit: Kit) -> Came {
    let Some((mut params, _)) = carried(&kit, Duration::from_secs(30)) else { return without_a_carrier() };
    let mut session = kit.idle().await?;
    let plain = session.ask(method::CALL, &params, kit.call_time()).await?.0;
    params["context"] = json!({
        "call_id": "plugd check: any text", "deadline_ms": 30_000, "attempt": 2, "session_id": "s-1",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "caller": "plugin:other",
        "idempotency_key": "k-1", "locale": "zh-CN", "plugd_check": {"unknown": true},
    });
    params["plugd_check"] = json!(1);
    let full = session.ask(method::CALL, &params, kit.call_time()).await;
    let full = full.map_err(|fault| fault.when("a call with all members of a context, and unknown ones"))?.0;
    if let (Answer::Result(_), Answer::Error(error)) = (plain, full) {
        let said =
            format!("a call that is answered fails with all members in its context: {}", error.message);
        return Err(session.fault(said));
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn passes_over_a_cancel_of_no_call(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let before = answers(&session);
    session.notify(method::CANCEL, &json!({"call_id": "01936d5e-7c00-7000-8000-ffffffffffff"}));
    let mut expected = before + 1;
    if let Some((params, call_id)) = carried(&kit, kit.call_time()) {
        session.ask(method::CALL, &params, kit.call_time()).await?;
        // It crossed the answer.
        session.notify(method::CANCEL, &json!({"call_id": call_id}));
        expected += 1;
    }
    let asked = session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await;
    asked.map_err(|fault| fault.when("after a cancel of a call that it does not have"))?;
    session.listen(SILENCE).await;
    if answers(&session) > expected {
        return Err(session.fault("it answered a cancel, or a call twice"));
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_a_cancelled_call(kit: Kit) -> Came {
    let Some((params, call_id)) = carried(&kit, kit.call_time()) else { return without_a_carrier() };
    let mut session = kit.idle().await?;
    let id = session.send(method::CALL, &params);
    session.notify(method::CANCEL, &json!({"call_id": call_id}));
    let answered = session.answer(id, CANCEL_GRACE.max(kit.call_time())).await;
    answered.map_err(|fault| fault.when("a call that was cancelled at once"))?;
    session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await?;
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_ping(kit: Kit) -> Came {
    if !kit.manifest().features.ping {
        return Ok(Verdict::Skipped("it does not declare features.ping".to_owned()));
    }
    let mut session = kit.idle().await?;
    // An error shows that it is there, too.
    session.ask(method::PING, &json!({}), ANSWER).await?;
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_reload(kit: Kit) -> Came {
    if !kit.manifest().features.reload {
        return Ok(Verdict::Skipped("it does not declare features.reload".to_owned()));
    }
    let mut session = kit.ready().await?;
    let (answer, _) = session.ask(method::RELOAD, &json!({"config": kit.config()}), ANSWER).await?;
    match answer {
        Answer::Result(_) => {}
        Answer::Error(error) => {
            let said = format!("it declares reload, and refuses the configuration it has: {}", error.message);
            return Err(session.fault(said));
        }
        Answer::Broken(broken) => return Err(session.broken("reload", &broken)),
    }
    let unfit = json!({"config": {"plugd_check": {"does": ["not", "fit"]}}});
    let refused = session.ask(method::RELOAD, &unfit, ANSWER).await;
    refused.map_err(|fault| fault.when("a configuration that does not fit"))?;
    let goes_on = session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await;
    goes_on.map_err(|fault| fault.when("after a configuration that does not fit"))?;
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_several_requests_of_one_write(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let mut asked = Vec::new();
    for turn in 0..4 {
        asked.push(session.send(UNKNOWN_METHOD, &json!({"turn": turn})));
        asked.push(session.send(method::DESCRIBE, &describe_params()));
        session.notify("plugd_check/told", &json!({}));
    }
    if let Some((params, _)) = carried(&kit, kit.call_time()) {
        asked.push(session.send(method::CALL, &params));
    }
    let count = asked.len();
    for id in asked {
        let answered = session.answer(id, kit.call_time()).await;
        answered.map_err(|fault| fault.when(&format!("{count} requests in one write")))?;
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_as_many_calls_as_declared(kit: Kit) -> Came {
    let lanes = kit.manifest().features.concurrency;
    if lanes == 1 {
        return Ok(Verdict::Skipped("it takes one call at a time".to_owned()));
    }
    if kit.carrier().is_none() {
        return without_a_carrier();
    }
    let mut session = kit.idle().await?;
    let mut asked = Vec::new();
    for _ in 0..lanes.min(LANES_TRIED) {
        let Some((params, _)) = carried(&kit, kit.call_time()) else { break };
        asked.push(session.send(method::CALL, &params));
    }
    let count = asked.len();
    let mut slowest = Duration::ZERO;
    for id in asked {
        let answered = session.answer(id, kit.call_time()).await;
        let (answer, took) = answered.map_err(|fault| fault.when(&format!("{count} calls at once")))?;
        if let Answer::Broken(broken) = answer {
            return Err(session.broken(&format!("one of {count} calls at once"), &broken));
        }
        slowest = slowest.max(took);
    }
    kit.give_back(session);
    let told = format!("{count} calls at once were answered within {} ms", millis(slowest));
    Ok(Verdict::Passed(Some(told)))
}
