//! Calls through the in-memory host: context, cancelling, failures, other plugins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use plugd_sdk::testing::Host;
use plugd_sdk::{Context, Error, LogLevel, NextAction, Operation, Plugin, Reply, operation};
use serde_json::{Value, json};

fn none(_: (), _: &Context) -> Result<(), Error> {
    Ok(())
}

/// Works step by step.
fn steps(_: (), cx: &Context) -> Result<Reply<&'static str>, Error> {
    fn deeper(cx: &Context) {
        let cx = cx.clone();
        std::thread::spawn(move || cx.warn("three levels down, on another thread")).join().expect("no panic");
    }
    deeper(cx);
    cx.progress(1, 2, "half");
    cx.partial(&json!({"first": true}))?;
    let next = NextAction { operation: Some("p.none".to_owned()), description: None, arguments: None };
    Ok(Reply::new("done").summary("all done").next_action(next))
}

#[test]
fn what_a_call_says_belongs_to_that_call() {
    let host = Host::new(Plugin::new("p", "1.0.0").operation(operation!(steps)).operation(operation!(none)));
    let reply = host.call("steps", json!({}));
    assert_eq!(reply.data(), json!("done"));
    assert_eq!(reply.summary.as_deref(), Some("all done"));
    assert_eq!(reply.next_actions, [json!({"operation": "p.none"})]);
    assert_eq!(reply.logs, [(LogLevel::Warn, "three levels down, on another thread".to_owned())]);
    assert_eq!((reply.progress[0].done, reply.progress[0].total), (1.0, Some(2.0)));
    assert_eq!(reply.partials, [json!({"first": true})]);
    assert!(host.call("none", json!({})).logs.is_empty());
}

fn until_cancelled(_: (), cx: &Context) -> Result<(), Error> {
    cx.progress(1, None, "");
    cx.wait_cancelled(Duration::from_secs(60));
    cx.check()
}

#[test]
fn a_cancel_reaches_a_running_handler() {
    let host = Host::new(Plugin::new("p", "1.0.0").operation(operation!(until_cancelled)));
    let call = host.begin("until_cancelled", json!({}));
    call.wait_for_progress(1);
    call.cancel();
    assert!(call.wait().error().is_cancelled());
}

#[test]
fn calls_run_beside_each_other_up_to_the_declared_number() {
    let both = Arc::new(Barrier::new(2));
    let meet = move |_: (), _: &Context| {
        both.wait();
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    };
    let host = Host::new(Plugin::new("p", "1.0.0").concurrency(2).operation(Operation::new("meet", meet)));
    let (first, second) = (host.begin("meet", json!({})), host.begin("meet", json!({})));
    let mut names = [first.wait().data(), second.wait().data()].map(|name| name.to_string());
    names.sort();
    assert_eq!(names, ["\"call-1\"", "\"call-2\""]);
}

#[test]
fn one_lane_runs_one_call_at_a_time() {
    let busy = Arc::new(AtomicBool::new(false));
    let alone = move |_: (), _: &Context| {
        let overlapped = busy.swap(true, Ordering::SeqCst);
        std::thread::yield_now();
        busy.store(false, Ordering::SeqCst);
        Ok(!overlapped)
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("alone", alone)));
    let calls: Vec<_> = (0..50).map(|_| host.begin("alone", json!({}))).collect();
    for call in calls {
        assert_eq!(call.wait().data(), json!(true));
    }
}

fn relay(_: (), cx: &Context) -> Result<Value, Error> {
    let reply = cx.host_call::<Value>("weather.get_weather", &json!({"city": "北京"}))?;
    Ok(json!({"of": reply.data, "by": reply.call_id}))
}

#[test]
fn another_plugin_is_used_through_the_host() {
    let host = Host::new(Plugin::new("p", "1.0.0").operation(operation!(relay)))
        .answer_host_call("weather.get_weather", |arguments| Ok(arguments["city"].clone()));
    assert_eq!(host.call("relay", json!({})).data(), json!({"of": "北京", "by": "inner"}));
}

#[test]
fn a_failed_inner_call_is_handed_on_with_its_cause() {
    let cause = json!({"operation": "weather.get_weather", "call_id": "c-2", "error":
        {"code": 4001, "name": "city_not_found", "message": "no Atlantis", "retryable": false, "outcome": "completed"}});
    let failing = move |_| {
        let mut error = Error::new("city_not_found", "weather.get_weather failed: no Atlantis");
        error.cause = serde_json::from_value(cause.clone())?;
        Err(error)
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(operation!(relay)))
        .answer_host_call("weather.get_weather", failing);
    let error = host.call("relay", json!({})).error();
    assert_eq!(error.name.as_deref(), Some("city_not_found"));
    assert_eq!(error.cause.expect("kept").error.message, "no Atlantis");
}

#[test]
fn cancelling_ends_a_wait_for_another_plugin() {
    let waits = |_: (), cx: &Context| {
        cx.progress(1, None, "");
        cx.host_call::<Value>("slow.op", &json!({})).map(|reply| reply.data)
    };
    let (release, held) = std::sync::mpsc::channel::<()>();
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("waits", waits)))
        .answer_host_call("slow.op", move |_| {
            // Answers only after the cancel was sent, by which time nobody waits.
            let _ = held.recv();
            Ok(json!(null))
        });
    let call = host.begin("waits", json!({}));
    call.wait_for_progress(1);
    call.cancel();
    drop(release);
    assert!(call.wait().error().is_cancelled());
}

#[test]
fn arguments_that_do_not_fit_are_an_error_of_theirs() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Count {
        count: u8,
    }
    let count = |args: Count, _: &Context| Ok(args.count);
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("count", count)));
    let error = host.call("count", json!({"count": "many"})).error();
    assert_eq!(error.code(), -32602);
    assert!(error.message.contains("expected u8"), "{error}");
    let unknown = host.call("cuont", json!({})).error();
    assert_eq!(unknown.code(), -32601);
    assert_eq!(unknown.message, "p has no operation \"cuont\"; it has count");
}

#[test]
fn an_init_that_fails_says_why_and_later_calls_do_too() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Config {
        file: String,
    }
    let plugin = || {
        Plugin::new("p", "1.0.0")
            .init(|config: Config, _| Ok(std::fs::read_to_string(config.file)?))
            .operation(Operation::new("text", |_: (), text: &String, _: &Context| Ok(text.clone())))
    };
    let missing = Host::new(plugin()).config(json!({"file": "/nonexistent"}));
    assert!(missing.start().expect_err("no file").message.contains("No such file"));
    let wrong = Host::new(plugin()).config(json!({}));
    assert!(wrong.start().expect_err("no key").message.contains("missing field `file`"));
}

#[test]
fn shutdown_runs_the_hook_then_drops_the_state() {
    struct Held(std::sync::mpsc::Sender<&'static str>);
    impl Drop for Held {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let plugin = Plugin::new("p", "1.0.0")
        .init(move |_: (), _| Ok(Held(sender.clone())))
        .shutdown(|held| Ok(held.0.send("released")?))
        .operation(operation!(none));
    let host = Host::new(plugin);
    host.start().expect("it starts");
    host.shutdown().expect("it stops");
    let order: Vec<_> = receiver.try_iter().collect();
    assert_eq!(order, ["released", "dropped"]);
    assert_eq!(host.call("none", json!({})).error().name.as_deref(), Some("shutting_down"));
}

#[test]
fn a_panic_in_init_or_in_a_handler_leaves_the_plugin_answering() {
    let explode = |_: (), _: &u8, _: &Context| -> Result<(), Error> { panic!("in the handler") };
    let plugin = Plugin::new("p", "1.0.0")
        .init(|_: (), _| -> Result<u8, Error> { panic!("in init") })
        .operation(Operation::new("explode", explode));
    let host = Host::new(plugin);
    assert_eq!(host.start().expect_err("a panic").code(), 2);

    let host = Host::new(
        Plugin::new("p", "1.0.0").init(|_: (), _| Ok(1_u8)).operation(Operation::new("explode", explode)),
    );
    let error = host.call("explode", json!({})).error();
    assert_eq!((error.code(), error.message.as_str()), (2, "explode failed unexpectedly: it panicked"));
    assert_eq!(host.call("explode", json!({})).error().code(), 2);
}
