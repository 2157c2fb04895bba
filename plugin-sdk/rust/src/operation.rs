//! One operation: a typed function and what is declared about it.

use std::time::Duration;

use plugd_protocol::error::rpc_code;
use plugd_protocol::manifest::{self, Audience, Confirm, Effects};
use plugd_protocol::name::OperationName;
use plugd_protocol::result::NextAction;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::context::Context;
use crate::error::Error;
use crate::schema;

/// An operation of a plugin with the state `S`: what it is called, does, and runs.
///
/// Declarations are read by people and by models that choose what to call: say plainly what it
/// does, when to use it and when not.
pub struct Operation<S = ()> {
    pub(crate) name: String,
    /// What is declared, or why it cannot be.
    pub(crate) declared: Result<manifest::Operation, String>,
    pub(crate) run: Run<S>,
}

/// A handler with its types taken off.
pub(crate) type Run<S> = Box<dyn Fn(&RawValue, &S, &Context) -> Result<RawReply, Error> + Send + Sync>;

/// A typed function that can be an operation.
///
/// Implemented for `fn(Arguments, &Context) -> Result<Output, Error>` and, where the plugin has
/// state, for `fn(Arguments, &State, &Context) -> Result<Output, Error>`. `Form` tells them apart
/// and is always inferred. Arguments are a struct with a named field per parameter, or `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operation of a plugin with the state `{S}`",
    note = "expected fn(Arguments, &Context) -> Result<Output, plugd_sdk::Error>, or with `&State` in the middle",
    note = "Arguments must be Deserialize and JsonSchema, Output Serialize and JsonSchema"
)]
pub trait Handler<S, Form>: Send + Sync + 'static {
    /// What it takes.
    type Arguments: DeserializeOwned + JsonSchema;
    /// What it gives.
    type Output: IntoReply;

    /// Runs it once.
    ///
    /// # Errors
    /// The operation's own failure.
    fn run(&self, arguments: Self::Arguments, state: &S, context: &Context) -> Result<Self::Output, Error>;
}

impl<F, A, O, S> Handler<S, fn(A, &Context) -> O> for F
where
    F: Fn(A, &Context) -> Result<O, Error> + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema,
    O: IntoReply,
{
    type Arguments = A;
    type Output = O;

    fn run(&self, arguments: A, _: &S, context: &Context) -> Result<O, Error> {
        self(arguments, context)
    }
}

impl<F, A, O, S> Handler<S, fn(A, &S, &Context) -> O> for F
where
    F: Fn(A, &S, &Context) -> Result<O, Error> + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema,
    O: IntoReply,
{
    type Arguments = A;
    type Output = O;

    fn run(&self, arguments: A, state: &S, context: &Context) -> Result<O, Error> {
        self(arguments, state, context)
    }
}

/// What a handler gives: plain data, or a [`Reply`] that says more about it.
///
/// Plain data is anything that is `Serialize` and `JsonSchema`; its schema becomes the operation's
/// output schema. Return `serde_json::Value` where the shape is not to be declared.
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

/// A reply ready for the wire.
#[derive(Debug, Serialize)]
pub(crate) struct RawReply {
    data: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_actions: Vec<NextAction>,
}

impl<S: 'static> Operation<S> {
    /// An operation that runs `handler`; [`operation!`](crate::operation!) takes the name from it.
    ///
    /// The input schema is that of the arguments' type and the output schema that of the data's;
    /// doc comments become descriptions, the one on the arguments' type the operation's own.
    pub fn new<H, Form>(name: &str, handler: H) -> Operation<S>
    where
        H: Handler<S, Form>,
    {
        let no_arguments = schema::is_unit::<H::Arguments>();
        let run = move |raw: &RawValue, state: &S, context: &Context| {
            let json = if no_arguments { "null" } else { raw.get() };
            let arguments = serde_json::from_str(json).map_err(|error| {
                Error::coded(rpc_code::INVALID_PARAMS, format!("the arguments do not fit: {error}"))
            })?;
            let reply = handler.run(arguments, state, context)?.into_reply();
            let data = to_raw_value(&reply.data).map_err(|error| {
                Error::coded(rpc_code::INTERNAL, format!("the result cannot be written as JSON: {error}"))
            })?;
            Ok(RawReply { data, summary: reply.summary, next_actions: reply.next_actions })
        };
        let declared = declare::<H::Arguments, <H::Output as IntoReply>::Data>(name);
        Operation { name: name.to_owned(), declared, run: Box::new(run) }
    }

    /// A short title for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.declare(|operation| operation.title = Some(title.into()))
    }

    /// What it does, in two sentences or more.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.declare(|operation| operation.description = Some(description.into()))
    }

    /// When it is the right choice.
    #[must_use]
    pub fn when_to_use(self, when: impl Into<String>) -> Self {
        self.declare(|operation| operation.when_to_use = Some(when.into()))
    }

    /// When it is not, and what is instead.
    #[must_use]
    pub fn when_not_to_use(self, when: impl Into<String>) -> Self {
        self.declare(|operation| operation.when_not_to_use = Some(when.into()))
    }

    /// Sentences with which people ask for it.
    #[must_use]
    pub fn examples<T: Into<String>>(self, sentences: impl IntoIterator<Item = T>) -> Self {
        self.declare(|operation| operation.examples.extend(sentences.into_iter().map(Into::into)))
    }

    /// What kind of operation it is.
    #[must_use]
    pub fn category(self, category: impl Into<String>) -> Self {
        self.declare(|operation| operation.category = Some(category.into()))
    }

    /// Offers it to other plugins only, never to callers or models.
    #[must_use]
    pub fn for_plugins(self) -> Self {
        self.declare(|operation| operation.audience = Audience::Plugins)
    }

    /// Claims that it changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.declare(|operation| operation.effects.read_only = Some(true))
    }

    /// Claims that running it twice is as good as once: the host may try it again.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.declare(|operation| operation.effects.idempotent = Some(true))
    }

    /// Warns that it may destroy something.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.declare(|operation| operation.effects.destructive = Some(true))
    }

    /// Says that it reaches beyond this machine.
    #[must_use]
    pub fn open_world(self) -> Self {
        self.declare(|operation| operation.effects.open_world = Some(true))
    }

    /// Declares all effects at once, also what it does not do.
    #[must_use]
    pub fn effects(self, effects: Effects) -> Self {
        self.declare(|operation| operation.effects = effects)
    }

    /// How long it may run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.declare(|operation| operation.timeout_ms = Some(millis(timeout)))
    }

    /// How long it may go without progress.
    #[must_use]
    pub fn stall_timeout(self, timeout: Duration) -> Self {
        self.declare(|operation| operation.stall_timeout_ms = Some(millis(timeout)))
    }

    /// Says that it runs in the background.
    #[must_use]
    pub fn long_running(self) -> Self {
        self.declare(|operation| operation.long_running = true)
    }

    fn declare(mut self, change: impl FnOnce(&mut manifest::Operation)) -> Self {
        if let Ok(operation) = &mut self.declared {
            change(operation);
        }
        self
    }
}

impl Operation<()> {
    /// The same operation in a plugin that has state it does not look at.
    pub(crate) fn with_any_state<S: 'static>(self) -> Operation<S> {
        let run = self.run;
        Operation {
            name: self.name,
            declared: self.declared,
            run: Box::new(move |arguments, _, context| run(arguments, &(), context)),
        }
    }
}

fn declare<A: JsonSchema, O: JsonSchema>(name: &str) -> Result<manifest::Operation, String> {
    let name = OperationName::new(name).map_err(|error| error.to_string())?;
    let mut input = schema::of_input::<A>()?;
    let description = input.shift_remove("description").and_then(|text| text.as_str().map(str::to_owned));
    Ok(manifest::Operation {
        name,
        title: None,
        description,
        when_to_use: None,
        when_not_to_use: None,
        examples: Vec::new(),
        category: None,
        audience: Audience::Callers,
        input_schema: to_raw_value(&input).map_err(|error| error.to_string())?,
        output_schema: schema::of_output::<O>(),
        effects: Effects::default(),
        timeout_ms: None,
        stall_timeout_ms: None,
        long_running: false,
        cache_ttl: None,
        confirm: Confirm::Auto,
        scope: None,
        result_limit: None,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// An [`Operation`] called like the function it runs.
///
/// `operation!(query_status)` is `Operation::new("query_status", query_status)`.
#[macro_export]
macro_rules! operation {
    ($handler:path) => {
        $crate::Operation::new(stringify!($handler).rsplit("::").next().unwrap_or_default().trim(), $handler)
    };
}
