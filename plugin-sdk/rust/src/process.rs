//! The plugin as a process: its arguments, its terminal, its standard streams, its end.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use plugd_protocol::{Manifest, Operation};
use serde_json::{Value, json};

use crate::guard::watch_panics;
use crate::plugin::Plugin;
use crate::serve::Session;
use crate::stdio;
use crate::wire::Wire;

/// The exit code that means: starting me again would not help.
const EXIT_PERMANENT: u8 = 125;

/// The exit code of a program that was not used as it is meant to be.
const EXIT_USAGE: u8 = 2;

/// Runs a plugin in this process.
pub(crate) fn run<S: Send + Sync + 'static>(plugin: Plugin<S>) -> ExitCode {
    let manifest = match plugin.manifest() {
        Ok(manifest) => manifest,
        Err(error) => return fail(EXIT_PERMANENT, &error.message),
    };
    let asked = std::env::args().nth(1).unwrap_or_default();
    match asked.as_str() {
        "--describe" => return print(&format!("{:#}", json!(manifest))),
        "--version" | "-V" => return print(&format!("{} {}", manifest.name, manifest.version)),
        "--help" | "-h" => return print(&usage(&manifest)),
        _ if io::stdin().is_terminal() => return fail(EXIT_USAGE, usage(&manifest).trim_end()),
        _ => {}
    }
    let (input, output) = match stdio::take() {
        Ok(streams) => streams,
        Err(error) => return fail(1, &format!("cannot set up the streams: {error}")),
    };
    watch_panics();
    let wire = Wire::new(Box::new(output), || std::process::exit(0));
    Session::new(plugin, manifest, input.into(), wire).serve();
    // Handlers may still run: returning from main ends them with the process.
    ExitCode::SUCCESS
}

/// Printed text is for people; a closed terminal is no failure of the plugin.
fn print(text: &str) -> ExitCode {
    match writeln!(io::stdout(), "{}", text.trim_end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(code: u8, text: &str) -> ExitCode {
    // Where even stderr is gone, the exit code is all there is to say.
    drop(writeln!(io::stderr(), "{text}"));
    ExitCode::from(code)
}

/// What it is and how to use it, for someone who started it by hand.
fn usage(manifest: &Manifest) -> String {
    let program = std::env::args().next().unwrap_or_else(|| manifest.name.clone());
    let mut text = format!("{} {}, a plugd plugin\n", manifest.name, manifest.version);
    if let Some(description) = &manifest.description {
        text += &format!("{description}\n");
    }
    text += "\nOperations:\n";
    let width = manifest.operations.iter().map(|operation| operation.name.as_str().len()).max().unwrap_or(0);
    for operation in &manifest.operations {
        let described = operation.description.as_deref().unwrap_or("(no description)");
        let sentence = described.split_inclusive(". ").next().unwrap_or_default().trim_end();
        text += &format!("  {:width$}  {}\n", operation.name, sentence.replace('\n', " "));
    }
    text += "\nIt is started by plugd, and speaks JSON-RPC over stdin and stdout.\n";
    if let Some(operation) = manifest.operations.first() {
        let name = &operation.name;
        let arguments = sample(operation);
        text += &format!("Call it:\n\n  plugd call {program} {name}{}\n\n", assigned(&arguments));
        let init = json!({"jsonrpc": "2.0", "id": 1, "method": "init", "params": {"config": {}}});
        let context = json!({"call_id": "by-hand", "deadline_ms": 30_000});
        let params = json!({"operation": name, "arguments": arguments, "context": context});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "call", "params": params});
        text += &format!("or, without plugd:\n\n  printf '%s\\n' '{init}' '{call}' | {program}\n\n");
    }
    text += &format!(
        "What it declares: {program} --describe. To have it in plugd.toml:\n\n  [plugins.{}]\n  command = [{program:?}]\n",
        manifest.name
    );
    text
}

/// Arguments as words of a command line, a space before each.
fn assigned(arguments: &Value) -> String {
    let word = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!(" {name}={text}"),
        other => format!(" {name}={other}"),
    };
    arguments.as_object().into_iter().flatten().map(word).collect()
}

/// Arguments to try an operation with: what is required, by its first example.
fn sample(operation: &Operation) -> Value {
    let schema: Value = serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let first = |name: &str| {
        let parameter = &schema["properties"][name];
        let candidates = [&parameter["examples"][0], &parameter["enum"][0], &parameter["minimum"]];
        candidates.into_iter().find(|value| !value.is_null()).cloned().unwrap_or(json!("…"))
    };
    required.map(|name| (name.to_owned(), first(name))).collect::<serde_json::Map<_, _>>().into()
}
