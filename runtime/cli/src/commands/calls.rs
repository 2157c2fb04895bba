//! `plugd calls`: what was called, by whom, and how it went.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plugd_engine::Opening;
use plugd_protocol::control::{CallsParams, CallsShowParams, CallsStatsParams, UnixMillis};
use plugd_protocol::{CallId, PluginName, Status};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::Runtime;

/// What was called, by whom, and how it went
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Times are such as 1h or 2days ago, a day as 2024-12-15, or a moment as 2024-12-15T08:00:00Z, in UTC. \
Works with and without a daemon.

Examples:
  plugd calls
  plugd calls --since 1h --status error
  plugd calls --operation mail.send --caller ci --limit 10
  plugd calls show 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10
  plugd calls --stats --since 7days")]
pub(crate) struct Args {
    /// Only this plugin's
    #[arg(long, value_parser = plugin_name)]
    plugin: Option<PluginName>,
    /// Only this operation's
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,
    /// Only those that ended so: ok, error, needs_input, needs_confirmation, pending or cancelled
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// Only this caller's: a profile, or plugin:NAME
    #[arg(long, value_name = "CALLER")]
    caller: Option<String>,
    /// Only this session's
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only those that arrived then or later
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<UnixMillis>,
    /// Only those that arrived before
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<UnixMillis>,
    /// At most this many, the latest [default: 50]
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// How each operation does: how often, how many of a hundred well, how fast, and which arguments are wrong
    #[arg(long, conflicts_with_all = ["operation", "status", "caller", "session", "until", "limit"])]
    stats: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Everything that is kept of one call: its time line with what the plugin logged, arguments, error
    #[command(after_help = "\
Exits 4 if no such call is kept.

Examples:
  plugd calls show 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10
  plugd calls show 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10 --output json | jq .stages")]
    Show {
        /// The call
        id: String,
    },
}

fn status(text: &str) -> Result<Status, String> {
    Status::deserialize(StrDeserializer::<Error>::new(text)).map_err(|error| error.to_string())
}

/// A moment: so long ago, a day, or a time of a day.
fn moment(text: &str) -> Result<UnixMillis, String> {
    let now = SystemTime::now();
    let at = match humantime::parse_duration(text) {
        Ok(ago) => now.checked_sub(ago),
        Err(_) => {
            let day = || humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z"));
            humantime::parse_rfc3339_weak(text).or_else(|_| day()).ok()
        }
    };
    let since = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let millis = since.and_then(|since: Duration| u64::try_from(since.as_millis()).ok());
    millis.map(UnixMillis).ok_or_else(|| "expected such as 1h, 2024-12-15 or 2024-12-15T08:00:00Z".to_owned())
}

impl Args {
    /// Whether anything is said that does not go with one call.
    fn choose(&self) -> bool {
        let Args { plugin, operation, status, caller, session, since, until, limit, stats, action: _ } = self;
        *stats
            || plugin.is_some()
            || [operation, caller, session].iter().any(|text| text.is_some())
            || status.is_some()
            || since.is_some()
            || until.is_some()
            || limit.is_some()
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    if args.action.is_some() && args.choose() {
        return Err(Failure::usage(
            "`plugd calls show` shows the one call that is named, and takes no filter",
        ));
    }
    let runtime = context.runtime(Opening::OnDemand).await?;
    let shown = show(args, &runtime, context).await;
    runtime.finish().await;
    shown.map(|()| 0)
}

async fn show(args: Args, runtime: &Runtime, context: &Context) -> Result<(), Failure> {
    let as_caller = context.global.caller.clone();
    if let Some(Action::Show { id }) = args.action {
        let detail =
            runtime.call_detail(&CallsShowParams { call_id: CallId::new(id), caller: as_caller }).await?;
        return context.output.report(&detail, |paint| render::call_detail(&detail, paint));
    }
    if args.stats {
        let params = CallsStatsParams { plugin: args.plugin, since: args.since, caller: as_caller };
        let report = runtime.calls_stats(&params).await?;
        return context.output.report(&report, |paint| render::calls_stats(&report, paint));
    }
    let params = CallsParams {
        plugin: args.plugin,
        operation: args.operation,
        status: args.status,
        caller: args.caller,
        session: args.session,
        since: args.since,
        until: args.until,
        limit: args.limit,
        as_caller,
    };
    let report = runtime.calls(&params).await?;
    context.output.report(&report, |paint| render::calls(&report, paint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_age_a_day_or_a_time() {
        assert_eq!(moment("2024-12-15T00:00:00Z"), Ok(UnixMillis(1_734_220_800_000)));
        assert_eq!(moment("2024-12-15"), Ok(UnixMillis(1_734_220_800_000)));
        assert_eq!(moment("2024-12-15 00:00:01"), Ok(UnixMillis(1_734_220_801_000)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let ago = now - u128::from(moment("1h").unwrap().0);
        assert!((3_590_000..3_610_000).contains(&ago), "{ago}");
        for wrong in ["soon", "", "99999years", "2024-13-01"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_status_is_one_of_those_that_results_have() {
        assert_eq!(status("needs_input"), Ok(Status::NeedsInput));
        assert!(status("odd").unwrap_err().contains("needs_input"));
    }
}
