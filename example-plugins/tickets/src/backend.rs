//! The ticket system: a shipped file of the answers that a real one would send.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plugd_sdk::{Context, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answers, by ticket, and how long to wait for one.
pub(crate) struct Backend {
    answers: BTreeMap<String, Answer>,
    timeout: Duration,
}

/// What the ticket system sends: its own code, its own words, and the ticket where all is well.
#[derive(Deserialize)]
struct Answer {
    code: i32,
    msg: String,
    data: Option<Ticket>,
    /// How long the ticket system takes for this one.
    #[serde(default)]
    delay_ms: u64,
}

/// A ticket as the ticket system knows it.
#[derive(Clone, Deserialize)]
pub(crate) struct Ticket {
    /// Where it is; the ticket system does not always know.
    pub(crate) current_step: Option<String>,
    /// Its way, from first to last.
    pub(crate) steps: Vec<Step>,
    /// When it last moved.
    pub(crate) updated_at: String,
}

/// One step on a ticket's way.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Step {
    /// What the step is called.
    pub(crate) name: String,
    /// How far it is.
    pub(crate) state: State,
    /// When it was done.
    pub(crate) at: Option<String>,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Done,
    Active,
    Waiting,
}

impl Backend {
    pub(crate) fn open(file: &Path, timeout: Duration) -> Result<Backend, Error> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::new("tickets_unreadable", format!("cannot read {shown}: {error}"))
                .hint("set the config key \"file\" to a ticket file")
        })?;
        let answers = serde_json::from_str(&text).map_err(|error| {
            Error::new("tickets_unreadable", format!("{shown} is no ticket file: {error}"))
        })?;
        Ok(Backend { answers, timeout })
    }

    /// Asks for one ticket, as long as the configuration allows and the call is wanted.
    pub(crate) fn ticket(&self, id: &str, cx: &Context) -> Result<&Ticket, Error> {
        let Some(answer) = self.answers.get(id) else {
            return Err(Error::new("ticket_not_found", format!("there is no ticket {id}"))
                .hint("tickets.list_open names the tickets that are under way"));
        };
        let delay = Duration::from_millis(answer.delay_ms);
        if cx.wait_cancelled(delay.min(self.timeout)) {
            return Err(Error::cancelled());
        }
        if delay > self.timeout {
            let waited = self.timeout.as_secs_f32();
            return Err(Error::new(
                "backend_timeout",
                format!("the ticket system did not answer in {waited} s"),
            )
            .hint("try again later, or raise the config key \"request_timeout\"")
            .retryable());
        }
        answer.ticket()
    }

    /// The tickets it knows and can show, by id.
    pub(crate) fn tickets(&self) -> impl Iterator<Item = (&str, &Ticket)> {
        self.answers.iter().filter_map(|(id, answer)| Some((id.as_str(), answer.ticket().ok()?)))
    }
}

impl Answer {
    fn ticket(&self) -> Result<&Ticket, Error> {
        match &self.data {
            Some(ticket) if self.code == 0 => Ok(ticket),
            _ => Err(Error::new("backend_error", format!("the ticket system says: {}", self.msg))
                .hint(format!("its code for this is {}", self.code))),
        }
    }
}

impl Ticket {
    /// What comes after the steps that are done, the active one aside.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.steps.iter().find(|step| step.state == State::Waiting).map(|step| step.name.as_str())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.steps.iter().any(|step| step.state != State::Done)
    }
}
