//! The documented exit codes, each from a command that ends with it.

use plugd_tests::Sandbox;

const PLUGINS: &str = r#"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
OPERATIONS = [{"name": name, "input_schema": SCHEMA, "effects": {"destructive": name == "wipe"}}
    for name in ("echo", "fail", "hang", "die", "wipe")]


def handle(operation, arguments, params):
    if operation == "fail":
        raise Failure("no")
    if operation == "die":
        os._exit(1)
    if operation == "hang":
        threading.Event().wait()
    return {"data": arguments}
"#;

#[test]
fn every_exit_code_means_what_the_help_says() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("p", PLUGINS) + "cancel_grace = \"100ms\"\n";
    let off = sandbox.python("off", "") + "enabled = false\n";
    sandbox.configure(&format!("{table}{off}[callers.ci]\nallow = [\"p.echo\"]\n"));
    let without: &[(&[&str], i32)] = &[
        (&["status"], 9),
        (&["stop", "p"], 9),
        (&["shutdown"], 9),
        (&["events"], 9),
        (&["call"], 2),
        (&["nonsense"], 2),
        (&["call", "p.echo", "hello"], 2),
        (&["call", "./no-such-file", "echo"], 2),
        (&["list", "--state", "odd"], 2),
    ];
    for (words, code) in without {
        sandbox.plugd(words).expect(*code);
    }
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    let with: &[(&[&str], i32)] = &[
        (&["call", "p.echo"], 0),
        (&["call", "p.fail"], 1),
        (&["call", "p.echo", "n=x"], 3),
        (&["call", "p.echo", "n:={"], 3),
        (&["call", "p.nothing"], 4),
        (&["call", "q.echo"], 4),
        (&["describe", "q"], 4),
        (&["start", "q"], 4),
        (&["status", "q"], 4),
        (&["cancel", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"], 4),
        (&["call", "p.hang", "--timeout", "200ms"], 5),
        (&["call", "p.die"], 6),
        (&["call", "off.echo"], 6),
        (&["--as", "ci", "call", "p.wipe"], 7),
        (&["call", "p.wipe"], 8),
        (&["call", "p.wipe", "--yes"], 0),
        (&["calls", "show", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"], 4),
        (&["result", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"], 4),
        (&["jobs", "wait", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"], 4),
        (&["answer", "no-such-token", "--yes"], 4),
        (&["start", "off"], 6),
        (&["--socket", "run/plugd.sock", "status"], 0),
        (&["--socket", "run/nobody.sock", "status"], 9),
    ];
    for (words, code) in with {
        let ran = daemon.plugd(words).expect(*code);
        assert_eq!(
            ran.stderr.is_empty(),
            *code == 0 || words[0] == "start" && *code == 6,
            "{words:?}: {ran:?}"
        );
    }
    daemon.stop();
}

#[test]
fn a_second_daemon_is_refused_with_9() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.serve();
    daemon.plugd(&["serve"]).expect(9);
    daemon.stop();
}
