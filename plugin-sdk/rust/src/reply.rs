//! What a handler gives back, and how that goes over the wire.

use plugd_protocol::error::rpc_code;
use plugd_protocol::message;
use plugd_protocol::result::NextAction;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_path_to_error::Track;

use crate::error::Error;
use crate::finite::Finite;

/// What a handler gives: plain data, or a [`Reply`] that says more about it.
///
/// Plain data is anything that is `Serialize` and `JsonSchema`; its schema becomes the operation's
/// output schema. Return `serde_json::Value` where the shape is not to be declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given back by an operation",
    note = "expected what is Serialize and JsonSchema, or a Reply of that"
)]
pub trait IntoReply {
    /// The data.
    type Data: Serialize + JsonSchema;

    /// The data with what is said about it.
    fn into_reply(self) -> Reply<Self::Data>;
}

/// Data with one line about it and what may be worth calling next.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<T> {
    /// What was asked for.
    pub data: T,
    /// One line about it, for people and for a model's context.
    pub summary: Option<String>,
    /// What a caller may want to do next.
    pub next_actions: Vec<NextAction>,
}

impl<T> Reply<T> {
    /// Data alone.
    pub fn new(data: T) -> Reply<T> {
        Reply { data, summary: None, next_actions: Vec::new() }
    }

    /// Says it in one line.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Reply<T> {
        self.summary = Some(summary.into());
        self
    }

    /// Offers a call that may be worth making next.
    #[must_use]
    pub fn next_action(mut self, action: NextAction) -> Reply<T> {
        self.next_actions.push(action);
        self
    }
}

impl<T: Serialize + JsonSchema> IntoReply for T {
    type Data = T;

    fn into_reply(self) -> Reply<T> {
        Reply::new(self)
    }
}

impl<T: Serialize + JsonSchema> IntoReply for Reply<T> {
    type Data = T;

    fn into_reply(self) -> Reply<T> {
        self
    }
}

/// Does not compile where `T` is none; the attribute uses it.
#[doc(hidden)]
pub fn is_given_back<T: IntoReply>() {}

impl<T: Serialize> Reply<T> {
    /// Writes the line that answers a request with it.
    ///
    /// # Errors
    /// When the data cannot be written as JSON.
    pub(crate) fn write(&self, id: &RawValue, line: &mut Vec<u8>) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Written<'a, T> {
            data: Finite<'a, T>,
            #[serde(skip_serializing_if = "Option::is_none")]
            summary: &'a Option<String>,
            #[serde(skip_serializing_if = "is_empty")]
            next_actions: &'a [NextAction],
        }
        let Reply { data, summary, next_actions } = self;
        let written = Written { data: Finite(data), summary, next_actions };
        message::write_result(line, id, &written).map_err(|error| not_json(data, &error))
    }
}

/// Says what of the data cannot be written, and why.
fn not_json<T: Serialize>(data: &T, error: &serde_json::Error) -> Error {
    let mut track = Track::new();
    let mut unused = serde_json::Serializer::new(std::io::sink());
    // It fails again, at the same place.
    drop(Finite(data).serialize(serde_path_to_error::Serializer::new(&mut unused, &mut track)));
    let path = track.path().to_string();
    let place = if path == "." { String::new() } else { format!(" at {path}") };
    Error::coded(rpc_code::HANDLER_FAILED, format!("the result cannot be written as JSON{place}: {error}"))
}

fn is_empty(actions: &&[NextAction]) -> bool {
    actions.is_empty()
}
