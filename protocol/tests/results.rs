//! The released form of a call's result, byte for byte, as clients of the control API read it.
//!
//! The files under `wire/control` are frozen: a change here breaks every client out there.

use std::path::Path;

use plugd_protocol::error::{ArgumentProblem, Cause};
use plugd_protocol::result::{Meta, NextAction};
use plugd_protocol::{CallError, CallId, CallResult, ErrorKind, OperationId, Outcome, Status};
use serde_json::value::RawValue;

const OUTER: &str = "01936d5e-7c00-7000-8000-000000000001";
const INNER: &str = "01936d5e-7c00-7000-8000-000000000002";

/// A golden file without its newline.
fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/control").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.strip_suffix('\n').expect("a file ends with its newline").to_owned()
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

fn meta() -> Meta {
    Meta {
        call_id: Some(CallId::new(OUTER)),
        operation: OperationId::parse("tickets.query_status").ok(),
        plugin_version: Some("1.0.0".to_owned()),
        generation: Some(1),
        attempt: 1,
        queue_us: 12,
        run_us: 3_400,
        argument_bytes: 31,
        ..Meta::default()
    }
}

fn failed(error: CallError, meta: Meta) -> CallResult {
    CallResult {
        status: Status::Error,
        data: None,
        summary: None,
        error: Some(error),
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta,
    }
}

#[track_caller]
fn result_is(name: &str, result: &CallResult, exit_code: u8) {
    let frozen = golden(name);
    assert_eq!(serde_json::to_string(result).expect("serialises"), frozen, "{name} is the released form");
    let read: CallResult = serde_json::from_str(&frozen).expect("a result");
    assert_eq!(serde_json::to_string(&read).expect("serialises"), frozen, "{name} is read back whole");
    assert_eq!((read.status, read.exit_code()), (result.status, exit_code), "{name}");
    assert_eq!((&read.error, &read.meta), (&result.error, &result.meta), "{name}");
}

#[test]
fn a_good_result_has_the_released_form() {
    let data = raw(r#"{"status":"in review","n":18446744073709551616.10}"#);
    let mut result = CallResult {
        status: Status::Ok,
        data: Some(data),
        summary: Some("TK-20241215-001 is in review".to_owned()),
        error: None,
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta { data_bytes: 54, ..meta() },
    };
    result_is("result.ok.json", &result, 0);

    result.data = Some(raw("null"));
    result.summary = None;
    result.next_actions.push(NextAction {
        operation: Some("tickets.query_status".to_owned()),
        description: Some("look again later".to_owned()),
        arguments: Some(serde_json::json!({"ticket_id": "TK-20241215-001"})),
    });
    result.meta = Meta {
        operation: None,
        plugin_version: None,
        generation: None,
        queue_us: 0,
        run_us: 0,
        argument_bytes: 2,
        data_bytes: 4,
        ..meta()
    };
    result_is("result.next_actions.json", &result, 0);
}

#[test]
fn a_failed_result_has_the_released_form() {
    let error = CallError {
        name: "ticket_not_found".to_owned(),
        ..CallError::new(ErrorKind::PluginError, "there is no ticket TK-20241215-009")
            .hint("check the number; it looks like TK-20241215-001")
            .outcome(Outcome::Completed)
    };
    result_is("result.error.json", &failed(error, meta()), 1);

    let mut error = CallError::new(ErrorKind::InvalidArguments, "2 problems with the arguments");
    let problem = |path: &str, problem: &str, expected: &str| ArgumentProblem {
        path: path.to_owned(),
        problem: problem.to_owned(),
        expected: expected.to_owned(),
        got: None,
        suggestion: None,
    };
    error.details.push(problem("", "required", "ticket_id"));
    error.details.push(ArgumentProblem {
        got: Some("\"TK-1\"".to_owned()),
        suggestion: Some("ticket_id".to_owned()),
        ..problem("/tiket_id", "additionalProperties", "one of: ticket_id")
    });
    let not_run =
        Meta { plugin_version: None, generation: None, queue_us: 0, run_us: 0, argument_bytes: 19, ..meta() };
    result_is("result.details.json", &failed(error, not_run), 3);
}

#[test]
fn a_result_names_the_inner_call_and_a_cancelled_one_says_so() {
    let died =
        CallError::new(ErrorKind::PluginDied, "weather ended during the call: killed by signal 9 (SIGKILL)");
    let cause = Cause {
        operation: OperationId::parse("weather.get_weather").expect("an identity"),
        call_id: CallId::new(INNER),
        error: died.outcome(Outcome::Unknown),
    };
    let error = CallError {
        retryable: true,
        cause: Some(Box::new(cause)),
        ..CallError::new(ErrorKind::PluginError, "cannot say whether to travel").outcome(Outcome::Completed)
    };
    let of_trip = Meta {
        operation: OperationId::parse("trip.recommend").ok(),
        generation: Some(2),
        queue_us: 5,
        run_us: 900,
        argument_bytes: 17,
        ..meta()
    };
    result_is("result.cause.json", &failed(error, of_trip), 1);

    let error = CallError::new(ErrorKind::Cancelled, "the call was cancelled").outcome(Outcome::Unknown);
    let meta = Meta { plugin_version: None, queue_us: 0, run_us: 100, argument_bytes: 2, ..meta() };
    let result = CallResult { status: Status::Cancelled, ..failed(error, meta) };
    result_is("result.cancelled.json", &result, 5);
}
