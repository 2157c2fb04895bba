//! `plugd logs`: what plugins wrote and what was said about them.

use plugd_engine::Opening;
use plugd_protocol::CallId;
use plugd_protocol::control::LogsParams;

use super::{call, lint, plugin_name};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// What plugins wrote and what was said about them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a daemon the log files are read. With -f and --output json: one JSON document a line.

Examples:
  plugd logs mailbox
  plugd logs -f --tail 20
  plugd logs --call 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10")]
pub(crate) struct Args {
    /// Only this plugin; or the path of an executable or folder, for what calls by it wrote
    #[arg(value_name = "PLUGIN")]
    plugin: Option<String>,
    /// Go on with new entries as they come
    #[arg(long, short)]
    follow: bool,
    /// At most this many, the latest [default: 200; with -f 10]
    #[arg(long, short = 'n', value_name = "COUNT")]
    tail: Option<u32>,
    /// Only this call
    #[arg(long, value_name = "ID")]
    call: Option<String>,
}

/// How many past entries come before the new ones.
const FOLLOW_TAIL: u32 = 10;

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let path = args.plugin.as_deref().filter(|word| call::is_path(word) && !args.follow);
    let (opened, plugin) = match (path, &args.plugin) {
        (Some(path), _) => {
            let (runtime, plugin) = lint::open_path(path, context).await?;
            (Some(runtime), Some(plugin))
        }
        (None, Some(name)) => (None, Some(plugin_name(name).map_err(Failure::unfit)?)),
        (None, None) => (None, None),
    };
    let params = LogsParams { plugin, call_id: args.call.map(CallId::new), tail: args.tail };
    if args.follow {
        return follow(params, context).await;
    }
    let runtime = match opened {
        Some(runtime) => runtime,
        None => context.runtime(Opening::OnDemand).await?,
    };
    let shown = match runtime.logs(&params).await {
        Ok(entries) => context
            .output
            .report(&entries, |paint| entries.iter().map(|entry| render::log_entry(entry, paint)).collect()),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}

async fn follow(mut params: LogsParams, context: &Context) -> Result<u8, Failure> {
    params.tail = params.tail.or(Some(FOLLOW_TAIL));
    let client = context.daemon().await?;
    let entries = client.follow_logs(&params).await?;
    super::follow(entries, context.socket_file(), context, render::log_entry).await
}
