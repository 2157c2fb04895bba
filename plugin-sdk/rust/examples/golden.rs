//! The plugin that every SDK makes alike: `protocol/wire/sdk/README.md` says what it does.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;

use plugd_sdk::{
    Context, Error, InitContext, Logger, NextAction, Operation, Plugin, Question, Reply, operation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Config {
    /// The word to greet with.
    #[serde(default = "hello")]
    word: String,
}

fn hello() -> String {
    "hello".to_owned()
}

/// What the operations share.
pub(crate) struct Golden {
    word: Mutex<String>,
    log: Logger,
}

fn open(config: Config, cx: &InitContext) -> Result<Golden, Error> {
    let word = Mutex::new(good(config.word)?);
    cx.info("ready");
    Ok(Golden { word, log: cx.logger() })
}

fn reload(config: Config, golden: &Golden) -> Result<(), Error> {
    *golden.word.lock().expect("nobody panics with it") = good(config.word)?;
    Ok(())
}

fn good(word: String) -> Result<String, Error> {
    if word == "bad" { Err(Error::new("bad_word", "the word is bad")) } else { Ok(word) }
}

#[derive(Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Tone {
    Warm,
    Cold,
}

/// Greets somebody by name. Gives one friendly line back.
#[operation(
    title = "Greet",
    when_to_use = "Someone should be greeted.",
    when_not_to_use = "They said goodbye.",
    examples("say hello to Ada", "跟小明打个招呼"),
    category = "social",
    read_only,
    idempotent,
    timeout_ms = 5000
)]
fn greet(
    /// Who is greeted.
    name: String,
    /// How often.
    #[arg(default = 1, range = 1..=10)]
    times: usize,
    /// How it sounds.
    #[arg(default = Tone::Warm)]
    tone: Tone,
    golden: &Golden,
) -> Reply<String> {
    let greeting = format!("{} {name}", golden.word.lock().expect("nobody panics with it"));
    let mut line = vec![greeting; times].join(", ");
    if tone == Tone::Warm {
        line.push('!');
    }
    let next = NextAction {
        operation: Some("golden.context".to_owned()),
        description: Some("see who asked".to_owned()),
        arguments: None,
    };
    Reply::new(line).summary(format!("greeted {name}")).next_action(next)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Failure {
    Named,
    Fault,
}

/// Fails as it is told to. For tests of failures.
#[operation(read_only)]
fn fail(
    /// Which failure.
    how: Failure,
) -> Result<Value, Error> {
    match how {
        Failure::Named => {
            Err(Error::new("no_such_thing", "there is no such thing").hint("try another").retryable())
        }
        Failure::Fault => panic!("a fault of ours"),
    }
}

/// Tells what a call knows of itself. For tests of contexts.
#[operation(read_only)]
fn context(cx: &Context) -> Value {
    json!({
        "call_id": cx.call_id(),
        "session_id": cx.session_id(),
        "traceparent": cx.traceparent(),
        "attempt": cx.attempt(),
        "idempotency_key": cx.idempotency_key(),
        "caller": cx.caller(),
        "locale": cx.locale(),
        "has_time": !cx.time_left().is_zero() && cx.time_left().as_secs() <= 30,
        "cancelled": cx.is_cancelled(),
    })
}

/// Logs, prints and reports how far it is. For tests of what goes beside an answer.
#[operation(read_only)]
fn speak(cx: &Context) -> Result<Value, Error> {
    cx.warn("one");
    cx.debug("unseen");
    std::io::Write::write_all(&mut std::io::stdout(), b"stray\n")?;
    cx.progress(1, 2, "half");
    cx.partial(&json!({"step": 1}))?;
    Ok(Value::Null)
}

/// Hands a call on to another plugin. For tests of calls between plugins.
#[operation]
fn relay(
    /// A city, handed on as it is.
    city: String,
    cx: &Context,
) -> Result<Reply<Value>, Error> {
    let answer = cx.call::<Value>("other.lookup", &json!({"city": city}))?;
    Ok(Reply { summary: answer.summary, ..Reply::new(answer.data) })
}

/// Asks before it removes something. For tests of questions.
#[operation(destructive, output_schema = Value::Null)]
fn remove(cx: &Context) -> Result<&'static str, Error> {
    let answers = cx.ask_many([Question::new::<bool>("sure", "Remove it?")])?;
    Ok(if answers.get("sure")? { "removed" } else { "kept" })
}

/// Runs a program that reads all of its standard input. For tests of inherited pipes.
fn child(_: (), _: &Context) -> Result<Value, Error> {
    let cat = Command::new("cat").stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()?;
    Ok(String::from_utf8(cat.wait_with_output()?.stdout)?.into())
}

/// Uses what this host does not offer. For tests of features.
#[operation]
fn vars(cx: &Context) -> Result<Value, Error> {
    Ok(cx.vars().get("count")?.unwrap_or_default())
}

pub(crate) fn plugin() -> Plugin<Golden> {
    Plugin::new("golden", "1.2.3")
        .description("What every SDK makes alike.")
        .requires("other", ">=1.0")
        .init(open)
        .reload(reload)
        .shutdown(|golden| {
            golden.log.info("bye");
            Ok(())
        })
        .operation(greet::operation())
        .operation(fail::operation())
        .operation(context::operation())
        .operation(speak::operation())
        .operation(relay::operation())
        .operation(remove::operation())
        .operation(
            Operation::new("child", child)
                .description(
                    "Runs a program that reads all of its standard input. For tests of inherited pipes.",
                )
                .read_only(),
        )
        .operation(vars::operation())
}

fn main() -> ExitCode {
    plugin().serve()
}
