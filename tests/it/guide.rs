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

use crate::languages::there_is;

/// The pages whose commands are run, with the least number of those on each.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 0),
    ("arguments.md", 8),
    ("callers.md", 8),
    ("calling.md", 30),
    ("declaring.md", 15),
    ("first-plugin.md", 14),
    ("go.md", 19),
    ("looking-back.md", 8),
    ("node.md", 10),
    ("other-plugins.md", 4),
    ("python.md", 10),
    ("results.md", 8),
    ("rust.md", 18),
    ("testing.md", 10),
    ("tools-for-models.md", 12),
    ("wrapping.md", 18),
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

#[test]
fn the_page_of_rust_is_true() {
    run("rust.md");
}

#[test]
fn the_page_of_go_is_true() {
    run("go.md");
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
fn the_page_of_python_is_true() {
    run("python.md");
}

#[test]
fn the_page_of_node_is_true() {
    if there_is("node", &["--version"]) {
        run("node.md");
    }
}

#[test]
fn the_page_of_testing_is_true() {
    run("testing.md");
}

#[test]
fn the_page_of_callers_is_true() {
    run("callers.md");
}

#[test]
fn the_page_of_looking_back_is_true() {
    run("looking-back.md");
}

#[test]
fn the_page_of_wrapping_is_true() {
    if there_is("jq", &["-n", "1"]) {
        run("wrapping.md");
    }
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

/// What the third column says to look with, for each symptom of the table.
const SYMPTOMS: &[(&str, &[&str])] = &[
    ("a model never chooses a tool", &["plugd tools --all", "plugd tools --as CALLER", "plugd lint PLUGIN"]),
    ("arguments come wrong, or cut short", &["plugd calls --stats", "plugd calls show ID"]),
    ("the list of tools is empty", &["plugd list", "plugd tools --all", "plugd doctor"]),
    ("a name is called that does not exist", &["plugd list"]),
    ("validation always fails", &["plugd call OPERATION --explain", "plugd describe OPERATION"]),
    ("the tool raises", &["plugd logs PLUGIN --call ID"]),
    ("the same call comes again and again", &["plugd calls --operation OPERATION"]),
    ("something was executed twice", &["plugd calls show ID", "--key"]),
    ("two users' answers are mixed up", &["plugd calls show ID"]),
    ("it is slow now and then", &["plugd calls --stats", "plugd calls show ID"]),
];

/// A plugin that does what the table is about.
const ODD: &str = "
NUMBER = {'type': 'object', 'properties': {'days': {'type': 'integer', 'maximum': 14}}, 'required': ['days']}
OPERATIONS = [{'name': name, 'input_schema': {'type': 'object', 'properties': {}}, 'description': 'Does it. Really.'}
    for name in ('process', 'raises', 'last', 'slow')] + [
    {'name': 'plan', 'input_schema': NUMBER, 'description': 'Plans. Books nothing.'},
    {'name': 'pay', 'input_schema': {'type': 'object', 'properties': {}}, 'description': 'Pays. Once.'}]
CALLERS = []
def handle(operation, arguments, params):
    if operation == 'raises':
        raise Failure('Traceback (most recent call last):\\n  File \"/srv/odd.py\", line 7\\nKeyError: amount', code=2)
    if operation == 'last':
        CALLERS.append(params['context'].get('caller'))
        return {'data': CALLERS[0]}
    if operation == 'pay':
        mark('paid')
    if operation == 'slow':
        time.sleep(0.2)
    return {'data': None}
";

/// A call's id, from its result.
fn call_id(result: &Value) -> String {
    result["meta"]["call_id"].as_str().expect("a call that was made has an id").to_owned()
}

/// Row T13: each symptom is made, and the command that the table names shows its cause or ends it.
#[test]
fn r_t13_the_ten_symptoms_of_tools_are_cured_by_the_commands_the_table_names() {
    let rows = rows("../troubleshooting.md", "| symptom | cause | look, then mend |");
    assert_eq!(rows.len(), SYMPTOMS.len());
    for ((symptom, commands), row) in SYMPTOMS.iter().zip(&rows) {
        assert_eq!(row[0], *symptom);
        let named = quoted(&row[2]);
        assert!(commands.iter().all(|command| named.iter().any(|named| named == command)), "{row:?}");
    }

    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", ODD);
    let callers = "[callers.ada]\n[callers.bob]\n[callers.nobody]\nallow = []\n";
    sandbox.configure(&format!("{table}\n{callers}"));
    let daemon = sandbox.serve();
    let said = |args: &[&str]| {
        let ran = daemon.plugd(args);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    #[track_caller]
    fn has(text: &str, parts: &[&str]) {
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    }

    has(&said(&["lint", "odd"]), &["odd.process", "vague_name", "hint:"]);
    has(&said(&["tools", "--as", "nobody"]), &["no tools are offered"]);
    daemon.plugd(&["disable", "odd"]).expect(0);
    has(&said(&["tools", "--all"]), &["not offered", "odd.plan", "disabled by an operator"]);
    daemon.plugd(&["enable", "odd"]).expect(0);

    let wrong = daemon.plugd(&["--output", "json", "call", "odd.plan", "days=40"]).expect(3).json();
    daemon.plugd(&["call", "odd.plan", "--json", r#"{"days": 4"#]).expect(3);
    has(&said(&["calls", "--stats"]), &["odd.plan", "0.0 %", "/days maximum ×1"]);
    has(&said(&["calls", "show", &call_id(&wrong)]), &[r#"{"days":40}"#, "at most 14"]);

    has(&said(&["call", "odd.plann", "days=1"]), &["did you mean odd.plan?"]);
    has(&said(&["list"]), &["odd.plan"]);
    has(&said(&["call", "odd.plan", "days=40", "--explain"]), &["days", "14", "40"]);
    has(&said(&["describe", "odd.plan"]), &["days", "integer"]);

    let raised = daemon.plugd(&["--output", "json", "call", "odd.raises"]).expect(1).json();
    assert!(!raised["error"].to_string().contains("/srv"), "{raised:#}");
    has(&said(&["logs", "odd", "--call", &call_id(&raised)]), &["/srv/odd.py", "KeyError: amount"]);

    for caller in ["ada", "bob"] {
        daemon.plugd(&["call", "odd.pay", "--as", caller, "--key", "bill-7"]).expect(0);
        daemon.plugd(&["call", "odd.pay", "--as", caller, "--key", "bill-7"]).expect(0);
    }
    assert_eq!(sandbox.read("plugins/odd/paid").lines().count(), 2, "once for each key of each caller");
    has(&said(&["calls", "--operation", "odd.pay", "--caller", "ada"]), &["odd.pay", "ada"]);

    let mixed: Vec<Value> =
        ["ada", "bob"].map(|caller| daemon.json(&["call", "odd.last", "--as", caller])).into();
    assert_eq!(mixed[1]["data"], "ada", "the plugin keeps what it should not");
    has(&said(&["calls", "show", &call_id(&mixed[1])]), &["caller    bob", "data      \"ada\""]);

    let slow = daemon.json(&["call", "odd.slow"]);
    has(&said(&["calls", "--stats", "--plugin", "odd"]), &["P95", "odd.slow"]);
    has(&said(&["calls", "show", &call_id(&slow)]), &["time line", "queued", "started", "answered"]);
    daemon.stop();
}

/// Row T13: what is mechanical about an empty list `doctor` says without being asked for it by name.
#[test]
fn r_t13_doctor_names_what_keeps_tools_from_being_offered() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", "def on_init(params):\n    raise Failure('no database')\n");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(daemon.plugd(&["start", "odd"]).code, 6);
    let all = daemon.plugd(&["tools", "--all"]);
    assert!(all.stdout.contains("not offered") && all.stdout.contains("no database"), "{all:?}");
    let doctor = daemon.plugd(&["doctor"]).expect(6);
    assert!(doctor.stdout.contains("odd") && doctor.stdout.contains("no database"), "{doctor:?}");
    daemon.stop();
}
