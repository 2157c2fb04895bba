//! What does not describe itself is told why, and what to do about that very cause.

use plugd_tests::Sandbox;

use crate::languages::there_is;

/// What `plugd check` says of this program; it must fail.
#[track_caller]
fn told(text: &str) -> String {
    let sandbox = Sandbox::new("");
    // It has its place in a table, so that it is not described for as long as the default says.
    sandbox.program("plugins/x/main", text);
    sandbox.write("plugins/x/plugin.toml", "command = [\"./main\"]\ndescribe_timeout = \"2s\"\n");
    sandbox.plugd(&["check", "./plugins/x", "--only=describes_itself"]).expect(6).stdout
}

#[track_caller]
fn says(program: &str, parts: &[&str]) {
    let told = told(program);
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// A program that answers the first line with this.
fn answering(line: &str) -> String {
    format!("#!/bin/sh\nread -r asked\ncat <<'END'\n{line}\nEND\nwhile read -r asked; do :; done\n")
}

#[test]
fn a_program_that_ends_is_told_how_it_goes_on() {
    says(
        "#!/bin/sh\n:\n",
        &[
            "it ended (exit status: 0) before it had answered describe",
            "fix: let it serve until stdin ends",
            "serve()",
        ],
    );
    says(
        "#!/usr/bin/env python3\nimport nothing_of_that_name\n",
        &[
            "it ended (exit status: 1)",
            "No module named",
            "fix: mend what it says on stderr",
            "starts it by hand",
        ],
    );
    says("#!/bin/sh\nexit 3\n", &["it ended (exit status: 3)", "fix: it says nothing on stderr: `echo | "]);
    says("#!/bin/sh\nkill -SEGV $$\n", &["fix: it crashed with signal 11"]);
}

#[test]
fn an_answer_that_is_none_is_told_what_is_wrong_with_it() {
    let manifest = r#"{"protocol":1,"name":"x","version":"1","operations":[]}"#;
    says(
        &answering(&format!("{{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {manifest}\n}}")),
        &["it wrote its answer over several lines", "fix: one message a line"],
    );
    says(
        &answering(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{manifest}}}")),
        &["has another id than the request", "fix: give back the id as it came"],
    );
    says(
        &answering(manifest),
        &["it wrote a manifest, and not as the answer", "fix: write it as the result"],
    );
    says(&answering("Loading the model…"), &["it wrote text to stdout, and no answer", "text to stderr"]);
    says(
        "#!/bin/sh\nwhile read -r asked; do :; done\n",
        &["no answer to describe within 10.0s", "fix: read stdin line by line", "flush it"],
    );
    if there_is("perl", &["-e", "1"]) {
        says(
            "#!/usr/bin/env perl\nwhile (<STDIN>) { print \"{}\\n\" }\n",
            &["what it wrote came only once stdin was closed", "fix: flush stdout after each line"],
        );
    }
    says("#!/bin/sh\ncat\n", &["it writes back what it reads", "fix: answer `describe` with"]);
}

#[test]
fn an_answer_of_another_form_is_told_what_is_wrong_with_it() {
    for (line, message, fix) in [
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, "is broken", "fix: an error is an object, not a text"),
        (r#"{"id":1,"result":{}}"#, "is broken", "fix: put \"jsonrpc\":\"2.0\" into every message"),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"#,
            "describe was answered with error -32601",
            "fix: answer the method `describe` with a manifest",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"name":"x","version":"1","operations":[]}}"#,
            "the manifest has no \"protocol\"",
            "fix: put \"protocol\": 1 into the manifest",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":"x"}"#,
            "unreadable",
            "fix: the `result` of `describe` is the manifest",
        ),
    ] {
        says(&answering(line), &[message, fix]);
    }
}
