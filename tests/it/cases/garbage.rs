//! Garbage of every kind between a plugin's answers: the daemon and the other plugins do not notice.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

use super::framing::data_of;

/// Lines and bytes from one seed: halves of messages, halves of characters, ids of every type.
///
/// Whole numbers from 0 to a million do not occur as ids, as an answer with the id of the call in
/// flight would be that call's answer.
const GARBAGE: &str = r#"
import random

RANDOM = random.Random(20241215)
IDS = ['null', 'true', '-1', '-0', '0.0', '1.5', '1e3', '1e400', '""', '"3"', '[]', '{}', '[3]', '"\\ud800"',
       '18446744073709551615', '18446744073709551616', '99999999999999999999999999', '1000001']
METHODS = ['""', '"log"', '"progress"', '"partial"', '"manifest_changed"', '"describe"', '"host/call"',
           '"host/ask"', '"call"', '"shutdown"', 'null', '3', '["log"]', '"\\u0000"']

def value(depth=0):
    kind = RANDOM.randrange(10 if depth < 4 else 7)
    if kind < 7:
        return RANDOM.choice(['null', 'true', '0', '-7', '1e400', '"三"', '"\\ud83d"', '2.5', '""', '{}', '[]',
                              '"2.0"', '12345678901234567890', '"' + 'x' * RANDOM.randrange(300) + '"'])
    items = [value(depth + 1) for _ in range(RANDOM.randrange(4))]
    if kind == 7:
        return '[' + ','.join(items) + ']'
    names = ['data', 'message', 'level', 'call_id', 'done', 'operation', 'arguments', 'code', 'x', '']
    return '{' + ','.join('"%s":%s' % (RANDOM.choice(names), item) for item in items) + '}'

def member(name, likely):
    if RANDOM.random() >= likely:
        return []
    if name == 'id':
        return ['"id":' + RANDOM.choice(IDS)]
    if name == 'method':
        return ['"method":' + RANDOM.choice(METHODS)]
    return ['"%s":%s' % (name, value())]

def message():
    parts = ['"jsonrpc":' + RANDOM.choice(['"2.0"'] * 20 + ['"1.0"', '2.0', 'null'])]
    likely = RANDOM.choice([
        {'id': 1, 'result': 1}, {'id': 1, 'error': 1}, {'method': 1, 'params': 0.8}, {'id': 1, 'method': 1, 'params': 0.8},
        {'id': 0.6, 'method': 0.5, 'params': 0.4, 'result': 0.4, 'error': 0.4}])
    for name, chance in likely.items():
        parts += member(name, chance)
    if RANDOM.random() < 0.1:
        parts.append(RANDOM.choice(parts))
    RANDOM.shuffle(parts)
    return ('{' + ','.join(parts) + '}').encode()

def line():
    kind = RANDOM.randrange(10)
    if kind < 5:
        return message()
    if kind == 5:
        whole = message()
        return whole[:RANDOM.randrange(len(whole))]
    if kind == 6:
        return RANDOM.randbytes(RANDOM.randrange(200)).replace(b'\n', b' ')
    if kind == 7:
        whole = '{"jsonrpc":"2.0","method":"log","params":{"message":"三é🙂"}}'.encode()
        return whole[:-9] + whole[-8:]
    if kind == 8:
        return RANDOM.choice([b'[', b'{"a":']) * RANDOM.randrange(1, 3000)
    return RANDOM.choice([b'null', b'[]', b'[{"jsonrpc":"2.0","id":1,"result":{}}]', b'\x00', b'\xef\xbb\xbf',
                          b'\x1b[31m', b'"', b'3', value().encode(), b'{}', b'\r', b'a\rb', b'\xff\xfe'])

def garbage(count):
    for _ in range(count):
        raw(line() + RANDOM.choice([b'\n', b'\n', b'\n', b'\r\n', b'\n\n']))

def answered(message):
    mark("answered.txt", json.dumps(message.get("error", {}).get("code")))

OPERATIONS = [{"name": "echo", "input_schema": {"type": "object"}}, {"name": "rave", "input_schema": {}}]

def handle(operation, arguments, params):
    if operation == "rave":
        raw(b"\x80 not a message\n" * 100)
        return None
    garbage(100)
    return {"data": arguments}

garbage(40)
"#;

#[test]
fn garbage_between_answers_harms_nobody() {
    let sandbox = Sandbox::new("");
    let noisy = sandbox.python("a", GARBAGE);
    let quiet = sandbox.python("b", "");
    sandbox.configure(&format!("{noisy}restart = {{ backoff = \"50ms\" }}\n{quiet}"));
    let daemon = sandbox.serve();
    data_of(&daemon, &["b.echo"]);
    let other = daemon.status("b");
    for turn in 0..20 {
        for plugin in ["a", "b"] {
            let data = data_of(&daemon, &[&format!("{plugin}.echo"), &format!("turn:={turn}")]);
            assert_eq!(data, json!({"turn": turn}), "{plugin}");
        }
    }
    let noisy = daemon.status("a");
    assert_eq!((&noisy["state"], &noisy["starts"]), (&json!("ready"), &json!(1)), "{noisy:#}");
    assert!(noisy["stray_lines"].as_u64() > Some(500), "{noisy:#}");
    assert!(noisy["unmatched_answers"].as_u64() > Some(50), "{noisy:#}");
    let refused = sandbox.read("plugins/a/answered.txt");
    assert!(refused.lines().count() > 20, "its requests are answered");
    assert!(refused.lines().all(|code| code.starts_with("-32")), "with errors: {refused}");

    // Nothing but garbage, a hundred lines in a row, ends the run; the next one answers.
    let raving = daemon.plugd(&["--output", "json", "call", "a.rave"]).expect(6).json();
    assert_eq!(raving["error"]["code"], 8003, "{raving:#}");
    assert_eq!(data_of(&daemon, &["a.echo", "again=yes"]), json!({"again": "yes"}));
    assert_ne!(daemon.status("a")["pid"], noisy["pid"]);

    let now = daemon.status("b");
    for member in ["state", "pid", "generation", "restarts", "stray_lines", "unmatched_answers"] {
        assert_eq!(now[member], other[member], "{member}: {now:#}");
    }
    let log = daemon.plugd(&["logs", "a"]).expect(0).stdout;
    let raw_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!log.contains(raw_control), "what it wrote is escaped: {log:?}");
    assert_ne!(daemon.json(&["status"])["daemon"]["pid"], Value::Null);
    daemon.stop();
}
