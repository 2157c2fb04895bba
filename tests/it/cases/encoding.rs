//! Cases about encoding: characters and digits arrive as they were sent.

use plugd_tests::{Daemon, Ran};
use serde_json::{Value, json};

use super::framing::{data_of, sandbox_of};
use super::wire::Http;

#[test]
fn c007_characters_split_over_reads_stay_whole() {
    let sandbox = sandbox_of(&[(
        "fp",
        r#"
def handle(operation, arguments, params):
    return {"data": {"text": "三 é 🙂 👩‍👩‍👧 ñ", "echo": arguments}, "summary": "三é🙂"}

def raw(data):
    with LOCK:
        for byte in data:
            sys.stdout.buffer.write(bytes([byte]))
            sys.stdout.buffer.flush()
            time.sleep(0.001)
"#,
    )]);
    let daemon = sandbox.serve();
    let result = daemon.plugd(&["--output", "json", "call", "fp.echo", "key=值 🙂"]).expect(0);
    assert!(!result.stdout.contains('\u{fffd}'), "{result:?}");
    let document = result.json();
    assert_eq!(document["data"], json!({"text": "三 é 🙂 👩‍👩‍👧 ñ", "echo": {"key": "值 🙂"}}));
    assert_eq!(document["summary"], "三é🙂");
    let data = daemon.plugd(&["--output", "data", "call", "fp.echo"]).expect(0).stdout;
    assert_eq!(data.trim_end(), r#"{"text": "三 é 🙂 👩‍👩‍👧 ñ", "echo": {}}"#, "byte for byte");
    daemon.stop();
}

/// The ways to give one argument on the command line.
fn forms(key: &str, json: &str) -> [Vec<String>; 3] {
    let object = format!("{{\"{key}\":{json}}}");
    [vec![format!("{key}:={json}")], vec![format!("{key}={json}")], vec!["--json".to_owned(), object]]
}

fn call(daemon: &Daemon<'_>, output: &str, arguments: &[String]) -> Ran {
    let mut args = vec!["--output", output, "call", "fp.echo"];
    args.extend(arguments.iter().map(String::as_str));
    daemon.plugd(&args)
}

/// Declares an integer and a number, and leaves a trace of every call it gets.
const NUMBERS: &str = r#"
OPERATIONS = [{"name": "echo", "input_schema": {"type": "object",
    "properties": {"id": {"type": "integer"}, "ratio": {"type": "number"}}}}]

def handle(operation, arguments, params):
    mark("calls.txt")
    return {"data": arguments}
"#;

#[test]
fn c014_integers_up_to_64_bits_keep_every_digit() {
    let sandbox = sandbox_of(&[("fp", NUMBERS)]);
    let daemon = sandbox.serve();
    let mut http = Http::connect(&sandbox.socket());
    for digits in
        ["2512292042121000001", "18446744073709551615", "-9223372036854775808", "9007199254740993", "0"]
    {
        let echoed = format!("{{\"id\": {digits}}}");
        for args in forms("id", digits) {
            let ran = call(&daemon, "data", &args).expect(0);
            assert_eq!(ran.stdout.trim_end(), echoed, "{args:?}");
        }
        let document = call(&daemon, "json", &forms("id", digits)[0]).expect(0);
        assert!(document.stdout.contains(&echoed), "{document:?}");
        let request =
            r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"fp.echo","arguments":"#;
        let (_, body) = http.post(&format!("{request}{echoed}}}}}"));
        assert!(body.contains(&echoed), "{body}");
    }
    daemon.stop();
}

#[test]
fn c014_a_number_out_of_range_is_an_error_and_never_a_rounded_value() {
    let sandbox = sandbox_of(&[("fp", NUMBERS)]);
    let daemon = sandbox.serve();
    for (key, number) in [
        ("ratio", "1e400"),
        ("ratio", "-1e400"),
        ("id", "1e400"),
        ("id", "18446744073709551616"),
        ("id", "-9223372036854775809"),
        ("ratio", "123456789012345678901234567890"),
    ] {
        let json = format!("{{\"{key}\":{number}}}");
        for args in
            [&[&format!("{key}:={number}")[..]][..], &[&format!("{key}={number}")], &["--json", &json]]
        {
            let ran = daemon.plugd(&[&["--output", "json", "call", "fp.echo"], args].concat()).expect(3);
            let result = ran.json();
            let (error, problem) = (&result["error"], &result["error"]["details"][0]);
            assert_eq!((&error["code"], &error["outcome"]), (&json!(2001), &json!("not_run")), "{result:#}");
            assert_eq!(result["data"], Value::Null, "{result:#}");
            assert_eq!(problem["path"], format!("/{key}"), "{result:#}");
            assert!(problem["expected"].as_str().unwrap().contains("64 bits"), "{result:#}");
            assert!(problem["got"].as_str().unwrap().contains(number), "{result:#}");
        }
    }
    assert_eq!(sandbox.read("plugins/fp/calls.txt"), "", "the plugin heard of none of them");
    assert_eq!(data_of(&daemon, &["fp.echo", "ratio:=0.5"]), json!({"ratio": 0.5}));
    daemon.stop();
}

#[test]
fn c014_numbers_that_a_plugin_answers_keep_every_digit_too() {
    let sandbox = sandbox_of(&[(
        "fp",
        r#"
DATA = '{"id":2512292042121000001,"most":18446744073709551615,"wide":123456789012345678901234567890,' \
    '"huge":1e400,"fine":0.10000000000000000000001,"round":1.0}'

def answer_call(message):
    raw(('{"jsonrpc":"2.0","id":%d,"result":{"data":%s}}\n' % (message["id"], DATA)).encode())
"#,
    )]);
    let daemon = sandbox.serve();
    let data = r#"{"id":2512292042121000001,"most":18446744073709551615,"wide":123456789012345678901234567890,"huge":1e400,"fine":0.10000000000000000000001,"round":1.0}"#;
    let ran = daemon.plugd(&["--output", "data", "call", "fp.echo"]).expect(0);
    assert_eq!(ran.stdout.trim_end(), data);
    let ran = daemon.plugd(&["--output", "json", "call", "fp.echo"]).expect(0);
    assert!(ran.stdout.contains(data), "{ran:?}");
    daemon.stop();
}
