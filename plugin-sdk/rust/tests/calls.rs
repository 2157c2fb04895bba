//! Calls through the in-memory host: context, cancelling, failures, other plugins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use plugd_sdk::testing::Host;
use plugd_sdk::{Context, Error, LogLevel, NextAction, Operation, Plugin, Question, Reply};
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
    let host = Host::new(
        Plugin::new("p", "1.0.0")
            .operation(Operation::new("steps", steps))
            .operation(Operation::new("none", none)),
    );
    let reply = host.call("steps", json!({}));
    assert_eq!(reply.data(), json!("done"));
    assert_eq!(reply.summary.as_deref(), Some("all done"));
    assert_eq!(reply.next_actions, [json!({"operation": "p.none"})]);
    assert_eq!(reply.logs, [(LogLevel::Warn, "three levels down, on another thread".to_owned())]);
    assert_eq!((reply.progress[0].done, reply.progress[0].total), (1.0, Some(2.0)));
    assert_eq!(reply.partials, [json!({"first": true})]);
    assert!(host.call("none", json!({})).logs.is_empty());
}

#[test]
fn a_failures_name_that_is_none_is_a_fault_of_the_plugin_and_its_message_is_told() {
    let fails =
        |_: (), _: &Context| -> Result<(), Error> { Err(Error::new("NotThere", "it is gone").hint("look")) };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("fails", fails)));
    let reply = host.call("fails", json!({}));
    let error = reply.error();
    assert_eq!((error.code(), error.name.as_deref()), (2, None));
    assert_eq!(error.message, "it is gone; a fault in the plugin: \"NotThere\" is not a failure's name");
    let [(LogLevel::Error, told)] = reply.logs.as_slice() else { panic!("{:?}", reply.logs) };
    assert!(told.contains("did you mean \"not_there\"?") && told.contains("calls.rs:"), "{told}");
}

#[test]
fn progress_takes_any_numbers_and_what_is_none_is_not_told() {
    let steps = |_: (), cx: &Context| -> Result<(), Error> {
        let files: Vec<u8> = vec![0; 4];
        cx.progress(1, files.len(), "a count");
        cx.progress(0.25, 1.0, "a part");
        cx.progress(3_u64, Some(8.5), "some");
        cx.progress(f64::NAN, None, "nothing of nothing");
        cx.progress(4_i8, None, "");
        Ok(())
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("steps", steps)));
    let call = host.begin("steps", json!({}));
    call.wait_for_progress(0.25);
    let told: Vec<_> = call.wait().progress.iter().map(|step| (step.done, step.total)).collect();
    assert_eq!(told, [(1.0, Some(4.0)), (0.25, Some(1.0)), (3.0, Some(8.5)), (4.0, None)]);
}

fn until_cancelled(_: (), cx: &Context) -> Result<(), Error> {
    cx.progress(1, None, "");
    cx.wait_cancelled(Duration::from_secs(60));
    cx.check()
}

#[test]
fn a_cancel_reaches_a_running_handler() {
    let host =
        Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("until_cancelled", until_cancelled)));
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
        Ok(format!("{:?}", std::thread::current().id()))
    };
    let host = Host::new(Plugin::new("p", "1.0.0").concurrency(2).operation(Operation::new("meet", meet)));
    let (first, second) = (host.begin("meet", json!({})), host.begin("meet", json!({})));
    assert_ne!(first.wait().data(), second.wait().data());
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
    let reply = cx.call::<Value>("weather.get_weather", &json!({"city": "北京"}))?;
    Ok(json!({"of": reply.data, "by": reply.call_id}))
}

#[test]
fn another_plugin_is_used_through_the_host() {
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("relay", relay)))
        .answer_call("weather.get_weather", |arguments| Ok(arguments["city"].clone()));
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
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("relay", relay)))
        .answer_call("weather.get_weather", failing);
    let error = host.call("relay", json!({})).error();
    assert_eq!(error.name.as_deref(), Some("city_not_found"));
    assert_eq!(error.cause.expect("kept").error.message, "no Atlantis");
}

#[test]
fn cancelling_ends_a_wait_for_another_plugin() {
    let waits = |_: (), cx: &Context| {
        cx.progress(1, None, "");
        cx.call::<Value>("slow.op", &json!({})).map(|reply| reply.data)
    };
    let (release, held) = std::sync::mpsc::channel::<()>();
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("waits", waits))).answer_call(
        "slow.op",
        move |_| {
            // Answers only after the cancel was sent, by which time nobody waits.
            let _ = held.recv();
            Ok(json!(null))
        },
    );
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
        .operation(Operation::new("none", none));
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

#[test]
fn the_person_behind_a_call_is_asked_and_the_deadline_moves_meanwhile() {
    let book = |_: (), cx: &Context| {
        let before = cx.deadline();
        let answers = cx.ask_many([
            Question::new::<u8>("nights", "How many nights?"),
            Question::new::<String>("card", "Your card?").secret(),
        ])?;
        let (nights, card): (u8, String) = (answers.get("nights")?, answers.get("card")?);
        assert!(answers.get::<String>("name").is_err() && answers.get::<u8>("card").is_err());
        assert!(cx.deadline() > before);
        Ok(format!("{nights} nights with {card}, sure: {}", cx.ask::<bool>("Sure?")?))
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("book", book))).answer_asks(
        |name, prompt| match name {
            "nights" => Ok(json!(3)),
            "card" => Ok(json!("4711")),
            _ => Ok(json!(prompt == "Sure?")),
        },
    );
    assert_eq!(host.call("book", json!({})).data(), json!("3 nights with 4711, sure: true"));
}

#[test]
fn without_anybody_to_ask_the_call_says_so() {
    let ask = |_: (), cx: &Context| cx.ask::<String>("Anybody there?");
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("ask", ask)));
    let error = host.call("ask", json!({})).error();
    assert_eq!((error.name.as_deref(), error.code()), (Some("nobody_to_ask"), 4));
    assert_eq!(
        Context::for_test().ask::<bool>("Really?").expect_err("no host").name.as_deref(),
        Some("no_host")
    );
}

#[test]
fn a_changed_configuration_is_taken_up_in_place_or_not_at_all() {
    use std::sync::Mutex;
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Config {
        word: String,
    }
    let plugin = Plugin::new("p", "1.0.0")
        .init(|config: Config, _| Ok(Mutex::new(config.word)))
        .reload(|config: Config, word: &Mutex<String>| {
            if config.word.is_empty() {
                return Err(Error::message("an empty word"));
            }
            *word.lock().expect("no panic") = config.word;
            Ok(())
        })
        .operation(Operation::new("say", |_: (), word: &Mutex<String>, _: &Context| {
            Ok(word.lock().expect("no panic").clone())
        }));
    let host = Host::new(plugin).config(json!({"word": "one"}));
    assert!(host.manifest().features.reload && host.manifest().config_schema.is_some());
    assert_eq!(host.call("say", json!({})).data(), json!("one"));
    host.reload(&json!({"word": "two"})).expect("it fits");
    assert_eq!(host.reload(&json!({"word": ""})).expect_err("empty").message, "an empty word");
    assert_eq!(host.reload(&json!({})).expect_err("no word").code(), -32602);
    assert_eq!(host.call("say", json!({})).data(), json!("two"));

    let without = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new("none", none)));
    assert!(!without.manifest().features.reload);
    assert_eq!(without.reload(&json!({})).expect_err("not declared").code(), -32601);
}

#[test]
fn a_result_that_is_no_json_fails_its_call_and_says_where() {
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Mean {
        means: Vec<f64>,
    }
    let mean = |_: (), _: &Context| Ok(Mean { means: vec![0.5, 0.0 / f64::from(0_u8)] });
    let pairs = |_: (), _: &Context| Ok(std::collections::BTreeMap::from([([1, 2], "a list is no key")]));
    let plugin = Plugin::new("p", "1.0.0")
        .operation(Operation::new("mean", mean))
        .operation(Operation::new("pairs", pairs).output_schema(Value::Null));
    let host = Host::new(plugin);
    let error = host.call("mean", json!({})).error();
    assert_eq!(error.code(), 2);
    assert_eq!(error.message, "the result cannot be written as JSON at means[1]: NaN is no number of JSON");
    let error = host.call("pairs", json!({})).error();
    assert_eq!(error.message, "the result cannot be written as JSON: key must be a string");
}
