//! `plugd check`: whether plugins can be used, found, filled and told of, without calling them.

use plugd_protocol::control::{
    CheckReport, CheckedOperation, CheckedPlugin, DescribeParams, Description, Exported, LintParams,
    ListParams, PluginState,
};
use plugd_protocol::manifest::Confirm;
use plugd_protocol::{Operation, PluginName};
use serde_json::Value;

use super::PLUGIN_UNAVAILABLE;
use super::lint::{Targets, open};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::Runtime;

/// Whether plugins can be used: their names, sizes, arguments and failures
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Describes plugins and says of each operation how it is found, how it is filled and how it fails, and
what its declaration could say better. Nothing is called. Without a name, the configuration and every
plugin in it are looked at. Works with and without a daemon. Exits 6 if something that is declared
cannot be called, 2 if the configuration is wrong.

Examples:
  plugd check
  plugd check archive
  plugd check ./greet.py                         an executable, or a folder with a plugin.toml
  plugd check ./greet.py --output json")]
pub(crate) struct Args {
    /// Only these plugins; or paths of executables and folders, without any configuration
    #[arg(value_name = "PLUGIN|PATH")]
    targets: Vec<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let problems = match args.targets.is_empty() && context.global.socket.is_none() {
        true => plugd_engine::check(&context.settings()?.config),
        false => Vec::new(),
    };
    let (runtime, plugins) = open(&Targets::read(&args.targets)?, context).await?;
    let looked = look_at(&runtime, plugins, problems).await;
    runtime.finish().await;
    let report = looked?;
    context.output.report(&report, |paint| render::checked(&report, paint))?;
    Ok(if report.ok { 0 } else { PLUGIN_UNAVAILABLE })
}

async fn look_at(
    runtime: &Runtime,
    mut names: Vec<PluginName>,
    problems: Vec<String>,
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
        plugins.push(CheckedPlugin {
            operations: operations(&description),
            plugin: description.plugin,
            findings,
        });
    }
    let ok = problems.is_empty() && plugins.iter().all(is_usable);
    Ok(CheckReport { ok, plugins, problems })
}

fn is_usable(checked: &CheckedPlugin) -> bool {
    let described = checked.plugin.version.is_some();
    let up = match checked.plugin.state {
        PluginState::Failed | PluginState::Disabled | PluginState::Blocked => false,
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Backoff
        | PluginState::Stopping
        | PluginState::Stopped => true,
    };
    described && up && checked.operations.iter().all(|operation| operation.exported.unreachable.is_none())
}

fn operations(description: &Description) -> Vec<CheckedOperation> {
    let declared = |exported: &Exported| {
        let of =
            |operation: &&Operation| format!("{}.{}", description.plugin.name, operation.name) == exported.id;
        description.operations.iter().find(of)
    };
    let checked = description.exported.iter().map(|exported| match declared(exported) {
        Some(operation) => checked(exported.clone(), operation),
        None => CheckedOperation {
            exported: exported.clone(),
            examples: Vec::new(),
            required: Vec::new(),
            optional: Vec::new(),
            confirmed: false,
            retried: false,
            timeout_ms: None,
        },
    });
    checked.collect()
}

fn checked(exported: Exported, operation: &Operation) -> CheckedOperation {
    let schema: Value = serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
    let listed = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
    let all = schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name);
    let effects = &operation.effects;
    CheckedOperation {
        exported,
        examples: operation.examples.clone(),
        optional: all.filter(|name| !required.contains(name)).cloned().collect(),
        required,
        confirmed: match operation.confirm {
            Confirm::Always => true,
            Confirm::Auto => effects.destructive == Some(true),
            Confirm::Never => false,
        },
        retried: effects.idempotent == Some(true) || effects.read_only == Some(true),
        timeout_ms: operation.timeout_ms,
    }
}
