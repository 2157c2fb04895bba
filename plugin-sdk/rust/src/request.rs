//! What a handler asks of its host, and how the answers are read.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use plugd_protocol::CallId;
use plugd_protocol::plugin::{HostAskParams, HostAskResult, HostCallParams, HostCallResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::ask::{Answers, Question};
use crate::context::Context;
use crate::error::Error;
use crate::finite::Finite;
use crate::offered::Service;
use crate::wire::HostAnswer;

/// What another plugin answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HostReply<T> {
    /// Its data.
    pub data: T,
    /// Its one line about it.
    pub summary: Option<String>,
    /// The id of that call.
    pub call_id: Option<CallId>,
}

/// A request to the host on behalf of a call, and what reads its answer.
pub(crate) struct Request<R> {
    service: Service,
    params: Box<RawValue>,
    read: R,
}

impl<T, R: FnOnce(&str) -> Result<T, Error>> Request<R> {
    fn new(service: Service, params: &impl Serialize, read: R) -> Result<Request<R>, Error> {
        Ok(Request { service, params: to_raw_value(params)?, read })
    }

    /// Sends it, and blocks until the host answers: it does so in time, or cancels the call.
    pub(crate) fn wait(self, context: &Context) -> Result<T, Error> {
        let (sender, answer) = sync_channel(1);
        // The channel has room for the one answer there is.
        self.send(context, move |answer| drop(sender.try_send(answer)))?;
        let _the_clock_stands_still = self.stops_clock().then(|| context.while_people_are_asked());
        self.read(answer.recv().unwrap_or(HostAnswer::HostGone))
    }

    /// Sends it, and awaits the host's answer.
    #[cfg(feature = "async")]
    pub(crate) async fn answer(self, context: &Context) -> Result<T, Error> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        self.send(context, move |answer| drop(sender.send(answer)))?;
        let _the_clock_stands_still = self.stops_clock().then(|| context.while_people_are_asked());
        self.read(answer.await.unwrap_or(HostAnswer::HostGone))
    }

    fn send(&self, context: &Context, tell: impl FnOnce(HostAnswer) + Send + 'static) -> Result<(), Error> {
        context.check()?;
        context.wire().ask(context.call_id(), self.service, &self.params, tell)?;
        // A cancel that came just before found nobody waiting yet.
        context.check()
    }

    fn stops_clock(&self) -> bool {
        self.service == Service::Asks
    }

    fn read(self, answer: HostAnswer) -> Result<T, Error> {
        match answer {
            HostAnswer::Result(whole) => (self.read)(whole.get()),
            HostAnswer::Error(error) => Err(Error::from_rpc(error)),
            HostAnswer::Cancelled => Err(Error::cancelled()),
            HostAnswer::HostGone => {
                let text = format!("there is no host to answer {}", self.service.method());
                Err(Error::new("no_host", text))
            }
        }
    }
}

/// A reader of answers.
type Reads<T> = Result<Request<Box<dyn FnOnce(&str) -> Result<T, Error> + Send>>, Error>;

/// Calls another plugin.
pub(crate) fn call<T: DeserializeOwned>(
    call_id: &CallId,
    operation: &str,
    arguments: &impl Serialize,
) -> Reads<HostReply<T>> {
    let arguments = to_raw_value(&Finite(arguments))?;
    let params = HostCallParams {
        call_id: Some(call_id.clone()),
        operation: operation.into(),
        arguments: Some(&arguments),
    };
    let who = operation.to_owned();
    Request::new(
        Service::Calls,
        &params,
        Box::new(move |whole| {
            let unexpected = |error| unexpected(&format!("{who} answered"), &error);
            let HostCallResult { data, summary, call_id } =
                serde_json::from_str(whole).map_err(unexpected)?;
            let data = serde_json::from_str(data.get()).map_err(unexpected)?;
            Ok(HostReply { data, summary: summary.map(Into::into), call_id })
        }),
    )
}

/// Asks the person behind the call.
pub(crate) fn ask(call_id: &CallId, questions: impl IntoIterator<Item = Question>) -> Reads<Answers> {
    let params = HostAskParams {
        call_id: Some(call_id.clone()),
        questions: questions.into_iter().map(Question::into_wire).collect(),
    };
    Request::new(
        Service::Asks,
        &params,
        Box::new(|whole| {
            let HostAskResult { answers } = serde_json::from_str(whole).map_err(|_| {
                // Not in serde's words, which would quote the answers.
                Error::new("unexpected_reply", "the host answered in a form not expected here")
            })?;
            Ok(Answers::new(answers))
        }),
    )
}

/// What `host/vars` is asked; one of the three.
#[derive(Default, Serialize)]
struct VarsParams<'a> {
    call_id: Option<&'a CallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    get: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<BTreeMap<&'a str, Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare_and_set: Option<CompareAndSet<'a>>,
}

#[derive(Serialize)]
struct CompareAndSet<'a> {
    name: &'a str,
    expected: Box<RawValue>,
    value: Box<RawValue>,
}

/// Reads a variable of the session.
pub(crate) fn get<T: DeserializeOwned>(call_id: &CallId, name: &str) -> Reads<Option<T>> {
    #[derive(Deserialize)]
    struct Found {
        vars: BTreeMap<String, Box<RawValue>>,
    }
    let params = VarsParams { call_id: Some(call_id), get: Some([name]), ..VarsParams::default() };
    let name = name.to_owned();
    Request::new(
        Service::Vars,
        &params,
        Box::new(move |whole| {
            let unexpected = |error| unexpected(&format!("the variable {name} came"), &error);
            let found: Found = serde_json::from_str(whole).map_err(unexpected)?;
            let value = found.vars.get(&name).map_or("null", |value| value.get());
            serde_json::from_str(value).map_err(unexpected)
        }),
    )
}

/// Sets a variable of the session.
pub(crate) fn set(call_id: &CallId, name: &str, value: &impl Serialize) -> Reads<()> {
    let set = BTreeMap::from([(name, to_raw_value(&Finite(value))?)]);
    let params = VarsParams { call_id: Some(call_id), set: Some(set), ..VarsParams::default() };
    Request::new(Service::Vars, &params, Box::new(|_| Ok(())))
}

/// Sets a variable of the session if it is still what it is taken for.
pub(crate) fn compare_and_set(
    call_id: &CallId,
    name: &str,
    expected: &impl Serialize,
    value: &impl Serialize,
) -> Reads<bool> {
    #[derive(Deserialize)]
    struct Done {
        swapped: bool,
    }
    let swap = CompareAndSet {
        name,
        expected: to_raw_value(&Finite(expected))?,
        value: to_raw_value(&Finite(value))?,
    };
    let params = VarsParams { call_id: Some(call_id), compare_and_set: Some(swap), ..VarsParams::default() };
    Request::new(
        Service::Vars,
        &params,
        Box::new(|whole| {
            let done: Done =
                serde_json::from_str(whole).map_err(|error| unexpected("the host answered", &error))?;
            Ok(done.swapped)
        }),
    )
}

/// Tells others what happened.
pub(crate) fn emit(call_id: &CallId, event: &str, data: &impl Serialize) -> Reads<()> {
    #[derive(Serialize)]
    struct EmitParams<'a, D> {
        call_id: &'a CallId,
        event: &'a str,
        data: Finite<'a, D>,
    }
    Request::new(Service::Events, &EmitParams { call_id, event, data: Finite(data) }, Box::new(|_| Ok(())))
}

fn unexpected(what_came: &str, error: &serde_json::Error) -> Error {
    Error::new("unexpected_reply", format!("{what_came} in a form not expected here: {error}"))
}
