//! `plugd call`: runs an operation, in the daemon or here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plugd_engine::Opening;
use plugd_engine::config::Environment;
use plugd_protocol::control::{CallParams, DescribeParams};
use plugd_protocol::error::ErrorClass;
use plugd_protocol::{CallError, CallResult, ErrorKind, OperationId};
use serde_json::value::RawValue;

use super::{add, lint};
use crate::again;
use crate::alone;
use crate::arguments::{Arguments, Dotted, how_lists_are_written};
use crate::attend::{self, Attended, attend_with};
use crate::context::{Context, for_record};
use crate::failure::Failure;
use crate::output::Format;
use crate::render;
use crate::runtime::{Interruptions, Runtime};
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
  @call:ID/pointer, in place of a file, is a part of an earlier call's result

What is missing, and what destroys something, is asked at a terminal. Elsewhere the call stops with \
exit code 8 and a token: `plugd answer` carries it on, --yes agrees beforehand.

Examples:
  plugd call greet.hello name=Ada
  plugd call archive.search words=tax limit:=3 --timeout 5s
  plugd call mail.send to=ada@example.org text=@letter.txt --yes --key letter-17
  echo '{\"words\":\"tax\"}' | plugd call archive.search --json -
  plugd call orders.query --output data | plugd call report.make orders:=@-
  plugd call report.make orders:=@call:0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10/orders
  plugd call archive.search words=tax --explain      what would run, and with what
  plugd call ./plugin.py greet name=Ada              no configuration, no daemon
  plugd call ./greet hello name=Ada                  the same of a folder with a plugin.toml")]
pub(crate) struct Args {
    /// plugin.operation, a bare operation name, or the path of an executable or of a folder with a plugin.toml
    #[arg(value_name = "OPERATION")]
    pub(crate) target: String,
    /// Arguments; after a path, the operation first
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
    /// A name for this very call: the same key runs once, a repeat gets the same answer
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Agree to what the call does
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Ask nothing at this terminal
    #[arg(long)]
    pub(crate) no_ask: bool,
    /// Wait for the end of a long-running operation, rather than get a job
    #[arg(long)]
    pub(crate) wait: bool,
    /// The whole result, however large; so it is under --output json and data
    #[arg(long)]
    pub(crate) whole: bool,
    /// A large result page by page, also under --output json and data
    #[arg(long, conflicts_with = "whole")]
    pub(crate) page: bool,
    /// Say what would run, with what, and what comes before it; run nothing
    #[arg(long)]
    pub(crate) explain: bool,
}

/// So little is not taken off a call's time, which stays as it was given in what is said of it.
const SLIGHT: Duration = Duration::from_millis(50);

/// What is to be called: an operation of the configured plugins, or of one executable.
struct Target<'a> {
    program: Option<PathBuf>,
    operation: &'a str,
    words: &'a [String],
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    if args.explain {
        return explain(&args, context).await;
    }
    let mut signals = Interruptions::watch();
    let (params, runtime) = match attend::unless_interrupted(&mut signals, begin(&args, context)).await {
        Some(Ok(begun)) => begun,
        // Nothing was called; plugins that were asked what they have end with this process.
        none => {
            let (attended, operation) = match none {
                Some(Err(mut failure)) => {
                    if is_path(&args.target) {
                        alone::reword(&mut failure.error, &args.target, None, context).await;
                    }
                    (Attended::Ended(Err(failure)), None)
                }
                _ => (Attended::NotBegun, OperationId::parse(&args.target).ok()),
            };
            let (result, code) = attend::result_of(attended, operation, context);
            return attend::show(&result, context).map(|()| code);
        }
    };
    let operation = OperationId::parse(&params.operation).ok();
    let about = About { operation: params.operation.clone(), arguments: params.arguments.clone() };
    let (keyed, timeout_ms) = (args.key.is_some(), params.timeout_ms);
    let ended = attend_with(&mut signals, &runtime, !args.no_ask, context, async |reach| {
        let called = runtime.call(CallParams { can_ask: reach.can_ask, ..params }, reach.asker).await;
        called.map_err(|failure| attend::lost_meanwhile(failure, keyed, operation.as_ref(), context))
    });
    let ended = ended.await;
    let (mut result, code) = attend::result_of(ended, operation.clone(), context);
    in_words_typed(&mut result, &args, timeout_ms);
    reword(&mut result, &args.target, operation.as_ref(), &runtime, context).await;
    let again = again(&mut result, &about, &runtime).await;
    let shown = attend::show_with(&result, again.as_deref(), context);
    attend::finish(&result, runtime, context).await;
    shown.map(|()| code)
}

/// What was called, and with what.
struct About {
    operation: String,
    arguments: Option<Box<RawValue>>,
}

/// The command line to go on with, where the call stopped and no token carries it on; a hint says it, too.
async fn again(result: &mut CallResult, about: &About, runtime: &Runtime) -> Option<String> {
    result.pending.as_ref().filter(|pending| pending.token.is_none())?;
    let schema = input_schema(&DescribeParams::new(&*about.operation), runtime, None).await;
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let line = again::with_what_is_missing(typed, result, about.arguments.as_deref(), schema.as_deref())?;
    if let Some(error) = &mut result.error {
        error.hint = Some(format!("call again: `{line}`"));
    }
    Some(line)
}

/// What is said of the result beside it: in full to whoever typed the command, and of a path as fits one.
async fn reword(
    result: &mut CallResult,
    target: &str,
    operation: Option<&OperationId>,
    runtime: &Runtime,
    context: &Context,
) {
    let Some(error) = &mut result.error else { return };
    match (runtime, operation) {
        (Runtime::Embedded { .. }, _) if is_path(target) => {
            alone::reword(error, target, Some(runtime), context).await;
        }
        (Runtime::Embedded { .. }, Some(operation)) => {
            alone::say_which_file(error, &operation.plugin, runtime).await;
        }
        (Runtime::Embedded { .. }, None) | (Runtime::Daemon(_), _) => {}
    }
}

/// What the call would do.
async fn explain(args: &Args, context: &Context) -> Result<u8, Failure> {
    let (params, runtime) = begin(args, context).await?;
    let shown = match runtime.explain(params).await {
        Ok(report) => context.output.report(&report, |paint| render::explanation(&report, paint)),
        Err(mut failure) => {
            if is_path(&args.target) {
                alone::reword(&mut failure.error, &args.target, Some(&runtime), context).await;
            }
            Err(failure)
        }
    };
    runtime.finish().await;
    shown.map(|()| 0)
}

/// Everything up to the call itself.
async fn begin(args: &Args, context: &Context) -> Result<(CallParams, Runtime), Failure> {
    let target = target(args)?;
    let arguments = Arguments::read(target.words, args.json.as_deref()).map_err(|failure| {
        let name = &args.target;
        let is_program = target.program.is_none() && !name.contains('.') && Path::new(name).exists();
        match args.words.first().filter(|word| is_program && !word.contains('=')) {
            Some(word) => failure.hint(&format!("did you mean ./{name}? `plugd call ./{name} {word}`")),
            None => failure,
        }
    })?;
    let mut operation = target.operation.to_owned();
    let runtime = match &target.program {
        Some(program) => {
            context.start_log(None);
            let record = args.timeout.map(for_record);
            let config = match program.is_dir() {
                true => lint::alone(&[add::of_path(program, &[])?], &Environment::of_process())?,
                false => settings::single(program)?,
            };
            // Under its whole name an error says what is wrong with the plugin that has it.
            if let Some(plugin) = config.plugins.keys().next().filter(|_| is_bare(&operation)) {
                operation = format!("{plugin}.{operation}");
            }
            Runtime::embedded_within(config, Opening::OnDemand, record).await?
        }
        None => context.runtime_within(args.timeout, Opening::OnDemand).await?,
    };
    match params(args, &operation, arguments, &runtime, context).await {
        Ok(params) => Ok((params, runtime)),
        Err(failure) => {
            runtime.finish().await;
            Err(failure)
        }
    }
}

pub(crate) async fn params(
    args: &Args,
    operation: &str,
    arguments: Arguments,
    runtime: &Runtime,
    context: &Context,
) -> Result<CallParams, Failure> {
    let asked = Instant::now();
    let caller = context.global.caller.clone();
    let fetched = arguments.fetch(runtime, caller.as_deref());
    let arguments = match args.timeout.filter(|timeout| !timeout.is_zero()) {
        Some(timeout) => {
            tokio::time::timeout(timeout, fetched).await.unwrap_or_else(|_| Err(not_fetched()))?
        }
        None => fetched.await?,
    };
    let schema = match arguments.need_schema() {
        true => {
            let params = DescribeParams { caller: caller.clone(), ..DescribeParams::new(operation) };
            input_schema(&params, runtime, args.timeout).await
        }
        false => None,
    };
    if let Some(dotted) = schema.as_deref().and_then(|schema| arguments.dotted(schema)) {
        return Err(dotted_refused(dotted, operation, runtime, caller).await.into());
    }
    let spent = asked.elapsed() + runtime.opened_in();
    let timeout = args.timeout.map(|timeout| left(timeout, spent));
    let for_people = context.output.format == Format::Text;
    Ok(CallParams {
        arguments: Some(arguments.into_json(schema.as_deref())?),
        timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        session: args.session.clone(),
        traceparent: std::env::var("TRACEPARENT").ok(),
        key: args.key.clone(),
        confirm: args.yes,
        caller,
        // A job of an engine in this process would end with it.
        wait: args.wait || matches!(runtime, Runtime::Embedded { .. }),
        whole: args.whole || (!args.page && !for_people),
        // Known once it is known who can be asked: `can_ask`.
        ..CallParams::new(operation)
    })
}

/// The error for members given without their object, with all that is wrong besides.
async fn dotted_refused(
    dotted: Dotted,
    operation: &str,
    runtime: &Runtime,
    caller: Option<String>,
) -> CallError {
    let meant = Some(dotted.meant.clone());
    let explained = runtime.explain(CallParams { arguments: meant, caller, ..CallParams::new(operation) });
    dotted.refused(explained.await.map(|report| report.problems).unwrap_or_default())
}

/// Says what is wrong with a call in the words that were typed: lists as they are written, and its time.
pub(crate) fn in_words_typed(result: &mut CallResult, args: &Args, timeout_ms: Option<u64>) {
    let Some(error) = &mut result.error else { return };
    if error.class() == ErrorClass::Argument
        && let Some(hint) = how_lists_are_written(&args.words, &error.details)
    {
        error.hint = Some(hint);
    }
    let sent = timeout_ms.map(Duration::from_millis);
    if let (ErrorClass::Time, Some(given), Some(sent)) = (error.class(), args.timeout, sent) {
        // What was spent before the call was taken off.
        let within = |time| format!(" within {}", plugd_engine::seconds(time));
        error.message = error.message.replacen(&within(sent), &within(given), 1);
    }
}

/// What is left of a call's time where so much was spent before it.
fn left(timeout: Duration, spent: Duration) -> Duration {
    if timeout.is_zero() || spent < SLIGHT {
        return timeout;
    }
    timeout.saturating_sub(spent).max(Duration::from_millis(1))
}

/// The error for an argument that is a part of an earlier result, which was not read in time.
fn not_fetched() -> Failure {
    let message = "what the arguments take from earlier results was not read within --timeout";
    CallError::new(ErrorKind::TimedOut, message)
        .hint("the disk is slow, or another process holds the record: try again with more time")
        .into()
}

/// Whether a target is an executable, or a folder with a plugin.toml.
pub(super) fn is_path(target: &str) -> bool {
    target.contains('/') || target == "." || target == ".."
}

/// Whether an operation is named without its plugin, in whatever spelling.
fn is_bare(operation: &str) -> bool {
    !operation.contains('.') && !operation.contains("__")
}

/// A target that is a path is followed by its operation.
fn target(args: &Args) -> Result<Target<'_>, Failure> {
    if !is_path(&args.target) {
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
    operation: &DescribeParams,
    runtime: &Runtime,
    timeout: Option<Duration>,
) -> Option<Box<RawValue>> {
    let described = runtime.describe(operation);
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        Line::try_parse_from([&["call"], words].concat()).unwrap().args
    }

    #[test]
    fn a_target_with_a_slash_is_an_executable_followed_by_its_operation() {
        let given = args(&["./plugin.py", "greet", "name=Ada"]);
        let target = target(&given).unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!((target.program, target.operation), (Some("./plugin.py".into()), "greet"));
        assert_eq!(target.words, ["name=Ada"]);
    }

    #[test]
    fn what_was_spent_before_a_call_is_taken_off_its_time() {
        let (second, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!(left(second, ms(10)), second);
        assert_eq!(left(second, ms(400)), ms(600));
        assert_eq!(left(second, ms(2_000)), ms(1));
        // The engine says what is wrong with that.
        assert_eq!(left(Duration::ZERO, ms(400)), Duration::ZERO);
    }

    #[test]
    fn an_executable_without_an_operation_is_a_usage_error() {
        for words in [&["./plugin.py", "name=Ada"][..], &["./plugin.py"], &["./plugin.py", "@file"]] {
            let failure = target(&args(words)).map(|_| ()).expect_err("no operation");
            assert_eq!(failure.exit, 2, "{words:?}");
        }
    }
}
