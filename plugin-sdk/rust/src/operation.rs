//! One operation: a typed function and what is declared about it.

use std::time::Duration;

use plugd_protocol::error::rpc_code;
use plugd_protocol::manifest::{self, Audience, Confirm, Effects};
use plugd_protocol::name::OperationName;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::context::Context;
use crate::error::Error;
use crate::handler::Handler;
use crate::prose::flowing;
use crate::reply::IntoReply;
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

/// A handler with its types taken off: it writes the line that answers the request.
pub(crate) type Run<S> =
    Box<dyn Fn(Asked<'_>, &S, &Context, &mut Vec<u8>) -> Result<(), Error> + Send + Sync>;

/// What a handler is asked: the request's id and its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a RawValue,
    pub(crate) arguments: &'a RawValue,
}

impl<S: 'static> Operation<S> {
    /// An operation that runs `handler`; the attribute [`operation`](macro@crate::operation) writes this.
    ///
    /// The input schema is that of the arguments' type and the output schema that of the data's;
    /// doc comments become descriptions, the one on the arguments' type the operation's own.
    pub fn new<H, Form>(name: &str, handler: H) -> Operation<S>
    where
        H: Handler<S, Form>,
    {
        Operation::typed(name, move |arguments, state: &S, context: &Context| {
            handler.run(arguments, state, context)
        })
    }

    /// An operation that runs an `async` handler.
    ///
    /// It runs on a thread of the plugin's lanes; what it spawns and awaits runs on a tokio runtime.
    #[cfg(feature = "async")]
    pub fn new_async<H, Form>(name: &str, handler: H) -> Operation<S>
    where
        H: crate::AsyncHandler<S, Form>,
    {
        Operation::typed(name, move |arguments, state: &S, context: &Context| {
            crate::asynchronous::run(&handler, arguments, state, context)
        })
    }

    fn typed<A, O>(
        name: &str,
        handler: impl Fn(A, &S, &Context) -> Result<O, Error> + Send + Sync + 'static,
    ) -> Operation<S>
    where
        A: DeserializeOwned + JsonSchema,
        O: IntoReply,
    {
        let no_arguments = schema::is_unit::<A>();
        let run = move |asked: Asked<'_>, state: &S, context: &Context, line: &mut Vec<u8>| {
            let json = if no_arguments { "null" } else { asked.arguments.get() };
            let arguments = serde_json::from_str(json).map_err(|error| {
                Error::coded(rpc_code::INVALID_PARAMS, format!("the arguments do not fit: {error}"))
            })?;
            handler(arguments, state, context)?.into_reply().write(asked.id, line)
        };
        Operation { name: name.to_owned(), declared: declare::<A, O::Data>(name), run: Box::new(run) }
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

    /// For how long the same arguments of the same caller may get the same answer; only where it is
    /// read-only. Whole seconds.
    #[must_use]
    pub fn cache_ttl(self, time: Duration) -> Self {
        self.declare(|operation| operation.cache_ttl = Some(time.as_secs()))
    }

    /// Whether somebody must agree before it runs; as its effects say unless declared.
    #[must_use]
    pub fn confirm(self, confirm: Confirm) -> Self {
        self.declare(|operation| operation.confirm = confirm)
    }

    /// Offers it only to callers whose profile holds this, and to the owner.
    #[must_use]
    pub fn scope(self, scope: impl Into<String>) -> Self {
        self.declare(|operation| operation.scope = Some(scope.into()))
    }

    /// Has data of more bytes than this given in pages.
    #[must_use]
    pub fn result_limit(self, bytes: u64) -> Self {
        self.declare(|operation| operation.result_limit = Some(bytes))
    }

    /// The arguments' JSON Schema, where it is not that of their type.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.declare(|operation| operation.input_schema = raw(&schema))
    }

    /// The data's JSON Schema, where it is not that of its type; `Value::Null` declares none.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        self.declare(|operation| operation.output_schema = (!schema.is_null()).then(|| raw(&schema)))
    }

    /// Takes the text of a doc comment as the description, if there is any.
    #[doc(hidden)]
    #[must_use]
    pub fn documented(self, doc: &str) -> Self {
        let description = flowing(doc);
        if description.is_empty() { self } else { self.description(description) }
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
            run: Box::new(move |asked, _, context, line| run(asked, &(), context, line)),
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

fn raw(schema: &Value) -> Box<RawValue> {
    to_raw_value(schema).expect("a JSON value is JSON")
}
