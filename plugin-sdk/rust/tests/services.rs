//! What a host does for a handler, message by message: its features, variables, events, traces.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};

use plugd_sdk::testing::connect;
use plugd_sdk::{Context, Operation, Plugin};
use serde_json::{Value, json};

/// A host that speaks message by message.
struct ByHand(PipeWriter, BufReader<PipeReader>);

impl ByHand {
    fn new(plugin: Plugin, features: &[&str]) -> ByHand {
        let (to_plugin, from_plugin) = connect(plugin);
        let mut host = ByHand(to_plugin, BufReader::new(from_plugin));
        let params = json!({"protocol": {"versions": [1], "features": features},
            "host": {"name": "h", "version": "1"}});
        host.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "describe", "params": params}));
        host.next();
        host
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.0, "{message}").expect("the plugin reads");
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("the plugin writes UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Calls an operation, under the trace if there is one.
    fn call(&mut self, operation: &str, traceparent: Option<&str>) {
        let context = json!({"call_id": "c-2", "deadline_ms": 30_000, "traceparent": traceparent});
        let params = json!({"operation": operation, "arguments": {}, "context": context});
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "call", "params": params}));
    }

    /// The next message must be this request; gives its id.
    fn asked(&mut self, method: &str, params: Value) -> Value {
        let request = self.next();
        assert_eq!((&request["method"], &request["params"]), (&json!(method), &params), "{request}");
        request["id"].clone()
    }

    fn answer(&mut self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn plugin() -> Plugin {
    let counts = |_: (), cx: &Context| {
        let vars = cx.vars();
        let before = vars.get::<u64>("count")?;
        vars.set("count", &before.unwrap_or(u64::MAX))?;
        let swapped = vars.compare_and_set("count", &None::<u64>, &[1])?;
        cx.emit("counted", &json!({"swapped": swapped}))?;
        Ok(before)
    };
    Plugin::new("p", "1.0.0")
        .operation(Operation::new("counts", counts))
        .operation(Operation::new("calls", |_: (), cx: &Context| {
            Ok(cx.call::<Value>("a.b", &json!({}))?.data)
        }))
        .operation(Operation::new("asks", |_: (), cx: &Context| cx.ask::<String>("Who?")))
        .operation(Operation::new("emits", |_: (), cx: &Context| cx.emit("e", &())))
        .operation(Operation::new("logs", |_: (), cx: &Context| {
            cx.info("said");
            Ok(cx.trace_id().map(str::to_owned))
        }))
}

#[test]
fn variables_and_events_go_to_a_host_that_offers_them() {
    let mut host = ByHand::new(plugin(), &["host_vars", "host_emit"]);
    host.call("counts", None);
    let id = host.asked("host/vars", json!({"call_id": "c-2", "get": ["count"]}));
    host.answer(&id, json!({"vars": {"count": 18_446_744_073_709_551_614_u64}}));
    let set = json!({"count": 18_446_744_073_709_551_614_u64});
    let id = host.asked("host/vars", json!({"call_id": "c-2", "set": set}));
    host.answer(&id, json!({}));
    let swap = json!({"name": "count", "expected": null, "value": [1]});
    let id = host.asked("host/vars", json!({"call_id": "c-2", "compare_and_set": swap}));
    host.answer(&id, json!({"swapped": false}));
    let data = json!({"swapped": false});
    let id = host.asked("host/emit", json!({"call_id": "c-2", "event": "counted", "data": data}));
    host.answer(&id, json!({}));
    assert_eq!(host.next()["result"]["data"], json!(18_446_744_073_709_551_614_u64));
}

#[test]
fn what_a_host_does_not_offer_is_said_to_be_so() {
    let texts = [
        ("counts", "this host offers no session variables"),
        ("emits", "this host offers no events"),
        ("calls", "this host offers no calls of other plugins"),
        ("asks", "this host offers no questions"),
    ];
    for (operation, text) in texts {
        let mut host = ByHand::new(plugin(), &["log", "to_come"]);
        host.call(operation, None);
        let error = host.next()["error"].clone();
        assert_eq!((&error["message"], &error["code"]), (&json!(text), &json!(1)), "{error}");
        assert_eq!(error["data"]["name"], "not_offered", "{error}");
        assert!(error["data"]["hint"].as_str().is_some_and(|hint| hint.starts_with("do without")), "{error}");
    }
}

#[test]
fn a_line_of_a_call_carries_its_trace_where_it_has_one() {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    for (given, expected) in
        [(Some(traceparent.as_str()), json!(trace)), (Some("00-x-y-01"), Value::Null), (None, Value::Null)]
    {
        let mut host = ByHand::new(plugin(), &[]);
        host.call("logs", given);
        assert_eq!(host.next()["params"].get("trace_id").cloned().unwrap_or_default(), expected);
        assert_eq!(host.next()["result"]["data"], expected);
    }
}

#[test]
fn a_call_is_read_however_it_is_spelt() {
    let context = r#"{"call_id":"c","deadline_ms":5000}"#;
    let spellings = [
        r#"{"jsonrpc":"2.0","id":7,"method":"logs","params":{}}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"call","params":{{"operation":"logs","arguments":{{}},"context":{context}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"call","params":{{"operation":"logs","arguments":{{}},"context":{context}}},"more":1}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"call","params":{{"context":{context},"operation":"logs","arguments":{{}}}} }}"#
        ),
        format!(
            r#" {{ "params": {{"operation":"logs","arguments":{{}},"context":{context}}}, "method":"c\u0061ll", "id" : 7, "jsonrpc":"2.0"}}"#
        ),
        r#"{"jsonrpc":"2.0","id":7,"method":"call","params":{"operation":"logs","arguments":{}}}"#.to_owned(),
    ];
    let mut codes = Vec::new();
    for spelling in spellings {
        let mut host = ByHand::new(plugin(), &[]);
        writeln!(host.0, "{spelling}").expect("the plugin reads");
        let mut answer = host.next();
        if answer["method"] == "log" {
            answer = host.next();
        }
        assert_eq!(answer["id"], 7, "{answer}");
        codes.push(answer["error"]["code"].as_i64().unwrap_or_default());
    }
    assert_eq!(codes, [-32601, 0, 0, 0, 0, -32602]);
}

#[test]
fn a_message_too_large_for_the_host_is_not_sent() {
    let large = |_: (), cx: &Context| {
        let text = "x".repeat(17 * 1024 * 1024);
        let partial = cx.partial(&text).expect_err("too large");
        let called = cx.call::<Value>("a.b", &json!({"text": text})).expect_err("too large");
        cx.info(&text);
        Ok([partial.name, called.name])
    };
    let mut host =
        ByHand::new(Plugin::new("p", "1.0.0").operation(Operation::new("large", large)), &["host_calls"]);
    host.call("large", None);
    let line = host.next();
    assert!(line["params"]["message"].as_str().is_some_and(|text| text.len() == 64 * 1024), "it is cut");
    assert_eq!(host.next()["result"]["data"], json!(["too_large", "too_large"]));
}
