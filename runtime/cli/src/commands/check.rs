//! `plugd check`: whether plugins can be used, found, filled and told of, and keep to the protocol.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use plugd_conformance::{Calls, Options};
use plugd_engine::config::Environment;
use plugd_protocol::control::{
    AddParams, CallParams, CheckReport, CheckedOperation, CheckedPlugin, DescribeParams, Description,
    Exported, LintParams, ListParams, PluginState, ScenarioOutcome, Tried,
};
use plugd_protocol::manifest::{Confirm, TIMEOUT_MS_MAX};
use plugd_protocol::{Operation, PluginName};
use serde_json::Value;

use super::PLUGIN_UNAVAILABLE;
use super::lint::{self, Targets, open};
use crate::attend::INTERRUPTED;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::{Runtime, interrupted};
use crate::trial;

/// Whether plugins can be used, and whether a program keeps to the protocol
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Describes plugins and says of each operation how it is found, how it is filled and how it fails, and \
what its declaration could say better. Of a path it also tries what docs/checking.md lists: some fifty \
scenarios, each with a process of the plugin, in a few seconds. No operation is called but with --call. \
Without a name, the configuration and every plugin in it are looked at. Works with and without a daemon. \
Exits 6 if something that is declared cannot be called or a scenario fails, 2 if the configuration is wrong.

Examples:
  plugd check
  plugd check archive
  plugd check ./greet.py                         an executable, or a folder with a plugin.toml
  plugd check ./greet.py --call                  also tries what only reads
  plugd check ./greet.py --call=hello,bye        also tries these, whatever they declare
  plugd check ./greet.py --only reads_a_large_line
  plugd check ./greet.py --strict --junit check.xml
  plugd check ./greet.py -- --verbose            with an argument of its own")]
pub(crate) struct Args {
    /// Only these plugins; or paths of executables and folders, without any configuration
    #[arg(value_name = "PLUGIN|PATH")]
    targets: Vec<String>,
    /// Also call what is declared read-only, or the operations that are named, with their own examples
    #[arg(long, value_name = "OPERATION", num_args = 0.., require_equals = true, value_delimiter = ',')]
    call: Option<Vec<String>>,
    /// Only these scenarios, and what they build on
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',', value_parser = scenario_names(), hide_possible_values = true)]
    only: Vec<String>,
    /// Leave out the scenarios that take long
    #[arg(long)]
    quick: bool,
    /// Warnings of scenarios count as failures
    #[arg(long)]
    strict: bool,
    /// How long a scenario waits for a call; 10 s otherwise
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Also write the report as JUnit XML, for CI
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Arguments for the executable, where one path is given
    #[arg(last = true, value_name = "ARGUMENT")]
    args: Vec<String>,
}

fn scenario_names() -> PossibleValuesParser {
    PossibleValuesParser::new(plugd_conformance::scenarios().map(|scenario| scenario.name))
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let problems = match args.targets.is_empty() && context.global.socket.is_none() {
        true => plugd_engine::check(&context.settings()?.config),
        false => Vec::new(),
    };
    let targets = Targets::read(&args.targets, &args.args)?;
    match &targets {
        Targets::Plugins(_) if !args.only.is_empty() || args.quick || args.timeout.is_some() => {
            let message = "scenarios are run with an executable: name its path, such as ./plugin.py";
            return Err(Failure::usage(message));
        }
        Targets::Plugins(_) | Targets::Paths(_) => {}
    }
    let (runtime, plugins) = open(&targets, context).await?;
    let looked = look_at(&runtime, plugins, problems, &args, &targets).await;
    runtime.finish().await;
    let mut report = looked?;
    if let Targets::Paths(given) = &targets
        && !conform(&mut report, given, &args).await?
    {
        return Ok(INTERRUPTED);
    }
    if let Some(file) = &args.junit {
        write_junit(file, &render::junit(&report, args.strict))?;
    }
    context.output.report(&report, |paint| render::checked(&report, paint))?;
    Ok(if report.ok { 0 } else { PLUGIN_UNAVAILABLE })
}

/// Runs the scenarios with each of these; false where somebody interrupted that.
async fn conform(report: &mut CheckReport, given: &[AddParams], args: &Args) -> Result<bool, Failure> {
    let environment = Environment::of_process();
    let config = lint::alone(given, &environment)?;
    for checked in &mut report.plugins {
        let name = checked.plugin.name.clone();
        let Some(settings) = plugd_engine::run_settings(&config, &name, &environment) else { continue };
        let options = Options {
            call: match &args.call {
                None => Calls::None,
                Some(names) if names.is_empty() => Calls::ReadOnly,
                Some(names) => Calls::Named(names.clone()),
            },
            only: args.only.clone(),
            quick: args.quick,
            call_time: args.timeout,
        };
        // Where signals cannot be caught they end this process, and the plugin's with it.
        let interrupted = async {
            if !interrupted().await {
                std::future::pending::<()>().await;
            }
        };
        let came = plugd_conformance::check(name, settings, options, interrupted).await;
        let came = came.map_err(|error| {
            Failure::environment(
                format!("the scenarios cannot be run: {error}"),
                "make room in $TMPDIR, and for processes",
            )
        })?;
        let Some(conformance) = came else { return Ok(false) };
        let warned = conformance.count(ScenarioOutcome::Warned) > 0;
        report.ok &= conformance.ok && !(args.strict && warned);
        checked.conformance = Some(conformance);
    }
    Ok(true)
}

fn write_junit(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| {
        Failure::environment(
            format!("cannot write {}: {error}", file.display()),
            "name a file that can be written",
        )
    })
}

async fn look_at(
    runtime: &Runtime,
    mut names: Vec<PluginName>,
    problems: Vec<String>,
    args: &Args,
    targets: &Targets,
) -> Result<CheckReport, Failure> {
    if names.is_empty() {
        let list = runtime.list(&ListParams::default()).await?;
        // What is forbidden on purpose is as it should be.
        names = list.plugins.into_iter().filter(|plugin| plugin.enabled).map(|plugin| plugin.name).collect();
    }
    let mut plugins = Vec::new();
    for name in names {
        let description = runtime.describe(&DescribeParams::new(name.as_str())).await?;
        let findings = match description.plugin.version {
            Some(_) => runtime.lint(&LintParams { plugins: vec![name] }).await?.findings,
            // It was never described: its state says why.
            None => Vec::new(),
        };
        let mut operations = operations(&description);
        for checked in operations.iter_mut().filter(|checked| !checked.exported.found_by.is_empty()) {
            // Its times are also those of the configuration.
            if let Ok(explained) = runtime.explain(CallParams::new(&*checked.exported.id)).await {
                checked.timeout_ms = Some(explained.timeout_ms);
            }
        }
        if let Some(named) = &args.call {
            try_out(&mut operations, &description, named, runtime).await?;
        }
        plugins.push(CheckedPlugin { operations, plugin: description.plugin, findings, conformance: None });
    }
    let ok = problems.is_empty() && plugins.iter().all(|checked| is_usable(checked, targets));
    Ok(CheckReport { ok, plugins, problems })
}

/// Calls what only reads, or what is named, one after the other.
async fn try_out(
    operations: &mut [CheckedOperation],
    description: &Description,
    named: &[String],
    runtime: &Runtime,
) -> Result<(), Failure> {
    for checked in operations.iter_mut().filter(|checked| checked.exported.unreachable.is_none()) {
        let Some(operation) = declared(description, &checked.exported) else { continue };
        let nothing = |remark: String| Tried { arguments: None, answered: false, remarks: vec![remark] };
        let is_named =
            named.iter().any(|name| *name == checked.exported.id || name == operation.name.as_str());
        let why_not = match (named.is_empty(), operation.effects.read_only) {
            (true, Some(true)) => None,
            (true, None | Some(false)) => Some("it is not declared read-only"),
            (false, _) => (!is_named).then_some("others were named"),
        };
        checked.tried = Some(match (why_not, plugd_conformance::example_arguments(operation)) {
            (Some(why), _) => nothing(format!("not called: {why}")),
            (None, Err(name)) => nothing(format!("not called: {name} is required and has no example")),
            (None, Ok(arguments)) => {
                let params = CallParams {
                    whole: true,
                    wait: true,
                    confirm: is_named,
                    ..CallParams::new(&*checked.exported.id)
                };
                let params = params
                    .arguments(&arguments.to_string())
                    .map_err(|error| Failure::internal(error.to_string()))?;
                let result = runtime.call(params, None).await?;
                let data = result.data.as_deref().and_then(|data| serde_json::from_str(data.get()).ok());
                let remarks = match (&result.error, data) {
                    (Some(error), _) => vec![trial::failed(error)],
                    (None, data) => trial::remarks(&data.unwrap_or_default(), operation),
                };
                Tried { arguments: Some(arguments), answered: result.error.is_none(), remarks }
            }
        });
    }
    Ok(())
}

fn is_usable(checked: &CheckedPlugin, targets: &Targets) -> bool {
    let described = checked.plugin.version.is_some();
    // Alone it cannot have what it requires, and that says nothing against it.
    let is_alone = match targets {
        Targets::Paths(_) => true,
        Targets::Plugins(_) => false,
    };
    let (up, blocked) = match checked.plugin.state {
        PluginState::Failed | PluginState::Disabled => (false, false),
        PluginState::Blocked => (is_alone, is_alone),
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Backoff
        | PluginState::Stopping
        | PluginState::Stopped => (true, false),
    };
    let is_usable = |operation: &CheckedOperation| {
        let exported = &operation.exported;
        let tried = operation.tried.as_ref().is_none_or(|tried| tried.answered || tried.arguments.is_none());
        tried && (exported.unreachable.is_none() || (blocked && !exported.found_by.is_empty()))
    };
    described && up && checked.operations.iter().all(is_usable)
}

/// What an operation is declared as; none where that cannot be used.
fn declared<'d>(description: &'d Description, exported: &Exported) -> Option<&'d Operation> {
    let of =
        |operation: &&Operation| format!("{}.{}", description.plugin.name, operation.name) == exported.id;
    description.operations.iter().find(of)
}

fn operations(description: &Description) -> Vec<CheckedOperation> {
    let checked = description.exported.iter().map(|exported| match declared(description, exported) {
        Some(operation) => checked(exported.clone(), operation),
        None => CheckedOperation {
            exported: exported.clone(),
            examples: Vec::new(),
            required: Vec::new(),
            optional: Vec::new(),
            within: Vec::new(),
            confirmed: false,
            retried: false,
            timeout_ms: None,
            background: false,
            tried: None,
        },
    });
    checked.collect()
}

fn checked(exported: Exported, operation: &Operation) -> CheckedOperation {
    let schema: Value = serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
    let required: Vec<String> = required(&schema).map(str::to_owned).collect();
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name);
    let effects = &operation.effects;
    CheckedOperation {
        exported,
        examples: operation.examples.clone(),
        optional: all.filter(|name| !required.contains(name)).cloned().collect(),
        required,
        within: within(&schema),
        confirmed: match operation.confirm {
            Confirm::Always => true,
            Confirm::Auto => effects.destructive == Some(true),
            Confirm::Never => false,
        },
        retried: effects.idempotent == Some(true) || effects.read_only == Some(true),
        timeout_ms: operation.timeout_ms.map(|time| time.min(TIMEOUT_MS_MAX)),
        background: operation.long_running,
        tried: None,
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// What must be given within objects, where those are given: `owner.mail`.
fn within(schema: &Value) -> Vec<String> {
    /// Of deeper objects nobody reads it.
    const DEPTH_MAX: usize = 4;
    let mut found = Vec::new();
    let mut open = vec![(String::new(), schema, 0)];
    while let Some((path, object, depth)) = open.pop() {
        if depth > 0 {
            found.extend(required(object).map(|name| format!("{path}{name}")));
        }
        let properties = object.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, property) in properties.filter(|_| depth < DEPTH_MAX) {
            open.push((format!("{path}{name}."), plugd_conformance::referred(property, schema), depth + 1));
        }
    }
    found.sort_unstable();
    found
}
