//! Cases about several calls at once: none waits for another that it need not, and none is mixed up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plugd_protocol::Status;
use plugd_protocol::control::{CallParams, PluginsParams};
use plugd_protocol::{CallResult, PluginName};
use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::json;

use super::framing::data_of;
use crate::reloading::marks;

/// A `slow` that ends once there is a file `open`, and a `fast`.
fn slow_and_fast(lanes: u32) -> String {
    format!(
        "OPERATIONS = [{{'name': name, 'input_schema': {{'type': 'object'}}}} for name in ('slow', 'fast')]\n\
         MANIFEST = {{'features': {{'concurrency': {lanes}}}}}\n\
         def handle(operation, arguments, params):\n    \
         if operation == 'slow':\n        \
         mark('running')\n        \
         while not os.path.exists('open'): time.sleep(0.01)\n    \
         return {{'data': operation}}\n"
    )
}

#[test]
fn c019_a_slow_call_holds_up_nobody_who_has_a_lane_of_his_own() {
    let sandbox = Sandbox::new("");
    let tables = [sandbox.python("fp", &slow_and_fast(4)), sandbox.shell("other")];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    assert_eq!(data_of(&daemon, &["fp.fast"]), "fast");
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| data_of(&daemon, &["fp.slow"]));
        eventually("the slow call runs", || !marks(&sandbox, "fp", "running").is_empty());
        let fast: Vec<_> = (0..10).map(|_| scope.spawn(|| daemon.json(&["call", "fp.fast"]))).collect();
        assert_eq!(daemon.status("fp")["state"], "busy");
        assert!(data_of(&daemon, &["other.pid"]).is_object());
        for call in fast {
            let result = call.join().expect("it ends");
            assert_eq!(result["data"], "fast", "{result:#}");
        }
        // Only now: all of them were answered while it ran.
        sandbox.write("plugins/fp/open", "");
        assert_eq!(slow.join().expect("it ends"), "slow");
    });
    daemon.stop();
}

#[test]
fn c019_calls_to_a_plugin_with_one_lane_queue_and_status_shows_it() {
    let sandbox = Sandbox::new("");
    let tables = [
        format!("{}queue_timeout = \"60s\"\n", sandbox.python("fp", &slow_and_fast(1))),
        sandbox.shell("other"),
    ];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| data_of(&daemon, &["fp.slow"]));
        eventually("the slow call runs", || !marks(&sandbox, "fp", "running").is_empty());
        let fast: Vec<_> = (0..10).map(|_| scope.spawn(|| daemon.json(&["call", "fp.fast"]))).collect();
        eventually("they queue, and status shows it", || {
            let status = daemon.status("fp");
            (&status["in_flight"], &status["queued"]) == (&json!(1), &json!(10))
        });
        let shown = daemon.plugd(&["status", "fp"]).expect(0).stdout;
        assert!(shown.contains("10"), "{shown}");
        assert!(data_of(&daemon, &["other.pid"]).is_object(), "others are not held up");
        sandbox.write("plugins/fp/open", "");
        assert_eq!(slow.join().expect("it ends"), "slow");
        for call in fast {
            assert_eq!(call.join().expect("it ends")["data"], "fast");
        }
    });
    assert_eq!(daemon.status("fp")["queued"], 0);
    daemon.stop();
}

/// The checksum that both sides take of an argument: that of zlib.
fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1, 0), |(low, high): (u32, u32), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

#[tokio::test]
async fn c021_fifty_parallel_calls_with_large_arguments_get_each_its_own_answer() {
    let sandbox = Sandbox::new("");
    let hashing = "
import random, zlib
MANIFEST = {'features': {'concurrency': 50}}
def checked(lines):
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            mark('broken', repr(line[:80]))
        yield line
class Stdin: buffer = checked(sys.stdin.buffer)
sys.stdin = Stdin
def handle(operation, arguments, params):
    time.sleep(random.random() / 5)
    return {'data': zlib.adler32(arguments['text'].encode())}
";
    let table = sandbox.python("fp", hashing);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let clients = [Arc::new(daemon.client().await), Arc::new(daemon.client().await)];
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let client = Arc::clone(&clients[number % 2]);
            let text = format!("{number} ").repeat(20 * 1_024 / 3);
            let params =
                CallParams::new("fp.echo").arguments(&json!({"text": text}).to_string()).expect("JSON");
            (tokio::spawn(async move { client.call(&params).await.expect("a result") }), text)
        })
        .collect();
    for (call, text) in calls {
        let result = call.await.expect("it ends");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
        assert_eq!(result.data.expect("data").get(), adler32(text.as_bytes()).to_string());
    }
    assert_eq!(marks(&sandbox, "fp", "broken"), Vec::<String>::new(), "every line it got was whole");
    let status = daemon.status("fp");
    assert_eq!((&status["unmatched_answers"], &status["restarts"]), (&json!(0), &json!(0)), "{status:#}");
    drop(clients);
    daemon.stop();
}

/// Asks another plugin all the time, from `init` on, and once more after it has answered `shutdown`.
const ASKS: &str = r#"
import atexit
MANIFEST = {"requires": {"service": "*"}}


def ask():
    while True:
        try:
            host_call("service.pid", {})
        except Exception:
            return
        time.sleep(0.005)


def on_init(params):
    threading.Thread(target=ask, daemon=True).start()
    atexit.register(ask_once_more)
    return {}


def ask_once_more():
    try:
        send({"jsonrpc": "2.0", "id": "after", "method": "host/call", "params": {"operation": "service.pid"}})
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if message.get("id") == "after":
                return mark("after", "answered" if "result" in message else "refused")
        mark("after", "closed")
    except OSError:
        mark("after", "closed")


def handle(operation, arguments, params):
    time.sleep(0.02)
    return {"data": operation}
"#;

fn ended_well(result: &CallResult) -> bool {
    let stopped = |name: &str| ["stopped", "plugin_died"].contains(&name);
    result.status == Status::Ok || result.error.as_ref().is_some_and(|error| stopped(&error.name))
}

#[tokio::test]
async fn c023_stopping_a_plugin_that_asks_the_host_all_the_time_ends_every_call_by_name() {
    let sandbox = Sandbox::new("");
    let tables = [sandbox.python("asks", ASKS), sandbox.shell("service")];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let plugin = PluginsParams { plugins: vec![PluginName::new("asks").expect("a name")] };
    let done = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let (client, done) = (daemon.client().await, Arc::clone(&done));
        callers.push(tokio::spawn(async move {
            let mut ok = 0;
            while !done.load(Ordering::Relaxed) {
                let result = client.call(&CallParams::new("asks.echo")).await.expect("a result");
                assert!(ended_well(&result), "{result:?}");
                ok += u32::from(result.status == Status::Ok);
            }
            ok
        }));
    }
    for _ in 0..20 {
        client.start(&plugin).await.expect("an answer");
        // One call goes through before it is stopped again, with others in flight.
        let result = client.call(&CallParams::new("asks.echo")).await.expect("a result");
        assert!(ended_well(&result), "{result:?}");
        client.stop(&plugin).await.expect("an answer");
    }
    done.store(true, Ordering::Relaxed);
    let mut ok = 0;
    for caller in callers {
        ok += caller.await.expect("each of its calls ended by name");
    }
    assert!(ok > 0, "some were drained");
    let after = marks(&sandbox, "asks", "after");
    assert!(!after.is_empty() && !after.contains(&"answered".to_owned()), "{after:?}");
    still_serves(&daemon);
    drop(client);
    daemon.stop();
}

fn still_serves(daemon: &Daemon<'_>) {
    assert!(data_of(daemon, &["service.pid"]).is_object());
    daemon.plugd(&["start", "asks"]).expect(0);
    assert_eq!(data_of(daemon, &["asks.echo"]), "echo");
}
