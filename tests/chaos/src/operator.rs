//! An operator who reloads, restarts, stops and starts, and somebody who cancels calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plugd_daemon::client::{Client, ClientError};
use plugd_protocol::PluginName;
use plugd_protocol::control::{CancelParams, PluginsParams, ReloadParams, StatusParams};
use tokio::time::{sleep, timeout};

use crate::daemon::connect;
use crate::numbers::Numbers;
use crate::sandbox::Sandbox;
use crate::tempers::{self, TEMPERS};

/// A command of an operator is over within this: all graces of a stop, a start, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was done, by name, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Operated {
    pub(crate) commands: BTreeMap<&'static str, u64>,
    pub(crate) broken: Vec<String>,
}

impl Operated {
    fn did(&mut self, what: &'static str) {
        *self.commands.entry(what).or_default() += 1;
    }
}

/// Operates until then; everything is started again at the end.
pub(crate) async fn operate(sandbox: &Sandbox, mut numbers: Numbers, ends: Instant) -> Operated {
    let mut done = Operated::default();
    while Instant::now() < ends {
        sleep(numbers.millis(300, 900)).await;
        let Some(client) = connect(sandbox).await else { continue };
        let victim = tempers::any_victim(&mut numbers).name;
        let (what, ended) = match numbers.below(5) {
            0 | 1 => {
                if let Err(error) = sandbox.configure(1 + numbers.below(1_000_000), Some(victim)) {
                    done.broken.push(format!("the configuration cannot be written: {error}"));
                }
                ("reload", over(client.reload(&ReloadParams::default())).await)
            }
            2 => ("reload_one", over(client.reload(&ReloadParams { plugin: Some(name(victim)) })).await),
            3 => ("restart", over(client.restart(&only(victim))).await),
            _ => {
                let stopped = over(client.stop(&only(victim))).await;
                drop(client);
                sleep(numbers.millis(50, 300)).await;
                // A daemon that was killed meanwhile still knows that it is stopped.
                start_again(sandbox, victim, &mut done).await;
                ("stop_and_start", stopped)
            }
        };
        match ended {
            Ended::Well => done.did(what),
            Ended::Lost => done.did("cut_off"),
            Ended::Late => done.broken.push(format!("{what} {victim} was not over within {PATIENCE:?}")),
            // A plugin that cannot start, or is killed meanwhile, is not taken up: that is what it says.
            Ended::Refused(_) if matches!(what, "reload" | "reload_one") => done.did("not_taken_up"),
            Ended::Refused(why) => done.broken.push(format!("{what} {victim} was refused: {why}")),
        }
    }
    done
}

/// Cancels calls to plugins that may be hurt, until then.
pub(crate) async fn cancel(sandbox: &Sandbox, mut numbers: Numbers, ends: Instant) -> Operated {
    let mut done = Operated::default();
    let mut client: Option<Client> = None;
    while Instant::now() < ends {
        sleep(numbers.millis(100, 300)).await;
        let Some(connected) = client.take() else {
            client = connect(sandbox).await;
            continue;
        };
        let Ok(Ok(report)) = timeout(PATIENCE, connected.status(&StatusParams::default())).await else {
            continue;
        };
        let calm = |plugin: &str| TEMPERS.iter().any(|temper| temper.name == plugin && temper.calm);
        let calls: Vec<_> =
            report.daemon.calls.iter().filter(|call| !calm(call.operation.plugin.as_str())).collect();
        if !calls.is_empty() {
            let params = CancelParams { call_id: numbers.pick(&calls).call_id.clone(), caller: None };
            match timeout(PATIENCE, connected.cancel(&params)).await {
                Ok(Ok(report)) if report.cancelled => done.did("cancel"),
                // It was over already, or so is the daemon.
                Ok(Ok(_) | Err(_)) => {}
                Err(_late) => done.broken.push(format!("a cancel was not over within {PATIENCE:?}")),
            }
        }
        client = Some(connected);
    }
    done
}

enum Ended {
    Well,
    Lost,
    Late,
    Refused(String),
}

async fn over<T>(command: impl Future<Output = Result<T, ClientError>>) -> Ended {
    match timeout(PATIENCE, command).await {
        Err(_late) => Ended::Late,
        Ok(Ok(_)) => Ended::Well,
        Ok(Err(ClientError::Lost(_))) => Ended::Lost,
        Ok(Err(error @ (ClientError::Command(_) | ClientError::Malformed { .. }))) => {
            Ended::Refused(error.to_string())
        }
    }
}

async fn start_again(sandbox: &Sandbox, plugin: &str, done: &mut Operated) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(client) = connect(sandbox).await {
            match over(client.start(&only(plugin))).await {
                Ended::Well => return,
                Ended::Refused(why) => return done.broken.push(format!("start {plugin} was refused: {why}")),
                Ended::Lost | Ended::Late => {}
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    done.broken.push(format!("{plugin} was not started again within {PATIENCE:?}"));
}

pub(crate) fn only(plugin: &str) -> PluginsParams {
    PluginsParams { plugins: vec![name(plugin)] }
}

pub(crate) fn name(plugin: &str) -> PluginName {
    PluginName::new(plugin).expect("the tempers have legal names")
}
