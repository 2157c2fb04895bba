//! Changes that meet: with calls that wait, with other changes, with a crash, with the end of the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plugd_protocol::control::{CallParams, ReloadParams};
use plugd_protocol::{PluginName, Status};
use plugd_tests::{Daemon, Sandbox, alive, eventually};
use serde_json::{Value, json};

use super::{FP, data, events_of, kill, living, marks, pid_of, rewrite, teller, text};

/// Waits in `init` for a file `let_go`.
const GATED: &str = r#"
def on_init(params):
    CONFIG.update(params["config"])
    mark("initialising", str(os.getpid()))
    while not os.path.exists("let_go"):
        time.sleep(0.01)
    return {}
"#;

fn initialising(sandbox: &Sandbox) -> bool {
    !marks(sandbox, "fp", "initialising").is_empty()
}

#[test]
fn calls_that_wait_for_a_lane_of_the_old_run_are_answered_by_the_new_one() {
    let sandbox = teller("", "drain_timeout = \"60s\"\nqueue_timeout = \"60s\"\n");
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| data(&daemon, "fp.wait"));
        eventually("the call runs", || !marks(&sandbox, "fp", "waiting").is_empty());
        let queued: Vec<_> = (0..3).map(|_| scope.spawn(|| data(&daemon, "fp.show"))).collect();
        eventually("others wait", || daemon.status("fp")["queued"] == 3);
        rewrite(&sandbox, "two", "");
        let reload = scope.spawn(|| daemon.plugd(&["reload", "fp"]).expect(0));
        for call in queued {
            assert_eq!(call.join().expect("it ends")["version"], "two");
        }
        // Only now: they did not wait for the old one's lane.
        sandbox.write("plugins/fp/open", "");
        assert_eq!(busy.join().expect("it ends"), before);
        reload.join().expect("it ends");
    });
    daemon.stop();
}

#[test]
fn whatever_an_operator_forbids_while_a_run_is_being_replaced_ends_both() {
    for command in ["stop", "disable", "remove"] {
        let sandbox = teller("", "init_timeout = \"25s\"\n");
        let daemon = sandbox.serve();
        data(&daemon, "fp.show");
        rewrite(&sandbox, "two", GATED);
        std::thread::scope(|scope| {
            let reload = scope.spawn(|| daemon.plugd(&["reload", "fp"]));
            eventually("the new one is under way", || initialising(&sandbox));
            let began = Instant::now();
            daemon.plugd(&[command, "fp"]).expect(0);
            assert!(began.elapsed().as_secs() < 20, "{command} took {:?}", began.elapsed());
            assert_eq!(living(&sandbox, "fp"), Vec::<u32>::new(), "{command}");
            reload.join().expect("it ends");
        });
        daemon.plugd(&["call", "fp.show"]).expect(if command == "remove" { 4 } else { 6 });
        daemon.stop();
    }
}

#[test]
fn a_daemon_that_ends_while_a_run_is_being_replaced_leaves_neither() {
    let sandbox = teller("", "init_timeout = \"60s\"\n");
    let mut daemon = sandbox.serve();
    data(&daemon, "fp.show");
    rewrite(&sandbox, "two", GATED);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| sandbox.plugd(&["reload", "fp"]));
        eventually("the new one is under way", || initialising(&sandbox));
        let began = Instant::now();
        sandbox.plugd(&["shutdown"]).expect(0);
        assert!(began.elapsed().as_secs() < 20, "nothing waited for the init: {:?}", began.elapsed());
        reload.join().expect("it ends");
    });
    assert_eq!(daemon.wait(), 0);
    assert_eq!(living(&sandbox, "fp"), Vec::<u32>::new());
}

#[test]
fn a_run_that_would_be_stopped_for_idleness_and_its_successor_do_not_miss_each_other() {
    let sandbox = teller("", "init_timeout = \"25s\"\nidle_timeout = \"300ms\"\n");
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    rewrite(&sandbox, "two", GATED);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.plugd(&["reload", "fp"]));
        eventually("the new one is under way, or none is wanted", || {
            initialising(&sandbox) || daemon.status("fp")["state"] == "idle"
        });
        sandbox.write("plugins/fp/let_go", "");
        assert_eq!(daemon.json(&["call", "fp.show"])["status"], "ok", "one of the two answers");
        reload.join().expect("it ends");
    });
    assert_eq!(data(&daemon, "fp.show")["version"], "two");
    daemon.wait_for_state("fp", "idle");
    eventually("no process is left", || living(&sandbox, "fp").is_empty());
    daemon.stop();
}

#[test]
fn many_different_changes_at_once_end_with_the_last_one() {
    let sandbox = teller("", "config.ttl = 0\n");
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    std::thread::scope(|scope| {
        let mut reloads = Vec::new();
        for ttl in 1..=8 {
            sandbox.write(
                "plugd.next",
                &sandbox.read("plugd.toml").replace(&format!("ttl = {}", ttl - 1), &format!("ttl = {ttl}")),
            );
            let path = |name: &str| sandbox.path().join(name);
            std::fs::rename(path("plugd.next"), path("plugd.toml")).expect("it takes its place");
            reloads.push(scope.spawn(|| daemon.plugd(&["reload"])));
        }
        for reload in reloads {
            reload.join().expect("it ends").expect(0);
        }
    });
    assert_eq!(data(&daemon, "fp.show")["config"], json!({"ttl": 8}));
    let status = daemon.status("fp");
    assert!(status["restart_required"].is_null() && status["replacing"].is_null(), "{status:#}");
    eventually("one process is left", || living(&sandbox, "fp") == [pid_of(&status)]);
    daemon.stop();
}

/// Takes a second for each new configuration, and refuses a negative `ttl`.
const SLOWLY: &str = r#"
MANIFEST = {"features": {"reload": True}}


def on_request(method, params):
    if method != "reload":
        raise Failure("unknown method", code=-32601)
    mark("reloads", str(params["config"]["ttl"]))
    time.sleep(1)
    if params["config"]["ttl"] < 0:
        raise Failure("a negative ttl makes no sense")
    CONFIG.clear()
    CONFIG.update(params["config"])
    return {}
"#;

fn configure(sandbox: &Sandbox, ttl: i32) {
    sandbox.configure(&format!("{FP}restart = {{ backoff = \"20ms\" }}\nconfig.ttl = {ttl}\n"));
}

fn slowly() -> Sandbox {
    let sandbox = teller(SLOWLY, "");
    configure(&sandbox, 1);
    sandbox
}

#[test]
fn a_second_configuration_that_comes_during_a_reload_in_place_is_sent_after_it() {
    let sandbox = slowly();
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    std::thread::scope(|scope| {
        configure(&sandbox, 2);
        let first = scope.spawn(|| daemon.plugd(&["reload"]));
        eventually("the first is under way", || marks(&sandbox, "fp", "reloads") == ["2"]);
        configure(&sandbox, 3);
        daemon.plugd(&["reload"]).expect(0);
        first.join().expect("it ends").expect(0);
    });
    let after = data(&daemon, "fp.show");
    assert_eq!((&after["config"], &after["pid"]), (&json!({"ttl": 3}), &before["pid"]));
    assert_eq!(marks(&sandbox, "fp", "reloads"), ["2", "3"], "one after the other, each once");
    daemon.stop();
}

/// Ends the process of `fp`, and what answers then.
fn after_a_crash(daemon: &Daemon<'_>) -> Value {
    let pid = pid_of(&daemon.status("fp"));
    kill(pid);
    eventually("it is dead", || !alive(pid));
    data(daemon, "fp.show")
}

#[test]
fn after_a_crash_a_plugin_has_the_configuration_that_it_took_last() {
    let sandbox = slowly();
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    configure(&sandbox, 2);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(after_a_crash(&daemon)["config"], json!({"ttl": 2}), "it was taken");
    configure(&sandbox, -1);
    daemon.plugd(&["reload"]);
    assert_eq!(after_a_crash(&daemon)["config"], json!({"ttl": 2}), "it was refused");
    let required = daemon.status("fp")["restart_required"].clone();
    assert_eq!(required["changed"], json!(["config.ttl"]), "{required:#}");
    daemon.stop();
}

#[test]
fn a_crash_during_a_reload_in_place_ends_it_and_the_plugin_comes_back() {
    let sandbox = slowly();
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    std::thread::scope(|scope| {
        configure(&sandbox, 2);
        let reload = scope.spawn(|| daemon.plugd(&["reload"]));
        eventually("it is under way", || marks(&sandbox, "fp", "reloads") == ["2"]);
        let back = after_a_crash(&daemon);
        assert!([json!({"ttl": 1}), json!({"ttl": 2})].contains(&back["config"]), "{back:#}");
        reload.join().expect("it ends");
    });
    eventually("what is configured is in use, or the difference is shown", || {
        let used = data(&daemon, "fp.show")["config"] == json!({"ttl": 2});
        used || daemon.status("fp")["restart_required"].is_object()
    });
    daemon.stop();
}

#[tokio::test]
async fn a_plugin_that_is_used_by_another_is_replaced_without_a_failed_call_of_that_one() {
    let sandbox = Sandbox::new("");
    let outer = "
MANIFEST = {'requires': {'inner': '*'}}
def handle(operation, arguments, params):
    answer = host_call('inner.pid', {})
    if 'error' in answer: raise Failure(json.dumps(answer['error']))
    return {'data': answer['result']['data']}
";
    let tables = [sandbox.python("outer", outer), sandbox.shell("inner")];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let done = Arc::new(AtomicBool::new(false));
    let caller = tokio::spawn({
        let (client, done) = (daemon.client().await, Arc::clone(&done));
        async move {
            let mut calls = 0;
            while !done.load(Ordering::Relaxed) {
                let result = client.call(&CallParams::new("outer.echo")).await.expect("a result");
                assert_eq!(result.status, Status::Ok, "{:?}", result.error);
                calls += 1;
            }
            calls
        }
    });
    let inner = ReloadParams { plugin: Some(PluginName::new("inner").expect("a name")) };
    client.call(&CallParams::new("outer.echo")).await.expect("a result");
    let outer = daemon.status("outer")["pid"].clone();
    for _ in 0..20 {
        client.reload(&inner).await.expect("it is taken up anew");
    }
    done.store(true, Ordering::Relaxed);
    assert!(caller.await.expect("none failed") > 0);
    assert_eq!(daemon.status("outer")["pid"], outer, "nor was it touched");
    drop(client);
    daemon.stop();
}

#[test]
fn a_name_that_was_added_and_is_configured_later_is_an_error_that_names_both_places() {
    let sandbox = Sandbox::new("");
    let late = sandbox.python("late", super::TELLER);
    let daemon = sandbox.serve();
    daemon.plugd(&["add", "plugins/late/main.py", "--name", "late"]).expect(0);
    let before = data(&daemon, "late.show");
    sandbox.configure(&late);
    let check = sandbox.plugd(&["config", "check"]).expect(2);
    for part in ["plugd.toml", "state/added", "plugd remove late"] {
        assert!(check.stderr.contains(part), "{part}: {check:?}");
    }
    sandbox.configure("");
    assert_eq!(data(&daemon, "late.show"), before);
    assert!(events_of(&daemon, "plugin.removed").is_empty());
    daemon.stop();
}

#[test]
fn a_plugin_is_removed_once_its_calls_have_ended() {
    let sandbox = teller("", "drain_timeout = \"60s\"\n");
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| data(&daemon, "fp.wait"));
        eventually("the call runs", || !marks(&sandbox, "fp", "waiting").is_empty());
        let remove = scope.spawn(|| daemon.plugd(&["remove", "fp"]));
        eventually("no further call is taken", || {
            let refused = daemon.json(&["call", "fp.show", "--timeout", "1s"]);
            refused["status"] == "error" && !text(&refused["error"]["name"]).is_empty()
        });
        sandbox.write("plugins/fp/open", "");
        assert_eq!(call.join().expect("it ends"), before, "it was let finish");
        remove.join().expect("it ends").expect(0);
    });
    assert_eq!(living(&sandbox, "fp"), Vec::<u32>::new());
    daemon.stop();
}
