//! Handlers that are `async fn`: side by side, cancelled, asking and calling.

#![cfg(feature = "async")]

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plugd_sdk::testing::Host;
use plugd_sdk::{AsyncContext, Error, Operation, Plugin, Question, block_on, operation};
use serde_json::{Value, json};
use tokio::sync::Barrier;

/// Tells when it is dropped.
struct Told(Sender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// Calls another plugin and adds a word. Twice.
#[operation(read_only)]
async fn relay(
    /// Who is looked up.
    name: String,
    #[arg(default = 1)] times: usize,
    word: &Mutex<String>,
    cx: &AsyncContext,
) -> Result<String, Error> {
    let mut found = Vec::new();
    for _ in 0..times {
        tokio::task::yield_now().await;
        found.push(cx.call::<String>("other.lookup", &json!({"name": name})).await?.data);
    }
    cx.info("found");
    let word = word.lock().expect("no panic").clone();
    Ok(format!("{word} {}", found.join(" ")))
}

/// Needs nothing at all.
#[operation]
async fn now() -> &'static str {
    tokio::time::sleep(Duration::from_millis(1)).await;
    "now"
}

fn host() -> Host {
    let plugin = Plugin::new("p", "1.0.0")
        .init(|_: (), _| block_on(async { Mutex::new("hi".to_owned()) }))
        .operation(relay::operation())
        .operation(now::operation());
    Host::new(plugin).answer_call("other.lookup", |arguments| {
        Ok(json!(format!("<{}>", arguments["name"].as_str().unwrap_or(""))))
    })
}

#[test]
fn an_async_handler_has_arguments_state_and_context() {
    let host = host();
    let reply = host.call("relay", json!({"name": "Ada", "times": 2}));
    assert_eq!(reply.data(), json!("hi <Ada> <Ada>"));
    assert_eq!(reply.logs[0].1, "found");
    assert_eq!(host.call("now", json!({})).data(), json!("now"));
    let operation = json!(host.manifest().operations[0]);
    assert_eq!(operation["description"], "Calls another plugin and adds a word. Twice.");
    assert_eq!(operation["input_schema"]["required"], json!(["name"]));
}

#[test]
fn it_stays_a_function_that_a_test_awaits() {
    let failed = block_on(relay("Ada".to_owned(), 1, &Mutex::default(), &AsyncContext::for_test()));
    assert_eq!(failed.expect("a runtime").expect_err("no host").name.as_deref(), Some("no_host"));
    assert_eq!(block_on(now()).expect("a runtime"), "now");
}

#[test]
fn so_many_run_at_once_as_are_declared() {
    let both = Arc::new(Barrier::new(3));
    let meet = async move |_: (), _: &AsyncContext| {
        both.wait().await;
        Ok(())
    };
    let plugin = Plugin::new("p", "1.0.0").concurrency(3).operation(Operation::new_async("meet", meet));
    let host = Host::new(plugin);
    let calls = [(); 3].map(|()| host.begin("meet", json!({})));
    for call in calls {
        assert_eq!(call.wait().data(), Value::Null);
    }
}

#[test]
fn a_cancel_drops_the_handler_where_it_waits_and_wakes_its_tasks() {
    let (sender, told) = channel();
    let waits = async move |_: (), cx: &AsyncContext| -> Result<(), Error> {
        let _told = Told(sender.clone(), "dropped");
        let (task, notify) = (cx.clone(), sender.clone());
        tokio::spawn(async move {
            task.cancelled().await;
            assert!(task.wait_cancelled(Duration::from_secs(60)).await);
            let _ = notify.send("notified");
        });
        cx.progress(1, None, "waits");
        std::future::pending().await
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new_async("waits", waits)));
    let call = host.begin("waits", json!({}));
    call.wait_for_progress(1);
    call.cancel();
    assert!(call.wait().error().is_cancelled());
    let mut heard = [(); 2].map(|()| told.recv_timeout(Duration::from_secs(60)).expect("both are told"));
    heard.sort_unstable();
    assert_eq!(heard, ["dropped", "notified"]);
}

#[test]
fn a_person_is_asked_and_the_deadline_moves_meanwhile() {
    let book = async |_: (), cx: &AsyncContext| {
        let before = cx.deadline();
        let questions =
            [Question::new::<u8>("nights", "How many?"), Question::new::<String>("card", "Card?").secret()];
        let answers = cx.ask_many(questions).await?;
        let sure: bool = cx.ask("Sure?").await?;
        let pin = cx.ask_secret("PIN?").await?;
        assert!(cx.deadline() > before);
        Ok(format!("{} {} {sure} {pin}", answers.get::<u8>("nights")?, answers.get::<String>("card")?))
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new_async("book", book)))
        .answer_asks(|name, prompt| match (name, prompt) {
            ("nights", _) => Ok(json!(3)),
            ("card", _) => Ok(json!("4711")),
            (_, "Sure?") => Ok(json!(true)),
            _ => Ok(json!("0000")),
        });
    assert_eq!(host.call("book", json!({})).data(), json!("3 4711 true 0000"));
}

#[test]
fn what_no_host_offers_yet_is_said_to_be_so() {
    let vars = async |_: (), cx: &AsyncContext| {
        let failed = [
            cx.vars().get::<u64>("x").await.expect_err("not offered"),
            cx.vars().set("x", &1).await.expect_err("not offered"),
            cx.vars().compare_and_set("x", &1, &2).await.expect_err("not offered"),
            cx.emit("x", &()).await.expect_err("not offered"),
        ];
        Ok(failed.map(|error| error.name))
    };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new_async("vars", vars)));
    assert_eq!(host.call("vars", json!({})).data(), json!(vec!["not_offered"; 4]));
}

#[test]
fn a_panic_fails_that_call_only() {
    let explodes = async |_: (), _: &AsyncContext| -> Result<(), Error> { panic!("in the handler") };
    let host = Host::new(Plugin::new("p", "1.0.0").operation(Operation::new_async("explodes", explodes)));
    assert_eq!(host.call("explodes", json!({})).error().code(), 2);
    assert_eq!(host.call("explodes", json!({})).error().code(), 2);
}
