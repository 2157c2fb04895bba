//! Cases about who waits for whom: at the start, at the end, and where it cannot be.

use std::time::Instant;

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use super::framing::data_of;
use crate::reloading::{events_of, text};

/// An eager sh plugin that requires these.
fn eager(sandbox: &Sandbox, name: &str, requires: &[&str]) -> String {
    let requires: Vec<String> = requires.iter().map(|name| format!("{name} = \"*\"")).collect();
    format!("{}start = \"eager\"\nrequires = {{ {} }}\n", sandbox.shell(name), requires.join(", "))
}

fn reason_of(daemon: &Daemon<'_>, plugin: &str, state: &str) -> String {
    text(&daemon.wait_for_state(plugin, state)["reason"]).to_owned()
}

#[test]
fn c051_a_dependent_starts_by_itself_once_what_it_waits_for_has_recovered() {
    let sandbox = Sandbox::new("");
    let a = sandbox.shell("a");
    let program = sandbox.read("plugins/a/main.sh");
    let fails_first = "[ -e second ] || { : >second; echo 'not yet' >&2; exit 1; }\nanswer() {";
    sandbox.write("plugins/a/main.sh", &program.replace("answer() {", fails_first));
    let b = eager(&sandbox, "b", &["a"]);
    let restart = "restart = { backoff = \"2s\", jitter = 0 }\n";
    sandbox.configure(&format!("{a}start = \"eager\"\n{restart}{b}"));
    let daemon = sandbox.serve();
    let mut seen = Value::Null;
    eventually("b is shown to wait for a", || {
        let b = daemon.status("b");
        if b["waits_for"] == json!(["a"]) && daemon.status("a")["state"] == "backoff" {
            seen = b;
        }
        !seen.is_null()
    });
    assert_ne!(seen["state"], "ready", "{seen:#}");
    daemon.wait_for_state("b", "ready");
    assert_eq!(sandbox.read("plugins/inits"), "a\nb\n", "b came after a, once each");
    let ready: Vec<Value> =
        events_of(&daemon, "plugin.ready").iter().map(|event| event["plugin"].clone()).collect();
    assert_eq!(ready, [json!("a"), json!("b")]);
    daemon.stop();
}

#[test]
fn c120_a_dependent_is_gone_before_what_it_requires_is_asked_to_leave() {
    let sandbox = Sandbox::new("");
    let base = "
def on_init(params):
    mark('inits')
    return {}
def handle(operation, arguments, params):
    return {'data': arguments}
def state(pid):
    try:
        with open('/proc/%s/stat' % pid) as file: return file.read().rsplit(') ', 1)[1][0]
    except OSError: return 'gone'
def on_shutdown():
    with open('../b/pid') as file: found = state(file.read().strip())
    mark('../order', 'a is asked to leave, b is ' + ('gone' if found in 'ZX' else found))
";
    // It asks while it is being shut down, so nothing else reads its stdin then.
    let user = "
MANIFEST = {'requires': {'a': '*'}}
def on_shutdown():
    mark('../order', 'b is asked to leave')
    began = time.monotonic()
    send({'jsonrpc': '2.0', 'id': 'last', 'method': 'host/call', 'params': {'operation': 'a.echo', 'arguments': {'n': 1}}})
    answer = json.loads(sys.stdin.buffer.readline())
    mark('../order', 'b got ' + json.dumps(answer.get('result', answer).get('data')))
    time.sleep(max(0, began + 1 - time.monotonic()))
    mark('../order', 'b is done')
";
    let a = format!("{}start = \"eager\"\n", sandbox.python("a", base));
    let b = sandbox.python("b", user);
    sandbox.configure(&format!("{a}{b}"));
    let mut daemon = sandbox.serve();
    daemon.plugd(&["start", "b"]).expect(0);
    let pid = daemon.status("b")["pid"].clone();
    sandbox.write("plugins/b/pid", &format!("{pid}\n"));
    let began = Instant::now();
    daemon.plugd(&["shutdown"]).expect(0);
    assert_eq!(daemon.wait(), 0);
    assert!(began.elapsed().as_secs() < 20, "no grace was waited out: {:?}", began.elapsed());
    let order = sandbox.read("plugins/order");
    let expected = "b is asked to leave\nb got {\"n\": 1}\nb is done\na is asked to leave, b is gone\n";
    assert_eq!(order, expected);
}

#[test]
fn c121_what_fails_at_the_bottom_blocks_everything_above_it_with_its_reason_and_nothing_beside() {
    let sandbox = Sandbox::new("");
    sandbox.write("plugins/c/broken", "1\n");
    let c = format!("{}start = \"eager\"\nrestart = {{ max = 1, backoff = \"10ms\" }}\n", sandbox.shell("c"));
    let tables =
        [eager(&sandbox, "a", &["b"]), eager(&sandbox, "b", &["c"]), c, eager(&sandbox, "d", &[])].concat();
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    assert!(reason_of(&daemon, "c", "failed").contains("the ledger is locked"));
    for name in ["a", "b"] {
        let reason = reason_of(&daemon, name, "blocked");
        assert!(
            reason.contains("c, which is failed") && reason.contains("exit status 1"),
            "{name}: {reason}"
        );
    }
    daemon.wait_for_state("d", "ready");
    let refused = daemon.plugd(&["--output", "json", "call", "a.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "blocked", "{refused:#}");
    let message = text(&refused["error"]["message"]);
    assert!(message.contains("c, which is failed") && message.contains("exit status 1"), "{message}");
    assert_eq!(sandbox.read("plugins/inits"), "d\n", "neither of the two was asked to init");
    daemon.stop();
}

#[test]
fn c124_missing_blocked_and_requiring_itself_are_told_apart() {
    let sandbox = Sandbox::new("");
    let tables = [
        eager(&sandbox, "p1", &["storge"]),
        eager(&sandbox, "p2", &["p1"]),
        eager(&sandbox, "p3", &["p3"]),
        eager(&sandbox, "storage", &[]),
    ];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    let missing = reason_of(&daemon, "p1", "blocked");
    assert!(missing.contains("storge") && missing.contains("did you mean storage?"), "{missing}");
    let blocked = reason_of(&daemon, "p2", "blocked");
    assert!(blocked.contains("p1") && blocked.contains("storge"), "{blocked}");
    let itself = reason_of(&daemon, "p3", "disabled");
    assert!(itself.contains("itself"), "{itself}");
    for reason in [&missing, &blocked, &itself] {
        assert!(!reason.contains("cycle") && !reason.contains(" -> "), "none of them is a cycle: {reason}");
    }
    assert!(missing != blocked && blocked != itself);
    daemon.wait_for_state("storage", "ready");
    assert!(data_of(&daemon, &["storage.pid"]).is_object());
    daemon.stop();
}

#[test]
fn c125_one_misspelt_requirement_does_not_spoil_the_order_of_the_others() {
    let sandbox = Sandbox::new("");
    let tables = [
        eager(&sandbox, "a_user", &["z_base"]),
        eager(&sandbox, "m_bad", &["nothing_there"]),
        eager(&sandbox, "z_base", &[]),
    ];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    daemon.wait_for_state("a_user", "ready");
    assert!(reason_of(&daemon, "m_bad", "blocked").contains("nothing_there"));
    assert_eq!(sandbox.read("plugins/inits"), "z_base\na_user\n", "and only m_bad is missing");
    let ready: Vec<Value> =
        events_of(&daemon, "plugin.ready").iter().map(|event| event["plugin"].clone()).collect();
    assert_eq!(ready, [json!("z_base"), json!("a_user")]);
    daemon.stop();
}

#[test]
fn c126_a_cycle_is_shown_whole_and_touches_only_those_who_need_it() {
    let sandbox = Sandbox::new("");
    let tables = [
        eager(&sandbox, "a", &["b"]),
        eager(&sandbox, "b", &["c"]),
        eager(&sandbox, "c", &["a"]),
        eager(&sandbox, "d", &["c"]),
        eager(&sandbox, "e", &[]),
    ];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    for name in ["a", "b", "c"] {
        let reason = reason_of(&daemon, name, "disabled");
        let ways = ["a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c"];
        assert!(ways.iter().any(|way| reason.contains(way)), "{reason}");
    }
    assert!(reason_of(&daemon, "d", "blocked").contains(" -> "), "it names the cycle");
    daemon.wait_for_state("e", "ready");
    assert_eq!(sandbox.read("plugins/inits"), "e\n");
    daemon.stop();
}

#[test]
fn c126_a_chain_of_two_thousand_is_planned_without_running_any_and_so_is_a_ring() {
    let sandbox = Sandbox::new("");
    let link = |number: usize, requires: Option<usize>| {
        let requires =
            requires.map(|below| format!("requires = {{ p{below} = \"*\" }}\n")).unwrap_or_default();
        format!("[plugins.p{number}]\ncommand = [\"sh\"]\n{requires}")
    };
    let chain = |bottom: Option<usize>| -> String {
        (0..2_000).map(|number| link(number, number.checked_sub(1).or(bottom))).collect()
    };
    sandbox.configure(&chain(None));
    let check = sandbox.plugd(&["config", "check"]).expect(0);
    assert!(check.stdout.contains("2000"), "{check:?}");
    sandbox.configure(&chain(Some(1_999)));
    let check = sandbox.plugd(&["config", "check"]).expect(2);
    assert!(
        check.stderr.contains(" -> "),
        "the ring is found: {}",
        &check.stderr[..check.stderr.len().min(500)]
    );
}
