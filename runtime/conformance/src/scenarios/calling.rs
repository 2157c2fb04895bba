//! One call of an operation, and how it came out.

use std::time::Duration;

use plugd_protocol::plugin::method;
use plugd_protocol::{Operation, RpcError};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ear::Answer;
use crate::kit::{CANCEL_GRACE, Kit};
use crate::scenario::Finding;
use crate::session::Session;

/// Codes of errors that are not an operation's own words.
const HANDLER_FAILED: i64 = 2;
const NO_SUCH_METHOD: i64 = -32601;
const CANCELLED: i64 = -32800;

/// How a call came out that was answered.
pub(super) enum Outcome {
    Data(Box<RawValue>, Duration),
    /// With an error.
    Refused(Finding),
    /// With an error, once it had asked for what one alone cannot have.
    Lacking(String),
}

/// Calls an operation; one that is not answered is told to stop.
pub(super) async fn call(
    kit: &Kit,
    session: &mut Session,
    operation: &Operation,
    arguments: &Value,
) -> Result<Outcome, Finding> {
    let name = operation.name.as_str();
    let (params, call_id) = kit.call_params(name, arguments, kit.call_time());
    // What it asked for in an earlier call is none of this one's.
    session.ear.take_lacked();
    let id = session.send(method::CALL, &params);
    let (answer, took) = match session.answer(id, kit.call_time()).await {
        Ok(answered) => answered,
        Err(fault) if session.is_up() => {
            session.notify(method::CANCEL, &serde_json::json!({"call_id": call_id}));
            let fault = fault.when(name);
            return Err(match session.answer(id, CANCEL_GRACE).await {
                Ok(_) => fault.fix("it does answer once it is cancelled: give it more time with --timeout"),
                Err(_) => fault.fix(
                    "plugd would cancel the call, and kill the process 2 s later: answer, or stop at `cancel`",
                ),
            });
        }
        Err(fault) => return Err(fault.when(name)),
    };
    match answer {
        Answer::Broken(broken) => Err(session.broken(name, &broken)),
        Answer::Error(error) => match session.ear.take_lacked() {
            Some(lacks) => Ok(Outcome::Lacking(lacks)),
            None => Ok(Outcome::Refused(failed(session, name, &error))),
        },
        Answer::Result(result) => match data_of(&result) {
            Ok(data) => Ok(Outcome::Data(data, took)),
            Err(why) => Err(session.fault(format!("{name}: {why}"))),
        },
    }
}

/// What to say of an error: in its own words it is an answer, and what is no such answer is a fault.
fn failed(session: &Session, name: &str, error: &RpcError) -> Finding {
    let (code, message) = (error.code, &error.message);
    match code {
        HANDLER_FAILED => {
            let said =
                format!("the handler of {name} failed with its own examples (error {code}): {message}");
            session.fault(said).fix(
                "mend the handler: its stack belongs on stderr; a failure on purpose is an error with code 1, a name \
                 and a hint",
            )
        }
        NO_SUCH_METHOD => {
            let said =
                format!("{name} is declared, and a call of it is answered with error {code}: {message}");
            session.fault(said).fix("write a handler for it, or leave it out of the manifest")
        }
        CANCELLED => {
            let said =
                format!("{name} answers that it was cancelled (error {code}), and nobody cancelled it");
            session.fault(said).fix("answer with error -32800 only after a `cancel` of that call")
        }
        _ => {
            let said = format!("{name} fails with its own examples, in its own words: {message}");
            session.fault(said).only_warns().fix(
                "give its input_schema `examples` that work wherever it is tried, or leave it out: --call=NAME,… names \
                 what is called",
            )
        }
    }
}

/// The data in the result of a call.
fn data_of(result: &RawValue) -> Result<Box<RawValue>, String> {
    // Unparsed members: only their form is looked at.
    let members = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(result.get());
    let members = members.map_err(|_| "the result of a call must be an object with data".to_owned())?;
    let data = members.get("data").ok_or("the result has no data")?;
    if let Err(error) = serde_json::from_str::<Value>(data.get()) {
        return Err(format!("its data cannot be read by common JSON readers: {error}"));
    }
    Ok((*data).to_owned())
}
