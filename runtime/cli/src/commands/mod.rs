//! The commands, one file each.

pub(crate) mod add;
pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod describe;
pub(crate) mod dev;
pub(crate) mod disable;
pub(crate) mod doctor;
pub(crate) mod enable;
pub(crate) mod events;
pub(crate) mod graph;
pub(crate) mod jobs;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod new;
pub(crate) mod reload;
pub(crate) mod remove;
pub(crate) mod restart;
pub(crate) mod result;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tools;

use plugd_daemon::client::Following;
use plugd_protocol::control::{PluginState, StartReport};
use plugd_protocol::{CallError, ErrorKind, PluginName};

use crate::args::Command;
use crate::attend::{INTERRUPTED, unless_interrupted};
use crate::context::{Context, SocketFile};
use crate::failure::Failure;
use crate::output::Format;
use crate::render::Paint;
use crate::runtime::Interruptions;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Shows each item as it comes, until the daemon or the reader of our output is gone.
///
/// `socket` is the daemon's, as it was before.
async fn follow<T: DeserializeOwned + Serialize>(
    mut items: Following<T>,
    socket: Option<SocketFile>,
    context: &Context,
    render: impl Fn(&T, Paint) -> String,
) -> Result<u8, Failure> {
    let mut signals = Interruptions::watch();
    loop {
        let Some(item) = unless_interrupted(&mut signals, items.next()).await else {
            return Ok(INTERRUPTED);
        };
        let Some(item) = item else { break };
        let item = item?;
        match context.output.format {
            Format::Text => context.output.text(&render(&item, context.output.paint()))?,
            Format::Json | Format::Data => context.output.document(&item)?,
        }
        if context.output.is_closed() {
            return Ok(0);
        }
    }
    // A daemon that ends in order takes its socket away before it closes connections.
    if socket.is_some_and(|socket| socket.is_still_there()) {
        let message = "the connection to the daemon was lost; it was not shut down";
        return Err(CallError::new(ErrorKind::DaemonUnreachable, message)
            .hint("`plugd status` tells whether it still runs")
            .into());
    }
    context.output.note("the daemon has ended");
    Ok(0)
}

/// The exit code where a plugin is not there for callers.
const PLUGIN_UNAVAILABLE: u8 = 6;

/// Runs a command; the answer is its exit code.
pub(crate) async fn run(command: Command, context: &Context) -> Result<u8, Failure> {
    match command {
        Command::Serve(args) => serve::run(args, context).await,
        Command::Shutdown(args) => shutdown::run(args, context).await,
        Command::Status(args) => status::run(args, context).await,
        Command::List(args) => list::run(args, context).await,
        Command::Doctor(args) => doctor::run(args, context).await,
        Command::Describe(args) => describe::run(args, context).await,
        Command::Tools(args) => tools::run(args, context).await,
        Command::New(args) => new::run(args, context),
        Command::Dev(args) => dev::run(args, context).await,
        Command::Check(args) => check::run(args, context).await,
        Command::Lint(args) => lint::run(args, context).await,
        Command::Call(args) => call::run(args, context).await,
        Command::Calls(args) => calls::run(args, context).await,
        Command::Result(args) => result::run(args, context).await,
        Command::Jobs(args) => jobs::run(args, context).await,
        Command::Cancel(args) => cancel::run(args, context).await,
        Command::Answer(args) => answer::run(args, context).await,
        Command::Start(args) => start::run(args, context).await,
        Command::Stop(args) => stop::run(args, context).await,
        Command::Restart(args) => restart::run(args, context).await,
        Command::Reload(args) => reload::run(args, context).await,
        Command::Add(args) => add::run(args, context).await,
        Command::Remove(args) => remove::run(args, context).await,
        Command::Enable(args) => enable::run(args, context).await,
        Command::Disable(args) => disable::run(args, context).await,
        Command::Logs(args) => logs::run(args, context).await,
        Command::Events(args) => events::run(args, context).await,
        Command::Graph(args) => graph::run(args, context).await,
        Command::Config(args) => config::run(args, context),
        Command::Completions(args) => completions::run(args, context),
    }
}

/// A plugin's name on the command line.
fn plugin_name(text: &str) -> Result<PluginName, String> {
    PluginName::new(text).map_err(|error| error.to_string())
}

/// 0 if every plugin came up, 6 if one did not.
fn started_code(report: &StartReport) -> u8 {
    let up =
        report.plugins.iter().all(|plugin| matches!(plugin.state, PluginState::Ready | PluginState::Busy));
    if up { 0 } else { PLUGIN_UNAVAILABLE }
}
