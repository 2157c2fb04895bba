//! Starting: described, initialised, in its place, and quiet until it is asked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use plugd_protocol::Manifest;
use plugd_protocol::plugin::method;
use plugd_supervisor::driver::Launch;
use rustix::pty::OpenptFlags;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ear::Answer;
use crate::kit::{
    ANSWER, DESCRIBE, Described, Kit, LEAVE, UNKNOWN_METHOD, describe_params, millis, offering,
};
use crate::observe::{self, Snapshot};
use crate::oddity::Oddities;
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::scenarios::undescribed;
use crate::session::Session;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "describes_itself",
        shows: "answers `describe` in time, with a manifest",
        does: "Starts it and sends `describe`. Everything else builds on the answer, so where this fails nothing else is tried.",
        anchor: "describe",
        fix: "answer `describe` within 10 s with one line: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":MANIFEST}, flushed",
        stage: Stage::First,
        needs: Needs::Nothing,
        run: |kit| Box::pin(describes_itself(kit)),
    },
    Scenario {
        name: "describes_without_effects",
        shows: "changes no file by being described",
        does: "Describes it, lets it go, and compares its folder with what was there before. plugd may describe a plugin at any time without ever using it.",
        anchor: "describe",
        fix: "write nothing before `init`; what is to be kept belongs into `data_dir`",
        stage: Stage::Alone,
        needs: Needs::Manifest,
        run: |kit| Box::pin(describes_without_effects(kit)),
    },
    Scenario {
        name: "answers_init",
        shows: "answers `init`, and stays",
        does: "Initialises it with the configuration from its `plugin.toml`, or one made of the examples of its `config_schema`, and asks it something more. Scenarios that need a plugin that is up are skipped where this fails.",
        anchor: "init",
        fix: "answer `init` with a result; to open things later than that is fine, to end after it is not",
        stage: Stage::First,
        needs: Needs::Manifest,
        run: |kit| Box::pin(answers_init(kit)),
    },
    Scenario {
        name: "starts_soon",
        shows: "is ready within two seconds",
        does: "Takes the time until `init` is answered. A lazy plugin is started by its first call, which waits as long.",
        anchor: "init",
        fix: "load what is large when it is first needed, or say `progress` during `init` and start = \"eager\" in its configuration",
        stage: Stage::Alone,
        needs: Needs::Ready,
        run: |kit| Box::pin(starts_soon(kit)),
    },
    Scenario {
        name: "silent_until_asked",
        shows: "writes nothing to stdout before it is asked",
        does: "Starts it and asks nothing for as long as it took to describe itself. A banner on stdout is stray output.",
        anchor: "frames",
        fix: "write banners and log lines to stderr, or as `log` notifications",
        stage: Stage::Beside,
        needs: Needs::Manifest,
        run: |kit| Box::pin(silent_until_asked(kit)),
    },
    Scenario {
        name: "describes_again_the_same",
        shows: "describes itself again, after `init`, and says the same",
        does: "Asks for the manifest twice more after `init`. plugd does so when it says `manifest_changed`, while calls go on.",
        anchor: "describe",
        fix: "answer `describe` at any time; a manifest that changes belongs with `manifest_changed`",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(describes_again_the_same(kit)),
    },
    Scenario {
        name: "negotiates_a_version",
        shows: "picks a version that was offered",
        does: "Offers versions 1, 2 and 99, where 1 is to be picked, and 99 alone, where its own or an error is.",
        anchor: "describe",
        fix: "put the highest version that both sides speak into `protocol`: today that is 1",
        stage: Stage::Beside,
        needs: Needs::Manifest,
        run: |kit| Box::pin(negotiates_a_version(kit)),
    },
    Scenario {
        name: "ignores_what_it_does_not_know",
        shows: "passes over members and features that it does not know",
        does: "Adds unknown members to every object of `describe` and `init`, an unknown feature, and turns the members of a request around. New members may come at any time within version 1.",
        anchor: "messages",
        fix: "read the members that you know by name, and leave the others alone",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(ignores_what_it_does_not_know(kit)),
    },
    Scenario {
        name: "survives_a_config_that_does_not_fit",
        shows: "answers `init` whatever the configuration",
        does: "Sends a configuration that its `config_schema` does not allow: an error or a result will do, a crash or silence will not. plugd checks configuration before it sends it.",
        anchor: "init",
        fix: "answer with an error that says what is wrong with the configuration",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(survives_a_config_that_does_not_fit(kit)),
    },
    Scenario {
        name: "stays_in_its_group",
        shows: "stays in its process group, with all that it starts",
        does: "Looks at the process groups of the process and of what it started, and at who holds its stdout.",
        anchor: "the-process",
        fix: "do not daemonise: no setsid, no setpgid, no `start_new_session`; give what you start another stdout",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(stays_in_its_group(kit)),
    },
    Scenario {
        name: "speaks_up_on_a_terminal",
        shows: "says what it is when it is started by hand",
        does: "Starts it with a terminal as its stdin, as somebody does who tries it out. It should say what it is on stderr and leave.",
        anchor: "checklist",
        fix: "where stdin is a terminal, say on stderr what you are and how to call you, and exit with 2",
        stage: Stage::Beside,
        needs: Needs::Manifest,
        run: |kit| Box::pin(speaks_up_on_a_terminal(kit)),
    },
];

/// A start that takes longer is felt by whoever calls first.
const START_SOON: Duration = Duration::from_secs(2);

/// Who ends right after describing itself has done so within this time.
const STAYS: Duration = Duration::from_millis(50);

/// A right answer may follow what only looked like a wrong one.
const AFTER_ALL: Duration = Duration::from_millis(500);

/// Who reads requests by a pattern does not answer later, either.
const TURNED_AROUND: Duration = Duration::from_secs(3);

/// Whoever starts it by hand waits no longer for a word.
const READ_BY_HAND: Duration = Duration::from_secs(1);

/// The least and the most time in which a process is listened to that was asked nothing.
const LISTENED: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

pub(super) async fn describes_itself(kit: Kit) -> Came {
    let mut session = kit.bare().await?;
    let id = session.send(method::DESCRIBE, &describe_params());
    let is_answered = |session: &Session| session.ear.answer(id).is_some();
    session.wait(DESCRIBE, |session| is_answered(session) || undescribed::is_plain(&kit, session)).await;
    let took = session.started.elapsed();
    session.wait(AFTER_ALL, is_answered).await;
    let Some((answer, _)) = session.ear.answer(id).cloned() else {
        let fault = session.unanswered(id, DESCRIBE);
        let found = undescribed::unanswered(&kit, &session, fault);
        if session.is_up() && session.ear.messages + session.ear.strays == 0 {
            // What it holds back comes at its end.
            session.close_stdin();
            if session.wait(LEAVE, |session| session.ear.messages + session.ear.strays > 0).await {
                return Err(undescribed::unflushed(&session));
            }
        }
        return Err(found);
    };
    let raw = match answer {
        Answer::Result(raw) => raw,
        Answer::Error(error) => return Err(undescribed::refused(&kit, &session, &error)),
        Answer::Broken(broken) => return Err(session.broken("describe", &broken)),
    };
    // One that daemonises has ended although it answers.
    session.listen(STAYS).await;
    if session.status().is_some() {
        return Err(undescribed::went(&session));
    }
    match Manifest::parse(raw.get()) {
        Ok(manifest) => {
            kit.set_described(Described { raw, manifest, took });
            session.bury().await;
            Ok(Verdict::PASSED)
        }
        Err(error) => Err(undescribed::unreadable(&session, &error)),
    }
}

pub(super) async fn silent_until_asked(kit: Kit) -> Came {
    let took = kit.described().map_or(LISTENED[0], |described| described.took);
    let mut session = kit.bare().await?;
    session.listen((took * 3 / 2).clamp(LISTENED[0], LISTENED[1])).await;
    if let Some(status) = session.status() {
        return Err(session.fault(format!("it ended ({status}) before it was asked anything")));
    }
    let (messages, strays) = (session.ear.messages, session.ear.strays);
    let told: u64 = session.ear.told.values().sum();
    // What it logs meanwhile is as it should be.
    let unasked = strays + messages.saturating_sub(told);
    let found = (unasked > 0).then(|| {
        let lines = if unasked == 1 { "a line".to_owned() } else { format!("{unasked} lines") };
        session.fault(format!("{lines} on stdout before anything was asked")).only_warns()
    });
    session.bury().await;
    Ok(Verdict::of(found.into_iter().collect()))
}

pub(super) async fn starts_soon(kit: Kit) -> Came {
    let mut session = kit.bare().await?;
    session.result(method::DESCRIBE, &describe_params(), DESCRIBE).await?;
    let described = session.started.elapsed();
    kit.init(&mut session, kit.config()).await?;
    let took = session.started.elapsed();
    kit.give_back(session);
    let told = format!("described after {} ms, ready after {} ms", millis(described), millis(took));
    if took <= START_SOON {
        return Ok(Verdict::Passed(Some(told)));
    }
    Ok(Verdict::Found(vec![Finding::warning(format!("{told}: whoever calls first waits for that"))]))
}

pub(super) async fn describes_without_effects(kit: Kit) -> Came {
    let cwd = kit.launch().cwd.clone();
    let before = Snapshot::of(&[&cwd]);
    let mut session = kit.bare().await?;
    session.result(method::DESCRIBE, &describe_params(), DESCRIBE).await?;
    session.close_stdin();
    session.leaves(LEAVE).await;
    let evidence = session.evidence();
    session.bury().await;
    let (Some(before), Some(after)) = (before, Snapshot::of(&[&cwd])) else {
        return Ok(Verdict::Skipped(format!("{} holds too many files to compare", cwd.display())));
    };
    let changes = before.changes(&after);
    if changes.is_empty() {
        return Ok(Verdict::PASSED);
    }
    let found = Finding::warning("its folder was changed by a process that was only described");
    Ok(Verdict::Found(vec![found.with(changes.into_iter().take(5)).with(evidence)]))
}

pub(super) async fn describes_again_the_same(kit: Kit) -> Came {
    let known: Value = kit.described().map(|known| parsed(&known.raw)).unwrap_or_default();
    let mut session = kit.idle().await?;
    for when in ["again", "a third time"] {
        let again = session.result(method::DESCRIBE, &describe_params(), ANSWER).await;
        let (raw, _) = again.map_err(|fault| fault.when(&format!("described {when}, after init")))?;
        if parsed(&raw) != known {
            return Err(session.fault("the manifest is another one after init than before").only_warns());
        }
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

pub(super) async fn negotiates_a_version(kit: Kit) -> Came {
    let features = json!(["log"]);
    let mut findings = Vec::new();
    for (versions, expected) in [(json!([1, 2, 99]), "1"), (json!([99]), "its own, or an error")] {
        let mut session = kit.bare().await?;
        let offer = offering(&versions, &features);
        let (answer, _) = session.ask(method::DESCRIBE, &offer, DESCRIBE).await?;
        let picked = match &answer {
            Answer::Result(result) => parsed(result).get("protocol").cloned().unwrap_or_default(),
            // One that speaks no version that is offered may say so.
            Answer::Error(_) if expected != "1" => Value::Null,
            Answer::Error(error) => json!(error.message),
            Answer::Broken(broken) => json!(broken.to_string()),
        };
        let fits = match expected {
            "1" => picked == 1,
            _ => picked != 99,
        };
        if !fits {
            let said = format!("of the versions {versions} it must pick {expected}, and it picked {picked}");
            findings.push(session.fault(said));
        }
        session.bury().await;
    }
    Ok(Verdict::of(findings))
}

pub(super) async fn ignores_what_it_does_not_know(kit: Kit) -> Came {
    let mut session = kit.bare().await?;
    let mut offer = describe_params();
    offer["protocol"]["features"] = json!(["log", "plugd_check_feature"]);
    offer["protocol"]["plugd_check"] = json!({"deep": [1, null]});
    offer["host"]["plugd_check"] = json!(true);
    offer["plugd_check"] = json!("unknown");
    let described = session.result(method::DESCRIBE, &offer, DESCRIBE).await;
    described.map_err(|fault| fault.when("describe with unknown members"))?;
    let mut params = kit.init_params(kit.config())?;
    params["plugd_check"] = json!({"unknown": 1.5});
    let initialised = session.ask(method::INIT, &params, DESCRIBE).await;
    match initialised.map_err(|fault| fault.when("init with unknown members"))?.0 {
        Answer::Error(error) if error.code != -32601 => {
            return Err(session.fault(format!("init with unknown members was refused: {}", error.message)));
        }
        Answer::Result(_) | Answer::Error(_) => {}
        Answer::Broken(broken) => return Err(session.broken("init", &broken)),
    }
    session.bury().await;
    // An envelope with members of a later version, in another order.
    let mut session = kit.apart().await?;
    let (id, _) = session.request(UNKNOWN_METHOD, &json!({}));
    let line = format!(
        "{{\"plugd_check\":{{\"id\":7,\"method\":\"x\"}},\"params\":{{}},\"method\":\"{UNKNOWN_METHOD}\",\"id\":{id},\"jsonrpc\":\"2.0\"}}\n"
    );
    session.write_noted(line.as_bytes());
    if let Err(fault) = session.answer(id, ANSWER.min(TURNED_AROUND)).await {
        let found = fault.when("a request with one member more, and in another order than that of plugd");
        return Ok(Verdict::Found(vec![
            found.only_warns().fix("read requests with a JSON library, not by patterns"),
        ]));
    }
    session.bury().await;
    Ok(Verdict::PASSED)
}

pub(super) async fn answers_init(kit: Kit) -> Came {
    if let Err(missing) = kit.make_config() {
        return Ok(Verdict::Skipped(format!(
            "it needs configuration ({missing}): put it into a plugin.toml beside it, or give config_schema examples"
        )));
    }
    let mut session = kit.ready().await?;
    // Whoever answers and goes at once has not come up.
    let still = session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await;
    if session.status().is_some() {
        return Err(still.err().unwrap_or_else(|| session.fault("it ended")).when("right after init"));
    }
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

pub(super) async fn survives_a_config_that_does_not_fit(kit: Kit) -> Came {
    if kit.manifest().config_schema.is_none() {
        return Ok(Verdict::Skipped("it declares no config_schema".to_owned()));
    }
    let mut session = kit.bare().await?;
    session.result(method::DESCRIBE, &describe_params(), DESCRIBE).await?;
    let params = kit.init_params(&json!({"plugd_check": {"does": ["not", "fit"]}}))?;
    let (answer, _) = session.ask(method::INIT, &params, DESCRIBE).await?;
    if let Answer::Broken(broken) = answer {
        return Err(session.broken("init", &broken));
    }
    session.close_stdin();
    if !session.leaves(LEAVE).await {
        return Err(session.fault("it answered init, and stays although stdin was closed"));
    }
    Ok(Verdict::PASSED)
}

pub(super) async fn stays_in_its_group(kit: Kit) -> Came {
    let session = kit.idle().await?;
    let pid = session.pid();
    if observe::group(pid).is_some_and(|group| group != pid) {
        let group = observe::group(pid).unwrap_or_default();
        return Err(session.fault(format!("it left its process group {pid} for {group}")));
    }
    let stdout = observe::leads_to(pid, 1).filter(|path| path.to_string_lossy().starts_with("pipe:"));
    let mut findings = Vec::new();
    for relative in session.relatives() {
        if observe::group(relative).is_some_and(|group| group != pid) {
            let found = Finding::failure("it started a process outside of its process group");
            findings.push(found.with([observe::in_words(relative)]));
        } else if stdout.as_ref().is_some_and(|stdout| observe::pipes(relative).contains(stdout)) {
            let found = Finding::warning("a process that it started holds its stdout, the protocol's");
            findings.push(found.with([observe::in_words(relative)]));
        }
    }
    kit.give_back(session);
    Ok(Verdict::of(findings))
}

pub(super) async fn speaks_up_on_a_terminal(kit: Kit) -> Came {
    let (terminal, name) = match pseudoterminal() {
        Ok(made) => made,
        Err(error) => return Ok(Verdict::Skipped(format!("no terminal can be made here: {error}"))),
    };
    // A shell puts the terminal in the place of stdin, and becomes the plugin.
    let own = kit.launch();
    let shell = ["-c", "exec \"$@\" < \"$0\"", &name].map(str::to_owned).into_iter();
    let program = own.program.to_string_lossy().into_owned();
    let args = shell.chain([program]).chain(own.args.iter().cloned()).collect();
    let launch = Launch { program: "/bin/sh".into(), args, ..own.clone() };
    let mut session = kit.started(&launch, &Oddities::default()).await?;
    let started = kit.described().map(|described| described.took).unwrap_or_default();
    let left = session.leaves(READ_BY_HAND + started * 2).await;
    let (said, said_on_stdout) = (session.stderr_bytes > 0, session.ear.messages + session.ear.strays > 0);
    let evidence = session.evidence();
    session.bury().await;
    drop(terminal);
    Ok(Verdict::of(match (left, said) {
        (true, true) => Vec::new(),
        (true, false) if said_on_stdout => {
            vec![Finding::warning("it says what it is on stdout, where only messages belong").with(evidence)]
        }
        (true, false) => vec![Finding::warning("it left without a word").with(evidence)],
        (false, _) => vec![Finding::warning("it waits for a host that is not there").with(evidence)],
    }))
}

fn pseudoterminal() -> std::io::Result<(std::os::fd::OwnedFd, String)> {
    let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&terminal)?;
    rustix::pty::unlockpt(&terminal)?;
    let name = rustix::pty::ptsname(&terminal, Vec::new())?;
    let name = OsStr::from_bytes(name.as_bytes()).to_string_lossy().into_owned();
    Ok((terminal, name))
}
