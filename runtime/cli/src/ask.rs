//! Questions of a call, put to whoever sits at the terminal, and how far it is.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use plugd_daemon::client::Following;
use plugd_engine::Asker;
use plugd_protocol::control::{AnswerParams, Ask, AskEnd, AskNotice, AskProgress, AsksParams};
use plugd_protocol::error::ErrorClass;
use plugd_protocol::plugin::Question;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::progress::Bar;
use crate::render::{self, in_one_line, json_shape, pretty, visible_line};
use crate::runtime::Runtime;
use crate::typing::Typist;

/// Questions of one call that may wait here; a plugin can have eight open, each in a chain its own.
const NOTICES_QUEUED: usize = 256;

/// So many values of an enumeration are shown with a prompt.
const CHOICES_SHOWN: usize = 8;

/// Whether a question stands on the terminal's last line: there is one terminal.
static QUESTION_STANDS: AtomicBool = AtomicBool::new(false);

/// Whether somebody is just being asked, so that nothing else is to be written there.
pub(crate) fn question_stands() -> bool {
    QUESTION_STANDS.load(Ordering::Relaxed)
}

/// Whether somebody sits at a terminal who can be asked, and would not be held up by it.
pub(crate) fn somebody_is_there() -> bool {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    // A job in the background is stopped when it reads from its terminal.
    let in_front = || tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp());
    stdin.is_terminal() && stderr.is_terminal() && in_front()
}

/// Puts the questions of a call to whoever sits at the terminal, and shows how far it is.
pub(crate) struct Prompter<'a> {
    runtime: &'a Runtime,
    notices: Notices,
    typed: Option<Typist>,
    line: PromptLine,
    bar: Bar,
}

/// Where questions come from.
enum Notices {
    Daemon(Following<AskNotice>),
    Embedded(mpsc::Receiver<AskNotice>),
}

/// How asking somebody at the terminal ended.
enum Typed {
    Line(String),
    /// Ctrl-D.
    NoMore,
    /// No answer is needed any more.
    Ended(AskEnd),
}

impl Notices {
    async fn next(&mut self) -> Option<AskNotice> {
        match self {
            Notices::Daemon(following) => loop {
                match following.next().await? {
                    Ok(notice) => return Some(notice),
                    // A newer daemon may send what is not known here.
                    Err(error) => tracing::warn!(%error, "a notice about questions is passed over"),
                }
            },
            Notices::Embedded(notices) => notices.recv().await,
        }
    }
}

impl<'a> Prompter<'a> {
    /// Makes ready for calls there: for their questions, if it `asks`, and for their progress, if the
    /// bar is seen. The asker is for calls of an engine in this process. `None` where there is
    /// nothing to be made ready for, or a daemon has no way to tell.
    pub(crate) async fn begin(
        runtime: &'a Runtime,
        asks: bool,
        bar: Bar,
    ) -> Option<(Prompter<'a>, Option<Asker>)> {
        let progress = bar.is_on();
        if !asks && !progress {
            return None;
        }
        let (notices, asker) = match runtime {
            Runtime::Daemon(client) => {
                (Notices::Daemon(client.follow_asks_with(&AsksParams { progress }).await.ok()?), None)
            }
            Runtime::Embedded { .. } => {
                let (sender, notices) = mpsc::channel(NOTICES_QUEUED);
                let asker = if asks { Asker::new(sender) } else { Asker::silent(sender) };
                let asker = if progress { asker.with_progress() } else { asker };
                (Notices::Embedded(notices), Some(asker))
            }
        };
        Some((Prompter { runtime, notices, typed: None, line: PromptLine::default(), bar }, asker))
    }

    /// Asks whatever is asked, and draws how far it is; never ends by itself.
    pub(crate) async fn run(mut self) -> Infallible {
        let mut queue = VecDeque::new();
        loop {
            let ask = match queue.pop_front() {
                Some(ask) => ask,
                None => match self.notices.next().await {
                    Some(AskNotice::Asked(ask)) => ask,
                    Some(AskNotice::Progress(AskProgress { operation, progress, .. })) => {
                        self.bar.draw(&operation.to_string(), &progress);
                        continue;
                    }
                    Some(AskNotice::Ended(_)) => continue,
                    // No question can come any more; the call itself goes on, or says why not.
                    None => return std::future::pending().await,
                },
            };
            self.bar.clear();
            self.put(&ask, &mut queue).await;
        }
    }

    /// Asks until the answers fit, or are no longer needed.
    async fn put(&mut self, ask: &Ask, queue: &mut VecDeque<Ask>) {
        say(&heading(ask, matches!(self.runtime, Runtime::Daemon(_))));
        if let Some(arguments) = &ask.arguments {
            pretty(&arguments.to_string()).lines().for_each(|line| say(&format!("[ask]   {line}")));
        }
        let mut answers = Map::new();
        let mut open: Vec<&Question> = ask.questions.iter().collect();
        loop {
            for question in &open {
                let schema = question.schema.as_deref();
                let schema: Value =
                    schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default();
                match self.one(question, &schema, &ask.token, queue).await {
                    Typed::Line(line) if line.is_empty() && schema.get("default").is_some() => {
                        // The default stands for it.
                        answers.remove(&question.name);
                    }
                    Typed::Line(line) => drop(answers.insert(question.name.clone(), line.into())),
                    Typed::NoMore => return self.decline(ask).await,
                    Typed::Ended(ended) => {
                        // What was half typed is no answer to the next question.
                        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
                        return say(told(ended));
                    }
                }
            }
            let params = AnswerParams { answers: answers.clone(), ..AnswerParams::new(ask.token.clone()) };
            match self.runtime.answer(params, None).await {
                Ok(_) => return,
                Err(Failure { error, .. }) if error.class() == ErrorClass::Argument => {
                    say(&format!("[ask] {}", visible_line(&error.message)));
                    let wrong = |question: &&Question| {
                        let path = format!("/{}", question.name);
                        let of_it = |at: &str| at == path || at.starts_with(&format!("{path}/"));
                        error.details.iter().any(|problem| of_it(&problem.path))
                    };
                    open = ask.questions.iter().filter(wrong).collect();
                    if open.is_empty() {
                        open = ask.questions.iter().collect();
                    }
                }
                Err(Failure { error, .. }) => return say(&format!("[ask] {}", visible_line(&error.message))),
            }
        }
    }

    /// Asks one question, again where Enter alone says nothing.
    async fn one(
        &mut self,
        question: &Question,
        schema: &Value,
        token: &str,
        queue: &mut VecDeque<Ask>,
    ) -> Typed {
        render::members_of(schema).lines().for_each(|line| say(&format!("[ask] {line}")));
        loop {
            // Before the prompt: some type as soon as they see it.
            let silent = question.sensitive.then(Silence::begin).flatten();
            self.line.open(&prompt(question, schema));
            let typed = self.typed(token, queue).await;
            drop(silent);
            match &typed {
                Typed::Line(line) if line.is_empty() && must_say_something(schema) => {
                    say("[ask] something must be typed here; Ctrl-D answers nothing");
                }
                Typed::Line(_) | Typed::NoMore | Typed::Ended(_) => return typed,
            }
        }
    }

    async fn decline(&mut self, ask: &Ask) {
        let params = AnswerParams { decline: true, ..AnswerParams::new(ask.token.clone()) };
        match self.runtime.answer(params, None).await {
            Ok(_) => say(told(AskEnd::Declined)),
            Err(Failure { error, .. }) => say(&format!("[ask] {}", visible_line(&error.message))),
        }
    }

    /// Waits for a line, or for what makes it needless.
    async fn typed(&mut self, token: &str, queue: &mut VecDeque<Ask>) -> Typed {
        if self.typed.is_none() {
            self.typed = Typist::begin().ok();
        }
        let typed = match &mut self.typed {
            // Nobody can be read from, so nobody agrees.
            None => Typed::NoMore,
            Some(typist) => tokio::select! {
                line = typist.line() => match line {
                    Some(line) => Typed::Line(line),
                    None => Typed::NoMore,
                },
                ended = ended(&mut self.notices, token, queue) => Typed::Ended(ended),
            },
        };
        match typed {
            Typed::Line(_) => self.line.closed_by_typing(),
            Typed::NoMore | Typed::Ended(_) => self.line.close(),
        }
        typed
    }
}

/// Waits until these questions need no answer; others that come meanwhile are queued.
async fn ended(notices: &mut Notices, token: &str, queue: &mut VecDeque<Ask>) -> AskEnd {
    loop {
        match notices.next().await {
            Some(AskNotice::Asked(ask)) => queue.push_back(ask),
            Some(AskNotice::Ended(ended)) if ended.token == token => return ended.ended,
            Some(AskNotice::Ended(ended)) => queue.retain(|ask| ask.token != ended.token),
            // Nothing is drawn over what is being typed.
            Some(AskNotice::Progress(_)) => {}
            None => return std::future::pending().await,
        }
    }
}

/// The line a prompt stands on, which must end before anything else is written.
#[derive(Default)]
struct PromptLine {
    open: bool,
}

impl PromptLine {
    fn open(&mut self, prompt: &str) {
        let mut stderr = std::io::stderr().lock();
        // Where stderr is gone nobody reads prompts.
        let _ = write!(stderr, "{prompt}").and_then(|()| stderr.flush());
        self.open = true;
        QUESTION_STANDS.store(true, Ordering::Relaxed);
    }

    /// Whoever typed has ended the line.
    fn closed_by_typing(&mut self) {
        self.open = false;
        QUESTION_STANDS.store(false, Ordering::Relaxed);
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            say("");
        }
        QUESTION_STANDS.store(false, Ordering::Relaxed);
    }
}

impl Drop for PromptLine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Keeps the terminal from showing what is typed, until it is dropped.
struct Silence(Termios);

impl Silence {
    fn begin() -> Option<Silence> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Silence(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing anyway.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Who asks, and how else it can be answered.
fn heading(ask: &Ask, from_elsewhere: bool) -> String {
    let who = match &ask.asked_by {
        Some(inner) => format!("{inner}, which {} uses, asks", ask.operation),
        None => format!("{} asks", ask.operation),
    };
    let elsewhere = match (from_elsewhere, ask.questions.as_slice()) {
        (false, _) => String::new(),
        (true, [_]) if ask.arguments.is_some() => {
            format!("; from elsewhere: plugd answer {} --yes", ask.token)
        }
        (true, [_]) => format!("; from elsewhere: plugd answer {} VALUE", ask.token),
        (true, _) => format!("; from elsewhere: plugd answer {} NAME=VALUE ...", ask.token),
    };
    format!("[ask] {}", visible_line(&format!("{who}{elsewhere}")))
}

/// What will do as an answer, in short; none where any text will.
pub(crate) fn expected(schema: &Value) -> Option<String> {
    let choices = schema.get("enum").and_then(Value::as_array).filter(|all| all.len() <= CHOICES_SHOWN);
    match (choices, schema.get("type").and_then(Value::as_str)) {
        (Some(choices), _) => Some(choices.iter().map(plain).collect::<Vec<_>>().join("/")),
        (None, Some("boolean")) => Some("yes/no".to_owned()),
        (None, Some("string") | None) => None,
        (None, Some(kind)) => Some(kind.to_owned()),
    }
}

/// Whether Enter alone is no answer: a text without a default, unless its schema says that it may be empty.
fn must_say_something(schema: &Value) -> bool {
    let is_text = matches!(schema.get("type").and_then(Value::as_str), Some("string"))
        || (schema.get("type").is_none() && schema.get("enum").is_none());
    is_text && schema.get("default").is_none() && schema.get("minLength").and_then(Value::as_u64) != Some(0)
}

/// A question as it stands before the place to type: what is asked, and what will do.
fn prompt(question: &Question, schema: &Value) -> String {
    let text = if question.prompt.is_empty() { &question.name } else { &question.prompt };
    let default = schema.get("default");
    let told = match (schema.get("type").and_then(Value::as_str), default.and_then(Value::as_bool)) {
        // What Enter alone means is written large.
        (Some("boolean"), Some(true)) => " [Y/n]".to_owned(),
        (Some("boolean"), Some(false)) => " [y/N]".to_owned(),
        (Some("boolean"), None) => " (y/n)".to_owned(),
        (Some("object" | "array"), _) => format!(" (as JSON: {})", json_shape(schema, schema)),
        _ => {
            let expected = expected(schema).map(|expected| format!(" ({expected})")).unwrap_or_default();
            let default = default.map(|default| format!(" [{}]", plain(default))).unwrap_or_default();
            expected + &default
        }
    };
    format!("[ask] {}: ", in_one_line(&format!("{text}{told}")))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

fn told(ended: AskEnd) -> &'static str {
    match ended {
        AskEnd::Answered => "[ask] answered from elsewhere",
        AskEnd::Declined => "[ask] declined",
        AskEnd::Expired => "[ask] nobody answered in time",
        AskEnd::Cancelled => "[ask] no answer is needed any more",
    }
}

fn say(text: &str) {
    // Where stderr is gone nobody reads prompts.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::CallId;
    use plugd_protocol::control::UnixMillis;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, expected: &str) {
        let question = Question {
            name: "n".into(),
            schema: None,
            prompt: "How\n\u{1b}[2Jmany?".into(),
            sensitive: false,
        };
        assert_eq!(prompt(&question, &schema), expected);
    }

    #[test]
    fn a_prompt_says_what_will_do_and_obeys_nothing() {
        check(Value::Null, "[ask] How \\u{1b}[2Jmany?: ");
        check(json!({"type": "integer", "default": 5}), "[ask] How \\u{1b}[2Jmany? (integer) [5]: ");
        check(json!({"type": "boolean"}), "[ask] How \\u{1b}[2Jmany? (y/n): ");
        check(json!({"type": "boolean", "default": false}), "[ask] How \\u{1b}[2Jmany? [y/N]: ");
        check(json!({"type": "boolean", "default": true}), "[ask] How \\u{1b}[2Jmany? [Y/n]: ");
        let place = json!({"type": "object", "properties": {"zip": {"type": "integer"}}});
        check(place, "[ask] How \\u{1b}[2Jmany? (as JSON: {\"zip\":…}): ");
        check(json!({"enum": ["red", 3]}), "[ask] How \\u{1b}[2Jmany? (red/3): ");
    }

    #[test]
    fn enter_alone_is_no_text() {
        for (schema, must) in [
            (Value::Null, true),
            (json!({"type": "string"}), true),
            (json!({"type": "string", "default": "x"}), false),
            (json!({"type": "string", "minLength": 0}), false),
            // What is wrong with that its schema says.
            (json!({"type": "integer"}), false),
            (json!({"enum": ["red"]}), false),
        ] {
            assert_eq!(must_say_something(&schema), must, "{schema}");
        }
    }

    #[test]
    fn whoever_asks_is_named() {
        let mut ask = Ask {
            token: "t-1".into(),
            call_id: CallId::new("c"),
            operation: plugd_protocol::OperationId::parse("notes.save").unwrap(),
            asked_by: None,
            questions: vec![],
            arguments: None,
            expires: UnixMillis(0),
        };
        assert_eq!(heading(&ask, false), "[ask] notes.save asks");
        ask.asked_by = Some(plugd_protocol::OperationId::parse("auth.login").unwrap());
        let expected =
            "[ask] auth.login, which notes.save uses, asks; from elsewhere: plugd answer t-1 NAME=VALUE ...";
        assert_eq!(heading(&ask, true), expected);
    }
}
