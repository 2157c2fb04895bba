//! `plugd check`: whether plugins can be used, found, filled and told of, and keep to the protocol.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use plugd_conformance::{Calls, Options};
use plugd_engine::config::Environment;
use plugd_protocol::control::{
    AddParams, CallParams, CheckReport, CheckedOperation, CheckedPlugin, DescribeParams, Description,
    Exported, LintParams, ListParams, PluginState, ScenarioOutcome,
};
use plugd_protocol::manifest::{Confirm, TIMEOUT_MS_MAX};
use plugd_protocol::{CallError, ErrorKind, Operation, PluginName};
use serde_json::Value;

use super::lint::{self, Targets, open};
use super::{PLUGIN_UNAVAILABLE, call};
use crate::alone;
use crate::attend::{INTERRUPTED, unless_interrupted};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::{Interruptions, Runtime, interrupted};
use crate::trial;

/// Whether plugins can be used, and whether a program keeps to the protocol
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Describes plugins and says of each operation how it is found, how it is filled and how it fails, and \
what its declaration could say better. Of a path it also tries what docs/checking.md lists: some fifty \
scenarios, each with a process of the plugin, in a few seconds. No operation is called but with --call. \
Without a name, the configuration and every plugin in it are looked at. Works with and without a daemon. \
What a path requires and is not given with it is named, and calls that need it are not tried.

Exits 6 if something that is declared cannot be called, a scenario fails, or a call with its own examples \
crashes the handler, is not answered or does not fit. An error in the operation's own words is a warning, \
and warnings fail under --strict alone. Exits 2 if the configuration is wrong.

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
    /// Warnings count as failures, of scenarios and of calls
    #[arg(long)]
    strict: bool,
    /// How long a call may take, of a scenario (10 s otherwise) and with --call (the operation's own time)
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
        Targets::Plugins(_) if !args.only.is_empty() || args.quick => {
            let message = "scenarios are run with an executable: name its path, such as ./plugin.py";
            return Err(Failure::usage(message));
        }
        Targets::Plugins(_) if args.timeout.is_some() && args.call.is_none() => {
            let message = "--timeout is for calls: give --call with it, or the path of an executable, whose scenarios call";
            return Err(Failure::usage(message));
        }
        Targets::Plugins(_) | Targets::Paths(_) => {}
    }
    if let Some(file) = &args.junit {
        can_be_written(file)?;
    }
    let mut signals = Interruptions::watch();
    let (runtime, plugins) = open(&targets, context).await?;
    let looking = look_at(&runtime, plugins, problems, &args, &targets);
    let looked = unless_interrupted(&mut signals, looking).await;
    let Some(looked) = looked else {
        runtime.finish_soon().await;
        return Err(stopped());
    };
    let unknown = match &looked {
        Ok(report) => unknown_name(report, &args, &runtime, context).await,
        Err(_) => None,
    };
    runtime.finish().await;
    if let Some(failure) = unknown {
        return Err(failure);
    }
    let mut report = looked?;
    if let Targets::Paths(given) = &targets
        && !conform(&mut report, given, &args).await?
    {
        return Err(stopped());
    }
    if let Some(file) = &args.junit {
        write_junit(file, &render::junit(&report, args.strict))?;
    }
    context.output.report(&report, |paint| render::checked(&report, paint))?;
    Ok(if report.ok { 0 } else { PLUGIN_UNAVAILABLE })
}

/// The error where somebody interrupted it.
fn stopped() -> Failure {
    let error =
        CallError::new(ErrorKind::Cancelled, "the check was interrupted: nothing is said of the plugins");
    Failure { exit: INTERRUPTED, ..Failure::from(error) }
}

/// The error for a name after --call that none of them has; what never described itself may have any.
async fn unknown_name(
    report: &CheckReport,
    args: &Args,
    runtime: &Runtime,
    context: &Context,
) -> Option<Failure> {
    if report.plugins.iter().any(|checked| checked.plugin.version.is_none()) {
        return None;
    }
    let ids =
        || report.plugins.iter().flat_map(|checked| &checked.operations).map(|known| &known.exported.id);
    let is_known =
        |name: &str| ids().any(|id| id == name || id.split_once('.').is_some_and(|(_, own)| own == name));
    let name = args.call.iter().flatten().find(|name| !is_known(name))?;
    let full = match report.plugins.as_slice() {
        [only] if !name.contains('.') => format!("{}.{name}", only.plugin.name),
        _ => name.clone(),
    };
    let failure = runtime.describe(&DescribeParams::new(full)).await.err();
    let none =
        || CallError::new(ErrorKind::UnknownOperation, format!("what is checked has no operation {name:?}"));
    let mut failure = failure.unwrap_or_else(|| none().into());
    if let Some(path) = args.targets.first().filter(|path| call::is_path(path)) {
        alone::reword(&mut failure.error, path, Some(runtime), context).await;
    }
    Some(failure)
}

/// Before anything runs: a file that cannot be written is a mistake on the command line.
fn can_be_written(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    opened.map(|_| ()).map_err(|error| {
        let file = file.display();
        Failure::unfit(format!("--junit: cannot write {file}: {error}; name a file that can be written"))
    })
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
        let absent = absent(&description, targets);
        let mut operations = operations(&description);
        if !absent.is_empty() && description.plugin.state == PluginState::Blocked {
            // Alone it cannot have what it requires, and that says nothing against its operations.
            let known = operations.iter_mut().filter(|checked| !checked.exported.found_by.is_empty());
            known.for_each(|checked| checked.exported.unreachable = None);
        }
        for checked in operations.iter_mut().filter(|checked| !checked.exported.found_by.is_empty()) {
            // Its times are also those of the configuration.
            if let Ok(explained) = runtime.explain(CallParams::new(&*checked.exported.id)).await {
                checked.timeout_ms = Some(explained.timeout_ms);
            }
        }
        if args.call.is_some() {
            match absent.as_slice() {
                [] => try_out(&mut operations, &description, args, runtime).await?,
                [first, ..] => {
                    let why = format!("plugd starts it only where {first} is: not called through it");
                    operations.iter_mut().for_each(|checked| checked.tried = Some(trial::skipped(&why)));
                }
            }
        }
        plugins.push(CheckedPlugin {
            operations,
            plugin: description.plugin,
            findings,
            absent,
            conformance: None,
        });
    }
    let is_usable = |checked: &CheckedPlugin| {
        let faultless = |operation: &CheckedOperation| operation.fault(args.strict).is_none();
        !checked.is_down() && checked.operations.iter().all(faultless)
    };
    let ok = problems.is_empty() && plugins.iter().all(is_usable);
    Ok(CheckReport { ok, plugins, problems })
}

/// Calls what only reads, or what is named, one after the other.
async fn try_out(
    operations: &mut [CheckedOperation],
    description: &Description,
    args: &Args,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let named = args.call.as_deref().unwrap_or_default();
    let timeout_ms = args.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    for checked in operations.iter_mut().filter(|checked| checked.exported.unreachable.is_none()) {
        let Some(operation) = declared(description, &checked.exported) else { continue };
        let is_named =
            named.iter().any(|name| *name == checked.exported.id || name == operation.name.as_str());
        let why_not = match (named.is_empty(), operation.effects.read_only) {
            (true, Some(true)) => None,
            (true, None | Some(false)) => Some("it is not declared read-only"),
            (false, _) => (!is_named).then_some("others were named"),
        };
        checked.tried = Some(match (why_not, plugd_conformance::example_arguments(operation)) {
            (Some(why), _) => trial::skipped(&format!("not called: {why}")),
            (None, Err(name)) => trial::without_example(&name, is_named),
            (None, Ok(arguments)) => {
                let params = CallParams {
                    whole: true,
                    wait: true,
                    confirm: is_named,
                    timeout_ms,
                    ..CallParams::new(&*checked.exported.id)
                };
                let params = params
                    .arguments(&arguments.to_string())
                    .map_err(|error| Failure::internal(error.to_string()))?;
                trial::tried(arguments, &runtime.call(params, None).await?, operation)
            }
        });
    }
    Ok(())
}

/// What a path requires that was not given with it; a plugin of the configuration has what it has.
fn absent(description: &Description, targets: &Targets) -> Vec<PluginName> {
    let given = match targets {
        Targets::Plugins(_) => return Vec::new(),
        Targets::Paths(given) => given,
    };
    let is_given = |name: &PluginName| given.iter().any(|plugin| plugin.name == *name);
    let needed = description.requires.iter().filter(|(_, requirement)| !requirement.optional);
    needed.map(|(name, _)| name.clone()).filter(|name| !is_given(name)).collect()
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
