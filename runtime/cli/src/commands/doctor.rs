//! `plugd doctor`: what is wrong, why, and what to do about it.

use std::path::Path;

use plugd_daemon::ControlSocket;
use plugd_daemon::client::{Client, ConnectError};
use plugd_engine::Opening;
use plugd_engine::config::{Config, ConfigError};
use plugd_engine::doctor::config_findings;
use plugd_protocol::control::{DoctorReport, Finding, Severity, StatusParams};
use plugd_protocol::{CallError, PluginName};

use super::{PLUGIN_UNAVAILABLE, plugin_name};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::Runtime;
use crate::settings::Settings;

/// The exit code where something about plugd itself is wrong.
const PLUGD_UNWELL: u8 = 9;

/// What is wrong, why, and what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks at the configuration, the folders, the daemon and every plugin, and starts none. Works with and \
without a daemon. Exits 0 if nothing is wrong, 6 if a plugin does not work, 9 if plugd itself does not; \
what only should be known is a warning, and changes nothing about that.

Examples:
  plugd doctor
  plugd doctor mailbox                 one plugin
  plugd doctor --output json")]
pub(crate) struct Args {
    /// Only this plugin
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    context.start_log(None);
    let params = StatusParams { plugin: args.plugin };
    let mut report = match Settings::load(context.global.config.as_deref()) {
        Ok(settings) => examine(settings, &params, context).await?,
        Err(error) => despite(&error, &params, context).await?,
    };
    report.findings.sort_by(|one, other| (one.severity, &one.plugin).cmp(&(other.severity, &other.plugin)));
    context.output.report(&report, |paint| render::findings(&report, paint))?;
    Ok(exit_code(&report))
}

/// Asks the daemon, or looks from here where none runs.
async fn examine(
    settings: Settings,
    params: &StatusParams,
    context: &Context,
) -> Result<DoctorReport, Failure> {
    let socket = context.global.socket.clone().unwrap_or_else(|| settings.socket());
    match Client::connect_with(&socket, settings.limits()).await {
        Ok(client) => of_daemon(&client, params).await,
        Err(error @ ConnectError::NotRunning { .. }) => {
            let state_dir = settings.config.state_dir.clone();
            let mut report = without_daemon(settings.config, params).await?;
            if params.plugin.is_none() {
                report.findings.push(match refusal(&socket, &state_dir, &report) {
                    Some(refusal) => refusal,
                    None => Finding {
                        hint: Some(
                            "`plugd serve --detach` starts one; until then each call starts what it needs"
                                .to_owned(),
                        ),
                        ..about(Severity::Ok, error.to_string())
                    },
                });
            }
            Ok(report)
        }
        Err(
            error @ (ConnectError::Io { .. } | ConnectError::Refused { .. } | ConnectError::Silent { .. }),
        ) => {
            let state_dir = settings.config.state_dir.clone();
            let mut report = without_daemon(settings.config, params).await?;
            let is_no_socket = matches!(error, ConnectError::Io { .. });
            let refused = is_no_socket.then(|| refusal(&socket, &state_dir, &report)).flatten();
            let Failure { error, .. } = error.into();
            let unreachable = Finding { hint: error.hint, ..about(Severity::Problem, error.message) };
            report.findings.push(refused.unwrap_or(unreachable));
            Ok(report)
        }
    }
}

/// What a daemon that was started here would end with at once, unless that is in the report already.
fn refusal(socket: &Path, state_dir: &Path, report: &DoctorReport) -> Option<Finding> {
    let refused = match ControlSocket::examine(socket) {
        Err(error) => Failure::bind(error, socket.starts_with(state_dir)),
        // What keeps an engine from being opened here is mostly its state folder.
        Ok(()) if exit_code(report) == PLUGD_UNWELL => return None,
        Ok(()) => Failure::bind(ControlSocket::examine_state(state_dir).err()?, true),
    };
    let CallError { message, hint, .. } = refused.error;
    Some(Finding { hint, ..about(Severity::Problem, format!("`plugd serve` would be refused: {message}")) })
}

/// What the daemon says, and whether it is of this version.
async fn of_daemon(client: &Client, params: &StatusParams) -> Result<DoctorReport, Failure> {
    let mut report = client.doctor(params).await?;
    if params.plugin.is_none() {
        let daemon = client.status(params).await?.daemon;
        let own = env!("CARGO_PKG_VERSION");
        let socket = daemon.socket.unwrap_or_default();
        let runs = format!("a daemon runs, plugd {}, pid {}, on {socket}", daemon.version, daemon.pid);
        report.findings.push(match daemon.version == own {
            true => about(Severity::Ok, runs),
            false => Finding {
                hint: Some("start it again: `plugd shutdown`, then `plugd serve --detach`".to_owned()),
                ..about(Severity::Warning, format!("{runs}; this program is {own}"))
            },
        });
    }
    Ok(report)
}

/// Looks from this process; nothing is started.
async fn without_daemon(config: Config, params: &StatusParams) -> Result<DoctorReport, Failure> {
    let runtime = match Runtime::embedded(config, Opening::OnDemand).await {
        Ok(runtime) => runtime,
        Err(failure) => {
            let error = failure.error;
            let finding = Finding { hint: error.hint, ..about(Severity::Problem, error.message) };
            return Ok(DoctorReport { findings: vec![finding] });
        }
    };
    let report = runtime.doctor(params).await;
    match params.plugin {
        // Whatever is to be known is in the report.
        None => runtime.end().await,
        Some(_) => runtime.finish().await,
    }
    report
}

/// The configuration cannot be used; a daemon may go on with what it said before.
async fn despite(
    error: &ConfigError,
    params: &StatusParams,
    context: &Context,
) -> Result<DoctorReport, Failure> {
    let file = Config::find(context.global.config.as_deref()).file;
    let socket = context.global.socket.clone().or_else(|| file.and_then(|file| Config::socket_of(&file)));
    let client = match &socket {
        Some(socket) => Client::connect(socket).await.ok(),
        None => None,
    };
    let Some(client) = client else {
        return Ok(DoctorReport { findings: config_findings(error) });
    };
    let mut report = of_daemon(&client, params).await?;
    for finding in config_findings(error) {
        // The daemon has looked at the file too.
        if !report.findings.contains(&finding) {
            report.findings.push(finding);
        }
    }
    report.findings.push(about(
        Severity::Warning,
        "the daemon goes on with what the config file said before it was made wrong",
    ));
    Ok(report)
}

fn about(severity: Severity, message: impl Into<String>) -> Finding {
    Finding { severity, plugin: None, message: message.into(), hint: None, details: Vec::new() }
}

fn exit_code(report: &DoctorReport) -> u8 {
    let problem = |own: bool| {
        let mut findings = report.findings.iter();
        findings.any(|finding| finding.severity == Severity::Problem && finding.plugin.is_none() == own)
    };
    if problem(true) {
        PLUGD_UNWELL
    } else if problem(false) {
        PLUGIN_UNAVAILABLE
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_whose_problem_it_is() {
        let of_plugin = |severity| Finding {
            plugin: Some(PluginName::new("fp").unwrap()),
            ..about(severity, "something")
        };
        for (findings, code) in [
            (vec![], 0),
            (vec![about(Severity::Ok, "fine"), of_plugin(Severity::Warning)], 0),
            (vec![of_plugin(Severity::Problem)], 6),
            (vec![of_plugin(Severity::Problem), about(Severity::Problem, "broken")], 9),
        ] {
            assert_eq!(exit_code(&DoctorReport { findings }), code);
        }
    }
}
