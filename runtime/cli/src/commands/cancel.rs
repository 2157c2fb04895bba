//! `plugd cancel`: stops a call.

use plugd_protocol::control::CancelParams;
use plugd_protocol::{CallError, CallId, ErrorKind};

use crate::context::Context;
use crate::failure::Failure;

/// Stop a call
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`plugd status` shows the ids of the calls in flight. Exits 4 if there is no such call.

Examples:
  plugd cancel 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10")]
pub(crate) struct Args {
    /// The call's id
    call_id: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    stop(CallId::new(args.call_id), context).await
}

/// Stops a call, in the background or not.
pub(super) async fn stop(call_id: CallId, context: &Context) -> Result<u8, Failure> {
    let caller = context.global.caller.clone();
    let report = context.daemon().await?.cancel(&CancelParams { call_id, caller }).await?;
    if !report.cancelled {
        let message = format!("no call {} is running; it may have ended", report.call_id);
        return Err(CallError::new(ErrorKind::UnknownCall, message).into());
    }
    context
        .output
        .report(&report, |_| format!("cancelled {}\n", crate::render::visible(report.call_id.as_str())))?;
    Ok(0)
}
