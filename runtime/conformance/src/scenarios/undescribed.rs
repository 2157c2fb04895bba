//! Why a program did not describe itself, each cause with what to do about it.

use std::os::unix::process::ExitStatusExt;

use plugd_protocol::RpcError;
use plugd_protocol::manifest::ManifestError;
use plugd_supervisor::driver::{command_line, not_launched};
use serde_json::{Map, Value};

use crate::kit::Kit;
use crate::oddity::Oddity;
use crate::scenario::Finding;
use crate::session::Session;
use crate::transcript::clipped;

/// The answer that is waited for.
const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":MANIFEST}";

/// Why no answer came: `fault` says how long was waited, or how it ended.
pub(super) fn unanswered(kit: &Kit, session: &Session, fault: Finding) -> Finding {
    if let Some(found) = not_started(kit, session) {
        return found;
    }
    if let Some(found) = answered_elsewhere(kit, session) {
        return found;
    }
    let strays = session.ear.stray_text();
    if let Some((what, fix)) = meant_as_an_answer(&strays) {
        return session.fault(what).fix(fix);
    }
    if let Some(status) = session.status() {
        let found = session.fault(format!("{} before it had answered describe", ended(session)));
        return found.fix(after_the_end(kit, status, session));
    }
    let first = strays.lines().find(|line| !line.trim().is_empty());
    if let Some(first) = first {
        let shown = clipped(first.as_bytes());
        return session.fault(format!("it wrote text to stdout, and no answer to describe: {shown:?}")).fix(
            format!(
                "write nothing but messages to stdout, and text to stderr; answer `describe` with {ANSWER}"
            ),
        );
    }
    let listens = session.listens();
    fault.fix(match listens {
        true => format!(
            "read stdin line by line, answer `describe` with {ANSWER} and a line end, and flush it: \
             print(…, flush=True), $stdout.sync = true, fflush(stdout)"
        ),
        false => "keep stdin and stdout open, and read stdin line by line until it ends".to_owned(),
    })
}

/// Whether what came shows by itself that no answer will: nobody need wait for it.
pub(super) fn is_plain(kit: &Kit, session: &Session) -> bool {
    let text = session.ear.stray_text();
    // A message over several lines is looked at once it may be whole.
    let may_be_whole = text.trim_end().ends_with('}');
    answered_elsewhere(kit, session).is_some() || (may_be_whole && meant_as_an_answer(&text).is_some())
}

/// What came only when it ended.
pub(super) fn unflushed(session: &Session) -> Finding {
    session.fault("what it wrote came only once stdin was closed: it sat in a buffer").fix(
        "flush stdout after each line: print(…, flush=True), $stdout.sync = true, fflush(stdout), $| = 1",
    )
}

/// One that has another idea of `describe`.
pub(super) fn refused(kit: &Kit, session: &Session, error: &RpcError) -> Finding {
    // Who writes back what it reads also writes back what it is answered.
    if let Some(found) = answered_elsewhere(kit, session) {
        return found;
    }
    let said = format!("describe was answered with error {}: {}", error.code, error.message);
    let fix = "answer the method `describe` with a manifest: it is the first request of every host";
    session.fault(said).fix(fix)
}

/// A manifest that cannot be read.
pub(super) fn unreadable(session: &Session, error: &ManifestError) -> Finding {
    let found = session.fault(error.to_string());
    match error {
        ManifestError::Missing { example, .. } => {
            found.fix(format!("put {example} into the manifest, which is the `result` of `describe`"))
        }
        ManifestError::Unreadable(_) => found.fix(
            "the `result` of `describe` is the manifest: {\"protocol\":1,\"name\":…,\"version\":…,\"operations\":[…]}",
        ),
    }
}

/// One that described itself and was gone.
pub(super) fn went(session: &Session) -> Finding {
    session.fault(format!("{} right after it had described itself", ended(session))).fix(
        "go on reading after an answer, in the same process, until stdin ends: no fork, no daemon, one loop",
    )
}

/// What kept its program from being executed, where that was it.
fn not_started(kit: &Kit, session: &Session) -> Option<Finding> {
    let failed: Value = serde_json::from_str(session.ear.not_launched.as_deref()?).ok()?;
    session.status()?;
    let errno = failed.get("errno").and_then(Value::as_i64).and_then(|errno| i32::try_from(errno).ok());
    let found = match errno {
        Some(errno) => Finding::failure(not_launched(kit.launch(), errno).reason),
        None => Finding::failure(format!("it could not be started: {failed}")),
    };
    Some(found.fix(
        "give a program that this machine can start: built, executable (chmod +x), and a script with \
         a first line such as #!/usr/bin/env python3 or `command = [\"python3\", …]` in a plugin.toml",
    ))
}

/// An answer with another id, or the request itself written back.
fn answered_elsewhere(kit: &Kit, session: &Session) -> Option<Finding> {
    let came = |kind| kit.oddities().of(kind);
    if came(Oddity::IdChanged).is_some() {
        let said = "its answer to describe has another id than the request, so it is none";
        return Some(
            session.fault(said).fix("give back the id as it came, its type included: 1, never \"1\" or 1.0"),
        );
    }
    if came(Oddity::Unmatched).is_some() {
        let said = "its answer to describe has an id that nobody asked with, so it is none";
        return Some(session.fault(said).fix("answer with the id of the request that you answer"));
    }
    let told = came(Oddity::UnknownMethod)?;
    told.shown.iter().any(|line| line.contains("\"method\":\"describe\"")).then(|| {
        let said = "it writes back what it reads, instead of an answer to describe";
        session.fault(said).fix(format!("answer `describe` with {ANSWER}"))
    })
}

/// Lines that are no messages, and were meant as one.
fn meant_as_an_answer(strays: &str) -> Option<(String, String)> {
    let from = strays.lines().position(|line| line.trim_start().starts_with('{'))?;
    let rest: Vec<&str> = strays.lines().skip(from).collect();
    let (rest, first) = (rest.join("\n"), rest[0]);
    if let Ok(members) = serde_json::from_str::<Map<String, Value>>(first) {
        let is_manifest = members.contains_key("operations") || members.contains_key("protocol");
        if is_manifest && !members.contains_key("jsonrpc") {
            let said = "it wrote a manifest, and not as the answer to describe";
            return Some((said.to_owned(), format!("write it as the result of an answer: {ANSWER}")));
        }
        if members.contains_key("result") || members.contains_key("error") {
            let said = "its answer to describe has no id, so it is none";
            return Some((said.to_owned(), format!("answer with the id of the request: {ANSWER}")));
        }
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(&rest).into_iter::<Value>();
    let several_lines = match values.next() {
        Some(Ok(_)) => rest[..values.byte_offset()].contains('\n'),
        Some(Err(error)) => error.is_eof() && rest.contains('\n'),
        None => false,
    };
    several_lines.then(|| {
        (
            "it wrote its answer over several lines, and each line is taken for a message".to_owned(),
            "one message a line: write JSON without line breaks (json.dumps without indent, JSON.stringify \
             without a third argument, json.Marshal, JSON.generate, jq -c)"
                .to_owned(),
        )
    })
}

/// How it ended, in words.
fn ended(session: &Session) -> String {
    let status = session.status().map_or_else(String::new, |status| format!(" ({status})"));
    format!("it ended{status}")
}

/// What to do about a program that has ended instead of answering.
fn after_the_end(kit: &Kit, status: std::process::ExitStatus, session: &Session) -> String {
    let launch = kit.launch();
    let words: Vec<String> = std::iter::once(launch.program.to_string_lossy().into_owned())
        .chain(launch.args.iter().cloned())
        .collect();
    let by_hand = format!("echo | {}", command_line(&words));
    let said_why = session.stderr_bytes > 0;
    match (status.code(), status.signal()) {
        (Some(0), _) => {
            "let it serve until stdin ends: with an SDK its last line is the loop (serve() in Python, \
             Node and Rust, Serve() in Go); without one, read stdin line by line and answer each request"
                .to_owned()
        }
        (_, Some(signal)) => {
            format!("it crashed with signal {signal}: mend that; `{by_hand}` starts it by hand")
        }
        _ if said_why => format!("mend what it says on stderr; `{by_hand}` starts it by hand"),
        _ => format!("it says nothing on stderr: `{by_hand}` starts it by hand"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_as_an_answer_is_told_apart() {
        let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}";
        for (strays, expected) in [
            (pretty, Some("one message a line")),
            (&*format!("Loading…\n{pretty}\nmore"), Some("one message a line")),
            ("{\n  \"jsonrpc\": \"2.0\",", Some("one message a line")),
            (r#"{"protocol":1,"name":"x","operations":[]}"#, Some("as the result of an answer")),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Some("with the id of the request")),
            ("Loading…\nready", None),
            ("{not json}", None),
            ("{}", None),
        ] {
            let found = meant_as_an_answer(strays).map(|(_, fix)| fix);
            match expected {
                Some(part) => {
                    assert!(found.as_deref().is_some_and(|fix| fix.contains(part)), "{strays}: {found:?}")
                }
                None => assert_eq!(found, None, "{strays}"),
            }
        }
    }
}
