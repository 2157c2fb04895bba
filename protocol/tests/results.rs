//! The released form of a call's result, byte for byte, as clients of the control API read it.
//!
//! The files under `wire/control` are frozen: a change here breaks every client out there.

use std::path::Path;

use plugd_protocol::control::UnixMillis;
use plugd_protocol::error::{ArgumentProblem, Cause};
use plugd_protocol::plugin::Question;
use plugd_protocol::result::{Meta, NextAction, Page, PageUnit, Pending};
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
        error: died
            .hint("`plugd logs` has its last words; where it is restarted, call again")
            .outcome(Outcome::Unknown),
    };
    let error = CallError {
        retryable: true,
        cause: Some(Box::new(cause)),
        ..CallError::new(ErrorKind::PluginError, "cannot say whether to travel")
            .hint("the message is the plugin's own; `plugd logs` may say more")
            .outcome(Outcome::Completed)
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

#[test]
fn a_result_that_waits_for_a_person_has_the_released_form() {
    let stopped = |status, kind, message: &str, pending| CallResult {
        status,
        pending: Some(Box::new(pending)),
        ..failed(CallError::new(kind, message), Meta { generation: None, run_us: 0, ..meta() })
    };
    let question = Question {
        name: "days".to_owned(),
        schema: Some(raw(r#"{"type":"integer","maximum":1.0e1}"#)),
        prompt: "For how many days?".to_owned(),
        sensitive: false,
    };
    let pending = Pending {
        token: Some("9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11".to_owned()),
        expires: Some(UnixMillis(1_734_307_200_000)),
        prompt: "For how many days?".to_owned(),
        questions: vec![question],
        arguments: None,
    };
    let needs = ErrorKind::NeedsInput;
    let result = stopped(Status::NeedsInput, needs, "For how many days?", pending.clone());
    result_is("result.needs_input.json", &result, 8);

    let pending = Pending {
        prompt: "Run hotel.cancel? It may destroy something.".to_owned(),
        questions: Vec::new(),
        arguments: Some(serde_json::json!({"booking": 17, "card": "***"})),
        ..pending
    };
    let needs = ErrorKind::NeedsConfirmation;
    let result = stopped(Status::NeedsConfirmation, needs, "somebody must agree", pending);
    result_is("result.needs_confirmation.json", &result, 8);
}

#[test]
fn a_page_a_job_and_an_earlier_answer_have_the_released_form() {
    let mut result = CallResult {
        status: Status::Ok,
        data: Some(raw(r#"{"total":5000,"orders":[{"id":1},{"id":2}]}"#)),
        summary: Some("5000 orders".to_owned()),
        page: Some(Box::new(Page {
            reference: CallId::new(OUTER),
            pointer: Some("/orders".to_owned()),
            unit: PageUnit::Items,
            offset: 0,
            count: 2,
            total: 5_000,
            next: Some(2),
            bytes: 91_000,
        })),
        error: None,
        ..failed(CallError::new(ErrorKind::Internal, ""), Meta { data_bytes: 91_000, ..meta() })
    };
    result_is("result.page.json", &result, 0);

    result.page = None;
    result.meta.cached = true;
    result.meta.answer_of = Some(CallId::new(INNER));
    result.meta.notes = vec!["days: \"三\" is taken as 3".to_owned()];
    result.meta.warnings = vec!["its output does not fit the schema it declares".to_owned()];
    result_is("result.cached.json", &result, 0);

    let job = CallResult { status: Status::Pending, data: None, summary: None, meta: meta(), ..result };
    result_is("result.pending.json", &job, 0);
}
