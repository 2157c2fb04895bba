//! `manifest_changed`: a plugin that offers something else while it runs is described again.

use plugd_tests::eventually;
use serde_json::{Value, json};

use super::{data, events_of, marks, teller};

/// Its `grow` changes what it offers and says so, as often as it is told to.
const GROWS: &str = r#"
def counted(lines):
    for line in lines:
        if json.loads(line).get("method") == "describe":
            mark("described")
        yield line


class Stdin:
    buffer = counted(sys.stdin.buffer)


sys.stdin = Stdin
OPERATIONS.append({"name": "grow", "input_schema": {"type": "object"}})
OPERATIONS.append({"name": "typed", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}})
show = handle


def handle(operation, arguments, params):
    if operation == "grow":
        OPERATIONS[:] = [each for each in OPERATIONS if each["name"] not in ("wait", "typed")]
        OPERATIONS.append({"name": "typed", "input_schema": {"type": "object", "properties": {"n": {"type": "string"}}}})
        OPERATIONS.append({"name": "more", "input_schema": {"type": "object"}})
        for _ in range(arguments.get("times", 1)):
            send({"jsonrpc": "2.0", "method": "manifest_changed"})
    return show(operation, arguments, params)
"#;

#[test]
fn what_a_running_plugin_says_has_changed_is_offered_and_checked_anew_and_a_burst_is_one_change() {
    let sandbox = teller(GROWS, "");
    let daemon = sandbox.serve();
    let offered = || -> Vec<Value> {
        let described = daemon.json(&["describe", "fp"]);
        let mut names: Vec<Value> = described["operations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|each| each["name"].clone())
            .collect();
        names.sort_by_key(Value::to_string);
        names
    };
    assert_eq!(offered(), [json!("grow"), json!("show"), json!("typed"), json!("wait")]);
    daemon.plugd(&["call", "fp.typed", "n:=3"]).expect(0);
    let before = daemon.status("fp");
    let described = marks(&sandbox, "fp", "described").len();

    daemon.plugd(&["call", "fp.grow", "times:=100"]).expect(0);
    eventually("all three changes show", || {
        offered() == [json!("grow"), json!("more"), json!("show"), json!("typed")]
    });
    daemon.plugd(&["call", "fp.typed", "n:=3"]).expect(3);
    daemon.plugd(&["call", "fp.typed", "n:=\"three\""]).expect(0);
    daemon.plugd(&["call", "fp.wait"]).expect(4);
    assert!(data(&daemon, "fp.more").is_object());
    let after = daemon.status("fp");
    assert_eq!((&after["pid"], &after["generation"]), (&before["pid"], &before["generation"]), "{after:#}");
    let again = marks(&sandbox, "fp", "described").len() - described;
    assert!((1..=10).contains(&again), "a hundred notifications were {again} requests");
    assert!(!events_of(&daemon, "registry.changed").is_empty());
    daemon.stop();
}
