//! Handlers that are `async fn`, on a tokio runtime (feature `async`).

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use crate::ask::{Answers, ONLY, Question};
use crate::context::Context;
use crate::error::Error;
use crate::reply::IntoReply;
use crate::request::{self, HostReply};

/// Threads for what handlers spawn, and for I/O and timers: each call has a thread of its own besides.
const WORKERS: usize = 2;

/// Runs a future to its end on the runtime that handlers run on.
///
/// For [`init`](crate::Plugin::init), [`reload`](crate::Plugin::reload) and
/// [`shutdown`](crate::Plugin::shutdown), which are no `async fn`: a connection pool that is opened so
/// belongs to that runtime.
///
/// # Panics
/// On a thread that already runs a future, as in a handler: `.await` it there.
///
/// # Errors
/// When the system gives the runtime no threads.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let build = || {
        let built = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
        built.map_err(|error| format!("cannot start the runtime: {error}"))
    };
    let runtime = RUNTIME.get_or_init(build).as_ref().map_err(Error::message)?;
    Ok(runtime.block_on(future))
}

/// Everything about one call of an `async` handler: a [`Context`] whose waiting is awaited.
///
/// All that a [`Context`] has it has, too: `cx.info(…)`, `cx.time_left()`, `cx.progress(…)`. It is cheap
/// to clone, and may go to other tasks and threads.
///
/// Where the call is cancelled, the handler is dropped at its next `.await`, and the call answered. What
/// must not be left half done goes into a task of its own: `tokio::spawn(…).await?`.
#[derive(Clone)]
pub struct AsyncContext(Context);

impl AsyncContext {
    /// A call without a host, as [`Context::for_test`].
    pub fn for_test() -> AsyncContext {
        AsyncContext(Context::for_test())
    }

    /// Calls another plugin's operation, as [`Context::call`].
    ///
    /// # Errors
    /// As [`Context::call`].
    pub async fn call<T: DeserializeOwned>(
        &self,
        operation: &str,
        arguments: &impl Serialize,
    ) -> Result<HostReply<T>, Error> {
        request::call(self.call_id(), operation, arguments)?.answer(&self.0).await
    }

    /// Asks the person behind the call, as [`Context::ask`].
    ///
    /// # Errors
    /// As [`Context::ask`].
    pub async fn ask<T: DeserializeOwned + JsonSchema>(&self, prompt: &str) -> Result<T, Error> {
        self.ask_many([Question::new::<T>(ONLY, prompt)]).await?.get(ONLY)
    }

    /// Asks for a secret, as [`Context::ask_secret`].
    ///
    /// # Errors
    /// As [`Context::ask`].
    pub async fn ask_secret(&self, prompt: &str) -> Result<String, Error> {
        self.ask_many([Question::new::<String>(ONLY, prompt).secret()]).await?.get(ONLY)
    }

    /// Asks several things at once, at most 16.
    ///
    /// # Errors
    /// As [`Context::ask`].
    pub async fn ask_many(&self, questions: impl IntoIterator<Item = Question>) -> Result<Answers, Error> {
        request::ask(self.call_id(), questions)?.answer(&self.0).await
    }

    /// The variables of the session that the call belongs to, as [`Context::vars`].
    pub fn vars(&self) -> AsyncVars<'_> {
        AsyncVars(&self.0)
    }

    /// Tells whoever listens that something happened, as [`Context::emit`].
    ///
    /// # Errors
    /// As [`Context::emit`].
    pub async fn emit(&self, event: &str, data: &impl Serialize) -> Result<(), Error> {
        request::emit(self.call_id(), event, data)?.answer(&self.0).await
    }

    /// Done once the call is cancelled; for a task that outlives its handler.
    pub async fn cancelled(&self) {
        self.wire().standby().call_waits();
        std::future::poll_fn(|task| self.poll_cancelled(task)).await;
    }

    /// Sleeps until the call is cancelled, at most for `timeout`; whether it is cancelled.
    pub async fn wait_cancelled(&self, timeout: Duration) -> bool {
        drop(tokio::time::timeout(timeout, self.cancelled()).await);
        self.is_cancelled()
    }
}

impl Deref for AsyncContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

/// Shows the call's id.
impl fmt::Debug for AsyncContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AsyncContext").field("call_id", self.call_id()).finish_non_exhaustive()
    }
}

/// The variables of a session, as [`Vars`](crate::Vars).
#[derive(Debug, Clone, Copy)]
pub struct AsyncVars<'a>(&'a Context);

impl AsyncVars<'_> {
    /// The variable of that name; `None` where it was never set, or set to `null`.
    ///
    /// # Errors
    /// As [`Vars::get`](crate::Vars::get).
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        request::get(self.0.call_id(), name)?.answer(self.0).await
    }

    /// Sets it, whatever it was.
    ///
    /// # Errors
    /// As [`Vars::set`](crate::Vars::set).
    pub async fn set(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        request::set(self.0.call_id(), name, value)?.answer(self.0).await
    }

    /// Sets it if it still is `expected`; whether it was.
    ///
    /// # Errors
    /// As [`Vars::compare_and_set`](crate::Vars::compare_and_set).
    pub async fn compare_and_set(
        &self,
        name: &str,
        expected: &impl Serialize,
        value: &impl Serialize,
    ) -> Result<bool, Error> {
        request::compare_and_set(self.0.call_id(), name, expected, value)?.answer(self.0).await
    }
}

/// An `async fn` that can be an operation.
///
/// Implemented for `async fn(Arguments, &AsyncContext) -> Result<Output, Error>` and, where the plugin
/// has state, for `async fn(Arguments, &State, &AsyncContext) -> Result<Output, Error>`. Its future
/// need not be `Send`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operation of a plugin with the state `{S}`",
    note = "expected async fn(Arguments, &AsyncContext) -> Result<Output, plugd_sdk::Error>, or with `&State` in the middle",
    note = "Arguments must be Deserialize and JsonSchema, Output Serialize and JsonSchema"
)]
pub trait AsyncHandler<S, Form>: Send + Sync + 'static {
    /// What it takes.
    type Arguments: DeserializeOwned + JsonSchema;
    /// What it gives.
    type Output: IntoReply;

    /// Runs it once.
    fn run(
        &self,
        arguments: Self::Arguments,
        state: &S,
        context: &AsyncContext,
    ) -> impl Future<Output = Result<Self::Output, Error>>;
}

impl<F, A, O, S> AsyncHandler<S, fn(A, &AsyncContext) -> O> for F
where
    F: AsyncFn(A, &AsyncContext) -> Result<O, Error> + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema,
    O: IntoReply,
{
    type Arguments = A;
    type Output = O;

    async fn run(&self, arguments: A, _: &S, context: &AsyncContext) -> Result<O, Error> {
        self(arguments, context).await
    }
}

impl<F, A, O, S> AsyncHandler<S, fn(A, &S, &AsyncContext) -> O> for F
where
    F: AsyncFn(A, &S, &AsyncContext) -> Result<O, Error> + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema,
    O: IntoReply,
{
    type Arguments = A;
    type Output = O;

    async fn run(&self, arguments: A, state: &S, context: &AsyncContext) -> Result<O, Error> {
        self(arguments, state, context).await
    }
}

/// Runs a handler on this thread until it is done or its call is cancelled.
pub(crate) fn run<H: AsyncHandler<S, Form>, S, Form>(
    handler: &H,
    arguments: H::Arguments,
    state: &S,
    context: &Context,
) -> Result<H::Output, Error> {
    let context = AsyncContext(context.clone());
    block_on(async {
        let mut handled = pin!(handler.run(arguments, state, &context));
        std::future::poll_fn(|task| match context.poll_cancelled(task) {
            Poll::Ready(()) => Poll::Ready(Err(Error::cancelled())),
            Poll::Pending => handled.as_mut().poll(task),
        })
        .await
    })?
}
