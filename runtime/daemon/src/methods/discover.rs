//! `rpc.discover`: the control API as an OpenRPC document, made from the types themselves.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use plugd_protocol::CallResult;
use plugd_protocol::control::{
    AddParams, AddReport, AnswerParams, AnswerReport, AsksParams, CallDetail, CallParams, CallsParams,
    CallsReport, CallsShowParams, CallsStatsParams, CallsStatsReport, CancelMineReport, CancelParams,
    CancelReport, ChangeReport, DescribeParams, Description, DoctorReport, Event, EventsParams, Explanation,
    GraphReport, JobsParams, JobsReport, JobsWaitParams, LintParams, LintReport, ListParams, ListReport,
    LogEntry, LogsParams, PluginsParams, ReloadParams, ReloadReport, ResultParams, ResultReport, StartReport,
    StatusParams, StatusReport, StopReport, ToolsParams, ToolsReport, method,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{Answer, COMMAND_FAILED, Daemon};
use crate::params::{self, Nothing};

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    module.register_method(method::DISCOVER, |given, _, _| {
        params::read::<Nothing>(&given)?;
        Answer::Ok(document())
    })?;
    Ok(())
}

/// A method as the document describes it.
struct Described {
    name: &'static str,
    summary: &'static str,
    params: fn(&mut SchemaGenerator) -> Schema,
    result: fn(&mut SchemaGenerator) -> Schema,
}

fn described<P: JsonSchema, R: JsonSchema>(name: &'static str, summary: &'static str) -> Described {
    Described { name, summary, params: P::json_schema, result: SchemaGenerator::subschema_for::<R> }
}

/// Every method, in the order of the document.
fn methods() -> Vec<Described> {
    [about_calls(), about_plugins(), about_what_happens()].into_iter().flatten().collect()
}

fn about_calls() -> Vec<Described> {
    vec![
        described::<CallParams, CallResult>(
            method::CALL,
            "Run an operation; a client that goes away cancels it.",
        ),
        described::<CallParams, Explanation>(
            method::CALL_EXPLAIN,
            "What a call would do: which operation of which plugin, with what, and what comes before it.",
        ),
        described::<CancelParams, CancelReport>(method::CANCEL, "Stop a call."),
        described::<Nothing, CancelMineReport>(
            method::CANCEL_MINE,
            "Stop the calls made through this connection whose results are still awaited.",
        ),
        described::<AnswerParams, AnswerReport>(
            method::ANSWER,
            "Answer, or decline, what a call asks; one that waited for nobody is carried on.",
        ),
        described::<AsksParams, u64>(
            method::ASKS_SUBSCRIBE,
            "Questions of this connection's calls, as notifications `ask` (WebSocket only).",
        ),
        described::<[u64; 1], bool>(method::ASKS_UNSUBSCRIBE, "End a subscription to questions."),
        described::<CallsParams, CallsReport>(method::CALLS, "Recorded calls, the latest first."),
        described::<CallsShowParams, CallDetail>(
            method::CALLS_SHOW,
            "Everything that is kept of one call, its time line included.",
        ),
        described::<CallsStatsParams, CallsStatsReport>(method::CALLS_STATS, "How each operation does."),
        described::<JobsParams, JobsReport>(method::JOBS, "Calls that run in the background, or did."),
        described::<JobsWaitParams, CallResult>(
            method::JOBS_WAIT,
            "Wait for the end of one of them; `pending` where that took too long.",
        ),
        described::<ResultParams, ResultReport>(method::RESULT, "A page of a result that is kept."),
    ]
}

fn about_plugins() -> Vec<Described> {
    vec![
        described::<StatusParams, StatusReport>(method::STATUS, "How the daemon and its plugins are."),
        described::<ListParams, ListReport>(method::LIST, "The plugins and operations there are."),
        described::<DescribeParams, Description>(method::DESCRIBE, "One plugin or operation in full."),
        described::<ToolsParams, ToolsReport>(
            method::TOOLS,
            "What is offered to models, in the form of a dialect.",
        ),
        described::<LintParams, LintReport>(method::LINT, "What declarations could say better."),
        described::<PluginsParams, StartReport>(method::START, "Start plugins and wait until they are up."),
        described::<PluginsParams, StopReport>(method::STOP, "Stop plugins and keep them stopped."),
        described::<PluginsParams, StartReport>(method::RESTART, "Stop and start plugins."),
        described::<ReloadParams, ReloadReport>(
            method::RELOAD,
            "Apply the configuration, or take up one plugin anew.",
        ),
        described::<AddParams, AddReport>(
            method::ADD,
            "Add a plugin, or restore one that was removed; answers when it is described, or cannot be.",
        ),
        described::<PluginsParams, ChangeReport>(method::REMOVE, "Remove plugins and end their processes."),
        described::<PluginsParams, ChangeReport>(
            method::ENABLE,
            "Let plugins be used, whatever their files say.",
        ),
        described::<PluginsParams, ChangeReport>(
            method::DISABLE,
            "Let plugins no longer be used, whatever their files say.",
        ),
        described::<StatusParams, DoctorReport>(
            method::DOCTOR,
            "What is wrong, why, and what to do about it.",
        ),
    ]
}

fn about_what_happens() -> Vec<Described> {
    vec![
        described::<Nothing, StopReport>(
            method::SHUTDOWN,
            "Stop everything and leave; again skips the graces.",
        ),
        described::<LogsParams, Vec<LogEntry>>(method::LOGS, "The latest log entries."),
        described::<LogsParams, u64>(
            method::LOGS_SUBSCRIBE,
            "Log entries as they come, as notifications `logs` (WebSocket only); `tail` past ones first.",
        ),
        described::<[u64; 1], bool>(method::LOGS_UNSUBSCRIBE, "End a subscription to log entries."),
        described::<EventsParams, Vec<Event>>(method::EVENTS, "The latest events."),
        described::<EventsParams, u64>(
            method::EVENTS_SUBSCRIBE,
            "Events as they happen, as notifications `events` (WebSocket only); `tail` past ones first.",
        ),
        described::<[u64; 1], bool>(method::EVENTS_UNSUBSCRIBE, "End a subscription to events."),
        described::<Nothing, GraphReport>(method::GRAPH, "Who requires whom."),
        described::<Nothing, Value>(method::DISCOVER, "This document."),
    ]
}

/// The OpenRPC document of the control API.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let methods: Vec<Value> = methods().iter().map(|method| describe(method, &mut generator)).collect();
    let command_error = generator.subschema_for::<plugd_protocol::CallError>();
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "plugd control API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "JSON-RPC 2.0 over the daemon's Unix socket, by HTTP POST to / (content-type: application/json) or by WebSocket.",
        },
        "methods": methods,
        "components": {
            "schemas": generator.take_definitions(true),
            "errors": {
                "CommandFailed": {
                    "code": COMMAND_FAILED,
                    "message": "a command could not be carried out; data says why",
                    "data": command_error,
                },
            },
        },
    })
}

fn describe(method: &Described, generator: &mut SchemaGenerator) -> Value {
    let schema = (method.params)(generator);
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|required| required.iter().any(|member| member == name))
    };
    let by_name = schema.get("properties").and_then(Value::as_object);
    let params: Vec<Value> = match by_name {
        Some(properties) => properties
            .iter()
            .map(|(name, schema)| json!({ "name": name, "required": required(name), "schema": schema }))
            .collect(),
        None if schema.get("type") == Some(&json!("array")) => {
            vec![json!({ "name": "subscription", "required": true, "schema": { "type": "integer" } })]
        }
        None => Vec::new(),
    };
    json!({
        "name": method.name,
        "summary": method.summary,
        "paramStructure": if by_name.is_none() && !params.is_empty() { "by-position" } else { "by-name" },
        "params": params,
        "result": { "name": "result", "schema": (method.result)(generator) },
        "errors": [{ "$ref": "#/components/errors/CommandFailed" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        let references: Vec<&str> =
            text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(references.len() > 20, "{references:?}");
        for reference in references {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_call_is_described_by_the_fields_it_takes() {
        let document = document();
        let methods = document["methods"].as_array().unwrap();
        let call = methods.iter().find(|method| method["name"] == "call").unwrap();
        let params: Vec<(&str, bool)> = call["params"]
            .as_array()
            .unwrap()
            .iter()
            .map(|param| (param["name"].as_str().unwrap(), param["required"].as_bool().unwrap()))
            .collect();
        assert!(params.contains(&("operation", true)), "{params:?}");
        assert!(params.contains(&("arguments", false)), "{params:?}");
        assert_eq!(call["result"]["schema"]["$ref"], "#/components/schemas/CallResult");
    }
}
