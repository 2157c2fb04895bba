//! What an error advises: whether to try again, what to look at, and of which plugin.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// Operations that differ in what they declare, and do what they are told.
const SHOP: &str = r#"
EFFECTS = {"order": {}, "query": {"read_only": True}, "put": {"idempotent": True}}
SCHEMA = {"type": "object", "properties": {"how": {"type": "string"}}}
OPERATIONS = [{"name": name, "input_schema": SCHEMA, "effects": effects} for name, effects in EFFECTS.items()]
MANIFEST = {"features": {"concurrency": 8}}

def handle(operation, arguments, params):
    how = arguments.get("how")
    if how == "hang":
        threading.Event().wait()
    if how == "crash":
        print("boom", file=sys.stderr, flush=True)
        os._exit(3)
    if how == "silent":
        os._exit(3)
    if how == "bare":
        raise Failure("no")
    if how == "fault":
        raise Failure("a fault", code=2)
    if how == "raves":
        raw(b"no message\n" * 100)
        threading.Event().wait()
    if how == "before":
        raw(b"looking ")
    if how == "twice":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"data":1}} done\n' % CALL.id)
        return None
    return {"data": operation}

CALL = threading.local()
answer = answer_call

def answer_call(message):
    CALL.id = message["id"]
    answer(message)
"#;

const QUICK: &str = "restart = { backoff = \"20ms\", backoff_cap = \"20ms\", max = 100 }\n";

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}{QUICK}", sandbox.python("shop", SHOP)));
    sandbox
}

/// The error that a call ends with.
#[track_caller]
fn error(daemon: &Daemon<'_>, args: &[&str]) -> Value {
    let ran = daemon.plugd(&[&["--output", "json", "call"], args].concat());
    assert_ne!(ran.code, 0, "{args:?}: {ran:?}");
    ran.json()["error"].clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn what_may_have_run_is_called_retryable_only_where_twice_does_no_harm() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for (how, code) in [("hang", 5001), ("crash", 6001), ("raves", 8003)] {
        for (operation, twice_is_well) in [("order", false), ("put", true), ("query", true)] {
            let words = [&format!("shop.{operation}"), &format!("how={how}"), "--timeout", "2s"];
            let error = error(&daemon, &words);
            let told = (&error["code"], &error["outcome"], &error["retryable"]);
            assert_eq!(told, (&json!(code), &json!("unknown"), &json!(twice_is_well)), "{how}: {error:#}");
            let hint = text(&error["hint"]);
            let warns = hint.contains("it may have run: look whether it took effect");
            assert_eq!(warns, !twice_is_well, "{how}: {hint}");
            assert!(twice_is_well || !hint.contains("call again"), "{how}: {hint}");
        }
    }
    let told = daemon.plugd(&["call", "shop.order", "how=crash"]).expect(6).stderr;
    assert!(!told.contains("retryable") && told.contains("it may have run"), "{told}");
    daemon.stop();
}

/// The key stands for that end: neither the first caller nor whoever repeats it may think that it is free.
#[test]
fn what_may_have_run_under_a_key_says_that_the_key_stands_for_it() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for _ in 0..2 {
        let error = error(&daemon, &["shop.order", "how=crash", "--key", "k"]);
        assert_eq!((&error["outcome"], &error["retryable"]), (&json!("unknown"), &json!(false)), "{error:#}");
        contains(text(&error["hint"]), &["it may have run, and the key stands for that", "take a new key"]);
    }
    daemon.stop();
}

#[test]
fn what_did_not_run_may_be_tried_again_whatever_it_declares() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("needy", "MANIFEST = {'requires': {'nowhere': '*'}}"));
    let daemon = sandbox.serve();
    let error = error(&daemon, &["needy.echo", "--timeout", "1s"]);
    assert_eq!((&error["outcome"], &error["retryable"]), (&json!("not_run"), &json!(true)), "{error:#}");
    daemon.stop();
}

#[test]
fn a_hint_names_the_plugin_it_is_about() {
    let sandbox = shop();
    let refuses = sandbox.python(
        "refuses",
        "def on_init(params):\n    if not os.path.exists('key'):\n        raise Failure('no key')\n    return {}\n",
    );
    let off = sandbox.python("off", "");
    let lost = "[plugins.lost]\ncommand = [\"./no-such-program\"]\n";
    let shop = sandbox.python("shop", SHOP);
    let config = format!("{shop}{QUICK}\n{refuses}\n{off}enabled = false\n\n{lost}");
    sandbox.configure(&config);
    let daemon = sandbox.serve();
    for (how, hint) in [
        ("bare", "`plugd logs shop`"),
        ("fault", "`plugd logs shop` has the stack"),
        ("crash", "`plugd logs shop` has its last words"),
        ("raves", "`plugd logs shop` shows what it wrote"),
    ] {
        contains(text(&error(&daemon, &["shop.order", &format!("how={how}")])["hint"]), &[hint]);
    }
    contains(text(&error(&daemon, &["lost.echo"])["hint"]), &["`plugd start lost`"]);
    contains(text(&error(&daemon, &["off.echo"])["hint"]), &["`plugd enable off`"]);
    daemon.plugd(&["enable", "off"]).expect(0);
    daemon.plugd(&["call", "off.echo"]).expect(0);
    daemon.plugd(&["stop", "shop"]).expect(0);
    contains(text(&error(&daemon, &["shop.order"])["hint"]), &["`plugd start shop` brings it back"]);
    // What helps is what is named.
    let hint = "mend the reason given, then `plugd reload refuses`";
    contains(text(&error(&daemon, &["refuses.echo"])["hint"]), &[hint]);
    sandbox.write("plugins/refuses/key", "");
    daemon.plugd(&["reload", "refuses"]).expect(0);
    daemon.plugd(&["call", "refuses.echo"]).expect(0);
    daemon.stop();
}

#[test]
fn of_a_plugin_that_said_nothing_no_log_is_named() {
    let sandbox = shop();
    let program = sandbox.program("plugins/mute/main.sh", "#!/bin/sh\nexit 1\n");
    let mute = "[plugins.mute]\ncommand = [\"./main.sh\"]\ncwd = \"plugins/mute\"\n";
    sandbox.configure(&format!("{}{QUICK}\n{mute}{QUICK}", sandbox.python("shop", SHOP)));
    let daemon = sandbox.serve();
    for words in [&["shop.order", "how=silent"][..], &["mute.echo", "--timeout", "1s"]] {
        let error = error(&daemon, words);
        contains(text(&error["message"]), &["it said nothing on stdout or stderr"]);
        let hint = text(&error["hint"]);
        assert!(hint.contains("`plugd check PATH`") && !hint.contains("plugd logs"), "{hint}");
    }
    let doctor = daemon.plugd(&["doctor", "mute"]).stdout;
    let program = program.canonicalize().expect("it is there");
    contains(&doctor, &["it said nothing", &format!("`plugd check {}` tries it", program.display())]);
    daemon.stop();
}

#[test]
fn an_answer_that_shares_its_line_is_told_with_what_stands_there_and_counted() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for (how, said, strays) in [
        ("before", "text stands before it on its line: a print without a line end?", 1),
        ("twice", "something stands after it on its line", 2),
    ] {
        let error = error(&daemon, &["shop.order", &format!("how={how}")]);
        assert_eq!(error["code"], 8003, "{error:#}");
        contains(text(&error["message"]), &[said]);
        assert_eq!(daemon.status("shop")["stray_lines"], strays, "{how}");
    }
    contains(&daemon.plugd(&["doctor", "shop"]).stdout, &["2 lines of text on stdout"]);
    daemon.stop();
}

#[test]
fn a_program_that_never_answers_describe_is_asked_what_it_leaves_out() {
    let sandbox = Sandbox::new("");
    let mute =
        "[plugins.mute]\ncommand = [\"./main.sh\"]\ncwd = \"plugins/mute\"\ndescribe_timeout = \"300ms\"\n";
    sandbox.program("plugins/mute/main.sh", "#!/bin/sh\nexec sleep 60\n");
    sandbox.configure(mute);
    let daemon = sandbox.serve();
    let error = error(&daemon, &["mute.echo", "--timeout", "2s"]);
    let asked = "no describe answer in 0.3 s: does it call serve(), read stdin, and flush what it writes?";
    contains(text(&error["message"]), &[asked]);
    daemon.stop();
}
