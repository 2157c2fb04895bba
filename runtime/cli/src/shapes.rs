//! The published shapes of `--output json`: `docs/output.schema.json` is this table, frozen.
//!
//! A member that is added shows in that file; one that goes, or changes its type, breaks scripts.
//! `UPDATE_DOCS=1 cargo test -p plugd shapes` rewrites it.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory;
use plugd_daemon::Ready;
use plugd_protocol::control::{
    AddReport, AnswerReport, CallDetail, CallsReport, CallsStatsReport, CancelReport, ChangeReport,
    CheckReport, Description, DoctorReport, Event, Explanation, GraphReport, JobsReport, LintReport,
    ListReport, LogEntry, ReloadReport, ResultReport, Skipped, StartReport, StatusReport, StopReport,
    ToolsReport,
};
use plugd_protocol::{CallError, CallResult};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::args::Cli;

/// Commands that print text whatever is asked for.
const TEXT_ALONE: &[&str] = &["completions"];

/// What each command prints; with an option where that makes another document.
fn shapes(of: &mut SchemaGenerator) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("serve", shape::<Ready>(of)),
        ("shutdown", shape::<StopReport>(of)),
        ("status", shape::<StatusReport>(of)),
        ("list", shape::<ListReport>(of)),
        ("doctor", shape::<DoctorReport>(of)),
        ("describe", shape::<Description>(of)),
        ("tools", shape::<ToolsReport>(of)),
        ("new", made()),
        ("dev", dev(of)),
        ("check", shape::<CheckReport>(of)),
        ("lint", shape::<LintReport>(of)),
        ("call", shape::<CallResult>(of)),
        ("call --explain", shape::<Explanation>(of)),
        ("calls", shape::<CallsReport>(of)),
        ("calls show", shape::<CallDetail>(of)),
        ("calls --stats", shape::<CallsStatsReport>(of)),
        ("result", shape::<ResultReport>(of)),
        ("jobs", shape::<JobsReport>(of)),
        ("jobs wait", shape::<CallResult>(of)),
        ("jobs cancel", shape::<CancelReport>(of)),
        ("cancel", shape::<CancelReport>(of)),
        ("answer", json!({ "anyOf": [shape::<CallResult>(of), shape::<AnswerReport>(of)] })),
    ];
    all.extend([
        ("start", shape::<StartReport>(of)),
        ("stop", shape::<StopReport>(of)),
        ("restart", shape::<StartReport>(of)),
        ("reload", shape::<ReloadReport>(of)),
        ("add", shape::<AddReport>(of)),
        ("remove", shape::<ChangeReport>(of)),
        ("enable", shape::<ChangeReport>(of)),
        ("disable", shape::<ChangeReport>(of)),
        ("logs", shape::<Vec<LogEntry>>(of)),
        ("logs -f", shape::<LogEntry>(of)),
        ("events", shape::<Vec<Event>>(of)),
        ("events -f", shape::<Event>(of)),
        ("graph", shape::<GraphReport>(of)),
        ("config check", config_check(of)),
        ("config show", json!({ "type": "object" })),
        ("config schema", json!({ "type": "object" })),
    ]);
    all
}

fn shape<T: JsonSchema>(of: &mut SchemaGenerator) -> Value {
    of.subschema_for::<T>().to_value()
}

/// A report that is made where it is printed.
fn config_check(of: &mut SchemaGenerator) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "ok": { "const": true },
            "file": { "type": ["string", "null"] },
            "searched": texts,
            "plugins": texts,
            "skipped": shape::<Vec<Skipped>>(of),
        },
        "required": ["ok", "file", "searched", "plugins", "skipped"],
    })
}

/// The other one.
fn made() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "plugin": { "type": "string" },
            "lang": { "enum": ["rust", "python", "node", "go", "sh"] },
            "folder": { "type": "string" },
            "files": texts,
            "sdk": { "type": "string" },
            "next": texts,
            "missing": texts,
        },
        "required": ["lang", "folder", "files", "next", "missing"],
    })
}

/// One object for each line that was typed.
fn dev(of: &mut SchemaGenerator) -> Value {
    let text = json!({ "type": "string" });
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let line = object(json!({ "line": text, "does": text }), json!(["line", "does"]));
    json!({ "anyOf": [
        shape::<CallResult>(of),
        shape::<Explanation>(of),
        shape::<Description>(of),
        shape::<LintReport>(of),
        object(json!({ "entries": shape::<Vec<LogEntry>>(of) }), json!(["entries"])),
        object(
            json!({ "plugin": text, "runs": { "type": "boolean" }, "reason": text }),
            json!(["plugin", "runs"]),
        ),
        object(json!({ "commands": { "type": "array", "items": line } }), json!(["commands"])),
    ] })
}

fn document() -> Value {
    let mut of = SchemaSettings::draft2020_12().into_generator();
    let failure = json!({
        "type": "object",
        "properties": { "error": shape::<CallError>(&mut of) },
        "required": ["error"],
    });
    let commands: Map<String, Value> =
        shapes(&mut of).into_iter().map(|(command, shape)| (command.to_owned(), shape)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What plugd writes under --output json",
        "description": "Under the name of a command stands the schema of the one document that it prints; a command that fails prints what stands under \"a command that fails\". With -f it is one such document a line, and so is what \"dev\" prints: one object for each line that is typed.",
        "type": "object",
        "properties": commands,
        "$comment": "Generated; UPDATE_DOCS=1 cargo test -p plugd shapes",
        "$defs": of.take_definitions(true),
        "patternProperties": { "^a command that fails$": failure },
        "additionalProperties": false,
    })
}

#[test]
fn the_published_shapes_are_those_that_are_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/output.schema.json");
    let expected = format!("{}\n", serde_json::to_string_pretty(&document()).expect("JSON"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/output.schema.json can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/output.schema.json differs from what is printed; if that is meant, rewrite it with\n  \
         UPDATE_DOCS=1 cargo test -p plugd shapes"
    );
}

#[test]
fn every_command_has_its_shape_published() {
    let mut of = SchemaSettings::draft2020_12().into_generator();
    let published: BTreeSet<&str> = shapes(&mut of).into_iter().map(|(command, _)| command).collect();
    let mut commands = Vec::new();
    for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
        let name = command.get_name();
        if !command.is_subcommand_required_set() {
            commands.push(name.to_owned());
        }
        let actions = command.get_subcommands().filter(|action| action.get_name() != "help");
        commands.extend(actions.map(|action| format!("{name} {}", action.get_name())));
    }
    commands.retain(|command| !TEXT_ALONE.contains(&command.as_str()));
    for command in &commands {
        assert!(published.contains(command.as_str()), "{command} has no shape");
    }
    let known = |name: &str| {
        commands.iter().any(|command| name == command || name.starts_with(&format!("{command} -")))
    };
    assert!(published.iter().all(|name| known(name)), "{published:?} {commands:?}");
}
