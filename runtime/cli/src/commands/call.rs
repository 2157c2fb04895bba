//! `plugd call`: runs an operation, in the daemon or here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plugd_daemon::client::CONNECT_TIMEOUT;
use plugd_engine::Opening;
use plugd_protocol::control::{CallParams, DescribeParams};
use plugd_protocol::error::ErrorClass;
use plugd_protocol::result::Meta;
use plugd_protocol::{CallError, CallResult, ErrorKind, OperationId, Outcome, Status};
use serde_json::value::RawValue;

use crate::arguments::Arguments;
use crate::ask::{self, Prompter};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::render;
use crate::runtime::{Runtime, interrupted};
use crate::settings;

/// Run an operation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Arguments:
  key=value     a string; a number, boolean, array or object where the operation's schema says so
  key:=json     JSON as it is: count:=3, tags:='[\"a\",\"b\"]'
  key=@file     a file's text                key:=@file   a file's JSON
  @file, @-     a JSON object with all arguments, from a file or stdin
  --json        the same as text, from @file, or from stdin with -

Examples:
  plugd call greet.hello name=Ada
  plugd call archive.search words=tax limit:=3 --timeout 5s
  echo '{\"words\":\"tax\"}' | plugd call archive.search --json -
  plugd call ./plugin.py greet name=Ada      no configuration, no daemon
  plugd call logs.search pattern=@query.txt --output json")]
pub(crate) struct Args {
    /// plugin.operation, a bare operation name, or the path of an executable
    #[arg(value_name = "OPERATION")]
    pub(crate) target: String,
    /// Arguments; after the path of an executable, its operation first
    #[arg(value_name = "ARGUMENT")]
    pub(crate) words: Vec<String>,
    /// All arguments as one JSON object: text, @file, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub(crate) json: Option<String>,
    /// How long it may take altogether, such as 500ms or 5s; at most 1h
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// The session the call belongs to
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Do not put questions of the plugin to this terminal
    #[arg(long)]
    pub(crate) no_ask: bool,
}

/// Starting took so long that a daemon would be felt.
const SLOW_START: Duration = Duration::from_secs(1);

/// A daemon has so much more than the call's own time to take the connection.
const CONNECTING: Duration = Duration::from_secs(2);

/// The exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// What is to be called: an operation of the configured plugins, or of one executable.
struct Target<'a> {
    program: Option<PathBuf>,
    operation: &'a str,
    words: &'a [String],
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let (result, code, runtime) = match begin(&args, context).await {
        Ok((params, runtime)) => {
            let asks = !args.no_ask && ask::somebody_is_there();
            let (result, code) = call(params, &runtime, asks).await;
            (result, code, Some(runtime))
        }
        Err(failure) => {
            let code = failure.exit;
            (ended(Status::Error, failure.error, None), code, None)
        }
    };
    let shown = show(&result, context);
    if let Some(runtime) = runtime {
        advise(&result, &runtime, context);
        match result.error.as_ref().map(CallError::class) {
            Some(ErrorClass::Time) => runtime.finish_soon().await,
            _ => runtime.finish().await,
        }
    }
    shown.map(|()| code)
}

/// Everything up to the call itself.
async fn begin(args: &Args, context: &Context) -> Result<(CallParams, Runtime), Failure> {
    let target = target(args)?;
    let arguments = Arguments::read(target.words, args.json.as_deref())?;
    let runtime = match &target.program {
        Some(program) => {
            context.start_log(None);
            Runtime::embedded(settings::single(program)?, Opening::OnDemand).await?
        }
        None => {
            let time = args
                .timeout
                .map_or(CONNECT_TIMEOUT, |timeout| CONNECT_TIMEOUT.min(timeout.saturating_add(CONNECTING)));
            context.runtime_within(time, Opening::OnDemand).await?
        }
    };
    let operation = target.operation.to_owned();
    let asked = Instant::now();
    let schema = match arguments.need_schema() {
        true => input_schema(&operation, &runtime, args.timeout).await,
        false => None,
    };
    // Where the schema took all the time there was, nothing is left for the call.
    let left = |timeout: Duration| {
        if timeout.is_zero() || asked.elapsed() < timeout { timeout } else { Duration::from_millis(1) }
    };
    let timeout = args.timeout.map(left);
    let params = CallParams {
        arguments: Some(arguments.into_json(schema.as_deref())?),
        timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        session: args.session.clone(),
        traceparent: std::env::var("TRACEPARENT").ok(),
        // Known once it is known who can be asked: `can_ask`.
        ..CallParams::new(operation)
    };
    Ok((params, runtime))
}

/// A target with a slash is an executable, and its operation the first word after it.
fn target(args: &Args) -> Result<Target<'_>, Failure> {
    if !args.target.contains('/') {
        return Ok(Target { program: None, operation: &args.target, words: &args.words });
    }
    match args.words.split_first() {
        Some((operation, words)) if !operation.contains('=') && !operation.starts_with('@') => {
            Ok(Target { program: Some(Path::new(&args.target).to_owned()), operation, words })
        }
        _ => Err(Failure::usage(format!(
            "which operation of {0}? expected: plugd call {0} OPERATION key=value",
            args.target
        ))),
    }
}

/// The operation's schema; without one the call itself will say what is wrong.
async fn input_schema(
    operation: &str,
    runtime: &Runtime,
    timeout: Option<Duration>,
) -> Option<Box<RawValue>> {
    let params = DescribeParams { name: operation.to_owned() };
    let described = runtime.describe(&params);
    let description = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, described).await.ok()?,
        None => described.await,
    };
    let description = description.ok()?;
    match <[_; 1]>::try_from(description.operations) {
        Ok([operation]) => Some(operation.input_schema),
        Err(_) => None,
    }
}

/// Runs the call, and puts what it asks to the terminal if it `asks`; SIGINT and SIGTERM cancel it.
async fn call(mut params: CallParams, runtime: &Runtime, asks: bool) -> (CallResult, u8) {
    let ready = if asks { Prompter::begin(runtime).await } else { None };
    params.can_ask = ready.is_some();
    let (prompter, asker) = ready.map_or((None, None), |(prompter, asker)| (Some(prompter), asker));
    let prompting = async {
        match prompter {
            Some(prompter) => prompter.run().await,
            None => std::future::pending().await,
        }
    };
    let operation = OperationId::parse(&params.operation).ok();
    let result = {
        let call = runtime.call(params, asker);
        let interruption = async {
            if !interrupted().await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // What became of a question is said before the result.
            biased;
            never = prompting => match never {},
            result = call => Some(result),
            () = interruption => None,
        }
    };
    match result {
        Some(Ok(result)) => {
            let code = result.exit_code();
            (result, code)
        }
        Some(Err(failure)) => {
            let code = failure.exit;
            (ended(Status::Error, failure.error, operation), code)
        }
        None => {
            let error = CallError::new(ErrorKind::Cancelled, "the call was interrupted and is cancelled");
            (ended(Status::Cancelled, error.outcome(Outcome::Unknown), operation), INTERRUPTED)
        }
    }
}

/// The result of a call that has none of its own: whether it got an id is not known here.
fn ended(status: Status, error: CallError, operation: Option<OperationId>) -> CallResult {
    CallResult {
        status,
        data: None,
        summary: None,
        error: Some(error),
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta {
            call_id: None,
            operation,
            plugin_version: None,
            generation: None,
            attempt: 0,
            queue_us: 0,
            run_us: 0,
            argument_bytes: 0,
            data_bytes: 0,
            ..Meta::default()
        },
    }
}

/// The result as asked for; errors go to stderr except in the JSON document.
fn show(result: &CallResult, context: &Context) -> Result<(), Failure> {
    let output = &context.output;
    match output.format {
        Format::Json => return output.document(result),
        Format::Data => {
            if let Some(data) = &result.data {
                output.raw(data)?;
            }
        }
        Format::Text => output.text(&render::result(result, output.paint()))?,
    }
    if let Some(error) = &result.error {
        output.error(error);
    }
    Ok(())
}

/// Points at `serve` where starting the plugin was most of the wait.
fn advise(result: &CallResult, runtime: &Runtime, context: &Context) {
    let Runtime::Embedded { opened_in, .. } = runtime else { return };
    let starting = *opened_in + Duration::from_micros(result.meta.queue_us);
    if starting > SLOW_START && result.meta.generation.is_some() {
        let seconds = starting.as_secs_f64();
        context.output.note(&format!(
            "starting took {seconds:.1} s: with `plugd serve` running, plugins stay up and calls begin at once"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(target: &str, words: &[&str]) -> Args {
        let words = words.iter().map(ToString::to_string).collect();
        Args { target: target.to_owned(), words, json: None, timeout: None, session: None, no_ask: false }
    }

    #[test]
    fn a_target_with_a_slash_is_an_executable_followed_by_its_operation() {
        let given = args("./plugin.py", &["greet", "name=Ada"]);
        let target = target(&given).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!((target.program, target.operation), (Some("./plugin.py".into()), "greet"));
        assert_eq!(target.words, ["name=Ada"]);
    }

    #[test]
    fn an_executable_without_an_operation_is_a_usage_error() {
        for words in [&["name=Ada"][..], &[], &["@file"]] {
            let failure = target(&args("./plugin.py", words)).map(|_| ()).expect_err("no operation");
            assert_eq!(failure.exit, 2, "{words:?}");
        }
    }
}
