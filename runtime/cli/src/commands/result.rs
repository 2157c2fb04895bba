//! `plugd result`: reads a result that is kept, page by page.

use plugd_engine::Opening;
use plugd_protocol::control::ResultParams;

use crate::context::Context;
use crate::failure::Failure;
use crate::kept::{Pages, Reference, whole};
use crate::output::Format;
use crate::render;
use crate::runtime::Runtime;

/// Read a result that is kept
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A result too large to be shown at once is kept for a while, and what is shown names its reference, \
which is its call's id. Works with and without a daemon. Exits 4 if nothing is kept under it.

Examples:
  plugd result 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10 --offset 100
  plugd result 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10 --pointer /orders --limit 10
  plugd result 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10/orders/3     the same in short
  plugd result 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10 --all > result.json")]
pub(crate) struct Args {
    /// The reference, or a part of it: ID/pointer
    #[arg(value_name = "REF")]
    reference: String,
    /// A JSON Pointer to the part that is wanted
    #[arg(long, value_name = "POINTER")]
    pointer: Option<String>,
    /// The first item of a list, or character of anything else
    #[arg(long, value_name = "N", conflicts_with = "all")]
    offset: Option<u64>,
    /// At most so many of them
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<u64>,
    /// All of it
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let mut reference = Reference::read(&args.reference);
    if let Some(pointer) = args.pointer {
        if reference.pointer.is_some() {
            return Err(Failure::usage("the part is named twice: as REF/pointer and by --pointer"));
        }
        reference.pointer = Some(pointer);
    }
    let runtime = context.runtime(Opening::OnDemand).await?;
    let shown = match (args.all, context.output.format) {
        (true, Format::Text | Format::Data) => all(&runtime, &reference, context).await,
        (true, Format::Json) => match whole(&runtime, &reference, context.global.caller.as_deref()).await {
            Ok(report) => context.output.document(&report),
            Err(failure) => Err(failure),
        },
        (false, _) => {
            let params = ResultParams {
                reference: reference.call_id,
                pointer: reference.pointer,
                offset: args.offset,
                limit: args.limit,
                whole: false,
                caller: context.global.caller.clone(),
            };
            page(&runtime, &params, context).await
        }
    };
    runtime.finish().await;
    shown.map(|()| 0)
}

async fn page(runtime: &Runtime, params: &ResultParams, context: &Context) -> Result<(), Failure> {
    let report = runtime.result(params).await?;
    match context.output.format {
        Format::Json => context.output.document(&report),
        Format::Data => context.output.raw(&report.data),
        Format::Text => context.output.text(&render::result_page(&report, params.pointer.as_deref())),
    }
}

/// Writes all of it as it comes, never holding more than one answer.
async fn all(runtime: &Runtime, reference: &Reference, context: &Context) -> Result<(), Failure> {
    let mut pages = Pages::of(runtime, reference, context.global.caller.as_deref());
    while let Some(piece) = pages.next().await? {
        context.output.piece(&piece.text)?;
        if context.output.is_closed() {
            return Ok(());
        }
    }
    context.output.piece("\n")
}
