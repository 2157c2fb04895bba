//! `plugd logs`: what plugins wrote and what was said about them.

use std::path::Path;

use plugd_engine::Opening;
use plugd_engine::config::Environment;
use plugd_protocol::CallId;
use plugd_protocol::control::LogsParams;
use plugd_protocol::plugin::LogLevel;

use super::{add, call, lint, plugin_name};
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
  plugd logs --level warn
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
    /// Only entries as serious as this, or more
    #[arg(long, value_name = "LEVEL", value_parser = ["trace", "debug", "info", "warn", "error"])]
    level: Option<String>,
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
        (None, Some(name)) if !call::is_path(name) => {
            (None, Some(plugin_name(name).map_err(Failure::unfit)?))
        }
        (None, Some(_) | None) => (None, None),
    };
    let level = args.level.map(LogLevel::from);
    let params = LogsParams { plugin, call_id: args.call.map(CallId::new), level, tail: args.tail };
    if args.follow {
        return match args.plugin.as_deref().filter(|word| call::is_path(word)) {
            Some(path) => Err(not_followed(path)?),
            None => follow(params, context).await,
        };
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

/// The error for a path to be followed: what is called by it runs in no daemon that could tell.
fn not_followed(path: &str) -> Result<Failure, Failure> {
    let plugin = add::of_path(Path::new(path), &[])?;
    let name = plugin.name.clone();
    let config = lint::alone(&[plugin], &Environment::of_process())?;
    let file = config.state_dir.join(format!("logs/{name}.log"));
    let typed = |words: [&str; 3]| plugd_engine::command_line(&words.map(str::to_owned));
    let message = format!("{path} is called without a daemon, and only a daemon's log can be followed");
    let (shown, followed) = (typed(["plugd", "logs", path]), typed(["tail", "-F", &file.to_string_lossy()]));
    Ok(Failure::unfit(message)
        .hint(&format!("`{shown}` shows what calls by it wrote; `{followed}` goes on with that")))
}

async fn follow(mut params: LogsParams, context: &Context) -> Result<u8, Failure> {
    params.tail = params.tail.or(Some(FOLLOW_TAIL));
    let client = context.daemon().await?;
    let entries = client.follow_logs(&params).await?;
    super::follow(entries, context.socket_file(), context, render::log_entry).await
}
