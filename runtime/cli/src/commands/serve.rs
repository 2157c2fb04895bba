//! `plugd serve`: the daemon.

use plugd_daemon::{ControlSocket, Ready, Signals};
use plugd_engine::{Engine, Opening};

use crate::context::Context;
use crate::detach;
use crate::failure::Failure;
use crate::output::Format;
use crate::runtime::prepare_for_plugins;

/// Keep plugins running and answer on the control socket
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Stays in the foreground until SIGTERM, Ctrl-C or `plugd shutdown`, which are graceful; a second \
one skips the graces. SIGHUP applies the config file.

Examples:
  plugd serve
  plugd serve --detach                 returns when the daemon answers, also if it was there before
  plugd serve --log debug
  curl --unix-socket SOCKET http://localhost/ -H 'content-type: application/json' \\
       -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}'")]
pub(crate) struct Args {
    /// Return when the daemon answers, and leave it running in the background
    #[arg(long)]
    detach: bool,
    /// The background side of --detach
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
}

/// What a daemon logs where nobody says: little to a person, the course of things to a file.
const LOG_IN_FOREGROUND: &str = "warn";
const LOG_IN_BACKGROUND: &str = "info";

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    if args.detach {
        let ready = detach::launch(context).await?;
        announce(&ready, context)?;
        return Ok(0);
    }
    if args.detached {
        detach::leave_session();
    }
    context.start_log(Some(if args.detached { LOG_IN_BACKGROUND } else { LOG_IN_FOREGROUND }));
    prepare_for_plugins();
    serve(args.detached, context).await
}

async fn serve(detached: bool, context: &Context) -> Result<u8, Failure> {
    let settings = context.settings()?;
    settings.make_state_dir()?;
    let path = context.global.socket.clone().unwrap_or_else(|| settings.socket());
    let limits = settings.limits();
    // The socket comes first: a second daemon must not touch a plugin before it is refused.
    let state_dir = &settings.config.state_dir;
    let of_state_dir = |error| Failure::bind(error, true);
    let bound =
        ControlSocket::bind(&path).map_err(|error| Failure::bind(error, path.starts_with(state_dir)))?;
    let socket = bound.with_state(state_dir).map_err(of_state_dir)?;
    let mut signals = Signals::catch()
        .map_err(|error| Failure::environment(format!("cannot catch signals: {error}"), "try again"))?;
    let engine = tokio::select! {
        engine = Engine::open(settings.config, Opening::Everything) => engine?,
        () = signals.stop() => return Ok(0),
    };
    let mut announced = Ok(());
    plugd_daemon::serve(engine, socket, limits, signals, |ready| {
        announced = announce(ready, context);
        if detached {
            detach::let_go_of_stdout();
        }
    })
    .await?;
    announced.map(|()| 0)
}

/// Says that the daemon answers: a line on stderr, or the document on stdout.
fn announce(ready: &Ready, context: &Context) -> Result<(), Failure> {
    match context.output.format {
        Format::Json | Format::Data => context.output.document(ready),
        Format::Text => {
            let plugins = if ready.plugins == 1 { "plugin" } else { "plugins" };
            let (count, socket) = (ready.plugins, &ready.socket);
            context.output.note(&match ready.already_running {
                true => {
                    format!("already running, pid {}: it serves {count} {plugins} on {socket}", ready.pid)
                }
                false => format!("serving {count} {plugins} on {socket}"),
            });
            Ok(())
        }
    }
}
