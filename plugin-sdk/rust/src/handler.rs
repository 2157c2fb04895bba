//! Functions that can be operations.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::Error;
use crate::reply::IntoReply;

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
