//! What a scenario is, and how it can come out.

use std::future::Future;
use std::pin::Pin;

use plugd_protocol::control::ScenarioFinding;

use crate::kit::Kit;

/// One thing that is tried with a plugin.
pub struct Scenario {
    /// Its name, in snake case; it stays the same.
    pub name: &'static str,
    /// What a plugin shows that passes it, as the rest of a sentence that begins with "it".
    pub shows: &'static str,
    /// What is done, and why that matters.
    pub does: &'static str,
    /// The part of `docs/protocol.md` that says so.
    pub anchor: &'static str,
    /// What to do where it fails.
    pub fix: &'static str,
    pub(crate) stage: Stage,
    pub(crate) needs: Needs,
    pub(crate) run: Run,
}

/// A scenario under way.
pub(crate) type Run = fn(Kit) -> Pin<Box<dyn Future<Output = Came> + Send>>;

/// How a scenario came out; what makes it fail at once is an error.
pub(crate) type Came = Result<Verdict, Finding>;

/// When a scenario is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// First and alone: what comes later builds on it.
    First,
    /// Beside others.
    Beside,
    /// After those, alone: it measures.
    Alone,
    /// The same, and left out where it is to be quick.
    Slow,
    /// Last: it looks at all that was heard.
    Last,
}

/// What must be there for a scenario to say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A program.
    Nothing,
    /// A manifest that can be used.
    Manifest,
    /// A plugin that answered `init`.
    Ready,
    /// One that answers a method that it does not know, too: that is how it is asked without effects.
    Refusing,
    /// An operation that may be called, too.
    Call,
}

impl Scenario {
    /// Where the specification says so: a path from the top of the repository, with the heading.
    pub fn spec(&self) -> String {
        format!("docs/protocol.md#{}", self.anchor)
    }

    /// Whether it is left out where the kit is to be quick.
    pub fn is_slow(&self) -> bool {
        self.stage == Stage::Slow
    }

    /// Whether it is tried only where operations may be called.
    pub fn calls(&self) -> bool {
        self.needs == Needs::Call
    }
}

/// How a scenario came out.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// As it should be, with what was measured.
    Passed(Option<String>),
    /// It says nothing, and why.
    Skipped(String),
    /// What is wrong.
    Found(Vec<Finding>),
}

impl Verdict {
    pub(crate) const PASSED: Verdict = Verdict::Passed(None);

    /// It passed unless there is something wrong.
    pub(crate) fn of(findings: Vec<Finding>) -> Verdict {
        if findings.is_empty() { Verdict::PASSED } else { Verdict::Found(findings) }
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Finding {
    fails: bool,
    message: String,
    evidence: Vec<String>,
    fix: Option<String>,
}

impl Finding {
    /// What makes the scenario fail.
    pub(crate) fn failure(message: impl Into<String>) -> Finding {
        Finding { fails: true, message: message.into(), evidence: Vec::new(), fix: None }
    }

    /// What plugd copes with.
    pub(crate) fn warning(message: impl Into<String>) -> Finding {
        Finding { fails: false, ..Finding::failure(message) }
    }

    pub(crate) fn with(mut self, evidence: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(evidence);
        self
    }

    /// What to do about it, where that is not what the scenario says.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }

    /// The same as what plugd copes with.
    pub(crate) fn only_warns(mut self) -> Finding {
        self.fails = false;
        self
    }

    /// The same, said with what went before it.
    pub(crate) fn when(mut self, when: &str) -> Finding {
        self.message = format!("{when}: {}", self.message);
        self
    }

    pub(crate) fn report(self, scenario: &Scenario) -> ScenarioFinding {
        let Finding { fails, message, evidence, fix } = self;
        let fix = fix.unwrap_or_else(|| scenario.fix.to_owned());
        ScenarioFinding { fails, message, evidence, fix }
    }
}
