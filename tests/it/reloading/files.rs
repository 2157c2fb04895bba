//! Reloads of what lies in files: only what changed is touched, and what is broken changes nothing.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plugd_protocol::control::{CallParams, ReloadParams};
use plugd_protocol::{PluginName, Status};
use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use super::{FP, TELLER, data, marks, teller, text};

#[test]
fn r_l16_editing_one_of_ten_touches_no_other_and_calls_in_flight_finish() {
    let sandbox = Sandbox::new("");
    let names: Vec<String> = (0..10).map(|number| format!("plugin_{number}")).collect();
    let tables: String = names
        .iter()
        .map(|name| format!("{}start = \"eager\"\ndrain_timeout = \"60s\"\n", sandbox.python(name, TELLER)))
        .collect();
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    let pids = |daemon: &Daemon<'_>| -> Vec<Value> {
        names.iter().map(|name| daemon.wait_for_state(name, "ready")["pid"].clone()).collect()
    };
    let before = pids(&daemon);
    std::thread::scope(|scope| {
        let calls = ["plugin_3.wait", "plugin_4.wait"]
            .map(|operation| scope.spawn(|| daemon.json(&["call", operation])));
        for plugin in ["plugin_3", "plugin_4"] {
            eventually("the call runs", || !marks(&sandbox, plugin, "waiting").is_empty());
        }
        sandbox.python("plugin_3", &TELLER.replace("\"one\"", "\"two\""));
        let reload = scope.spawn(|| daemon.json(&["reload"]));
        eventually("the new version serves", || data(&daemon, "plugin_3.show")["version"] == "two");
        for plugin in ["plugin_3", "plugin_4"] {
            sandbox.write(&format!("plugins/{plugin}/open"), "");
        }
        for (call, at) in calls.into_iter().zip([3, 4]) {
            let result = call.join().expect("it ends");
            assert_eq!((&result["status"], &result["data"]["version"]), (&json!("ok"), &json!("one")));
            assert_eq!(result["data"]["pid"], before[at], "where it began");
        }
        let report = reload.join().expect("it ends");
        assert_eq!(report["changed"], json!(["plugin_3"]), "{report:#}");
        assert_eq!(report["unchanged"].as_array().map(Vec::len), Some(9), "{report:#}");
    });
    let after = pids(&daemon);
    let same: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before == after).collect();
    assert_eq!(same.iter().filter(|same| !**same).count(), 1, "{before:?} {after:?}");
    assert!(!same[3]);
    daemon.stop();
}

/// Open descriptors of a process.
fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count).unwrap_or_default()
}

/// Whether a daemon has one plugin's process, the launcher of the next start, and no other child.
fn has_one_plugin(daemon: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{daemon}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let lists: Vec<String> = lists.collect();
    let children: Vec<&str> = lists.iter().flat_map(|list| list.split_whitespace()).collect();
    let launches = |pid: &&&str| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with("plugd-launcher")
    };
    (children.len(), children.iter().filter(launches).count()) == (2, 1)
}

#[tokio::test]
async fn r_l17_fifty_reloads_under_load_lose_no_call_and_leak_nothing() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let reload = ReloadParams { plugin: Some(PluginName::new("clock").expect("a name")) };
    client.call(&CallParams::new("clock.pid")).await.expect("a result");
    client.reload(&reload).await.expect("it is taken up anew");
    eventually("the one before is gone", || has_one_plugin(daemon.pid()));
    let before = descriptors(daemon.pid());

    let done = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let (client, done) = (daemon.client().await, Arc::clone(&done));
        callers.push(tokio::spawn(async move {
            let mut calls = 0;
            while !done.load(Ordering::Relaxed) {
                let result = client.call(&CallParams::new("clock.pid")).await.expect("a result");
                assert_eq!(result.status, Status::Ok, "{:?}", result.error);
                calls += 1;
            }
            calls
        }));
    }
    let first = daemon.status("clock")["generation"].as_u64().expect("a run");
    for _ in 0..50 {
        client.reload(&reload).await.expect("it is taken up anew");
    }
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        let calls = caller.await.expect("no call of it failed");
        assert!(calls > 0, "it did call");
    }
    assert_eq!(daemon.status("clock")["generation"].as_u64(), Some(first + 50), "each was a run of its own");
    eventually("one process is left", || has_one_plugin(daemon.pid()));
    eventually("no descriptor is left", || descriptors(daemon.pid()) <= before);
    drop(client);
    daemon.stop();
}

#[test]
fn r_l18_defaults_of_a_plugins_configuration_are_filled_in_overridden_and_checked() {
    let sandbox = Sandbox::new("");
    let schema = "
MANIFEST = {'config_schema': {'type': 'object', 'properties': {'request_timeout': {'type': 'number', 'default': 5}}}}
";
    sandbox.python("net", &format!("{TELLER}{schema}"));
    let file = "command = [\"python3\", \"main.py\"]\n\n\
                [manifest]\nprotocol = 1\nname = \"net\"\nversion = \"1.0.0\"\n\n\
                [[manifest.operations]]\nname = \"show\"\ninput_schema = { type = \"object\" }\n\n\
                [manifest.config_schema]\ntype = \"object\"\n\n\
                [manifest.config_schema.properties.request_timeout]\ntype = \"number\"\ndefault = 5\n";
    sandbox.write("plugins/net/plugin.toml", file);
    let configure = |value: &str| {
        sandbox.configure(&format!("[scan]\ndirs = [\"plugins\"]\n\n[plugins.net.config]\n{value}\n"));
    };
    configure("");
    let daemon = sandbox.serve();
    assert_eq!(data(&daemon, "net.show")["config"], json!({"request_timeout": 5}));
    configure("request_timeout = 7");
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(data(&daemon, "net.show")["config"], json!({"request_timeout": 7}));

    configure("request_timeout = \"seven\"");
    let check = sandbox.plugd(&["config", "check"]).expect(2);
    assert!(check.stderr.contains("request_timeout") && check.stderr.contains("number"), "{check:?}");
    daemon.plugd(&["reload"]);
    assert_eq!(data(&daemon, "net.show")["config"], json!({"request_timeout": 7}), "what is right goes on");
    let required = daemon.status("net")["restart_required"].clone();
    assert!(text(&required["reason"]).contains("request_timeout"), "{required:#}");
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "net.show"]).expect(6);
    let disabled = daemon.wait_for_state("net", "disabled");
    assert!(text(&disabled["reason"]).contains("request_timeout"), "{disabled:#}");
    daemon.stop();
}

#[test]
fn a_config_file_that_is_empty_half_written_or_gone_changes_nothing() {
    let sandbox = teller("", "start = \"eager\"\nconfig.ttl = 1\n");
    let whole = sandbox.read("plugd.toml");
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    daemon.wait_for_state("fp", "ready");
    let before = (data(&daemon, "fp.show"), daemon.json(&["status"])["daemon"]["config_generation"].clone());
    let cut = whole.find("python3").expect("the command") + 3;
    for (what, found) in [("empty", ""), ("blank", "\n \n\t\n"), ("half", &whole[..cut])] {
        sandbox.write("plugd.toml", found);
        // The command line itself cannot read such a file, so the socket is named.
        let socket = sandbox.socket().display().to_string();
        let refused = reload_by(&socket);
        assert!(refused["error"].is_object(), "{what}: {refused:#}");
        assert_eq!(refused["error"]["data"]["name"], "invalid_config", "{what}: {refused:#}");
        sandbox.write("plugd.toml", &whole);
        let status = daemon.json(&["status"]);
        assert_eq!(status["daemon"]["config_generation"], before.1, "{what}: {status:#}");
        assert_eq!(data(&daemon, "fp.show"), before.0, "{what}");
    }
    fs::remove_file(sandbox.path().join("plugd.toml")).expect("it was there");
    let refused = reload_by(&sandbox.socket().display().to_string());
    assert!(refused["error"].is_object(), "gone: {refused:#}");
    sandbox.write("plugd.toml", &whole);
    assert_eq!(data(&daemon, "fp.show"), before.0);
    let refusals = super::events_of(&daemon, "config.refused");
    assert_eq!(refusals.len(), 4, "{refusals:#?}");
    assert!(refusals.iter().all(|event| event["reason"].is_string()), "{refusals:#?}");
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(data(&daemon, "fp.show"), before.0, "nor does the whole one, for it is as it was");
    daemon.stop();
}

/// Sends `reload` through the socket, without any configuration of the sender's own.
fn reload_by(socket: &str) -> Value {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("the daemon is reachable");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"reload","params":{}}"#;
    let length = body.len();
    write!(stream, "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("the request is written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is read");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("an HTTP answer: {answer}"));
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn a_reload_of_an_unchanged_or_reordered_file_restarts_nothing() {
    let sandbox = teller(
        "",
        "start = \"eager\"\nenv = { FOO = \"1\", BAR = \"2\" }\n\n[plugins.fp.config]\nttl = 1\nname = \"x\"\n",
    );
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    let before = data(&daemon, "fp.show");
    sandbox.configure(&format!(
        "# A comment more.\n{}env = {{ BAR = \"2\", FOO = \"1\" }}\nstart = \"eager\"\n\n[plugins.fp.config]\nname = \"x\"\nttl = 1\n",
        FP
    ));
    let report = daemon.json(&["reload"]);
    assert_eq!(report["unchanged"], json!(["fp"]), "{report:#}");
    assert_eq!(data(&daemon, "fp.show"), before);
    daemon.stop();
}

#[test]
fn what_a_running_process_need_not_know_of_is_taken_up_without_touching_it() {
    let sandbox = teller("", "start = \"eager\"\ntimeout = \"30s\"\n");
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    let before = data(&daemon, "fp.show");
    sandbox.configure(&format!(
        "{FP}start = \"eager\"\ntimeout = \"300ms\"\ncancel_grace = \"20s\"\npriority = 7\n"
    ));
    daemon.plugd(&["reload"]).expect(0);
    let late = daemon.plugd(&["--output", "json", "call", "fp.wait"]).expect(5).json();
    assert_eq!(late["error"]["name"], "timed_out", "the new limit holds: {late:#}");
    sandbox.write("plugins/fp/open", "");
    let after = data(&daemon, "fp.show");
    assert_eq!(after["pid"], before["pid"]);
    daemon.stop();
}
