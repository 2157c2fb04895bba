//! The guide as it stands: every command on its pages is run, and prints what the pages say.
//!
//! On the pages: `…` alone on a line stands for any lines, within a line for anything; an id of a call or a
//! token stands for another one, and the same for the same wherever it comes, in commands, too; moments,
//! measured times and digests stand for others; `/home/ada/project` is the folder of the page's files,
//! `/run/user/1000` the one for sockets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plugd_tests::{Page, Sandbox};
use serde_json::{Value, json};

/// The pages whose commands are run, with the least number of those on each.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 0),
    ("arguments.md", 8),
    ("callers.md", 8),
    ("calling.md", 30),
    ("declaring.md", 15),
    ("first-plugin.md", 10),
    ("looking-back.md", 8),
    ("other-plugins.md", 4),
    ("results.md", 8),
    ("tools-for-models.md", 12),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide")
}

fn page(name: &str) -> Page {
    Page::read(&folder().join(name))
}

#[track_caller]
fn run(name: &str) {
    page(name).run(&Sandbox::new(""));
}

#[test]
fn no_page_is_left_out_and_none_has_lost_its_commands() {
    let files = fs::read_dir(folder()).expect("the guide is there");
    let files: BTreeSet<String> =
        files.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    let known: BTreeSet<String> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, known, "each page has a test here");
    for (name, least) in PAGES {
        let commands = page(name).commands();
        assert!(commands >= *least, "{name} has {commands} commands");
    }
}

#[test]
fn the_index_of_the_guide_names_every_page() {
    let index = fs::read_to_string(folder().join("README.md")).expect("the index is there");
    for (name, _) in PAGES.iter().filter(|(name, _)| *name != "README.md") {
        assert!(index.contains(&format!("({name})")), "{name}");
    }
}

#[test]
fn the_page_of_the_first_plugin_is_true() {
    run("first-plugin.md");
}

/// Row X15: confirmation, timeout, retry, cache and async from the manifest alone.
#[test]
fn r_x15_fifteen_lines_of_sh_get_every_policy_from_their_manifest() {
    let page = page("declaring.md");
    let plugin = page.file("plugins/disk/disk.sh");
    assert!(plugin.lines().count() <= 15, "{plugin}");
    page.run(&Sandbox::new(""));
}

#[test]
fn the_page_of_arguments_is_true() {
    run("arguments.md");
}

#[test]
fn the_page_of_results_is_true() {
    run("results.md");
}

#[test]
fn the_page_of_other_plugins_is_true() {
    run("other-plugins.md");
}

#[test]
fn the_page_of_calling_is_true() {
    run("calling.md");
}

#[test]
fn the_page_of_tools_for_models_is_true() {
    run("tools-for-models.md");
}

#[test]
fn the_page_of_callers_is_true() {
    run("callers.md");
}

#[test]
fn the_page_of_looking_back_is_true() {
    run("looking-back.md");
}

/// A row of a table: its cells, without the bars.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder().join(page)).expect("the page is there");
    let (_, table) = text.split_once(heading).unwrap_or_else(|| panic!("{page} has a table {heading}"));
    let rows = table.trim_start().lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The schema that a cell of the tables of spellings means.
fn schema(declared: &str) -> Value {
    let read = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    match quoted(declared).as_slice() {
        [kind] => json!({ "type": kind }),
        [kind, options @ ..] if kind == "enum" => {
            json!({ "enum": options.iter().map(read).collect::<Vec<_>>() })
        }
        [kind, format] if declared.contains("of format") => json!({ "type": kind, "format": format }),
        [one, other] if declared.contains(" or ") => json!({ "type": [one, other] }),
        other => panic!("no schema: {other:?}"),
    }
}

/// A plugin that gives back a value of each of these schemas.
fn spelling(sandbox: &Sandbox, schemas: &[Value]) {
    let operation = |(index, schema): (usize, &Value)| json!({"name": format!("o{index}"), "input_schema": {"type": "object", "properties": {"v": schema}, "required": ["v"]}});
    let operations: Vec<Value> = schemas.iter().enumerate().map(operation).collect();
    let written = Value::from(Value::from(operations).to_string());
    let definitions = format!(
        "OPERATIONS = json.loads({written})\ndef handle(operation, arguments, params):\n    return {{'data': arguments['v']}}\n"
    );
    let table = sandbox.python("spelling", &definitions);
    sandbox.configure(&table);
}

#[test]
fn the_tables_of_spellings_say_what_becomes_of_each() {
    let read = rows("arguments.md", "| declared | written | becomes |");
    let refused = rows("arguments.md", "| declared | written | why |");
    assert!(read.len() > 10 && refused.len() > 5, "{read:?} {refused:?}");
    let all: Vec<&Vec<String>> = read.iter().chain(&refused).collect();
    let schemas: Vec<Value> = all.iter().map(|row| schema(&row[0])).collect();
    let sandbox = Sandbox::new("");
    spelling(&sandbox, &schemas);
    let daemon = sandbox.serve();
    for (index, row) in all.iter().enumerate() {
        for written in quoted(&row[1]) {
            let arguments = json!({ "v": written }).to_string();
            let ran = daemon.plugd(&[
                "--output",
                "json",
                "call",
                &format!("spelling.o{index}"),
                "--json",
                &arguments,
            ]);
            let result = ran.json();
            if index < read.len() {
                let becomes: Value = serde_json::from_str(&quoted(&row[2])[0]).expect("the cell has JSON");
                assert_eq!((ran.code, &result["data"]), (0, &becomes), "{written} as {}: {result:#}", row[0]);
            } else {
                assert_eq!(ran.code, 3, "{written} as {}: {result:#}", row[0]);
            }
        }
    }
    daemon.stop();
}
