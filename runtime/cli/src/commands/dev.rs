//! `plugd dev`: runs a plugin while it is written, takes up what is saved, and calls what is typed.

use std::path::PathBuf;

use plugd_engine::{Engine, Opening};
use plugd_protocol::PluginName;
use plugd_protocol::control::{
    CallParams, DescribeParams, Description, LintParams, LogEntry, LogStream, LogsParams,
};
use plugd_protocol::{CallError, CallResult, ErrorKind, OperationId};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::call;
use crate::arguments::Arguments;
use crate::attend::{self, INTERRUPTED, attend};
use crate::context::Context;
use crate::dev::{Came, Command, Help, Known, Line, Lines, Orders, Screen, Taker, in_error, in_result};
use crate::failure::Failure;
use crate::output::Format;
use crate::render::{self, Paint, visible_line};
use crate::runtime::{Runtime, interrupted};

/// Run a plugin while you write it, and call it from a prompt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Builds the plugin where its plugin.toml has a build command under [dev], runs it, and looks after its \
sources: what you save is built and takes the place of the run before, which goes on where that fails. Shown are \
what the declarations could say better, each call with its time, and each line of the log.

At a terminal there is a prompt with completion (Tab); `help` there has what can be typed. Elsewhere the \
same lines are read from stdin: results go to stdout, all that happens by itself to stderr, and the end of \
stdin ends it with the exit code of the last call. A call waits until what was saved before it is taken up. \
Under --output json there is no prompt either: each line that is typed is answered by one JSON object on one \
line of stdout.

No configuration is read and no daemon is needed; what the plugin keeps is gone in the end.

Examples:
  plugd dev ./greet                              a folder with a plugin.toml
  plugd dev ./greet.py -- --verbose              an executable, with an argument of its own
  echo hello name=World | plugd dev ./greet")]
pub(crate) struct Args {
    /// The executable, or the folder with a plugin.toml
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Arguments for the executable
    #[arg(last = true, value_name = "ARGUMENT")]
    args: Vec<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    context.start_log(None);
    let state = tempfile::Builder::new().prefix("plugd-dev-").tempdir().map_err(|error| {
        Failure::environment(format!("cannot make a folder for state: {error}"), "make room in $TMPDIR")
    })?;
    let known = Known::default();
    // The name is part of the prompt, and is known before anything runs.
    let name = super::add::of_path(&args.path, &args.args)?.name;
    let (lines, screen) =
        Lines::open(format!("{name}> "), known.clone(), context.output.format != Format::Json)?;
    let paint = if lines.are_typed() { context.output.paint() } else { context.output.paint_aside() };
    let mut taker = Taker::of(&args.path, &args.args, state.path(), known, screen.clone(), paint)?;
    if lines.are_typed() {
        let shown = visible_line(&args.path.to_string_lossy()).into_owned();
        screen.say(&format!(
            "{shown} is run, and taken up anew whenever you save; `help` has what can be typed"
        ));
    }
    tokio::select! {
        _ = taker.first_build() => {}
        true = interrupted() => return Ok(INTERRUPTED),
    }
    let config = taker.config();
    let runtime = Runtime::embedded(config, Opening::Everything).await?;
    let Runtime::Embedded { engine, .. } = &runtime else {
        return Err(Failure::internal("an engine of our own is no daemon"));
    };
    let logs = tokio::spawn(show_logs(engine.follow_logs(), screen.clone(), paint));
    let name = taker.name().clone();
    let orders = tokio::select! {
        orders = taker.begin(Engine::clone(engine)) => Some(orders),
        true = interrupted() => None,
    };
    let asks = lines.are_typed();
    let code = match orders {
        Some(orders) => {
            Session { name, runtime: &runtime, orders, screen, paint, asks, context }.serve(lines).await
        }
        None => Ok(INTERRUPTED),
    };
    runtime.end().await;
    logs.abort();
    code
}

/// Writes the log as it grows.
async fn show_logs(mut entries: broadcast::Receiver<LogEntry>, screen: Screen, paint: Paint) {
    loop {
        match entries.recv().await {
            Ok(entry) => screen.say(&log_line(&entry, paint)),
            Err(RecvError::Lagged(lost)) => screen.say(&format!("  … {lost} lines of the log are left out")),
            Err(RecvError::Closed) => return,
        }
    }
}

/// An entry of the only log there is.
fn log_line(entry: &LogEntry, paint: Paint) -> String {
    let level = render::log_level(entry.level, paint);
    let (stream, level) = match entry.stream {
        LogStream::Log => ("log", level),
        LogStream::Stderr => ("stderr", String::new()),
        LogStream::Stray => ("stray output", String::new()),
        LogStream::Runtime => ("plugd", level),
    };
    let text = render::visible(entry.text.trim_end_matches('\n')).replace('\n', "\n    ");
    let level = if level.is_empty() { level } else { format!(" {level}") };
    format!("  {}{level} {text}", paint.dim(stream))
}

/// The latest lines of the log, as one document.
#[derive(Serialize)]
struct Entries {
    entries: Vec<LogEntry>,
}

/// How starting the plugin anew went.
#[derive(Serialize)]
struct Reloaded<'a> {
    plugin: &'a PluginName,
    /// Whether it runs; it may be the run before that does.
    runs: bool,
    /// Why what is saved does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The plugin as it runs, and whoever types.
struct Session<'a> {
    name: PluginName,
    runtime: &'a Runtime,
    orders: Orders,
    screen: Screen,
    paint: Paint,
    /// Whether somebody types, who can be asked.
    asks: bool,
    context: &'a Context,
}

impl Session<'_> {
    /// Carries out line after line; the exit code is that of the last call.
    async fn serve(self, mut lines: Lines) -> Result<u8, Failure> {
        let mut last = 0;
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                true = interrupted() => Line::Interrupted,
            };
            let typed = match line {
                Line::Typed(typed) => typed,
                Line::End if lines.are_typed() => return Ok(0),
                Line::End => return Ok(last),
                Line::Interrupted => return Ok(INTERRUPTED),
            };
            match Command::read(&typed) {
                Ok(Command::Quit) => return Ok(if lines.are_typed() { 0 } else { last }),
                Ok(Command::Call(args)) => match self.call(*args).await {
                    Ok(code) => last = code,
                    Err(failure) => last = self.fail(failure),
                },
                Ok(command) => {
                    if let Err(failure) = self.look(command).await {
                        self.fail(failure);
                    }
                }
                Err(message) => {
                    last = 2;
                    self.context.output.failure(&Failure::unfit(message));
                }
            }
            if self.context.output.is_closed() {
                return Ok(last);
            }
        }
    }

    /// Says what went wrong and what can be typed then; its exit code.
    fn fail(&self, mut failure: Failure) -> u8 {
        in_error(&mut failure.error, &self.name);
        self.context.output.failure(&failure);
        failure.exit
    }

    /// Carries out what calls nothing.
    async fn look(&self, command: Command) -> Result<(), Failure> {
        let (output, runtime) = (&self.context.output, self.runtime);
        match command {
            Command::Nothing | Command::Quit | Command::Call(_) => Ok(()),
            Command::Help => {
                let help = Help::new();
                output.report(&help, |_| help.text())
            }
            Command::List => {
                let description = runtime.describe(&DescribeParams::new(self.name.as_str())).await?;
                output.report(&description, |paint| listed(&description, paint))
            }
            Command::Describe(operation) => {
                let operation = operation.filter(|operation| *operation != self.name.as_str());
                let wanted =
                    operation.map_or_else(|| self.name.to_string(), |operation| self.id_of(&operation));
                let description = runtime.describe(&DescribeParams::new(&*wanted)).await?;
                output.report(&description, |paint| render::description(&description, paint))
            }
            Command::Lint => {
                let report = runtime.lint(&LintParams { plugins: vec![self.name.clone()] }).await?;
                output.report(&report, |paint| render::lint(&report, paint))
            }
            Command::Logs(count) => {
                let params = LogsParams { tail: Some(count), ..LogsParams::default() };
                let log = Entries { entries: runtime.logs(&params).await? };
                output.report(&log, |paint| {
                    log.entries.iter().map(|entry| render::log_entry(entry, paint)).collect()
                })
            }
            Command::Reload => {
                let Some(Came { down, not_taken, .. }) = self.unless_interrupted(self.orders.reload()).await
                else {
                    return Err(CallError::new(
                        ErrorKind::Cancelled,
                        "the reload goes on: it was not waited for",
                    )
                    .into());
                };
                // In words it is on the screen.
                let report = Reloaded { plugin: &self.name, runs: down.is_none(), reason: not_taken };
                output.report(&report, |_| String::new())
            }
        }
    }

    /// An operation as it was typed, with the plugin that it is one of.
    fn id_of(&self, operation: &str) -> String {
        match operation.contains('.') {
            true => operation.to_owned(),
            false => format!("{}.{operation}", self.name),
        }
    }

    /// Calls an operation once what was saved is taken up, and shows how that went.
    async fn call(&self, args: call::Args) -> Result<u8, Failure> {
        let stale = match self.unless_interrupted(self.orders.settle()).await {
            Some(Came { down: None, not_taken, .. }) => not_taken,
            Some(Came { down: Some(reason), advice, .. }) => {
                let message = format!("{} does not run: {reason}", self.name);
                return Err(CallError::new(ErrorKind::Unavailable, message).hint(advice).into());
            }
            None => Some("nobody waited for it".to_owned()),
        };
        let id = self.id_of(&args.target);
        let arguments = Arguments::read(&args.words, args.json.as_deref())?;
        let params = call::params(&args, &id, arguments, self.runtime, self.context).await?;
        if args.explain {
            let report = self.runtime.explain(params).await?;
            self.context.output.report(&report, |paint| render::explanation(&report, paint))?;
            return Ok(0);
        }
        let params = CallParams { whole: true, ..params };
        let timeout_ms = params.timeout_ms;
        let given = params.arguments.as_deref().map(|given| given.get().to_owned()).unwrap_or_default();
        self.screen.say(&self.paint.dim(&visible_line(&format!("→ {id} {given}"))));
        self.screen.calling(true);
        let ended = attend(self.runtime, self.asks && !args.no_ask, self.context, async |reach| {
            self.runtime.call(CallParams { can_ask: reach.can_ask, ..params }, reach.asker).await
        });
        let (mut result, code) = attend::result_of(ended.await, OperationId::parse(&id).ok(), self.context);
        self.screen.calling(false);
        call::in_words_typed(&mut result, &args, timeout_ms);
        if let Some(reason) = stale {
            result.meta.warnings.push(format!(
                "what was saved last is not taken up, and the program of before answered: {}",
                render::in_one_line(&reason)
            ));
        }
        in_result(&mut result, &self.name);
        attend::show(&result, self.context)?;
        self.screen.say(&self.paint.dim(&ended_as(&result)));
        Ok(code)
    }

    /// Waits, unless somebody does not want to.
    async fn unless_interrupted<T>(&self, done: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = done => Some(done),
            true = interrupted() => None,
        }
    }
}

/// How a call ended and how long it took.
fn ended_as(result: &CallResult) -> String {
    let status = render::wire_name(&result.status);
    let run = result.meta.generation.map(|run| format!(" in run {run}")).unwrap_or_default();
    let milliseconds = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64() * 1_000.0;
    let (ran, waited) = (milliseconds(result.meta.run_us), milliseconds(result.meta.queue_us));
    format!("← {status}, {ran:.1} ms{run}, {waited:.1} ms before")
}

/// The operations, each with what it takes and its first sentence.
fn listed(description: &Description, paint: Paint) -> String {
    let row = |operation: &plugd_protocol::Operation| {
        let schema: serde_json::Value =
            serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
        let names = schema.get("properties").and_then(serde_json::Value::as_object).into_iter().flatten();
        let names: String = names.map(|(name, _)| format!(" {name}=")).collect();
        let about = operation.description.as_deref().unwrap_or_default();
        let about = about.lines().next().unwrap_or_default();
        format!("{}{}  {}\n", paint.bold(operation.name.as_str()), visible_line(&names), visible_line(about))
    };
    description.operations.iter().map(row).collect()
}
