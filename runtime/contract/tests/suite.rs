//! The required tests of JSON-Schema-Test-Suite, by the very compile step that arguments go through.
//!
//! `tests/suite/` holds them as their authors publish them (see `tests/suite/README.md`). What plugd
//! decides otherwise is listed here with its reason; a listed test that passes is an error too.

use std::path::Path;

use plugd_contract::Contract;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A way in which plugd decides otherwise than the suite, and by what a failure shows it.
#[derive(Clone, Copy)]
struct Reason {
    shows: &'static str,
}

/// Nothing is fetched: a schema that leaves itself is refused, also where its author hosts the rest.
const REMOTE: Reason = Reason { shows: "leaves the schema; nothing is fetched" };

/// `format` is asserted, for a date that is none would only fail later and elsewhere. The suite takes
/// it as a remark; its draft-07 tests leave it open.
const FORMAT: Reason = Reason { shows: "problem: \"format\"" };

/// Two dialects are known. Another `$schema`, such as one with vocabularies of its own, is refused.
const DIALECT: Reason = Reason { shows: "write it in JSON Schema 2020-12 or draft-07" };

/// Groups that fail by design: the draft and the file, and how the descriptions start.
const EXCEPTIONS: &[(&str, &[&str], Reason)] = &[
    ("draft2020-12/refRemote", &[""], REMOTE),
    ("draft7/refRemote", &[""], REMOTE),
    (
        "draft2020-12/dynamicRef",
        &[
            "strict-tree schema, guards against misspelled properties",
            "tests for implementation dynamic anchor and reference link",
            "$ref and $dynamicAnchor are independent of order",
            "$ref to $dynamicRef finds detached $dynamicAnchor",
        ],
        REMOTE,
    ),
    (
        "draft2020-12/format",
        &[
            "email",
            "regex",
            "ipv4",
            "ipv6",
            "hostname",
            "date",
            "time",
            "json-pointer",
            "relative-json-pointer",
            "iri",
            "uri",
            "uuid",
            "duration",
        ],
        FORMAT,
    ),
    ("draft2020-12/vocabulary", &[""], DIALECT),
];

#[test]
fn draft_2020_12_passes() {
    run("draft2020-12", None);
}

#[test]
fn draft_07_passes() {
    run("draft7", Some("http://json-schema.org/draft-07/schema#"));
}

/// Runs every file of a draft; `dialect` is written into schemas that do not say which they are of.
fn run(draft: &str, dialect: Option<&str>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite").join(draft);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the suite is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    let (mut run, mut wrong) = (0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).expect("readable");
        let groups: Vec<Value> = serde_json::from_str(&text).expect("a list of groups");
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let file = format!("{draft}/{stem}");
        for group in &groups {
            let description = text_of(group, "description");
            let failures = failures(group, dialect, &mut run);
            let excepted = EXCEPTIONS.iter().find(|(listed, names, _)| {
                *listed == file && names.iter().any(|name| description.starts_with(name))
            });
            match excepted {
                Some((.., reason)) if failures.is_empty() => {
                    wrong.push(format!("{file}: {description}: passes; {:?} is no exception", reason.shows));
                }
                Some((.., reason)) => {
                    let other = failures.iter().filter(|failure| !failure.contains(reason.shows));
                    wrong.extend(other.map(|failure| format!("{file}: {description}: {failure}")));
                }
                None => {
                    wrong.extend(failures.iter().map(|failure| format!("{file}: {description}: {failure}")))
                }
            }
        }
    }
    assert!(run > 600, "only {run} tests were found");
    assert!(wrong.is_empty(), "{} of {run}:\n{}", wrong.len(), wrong.join("\n"));
}

/// What goes wrong in a group: one schema with values and whether each is valid.
fn failures(group: &Value, dialect: Option<&str>, run: &mut usize) -> Vec<String> {
    let mut schema = group["schema"].clone();
    if let (Some(dialect), Some(members)) = (dialect, schema.as_object_mut()) {
        members.entry("$schema").or_insert(json!(dialect));
    }
    let contract = match Contract::compile(&raw(&schema)) {
        Ok(contract) => contract,
        Err(error) => return vec![format!("refused: {error}")],
    };
    let mut failures = Vec::new();
    for test in group["tests"].as_array().expect("tests") {
        *run += 1;
        let found = contract.check_output(&raw(&test["data"]));
        if found.is_ok() != test["valid"].as_bool().expect("valid or not") {
            failures.push(format!("{}: {found:?}", text_of(test, "description")));
        }
        if found.is_err_and(|problems| problems.is_empty()) {
            failures.push(format!("{}: not valid, and no problem named", text_of(test, "description")));
        }
    }
    failures
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}
