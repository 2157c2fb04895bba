//! What a handler may have its host do: call other plugins, keep variables, tell what happened.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::Error;
use crate::request::{self, HostReply};

impl Context {
    /// Calls another plugin's operation, `plugin.operation`, and waits for its answer.
    ///
    /// The manifest must name that plugin: [`Plugin::requires`](crate::Plugin::requires). The inner
    /// call shares this one's deadline, session and trace, and ends when this one is cancelled.
    ///
    /// # Errors
    /// The inner call's failure, with its `cause`: handed on with `?`, the answer to this call
    /// names the plugin that failed. Also when the data is no `T`, and when the deadline passes: the
    /// host then cancels the call. Named `not_offered` where the host makes no calls.
    pub fn call<T: DeserializeOwned>(
        &self,
        operation: &str,
        arguments: &impl Serialize,
    ) -> Result<HostReply<T>, Error> {
        request::call(self.call_id(), operation, arguments)?.wait(self)
    }

    /// The variables of the session that the call belongs to.
    ///
    /// No host offers them yet: all of their methods fail with the name `not_offered`.
    pub fn vars(&self) -> Vars<'_> {
        Vars(self)
    }

    /// Tells whoever listens that something happened.
    ///
    /// # Errors
    /// Named `not_offered` where the host offers no events; none does yet.
    pub fn emit(&self, event: &str, data: &impl Serialize) -> Result<(), Error> {
        request::emit(self.call_id(), event, data)?.wait(self)
    }
}

/// The variables of a session: what later calls of it find again.
#[derive(Debug, Clone, Copy)]
pub struct Vars<'a>(&'a Context);

impl Vars<'_> {
    /// The variable of that name; `None` where it was never set, or set to `null`.
    ///
    /// # Errors
    /// Named `not_offered` where the host keeps none; when it is no `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        request::get(self.0.call_id(), name)?.wait(self.0)
    }

    /// Sets it, whatever it was.
    ///
    /// # Errors
    /// Named `not_offered` where the host keeps none; when the value cannot be written as JSON.
    pub fn set(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        request::set(self.0.call_id(), name, value)?.wait(self.0)
    }

    /// Sets it if it still is `expected`, as `None` is of one that was never set; whether it was.
    ///
    /// # Errors
    /// Named `not_offered` where the host keeps none; when a value cannot be written as JSON.
    pub fn compare_and_set(
        &self,
        name: &str,
        expected: &impl Serialize,
        value: &impl Serialize,
    ) -> Result<bool, Error> {
        request::compare_and_set(self.0.call_id(), name, expected, value)?.wait(self.0)
    }
}
