//! `plugd graph`: who requires whom.

use plugd_engine::Opening;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Who requires whom
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd graph
  plugd graph --format mermaid
  plugd graph --format dot | dot -Tsvg > plugins.svg")]
pub(crate) struct Args {
    /// How to draw it
    #[arg(long, value_enum, default_value_t = render::graph::Style::Text)]
    format: render::graph::Style,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::Everything).await?;
    let shown = match runtime.graph().await {
        Ok(report) => {
            context.output.report(&report, |paint| render::graph::draw(&report, args.format, paint))
        }
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}
