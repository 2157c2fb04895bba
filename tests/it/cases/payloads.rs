//! Cases about big payloads: whole up to the limit, bounded beyond it.

use std::fs;
use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Ran, Sandbox, eventually};
use serde_json::{Value, json};

use super::framing::{data_of, logged};

/// The frame limit that nobody configured.
const FRAME_LIMIT_KIB: u64 = 16 * 1024;

/// What the daemon may take beyond a full frame: buffers grow in steps, and calls come meanwhile.
const SLACK_KIB: u64 = 16 * 1024;

/// Writes 300 MB and no line end: with an id at its head, or as nothing but letters.
const FLOOD: &str = r#"
OPERATIONS = [{"name": "echo", "input_schema": {"type": "object"}},
              {"name": "letters", "input_schema": {}}, {"name": "answer", "input_schema": {}}]

def answer_call(message):
    operation = message["params"]["operation"]
    if operation == "echo":
        return send({"jsonrpc": "2.0", "id": message["id"], "result": {"data": message["params"]["arguments"]}})
    if operation == "answer":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"data":"' % message["id"])
    for _ in range(300):
        raw(b"a" * 1000000)
        mark("flooded.txt")
    if operation == "answer":
        raw(b'"}}\n')
    mark("done.txt")
"#;

fn flood_sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    let flooding = sandbox.python("a", FLOOD);
    let quiet = sandbox.python("b", "");
    sandbox.configure(&format!("{flooding}restart = {{ backoff = \"50ms\" }}\n{quiet}"));
    sandbox
}

/// A line of the daemon's `/proc/PID/status`, in KiB.
fn memory_kib(daemon: &Daemon<'_>, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("the daemon lives");
    let value = status.lines().find_map(|text| text.strip_prefix(line)).expect("the kernel says how much");
    value.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").parse().expect("a number of KiB")
}

/// Calls the flooding operation, and B for as long as that lasts; returns how the flood ended.
fn call_beside_a_flood(daemon: &Daemon<'_>, operation: &str) -> Ran {
    let before = memory_kib(daemon, "VmRSS");
    let allowed = before + FRAME_LIMIT_KIB + SLACK_KIB;
    let mut answered = 0;
    let ran = std::thread::scope(|scope| {
        let flood = scope.spawn(|| daemon.plugd(&["--output", "json", "call", operation]));
        while !flood.is_finished() || answered == 0 {
            assert_eq!(
                data_of(daemon, &["b.echo", &format!("turn={answered}")])["turn"],
                answered.to_string()
            );
            let now = memory_kib(daemon, "VmRSS");
            assert!(now < allowed, "{now} KiB resident, {before} before");
            answered += 1;
        }
        flood.join().expect("the call ends")
    });
    let most = memory_kib(daemon, "VmHWM");
    assert!(most < allowed, "at most {most} KiB were resident, {before} before");
    ran
}

#[track_caller]
fn check_frame_too_large(ran: &Ran) {
    assert_eq!(ran.code, 6, "{ran:?}");
    let error = &ran.json()["error"];
    assert_eq!((&error["code"], &error["name"]), (&json!(8002), &json!("frame_too_large")), "{error:#}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("frame too large") && message.contains("16777216"), "{message}");
}

#[test]
fn c010_a_line_without_end_ends_the_run_and_fills_no_memory() {
    let sandbox = flood_sandbox();
    let daemon = sandbox.serve();
    for plugin in ["a", "b"] {
        data_of(&daemon, &[&format!("{plugin}.echo")]);
    }
    let (a, b) = (daemon.status("a"), daemon.status("b"));
    check_frame_too_large(&call_beside_a_flood(&daemon, "a.letters"));

    assert_eq!(data_of(&daemon, &["a.echo", "again=yes"]), json!({"again": "yes"}), "its next run answers");
    let after = daemon.status("a");
    assert_ne!(after["pid"], a["pid"], "{after:#}");
    assert_eq!(after["last_exit"]["generation"], a["generation"], "that run has ended: {after:#}");
    let reasons = logged(&daemon, "a", "runtime");
    let said = |entry: &Value| entry["text"].as_str().is_some_and(|text| text.contains("frame too large"));
    assert!(reasons.iter().any(said), "{reasons:#?}");
    let events = daemon.json(&["events", "a", "--tail", "1000"]);
    let with_reason =
        |event: &Value| event["reason"].as_str().is_some_and(|reason| reason.contains("frame too large"));
    assert!(events.as_array().unwrap().iter().any(with_reason), "{events:#}");
    check_untouched(&daemon, &b);
    daemon.stop();
}

#[test]
fn c010_an_oversized_answer_fails_its_call_alone_and_fills_no_memory() {
    let sandbox = flood_sandbox();
    let daemon = sandbox.serve();
    for plugin in ["a", "b"] {
        data_of(&daemon, &[&format!("{plugin}.echo")]);
    }
    let (a, b) = (daemon.status("a"), daemon.status("b"));
    check_frame_too_large(&call_beside_a_flood(&daemon, "a.answer"));

    // The whole of it is read and thrown away, and the lines behind it are read again.
    eventually("all 300 MB have gone through the pipe", || !sandbox.read("plugins/a/done.txt").is_empty());
    assert_eq!(sandbox.read("plugins/a/flooded.txt").lines().count(), 300);
    assert_eq!(data_of(&daemon, &["a.echo", "again=yes"]), json!({"again": "yes"}));
    let after = daemon.status("a");
    assert_eq!((&after["pid"], &after["generation"]), (&a["pid"], &a["generation"]), "{after:#}");
    check_untouched(&daemon, &b);
    daemon.stop();
}

#[track_caller]
fn check_untouched(daemon: &Daemon<'_>, before: &Value) {
    let now = daemon.status("b");
    for member in ["state", "pid", "generation", "restarts"] {
        assert_eq!(now[member], before[member], "{member}: {now:#}");
    }
}

/// How long 8 MB may take from the command line to its output.
const EIGHT_MEGABYTES_TIME: Duration = Duration::from_secs(2);

/// By how much others slow down what one does here: the tasks for each processor, at least one.
fn machine_share() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").expect("the kernel tells its load");
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).expect("a number");
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (load / f64::from(u32::try_from(processors).unwrap_or(1))).max(1.0)
}

/// Gives a text of so many bytes with its digest, and the digest of a text.
const DIGESTS: &str = r#"
import functools

OPERATIONS = [
    {"name": "give", "input_schema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    {"name": "digest", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}},
]

def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()

def handle(operation, arguments, params):
    if operation == "digest":
        return {"data": {"bytes": len(arguments["text"].encode()), "sha256": digest(arguments["text"])}}
    text = text_of(arguments["size"])
    return {"data": {"text": text, "sha256": digest(text)}}

@functools.cache
def text_of(size):
    block = "".join(digest(str(n)) + '三é🙂"\\\n' for n in range(1000))
    text = (block * (size // len(block) + 1)).encode()[:size].decode(errors="ignore")
    return text + "." * (size - len(text.encode()))
"#;

#[test]
fn c012_payloads_arrive_whole_in_both_directions() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", DIGESTS);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    for size in [65_536_usize, 65_537, 1_000_000, 8_000_000] {
        let given = data_of(&daemon, &["fp.give", &format!("size={size}")]);
        let text = given["text"].as_str().expect("a text");
        assert_eq!(text.len(), size, "nothing is truncated");
        let arguments = json!({"text": text}).to_string();
        sandbox.write("arguments.json", &arguments);
        let expected = json!({"bytes": size, "sha256": given["sha256"]});
        assert_eq!(data_of(&daemon, &["fp.digest", "--json", "@arguments.json"]), expected);
        if size > 1_000_000 {
            continue;
        }
        let args = ["--output", "json", "call", "fp.digest", "--json", "-"];
        let ran = sandbox.plugd_with_stdin(&args, arguments.as_bytes()).expect(0);
        assert_eq!(ran.json()["data"], expected);
    }
    daemon.stop();
}

#[test]
fn c012_eight_megabytes_take_less_than_two_seconds() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", DIGESTS);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    data_of(&daemon, &["fp.give", "size=8000000"]);
    let allowed = EIGHT_MEGABYTES_TIME.mul_f64(machine_share());
    let mut best = Duration::MAX;
    for _ in 0..8 {
        let began = Instant::now();
        let ran = daemon.plugd(&["--output", "json", "call", "fp.give", "size=8000000"]).expect(0);
        best = best.min(began.elapsed());
        assert!(ran.stdout.len() > 8_000_000, "it came whole");
        if best < allowed {
            break;
        }
    }
    assert!(best < allowed, "{best:?} at best, {allowed:?} allowed");
    daemon.stop();
}

#[test]
fn c012_a_megabyte_goes_through_the_embedded_engine_too() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", DIGESTS);
    sandbox.configure(&table);
    let given = sandbox.json(&["call", "fp.give", "size:=1000000"]);
    let text = given["data"]["text"].as_str().expect("a text");
    sandbox.write("text.txt", text);
    let answered = sandbox.json(&["call", "fp.digest", "text=@text.txt"]);
    assert_eq!(answered["data"], json!({"bytes": 1_000_000, "sha256": given["data"]["sha256"]}));
}
