//! `plugd describe`: one plugin or operation in full.

use plugd_engine::Opening;
use plugd_protocol::control::DescribeParams;

use super::{call, lint};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// One plugin or operation in full
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd describe archive                  the plugin and all its operations
  plugd describe archive.search           one operation and its arguments
  plugd describe archive.search --output json
  plugd describe ./greet.py               without any configuration")]
pub(crate) struct Args {
    /// A plugin's name, or an operation's; or the path of an executable or of a folder with a plugin.toml
    name: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let (runtime, name) = match call::is_path(&args.name) {
        true => lint::open_path(&args.name, context)
            .await
            .map(|(runtime, plugin)| (runtime, plugin.to_string()))?,
        false => (context.runtime(Opening::Everything).await?, args.name),
    };
    let params = DescribeParams { caller: context.global.caller.clone(), ..DescribeParams::new(name) };
    let shown = match runtime.describe(&params).await {
        Ok(report) => context.output.report(&report, |paint| render::description(&report, paint)),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}
