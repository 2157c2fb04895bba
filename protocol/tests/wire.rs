//! The released plugin wire, byte for byte: what plugd writes, and what it makes of what it reads.
//!
//! The files under `wire/v1` are frozen: a change here breaks every plugin out there.

use std::borrow::Cow;
use std::path::Path;

use plugd_protocol::error::{Cause, ErrorData, rpc_code};
use plugd_protocol::message::{self, Answer, AnswerObject, Message};
use plugd_protocol::negotiation::Offer;
use plugd_protocol::plugin::{
    CallContext, CallParams, CancelParams, DescribeParams, HostAskParams, HostAskResult, HostCallParams,
    HostCallResult, HostInfo, InitParams, LogLevel, LogParams, PartialParams, ProgressParams, ReloadParams,
    ShutdownParams, method,
};
use plugd_protocol::{CallError, CallId, ErrorKind, Manifest, OperationId, Outcome, RpcError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

const OUTER: &str = "01936d5e-7c00-7000-8000-000000000001";
const INNER: &str = "01936d5e-7c00-7000-8000-000000000002";

/// A golden file, its newline included.
fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn same(name: &str, written: &[u8]) {
    assert_eq!(String::from_utf8_lossy(written), golden(name), "{name} is the released form");
}

#[track_caller]
fn writes_request<P: Serialize>(name: &str, id: u64, method: &str, params: &P) {
    let mut out = Vec::new();
    message::write_request(&mut out, id, method, params).expect("serialises");
    same(name, &out);
}

#[track_caller]
fn writes_notification<P: Serialize>(name: &str, method: &str, params: &P) {
    let mut out = Vec::new();
    message::write_notification(&mut out, method, params).expect("serialises");
    same(name, &out);
}

#[track_caller]
fn writes_result<R: Serialize>(name: &str, id: &str, result: &R) {
    let mut out = Vec::new();
    message::write_result(&mut out, &raw(id), result).expect("serialises");
    same(name, &out);
}

#[track_caller]
fn writes_error(name: &str, id: &str, error: &RpcError) {
    let mut out = Vec::new();
    message::write_error(&mut out, &raw(id), error).expect("serialises");
    same(name, &out);
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

#[track_caller]
fn params_of<'a>(line: &'a str, expected: &str) -> (Option<&'a str>, &'a str) {
    match Message::parse(line.trim_end().as_bytes()).expect("a message") {
        Message::Request { id, method, params: Some(params) } => {
            assert_eq!(method, expected);
            (Some(id.get()), params.get())
        }
        Message::Notification { method, params: Some(params) } => {
            assert_eq!(method, expected);
            (None, params.get())
        }
        other => panic!("no {expected} with params: {other:?}"),
    }
}

#[track_caller]
fn answer_of(line: &str) -> (String, Result<AnswerObject<'_>, RpcError>) {
    match Message::parse(line.trim_end().as_bytes()).expect("a message") {
        Message::Response { id: Some(id), answer } => {
            let answer = answer.map(|answer| match answer {
                Answer::Object(object) => object,
                Answer::Other => panic!("not an object: {line}"),
            });
            (id.get().to_owned(), answer)
        }
        other => panic!("no answer: {other:?}"),
    }
}

#[track_caller]
fn error_data<T: DeserializeOwned>(error: &RpcError) -> T {
    let data = error.data.as_ref().expect("the error has data");
    serde_json::from_str(data.get()).expect("data of the expected form")
}

fn short_context() -> CallContext<'static> {
    CallContext {
        call_id: CallId::new(OUTER),
        session_id: None,
        traceparent: None,
        deadline_ms: 30_000,
        attempt: 1,
        idempotency_key: None,
        caller: None,
        locale: None,
    }
}

fn full_context() -> CallContext<'static> {
    CallContext {
        session_id: Some("s-7".into()),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        deadline_ms: 29_500,
        attempt: 2,
        idempotency_key: Some("order-17".into()),
        caller: Some("plugin:trip".into()),
        locale: Some("zh-CN".into()),
        ..short_context()
    }
}

#[test]
fn describe_is_written_as_released() {
    let host = HostInfo { name: "plugd".into(), version: "0.1.0".into() };
    let params = DescribeParams { protocol: Offer::of_host(), host };
    writes_request("v1/describe.request.json", 1, method::DESCRIBE, &params);
    let line = golden("v1/describe.request.json");
    let (id, read) = params_of(&line, "describe");
    assert_eq!(id, Some("1"));
    assert_eq!(serde_json::from_str::<DescribeParams>(read).expect("params"), params);
}

#[test]
fn a_manifest_is_read_as_released() {
    let line = golden("v1/describe.result.json");
    let result = message::whole_result(line.trim_end().as_bytes()).expect("a result");
    let manifest = Manifest::parse(result.get()).expect("a manifest");
    assert_eq!(
        (manifest.protocol, manifest.name.as_str(), manifest.version.as_str()),
        (1, "tickets", "1.0.0")
    );
    assert!(manifest.quarantined.is_empty());
    let [operation] = manifest.operations.as_slice() else { panic!("one operation") };
    assert_eq!(operation.name.as_str(), "query_status");
    assert_eq!((operation.effects.read_only, operation.effects.idempotent), (Some(true), Some(true)));
    assert_eq!((operation.effects.destructive, operation.effects.open_world), (None, None));
    assert!(operation.input_schema.get().starts_with(r#"{"type":"object","#));
}

#[test]
fn init_is_written_as_released() {
    let params = InitParams {
        config: raw("{}"),
        data_dir: "/var/lib/plugd/data/tickets".to_owned(),
        locale: "en".to_owned(),
        log_level: LogLevel::Info,
    };
    writes_request("v1/init.request.json", 2, method::INIT, &params);
    let line = golden("v1/init.request.json");
    let read: InitParams = serde_json::from_str(params_of(&line, "init").1).expect("params");
    assert_eq!((read.config.get(), read.locale.as_str(), read.log_level), ("{}", "en", LogLevel::Info));
}

#[test]
fn the_answers_to_init_are_read_as_released() {
    let line = golden("v1/init.result.json");
    assert!(matches!(answer_of(&line), (id, Ok(AnswerObject { data: None, .. })) if id == "2"));

    let line = golden("v1/init.error.json");
    let error = answer_of(&line).1.expect_err("an error");
    assert_eq!((error.code, error.message.as_str()), (1, "cannot open tickets.json: no such file"));
    let data: ErrorData = error_data(&error);
    assert_eq!(data.name.as_deref(), Some("no_ticket_file"));
    assert_eq!(data.hint.as_deref(), Some("set config.file in plugd.toml"));

    let line = golden("v1/unknown_method.error.json");
    assert_eq!(answer_of(&line).1.expect_err("an error").code, rpc_code::METHOD_NOT_FOUND);
    writes_error("v1/unknown_method.error.json", "2", &RpcError::new(-32601, "no method \"init\""));
}

#[test]
fn a_call_is_written_as_released() {
    let arguments = raw(r#"{"ticket_id":"TK-20241215-001"}"#);
    let params =
        CallParams { operation: "query_status".into(), arguments: &arguments, context: short_context() };
    writes_request("v1/call.request.json", 3, method::CALL, &params);

    // Arguments pass as they were written: their spaces, and every digit.
    let arguments = raw(r#"{"ticket_id":"TK-20241215-001", "n": 18446744073709551616.10}"#);
    let params =
        CallParams { operation: "query_status".into(), arguments: &arguments, context: full_context() };
    writes_request("v1/call.full.request.json", 3, method::CALL, &params);

    let line = golden("v1/call.full.request.json");
    let (id, read) = params_of(&line, "call");
    let read: CallParams<'_> = serde_json::from_str(read).expect("params");
    assert_eq!((id, read.operation.as_ref()), (Some("3"), "query_status"));
    assert_eq!(read.arguments.get(), arguments.get());
    assert_eq!(read.context, full_context());
}

#[test]
fn the_answers_to_a_call_are_read_as_released() {
    let line = golden("v1/call.result.json");
    let (id, answer) = answer_of(&line);
    let answer = answer.expect("a result");
    assert_eq!(message::host_id(&raw(&id)), Some(3));
    assert_eq!(answer.data.expect("data").get(), r#"{"status":"in review"}"#);
    assert_eq!(answer.summary.as_deref(), Some("TK-20241215-001 is in review"));

    let line = golden("v1/call.error.json");
    let error = answer_of(&line).1.expect_err("an error");
    assert_eq!(error.code, rpc_code::OPERATION_FAILED);
    let data: ErrorData = error_data(&error);
    assert_eq!((data.name.as_deref(), data.retryable), (Some("ticket_not_found"), false));

    let line = golden("v1/call.cancelled.json");
    assert_eq!(answer_of(&line).1.expect_err("an error").code, rpc_code::CANCELLED);
    writes_error("v1/call.cancelled.json", "3", &RpcError::new(rpc_code::CANCELLED, "cancelled"));
}

#[test]
fn cancel_and_shutdown_are_written_as_released() {
    let params = CancelParams { call_id: CallId::new(OUTER) };
    writes_notification("v1/cancel.json", method::CANCEL, &params);
    let line = golden("v1/cancel.json");
    assert_eq!(serde_json::from_str::<CancelParams>(params_of(&line, "cancel").1).expect("params"), params);

    let params = ShutdownParams { reason: "stop".into(), grace_ms: 5_000 };
    writes_request("v1/shutdown.request.json", 4, method::SHUTDOWN, &params);
    let line = golden("v1/shutdown.request.json");
    let read: ShutdownParams<'_> = serde_json::from_str(params_of(&line, "shutdown").1).expect("params");
    assert_eq!(read, params);
    assert!(answer_of(&golden("v1/shutdown.result.json")).1.is_ok());
    writes_result("v1/shutdown.result.json", "4", &serde_json::json!({}));
}

#[test]
fn what_a_plugin_tells_is_read_as_released() {
    let call_id = CallId::new(OUTER);
    let of_call = ProgressParams {
        call_id: Some(call_id.clone()),
        done: 1.0,
        total: Some(2.0),
        message: Some("asking the ticket system".into()),
    };
    let of_start = ProgressParams {
        call_id: None,
        done: 120.0,
        total: Some(500.0),
        message: Some("reading the vocabulary".into()),
    };
    for (name, params) in [("v1/progress.json", of_call), ("v1/init.progress.json", of_start)] {
        writes_notification(name, method::PROGRESS, &params);
        let line = golden(name);
        let read: ProgressParams<'_> = serde_json::from_str(params_of(&line, "progress").1).expect("params");
        assert_eq!(read, params, "{name}");
    }

    let log = LogParams {
        level: LogLevel::Warn,
        message: "the ticket system answered slowly".into(),
        call_id: Some(call_id.clone()),
        trace_id: None,
    };
    let traced = LogParams {
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".into()),
        message: log.message.clone(),
        call_id: log.call_id.clone(),
        ..log
    };
    for (name, log) in [("v1/log.json", log), ("v1/log.traced.json", traced)] {
        writes_notification(name, method::LOG, &log);
        let line = golden(name);
        let read: LogParams<'_> = serde_json::from_str(params_of(&line, "log").1).expect("params");
        assert_eq!((read.level, read.message), (log.level, log.message), "{name}");
        assert_eq!((read.call_id, read.trace_id), (log.call_id, log.trace_id), "{name}");
    }

    let piece = raw(r#"{"step":"manager"}"#);
    writes_notification(
        "v1/partial.json",
        method::PARTIAL,
        &PartialParams { call_id: call_id.clone(), data: &piece },
    );
    let line = golden("v1/partial.json");
    let read: PartialParams<'_> = serde_json::from_str(params_of(&line, "partial").1).expect("params");
    assert_eq!((read.call_id, read.data.get()), (call_id, piece.get()));

    let line = golden("v1/manifest_changed.json");
    assert_eq!(params_of(&line, method::MANIFEST_CHANGED).0, None);
}

#[test]
fn a_host_call_is_read_as_released() {
    let arguments = raw(r#"{"city":"北京"}"#);
    let params = HostCallParams {
        call_id: Some(CallId::new(OUTER)),
        operation: "weather.get_weather".into(),
        arguments: Some(&arguments),
    };
    let line = golden("v1/host_call.request.json");
    let (id, read) = params_of(&line, "host/call");
    assert_eq!(id, Some("\"h1\""), "a plugin's id keeps its type");
    let read: HostCallParams<'_> = serde_json::from_str(read).expect("params");
    assert_eq!((&read.call_id, &read.operation), (&params.call_id, &params.operation));
    assert_eq!(read.arguments.map(RawValue::get), Some(arguments.get()));

    let line = golden("v1/host_call.short.request.json");
    let (id, read) = params_of(&line, "host/call");
    let read: HostCallParams<'_> = serde_json::from_str(read).expect("params");
    assert_eq!((id, read.call_id, read.arguments.is_none()), (Some("0"), None, true));
}

#[test]
fn the_answers_to_a_host_call_are_written_as_released() {
    let data = raw(r#"{"temp":24}"#);
    let answer = HostCallResult {
        data: &data,
        summary: Some("24 degrees and sunny".into()),
        call_id: Some(CallId::new(INNER)),
    };
    writes_result("v1/host_call.result.json", "\"h1\"", &answer);

    let error = CallError {
        name: "city_unknown".to_owned(),
        ..CallError::new(ErrorKind::PluginError, "no data for that city")
            .hint("give a city of the list")
            .outcome(Outcome::Completed)
    };
    let cause = Cause {
        operation: OperationId::parse("weather.get_weather").expect("an identity"),
        call_id: CallId::new(INNER),
        error: error.clone(),
    };
    let data = ErrorData {
        name: Some(error.name),
        hint: error.hint,
        retryable: error.retryable,
        cause: Some(Box::new(cause)),
    };
    let written = serde_json::value::to_raw_value(&data).expect("serialises");
    let failure =
        RpcError { data: Some(written), ..RpcError::new(rpc_code::HOST_CALL_FAILED, error.message) };
    writes_error("v1/host_call.error.json", "\"h1\"", &failure);

    let line = golden("v1/host_call.error.json");
    assert_eq!(error_data::<ErrorData>(&answer_of(&line).1.expect_err("an error")), data);
}

#[test]
fn a_ping_and_a_reload_are_written_as_released() {
    writes_request("v1/ping.request.json", 5, method::PING, &serde_json::json!({}));
    writes_result("v1/ping.result.json", "5", &serde_json::json!({}));
    let params = ReloadParams { config: raw(r#"{"cache_ttl":60}"#) };
    writes_request("v1/reload.request.json", 6, method::RELOAD, &params);
    let line = golden("v1/reload.request.json");
    let read: ReloadParams = serde_json::from_str(params_of(&line, "reload").1).expect("params");
    assert_eq!(read.config.get(), params.config.get());
    assert!(answer_of(&golden("v1/reload.result.json")).1.is_ok());
}

#[test]
fn questions_are_read_and_answered_as_released() {
    let line = golden("v1/host_ask.request.json");
    let (id, read) = params_of(&line, "host/ask");
    let read: HostAskParams = serde_json::from_str(read).expect("params");
    assert_eq!((id, read.call_id), (Some("\"a1\""), Some(CallId::new(OUTER))));
    let [days, password] = read.questions.as_slice() else { panic!("{:?}", read.questions) };
    let schema = days.schema.as_deref().map(RawValue::get);
    assert_eq!((days.name.as_str(), schema), ("days", Some(r#"{"type":"integer","minimum":1}"#)));
    assert!(!days.sensitive && password.sensitive && password.schema.is_none());

    let answers = serde_json::from_str(r#"{"days":3,"password":"opensesame"}"#).expect("an object");
    writes_result("v1/host_ask.result.json", "\"a1\"", &HostAskResult { answers });
    let data = ErrorData { name: Some("declined".to_owned()), ..ErrorData::default() };
    let failure = RpcError {
        data: serde_json::value::to_raw_value(&data).ok(),
        ..RpcError::new(rpc_code::HOST_ASK_FAILED, "whoever was asked will not answer")
    };
    writes_error("v1/host_ask.error.json", "\"a1\"", &failure);
}

#[test]
fn every_frozen_file_is_one_message_on_one_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/v1");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        let line = golden(&format!("v1/{name}"));
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{name}");
        Message::parse(line.trim_end().as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        count += 1;
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn texts_without_escapes_are_borrowed_from_the_frame() {
    let line = golden("v1/call.request.json");
    let read: CallParams<'_> = serde_json::from_str(params_of(&line, "call").1).expect("params");
    assert!(matches!(read.operation, Cow::Borrowed(_)), "the hot path copies no text it need not");
}
