//! Conversations with a plugin that are written down, played against one that runs.
//!
//! `protocol/wire/sdk/README.md` says what stands in them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// A plugin that takes longer for a line, or to end, does not work.
const PATIENCE: Duration = Duration::from_secs(60);

/// The plugin's side, as a player sees it.
pub trait Other {
    /// Writes a line to it, whose end is in it.
    fn write(&mut self, line: &str);
    /// Closes its input.
    fn close(&mut self);
    /// Waits for its end and gives its exit status; `None` where it has none.
    fn exit(&mut self) -> Option<i32>;
}

/// All sessions, by their names.
///
/// # Panics
/// When there are none.
pub fn all() -> Vec<PathBuf> {
    let folder = folder().join("sessions");
    let entries = std::fs::read_dir(&folder).expect("there are sessions");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    assert!(!found.is_empty(), "{} is empty", folder.display());
    found
}

/// What every golden plugin declares.
///
/// # Panics
/// When it cannot be read.
pub fn manifest() -> Value {
    let text = std::fs::read_to_string(folder().join("manifest.json")).expect("there is a manifest");
    serde_json::from_str(&text).expect("it is JSON")
}

fn folder() -> PathBuf {
    // Of whichever crate includes this file.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().find(|folder| folder.join("protocol/wire/sdk").is_dir());
    root.expect("it lies in the repository").join("protocol/wire/sdk")
}

/// Plays a session to its end; `output` is what the plugin writes.
///
/// # Panics
/// When the plugin says something else than the session, or nothing.
#[track_caller]
pub fn play(session: &Path, other: &mut dyn Other, output: impl Read + Send + 'static) {
    let name = session.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(session).expect("the session can be read");
    let lines = lines(output);
    let mut meanings = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", number + 1);
        let step: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        if let Some(message) = step.get("send") {
            other.write(&format!("{}\n", said(message, &meanings)));
        } else if let Some(expected) = step.get("expect") {
            let came = next(&lines, &place);
            assert!(
                fits(expected, &came, &mut meanings),
                "{place}: the plugin said another thing\nexpected {expected}\ncame     {came}"
            );
        } else if let Some(expected) = step.get("expect_all").and_then(Value::as_array) {
            let mut expected = expected.clone();
            while !expected.is_empty() {
                let came = next(&lines, &place);
                let at = expected.iter().position(|expected| fits(expected, &came, &mut meanings));
                let at = at.unwrap_or_else(|| panic!("{place}: none of {expected:?}\ncame {came}"));
                expected.remove(at);
            }
        } else if step.get("close").is_some() {
            other.close();
        } else if let Some(status) = step.get("exit").and_then(Value::as_i64) {
            let more: Vec<String> = lines.iter().collect();
            assert!(more.is_empty(), "{place}: the plugin said more: {more:?}");
            let exited = other.exit();
            assert!(exited.is_none_or(|exited| i64::from(exited) == status), "{place}: {exited:?}");
        } else {
            panic!("{place}: there is no such step: {step}");
        }
    }
}

/// Reads on a thread of its own, so that a plugin that says nothing is noticed.
fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|length| length > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

#[track_caller]
fn next(lines: &Receiver<String>, place: &str) -> Value {
    let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("{place}: no line: {why}"));
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{place}: {line:?} is no JSON: {error}"))
}

/// A message with what its `$names` stand for.
fn said(message: &Value, meanings: &HashMap<String, Value>) -> Value {
    match message {
        Value::String(text) => meanings.get(text).unwrap_or(message).clone(),
        Value::Array(list) => list.iter().map(|member| said(member, meanings)).collect(),
        Value::Object(object) => {
            object.iter().map(|(name, member)| (name.clone(), said(member, meanings))).collect()
        }
        _ => message.clone(),
    }
}

/// Whether what came is what was expected; what its `$names` stand for is learnt.
fn fits(expected: &Value, came: &Value, meanings: &mut HashMap<String, Value>) -> bool {
    match (expected, came) {
        (Value::String(text), _) if text == "*" => true,
        (Value::String(text), _) if text.starts_with('$') => {
            meanings.entry(text.clone()).or_insert_with(|| came.clone()) == came
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other || (other.is_f64() || one.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(expected), Value::Array(came)) => {
            expected.len() == came.len()
                && expected.iter().zip(came).all(|(expected, came)| fits(expected, came, meanings))
        }
        (Value::Object(expected), Value::Object(came)) => {
            expected.len() == came.len()
                && expected
                    .iter()
                    .all(|(name, expected)| came.get(name).is_some_and(|came| fits(expected, came, meanings)))
        }
        _ => expected == came,
    }
}

/// A manifest without the members that have their default value: they may be written or left out.
pub fn without_defaults(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    drop_defaults(
        &mut manifest["features"],
        &[
            ("concurrency", 1.into()),
            ("cancel", false.into()),
            ("ping", false.into()),
            ("reload", false.into()),
        ],
    );
    for requirement in manifest["requires"].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut)
    {
        drop_defaults(requirement, &[("optional", false.into())]);
    }
    for operation in manifest["operations"].as_array_mut().into_iter().flatten() {
        let empty = Value::Object(serde_json::Map::new());
        drop_defaults(
            operation,
            &[
                ("audience", "callers".into()),
                ("confirm", "auto".into()),
                ("effects", empty),
                ("examples", Value::Array(Vec::new())),
                ("long_running", false.into()),
            ],
        );
    }
    manifest
}

fn drop_defaults(object: &mut Value, defaults: &[(&str, Value)]) {
    let Value::Object(object) = object else { return };
    object.retain(|name, value| !defaults.iter().any(|(known, default)| name == known && value == default));
}
