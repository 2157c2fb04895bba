//! What is said of a call by path: its plugin is in no configuration, and no daemon knows it.

use plugd_engine::config::Config;
use plugd_protocol::control::{DescribeParams, Finding, Severity, StatusParams};
use plugd_protocol::error::ErrorClass;
use plugd_protocol::{CallError, ErrorKind, Outcome, PluginName};

use crate::context::Context;
use crate::runtime::Runtime;

/// What hints call the log by.
const LOGS: &str = "`plugd logs`";

/// Advice that is of use only for a plugin that a configuration or a daemon knows.
const ELSEWHERE: &[&str] = &[
    "--config FILE",
    "calls show ",
    "`plugd calls",
    "`plugd config",
    "`plugd doctor",
    "`plugd enable",
    "`plugd list",
    "`plugd reload",
    "`plugd restart",
    "`plugd start",
    "`plugd status",
    "`plugd check PATH`",
    "starts by itself",
    "mend what it waits for",
    "where it is restarted",
];

/// What stands where a path was taken out of a message.
const HIDDEN_PATHS: &[&str] = &["[path]", "…/"];

/// Rewords what an error of a call by path advises: its command again, or `plugd check`.
pub(crate) async fn reword(error: &mut CallError, path: &str, runtime: Option<&Runtime>, context: &Context) {
    let config = match runtime {
        Some(Runtime::Embedded { engine, .. }) => Some(engine.config()),
        Some(Runtime::Daemon(_)) | None => None,
    };
    let plugin = config.as_ref().and_then(|config| config.plugins.keys().next().cloned());
    if let (Some(runtime), Some(plugin)) = (runtime, &plugin) {
        say_which_file(error, plugin, runtime).await;
    }
    if error.code == ErrorKind::KeyConflict.code() {
        error.message.push_str(", or of another program of the same name");
    }
    let Some(hint) = error.hint.clone() else { return };
    let is_elsewhere = |part: &str| ELSEWHERE.iter().any(|words| part.contains(words));
    if !hint.contains("`plugd logs") && !is_elsewhere(&hint) {
        return;
    }
    let kept = |hint: &str| -> Vec<String> {
        hint.split("; ").filter(|part| !is_elsewhere(part)).map(str::to_owned).collect()
    };
    let parts = match (&config, &plugin) {
        (Some(config), Some(plugin)) if hint.contains("`plugd logs") => {
            let log = log_of(plugin, config, context);
            let named = format!("`plugd logs {plugin}`");
            kept(&hint.replace(&named, LOGS).replace(LOGS, &log))
        }
        (Some(config), Some(_)) if hint.contains("calls show ") && is_same_state(config, context) => return,
        _ => {
            let mut parts = kept(&hint);
            parts.extend(instead(error, path, plugin.as_ref(), runtime).await);
            parts
        }
    };
    error.hint = (!parts.is_empty()).then(|| parts.join("; "));
}

/// What to do, other than look into a configuration or ask a daemon.
async fn instead(
    error: &CallError,
    path: &str,
    plugin: Option<&PluginName>,
    runtime: Option<&Runtime>,
) -> Option<String> {
    let path = plugd_engine::command_line(&[path.to_owned()]);
    let is = |kind: ErrorKind| error.code == kind.code();
    match error.class() {
        ErrorClass::Request if is(ErrorKind::UnknownOperation) || is(ErrorKind::UnknownPlugin) => {
            let description = runtime?.describe(&DescribeParams::new(plugin?.as_str())).await.ok()?;
            let names: Vec<&str> =
                description.operations.iter().map(|operation| operation.name.as_str()).collect();
            match names.as_slice() {
                [] => Some(format!("it has no operation that can be called: `plugd check {path}` says why")),
                names => Some(format!("it has {}", names.join(", "))),
            }
        }
        ErrorClass::Request => Some("mend what the message names, then call again".to_owned()),
        ErrorClass::Process if is(ErrorKind::Blocked) => Some(
            "called by its path it has no other plugin: name it and what it requires in a plugd.toml, and \
             call it there"
                .to_owned(),
        ),
        ErrorClass::Process | ErrorClass::Protocol | ErrorClass::Plugin => {
            Some(format!("mend that, then call again; `plugd check {path}` says more"))
        }
        ErrorClass::Time => {
            Some(format!("allow more time with --timeout; `plugd check {path}` tries how it starts"))
        }
        ErrorClass::Argument | ErrorClass::Interaction | ErrorClass::Permission | ErrorClass::Internal => {
            None
        }
    }
}

/// Where what the plugin said is to be read: without a configuration it is kept in the user's own state
/// folder, which is also that of commands without one.
fn log_of(plugin: &PluginName, config: &Config, context: &Context) -> String {
    match is_same_state(config, context) {
        true => format!("`{}`", context.command_line(&format!("logs {plugin}"))),
        false => config.state_dir.join(format!("logs/{plugin}.log")).display().to_string(),
    }
}

/// Whether other commands that are typed here look into the same state folder.
fn is_same_state(config: &Config, context: &Context) -> bool {
    context.global.socket.is_none()
        && context.settings().is_ok_and(|settings| settings.config.state_dir == config.state_dir)
}

/// Says in full why a plugin cannot be used, for whoever typed the command here: what callers are told
/// names no file.
pub(crate) async fn say_which_file(error: &mut CallError, plugin: &PluginName, runtime: &Runtime) {
    if error.class() != ErrorClass::Process || error.outcome != Outcome::NotRun {
        return;
    }
    let Ok(report) = runtime.doctor(&StatusParams { plugin: Some(plugin.clone()) }).await else { return };
    let is_it = |finding: &&Finding| finding.severity == Severity::Problem;
    let Some(Finding { message, hint, .. }) = report.findings.iter().find(is_it) else { return };
    // A start that comes by itself is the daemon's.
    let message = message.split("; it is tried again ").next().unwrap_or_default();
    if HIDDEN_PATHS.iter().any(|mark| error.message.contains(mark)) {
        message.clone_into(&mut error.message);
    }
    // How it would be started in a daemon says nothing here.
    if let Some((what, _)) = hint.as_deref().and_then(|hint| hint.split_once(", then `plugd ")) {
        error.hint = Some(format!("{what}, then call again"));
    }
}
