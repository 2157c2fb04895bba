//! Every way to write an argument, and that what arrives is what was written.

use plugd_tests::{Daemon, Ran, Sandbox};
use serde_json::{Value, json};

/// Gives back the arguments as text, byte for byte as the host sent them.
const MIRROR: &str = r#"
OPERATIONS = [{"name": "typed", "input_schema": {"type": "object", "properties": {
    "text": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"},
    "tags": {"type": "array"}, "more": {"type": "object"}}, "additionalProperties": True}}]


def handle(operation, arguments, params):
    return {"data": arguments}
"#;

fn mirror() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("mirror", MIRROR);
    sandbox.configure(&table);
    sandbox
}

#[track_caller]
fn sent(daemon: &Daemon<'_>, words: &[&str]) -> Value {
    daemon.plugd(&[&["--output", "json", "call", "mirror.typed"], words].concat()).expect(0).json()["data"]
        .clone()
}

#[test]
fn every_form_of_an_argument_arrives_as_it_was_meant() {
    let sandbox = mirror();
    sandbox.write("words.txt", "two\nlines\n");
    sandbox.write("value.json", "{\"deep\": [1, 2]}\n");
    sandbox.write("all.json", "{\"text\": \"from a file\", \"n\": 7}");
    let daemon = sandbox.serve();
    let cases: &[(&[&str], Value)] = &[
        (&[], json!({})),
        (&["text=plain"], json!({"text": "plain"})),
        (&["text=3"], json!({"text": "3"})),
        (&["n=3", "on=true"], json!({"n": 3, "on": true})),
        (&["tags=[1,\"b\"]", "more={\"a\":null}"], json!({"tags": [1, "b"], "more": {"a": null}})),
        (&["text=a=b:=c@d"], json!({"text": "a=b:=c@d"})),
        (&["text="], json!({"text": ""})),
        (&["undeclared:=[true,null]"], json!({"undeclared": [true, null]})),
        (&["text=@words.txt"], json!({"text": "two\nlines\n"})),
        (&["more:=@value.json"], json!({"more": {"deep": [1, 2]}})),
        (&["@all.json", "on:=false"], json!({"text": "from a file", "n": 7, "on": false})),
        (&["--json", "{\"n\": 1}"], json!({"n": 1})),
        (&["--json", "@all.json"], json!({"text": "from a file", "n": 7})),
        (&["--json={\"n\": 1}", "text=and"], json!({"n": 1, "text": "and"})),
        (&["城市=北京"], json!({"城市": "北京"})),
    ];
    for (words, expected) in cases {
        assert_eq!(sent(&daemon, words), *expected, "{words:?}");
    }
    daemon.stop();
}

#[test]
fn arguments_are_read_from_stdin() {
    let sandbox = mirror();
    let daemon = sandbox.serve();
    let call = |words: &[&str], stdin: &str| -> Ran {
        sandbox.plugd_with_stdin(
            &[&["--output", "json", "call", "mirror.typed"], words].concat(),
            stdin.as_bytes(),
        )
    };
    for words in [&["--json", "-"][..], &["@-"]] {
        assert_eq!(call(words, "{\"n\": 5}\n").expect(0).json()["data"], json!({"n": 5}), "{words:?}");
    }
    assert_eq!(call(&["text=@-"], "from a pipe").expect(0).json()["data"]["text"], "from a pipe");
    assert_eq!(call(&["more:=@-"], "{\"a\":1}").expect(0).json()["data"]["more"], json!({"a": 1}));
    for words in [&["--json", "-"][..], &["@-"], &["text=@-"]] {
        let words = [&["--output", "json", "call", "mirror.typed"], words].concat();
        let refused = sandbox.plugd_with_stdin(&words, b"{\"text\": \"\xff\"}").expect(3).json();
        assert_eq!(refused["error"]["code"], 2002, "bytes that are no text: {words:?}: {refused:#}");
    }
    daemon.stop();
}

#[test]
fn a_key_given_twice_is_refused_before_anything_runs() {
    let sandbox = mirror();
    for words in [
        &["n=1", "n=2"][..],
        &["n=1", "n:=2"],
        &["n=1", "--json", "{\"n\":2}"],
        &["--json", "{\"n\":1,\"n\":2}"],
    ] {
        let ran = sandbox.plugd(&[&["call", "mirror.typed"], words].concat()).expect(2);
        assert!(ran.stderr.contains("\"n\" is given twice"), "{words:?}: {ran:?}");
    }
}

#[test]
fn digits_are_kept_on_the_way_there_and_back() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "mirror",
        r#"
def answer_call(message):
    # Not through Python's numbers: the text of the arguments as it came.
    raw(('{"jsonrpc":"2.0","id":%d,"result":{"data":%s}}\n' % (message["id"], message["text"])).encode())


def main():
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method = message.get("method")
        if method == "describe":
            send({"jsonrpc": "2.0", "id": message["id"], "result": {
                "protocol": 1, "name": "mirror", "version": "1.0.0", "operations": OPERATIONS}})
        elif method == "call":
            text = line.decode()
            start = text.index('"arguments":') + len('"arguments":')
            message["text"] = text[start:text.index(',"context":')]
            answer_call(message)
        elif "id" in message:
            send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let written = r#"{"big":9007199254740993,"id":18446744073709551615,"exact":1.10,"long":0.1000000000000000055511151231257827}"#;
    let ran = daemon.plugd(&["--output", "data", "call", "mirror.echo", "--json", written]).expect(0);
    assert_eq!(ran.stdout.trim_end(), written);
    let words = ["--output", "data", "call", "mirror.echo", "big:=9007199254740993", "exact:=1.10"];
    assert_eq!(daemon.plugd(&words).expect(0).stdout.trim_end(), r#"{"big":9007199254740993,"exact":1.10}"#);
    let document =
        daemon.plugd(&["--output", "json", "call", "mirror.echo", "--json", written]).expect(0).stdout;
    assert!(document.contains(&format!("\"data\":{written}")), "{document}");
    let text = daemon.plugd(&["call", "mirror.echo", "--json", written]).expect(0).stdout;
    for digits in ["9007199254740993", "18446744073709551615", "1.10", "0.1000000000000000055511151231257827"]
    {
        assert!(text.contains(digits), "{digits} in {text}");
    }
    daemon.stop();
}

#[test]
fn one_executable_is_called_without_configuration_or_daemon() {
    let sandbox = mirror();
    let ran =
        sandbox.plugd(&["--output", "data", "call", "./plugins/mirror/main.py", "typed", "n=3"]).expect(0);
    assert_eq!(ran.stdout, "{\"n\": 3}\n");
    assert!(!sandbox.socket().exists(), "no daemon was started");
}

#[test]
fn without_a_daemon_everything_that_only_asks_works_too() {
    let sandbox = mirror();
    assert_eq!(sandbox.json(&["call", "mirror.typed", "n=3"])["data"], json!({"n": 3}));
    assert_eq!(sandbox.json(&["call", "typed", "n=3"])["data"], json!({"n": 3}), "an unambiguous bare name");
    assert_eq!(sandbox.json(&["list"])["plugins"][0]["operations"][0]["id"], "mirror.typed");
    assert_eq!(sandbox.json(&["describe", "mirror.typed"])["operations"][0]["name"], "typed");
    assert_eq!(sandbox.json(&["graph"])["nodes"][0]["name"], "mirror");
    assert!(sandbox.json(&["logs", "mirror"]).is_array());
}

#[test]
fn an_unknown_name_gets_the_nearest_and_starts_nothing() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("tickets", "mark(\"started\")\n");
    sandbox.configure(&table);
    let starts = || sandbox.read("plugins/tickets/started").lines().count();

    let ran = sandbox.plugd(&["call", "tickts.echo"]).expect(4);
    assert!(ran.stderr.contains("tickets"), "{ran:?}");
    assert_eq!(starts(), 0, "nothing runs for a plugin that is not there");

    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    let before = starts();
    let result = daemon.plugd(&["--output", "json", "call", "tickets.ecoh"]).expect(4).json();
    assert_eq!(result["error"]["name"], "unknown_operation", "{result:#}");
    assert!(result["error"].to_string().contains("tickets.echo"), "{result:#}");
    assert_eq!(result["error"]["outcome"], "not_run");
    assert_eq!(starts(), before);
    daemon.stop();
}
