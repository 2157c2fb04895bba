//! `plugd check`: whether plugins can be used, found, filled and told of, without calling them.

use plugd_protocol::control::{
    CallParams, CheckReport, CheckedOperation, CheckedPlugin, DescribeParams, Description, Exported,
    LintParams, ListParams, PluginState, Tried,
};
use plugd_protocol::manifest::{Confirm, TIMEOUT_MS_MAX};
use plugd_protocol::{Operation, PluginName};
use serde_json::Value;

use super::PLUGIN_UNAVAILABLE;
use super::lint::{Targets, open};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::Runtime;
use crate::trial;

/// Whether plugins can be used: their names, sizes, arguments and failures
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Describes plugins and says of each operation how it is found, how it is filled and how it fails, and \
what its declaration could say better. Nothing is called but with --run. Without a name, the configuration and every \
plugin in it are looked at. Works with and without a daemon. Exits 6 if something that is declared \
cannot be called, 2 if the configuration is wrong.

Examples:
  plugd check
  plugd check archive
  plugd check ./greet.py                         an executable, or a folder with a plugin.toml
  plugd check ./greet.py --run                   also tries what only reads")]
pub(crate) struct Args {
    /// Only these plugins; or paths of executables and folders, without any configuration
    #[arg(value_name = "PLUGIN|PATH")]
    targets: Vec<String>,
    /// Also call what is declared read-only, with its own examples, and look at what it answers
    #[arg(long)]
    run: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let problems = match args.targets.is_empty() && context.global.socket.is_none() {
        true => plugd_engine::check(&context.settings()?.config),
        false => Vec::new(),
    };
    let targets = Targets::read(&args.targets)?;
    let (runtime, plugins) = open(&targets, context).await?;
    let looked = look_at(&runtime, plugins, problems, &args, &targets).await;
    runtime.finish().await;
    let report = looked?;
    context.output.report(&report, |paint| render::checked(&report, paint))?;
    Ok(if report.ok { 0 } else { PLUGIN_UNAVAILABLE })
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
        if args.run {
            try_out(&mut operations, &description, runtime).await?;
        }
        plugins.push(CheckedPlugin { operations, plugin: description.plugin, findings });
    }
    let ok = problems.is_empty() && plugins.iter().all(|checked| is_usable(checked, targets));
    Ok(CheckReport { ok, plugins, problems })
}

/// Calls what only reads, one after the other.
async fn try_out(
    operations: &mut [CheckedOperation],
    description: &Description,
    runtime: &Runtime,
) -> Result<(), Failure> {
    for checked in operations.iter_mut().filter(|checked| checked.exported.unreachable.is_none()) {
        let Some(operation) = declared(description, &checked.exported) else { continue };
        let nothing = |remark: String| Tried { arguments: None, answered: false, remarks: vec![remark] };
        checked.tried = Some(match (operation.effects.read_only, trial::arguments(operation)) {
            (None | Some(false), _) => nothing("not called: it is not declared read-only".to_owned()),
            (Some(true), Err(name)) => nothing(format!("not called: {name} is required and has no example")),
            (Some(true), Ok(arguments)) => {
                let params = CallParams { whole: true, wait: true, ..CallParams::new(&*checked.exported.id) };
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
            open.push((format!("{path}{name}."), trial::referred(property, schema), depth + 1));
        }
    }
    found.sort_unstable();
    found
}
