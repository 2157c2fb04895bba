//! Cases about what a plugin finds in its environment.

use std::path::Path;
use std::process::Stdio;

use plugd_tests::{Ran, Sandbox};
use serde_json::{Value, json};

const TELLING: &str = "def handle(operation, arguments, params):\n    return {'data': dict(os.environ)}\n";

/// What the plugin finds where plugd itself has these variables; no daemon, so that they are known.
fn found(sandbox: &Sandbox, variables: &[(&str, &str)]) -> Value {
    let mut call = sandbox.command(&["--output", "json", "call", "fp.echo"]);
    call.stdin(Stdio::null()).envs(variables.iter().copied());
    let ran: Ran = call.output().expect("plugd runs").into();
    ran.expect(0).json()["data"].clone()
}

#[test]
fn c141_setting_one_variable_takes_none_of_the_others_away() {
    let sandbox = Sandbox::new("");
    // The command is found by PATH, which `env` must not have replaced.
    let table = sandbox.python("fp", TELLING);
    let own = [("LANG", "C.UTF-8"), ("LC_TIME", "C"), ("TZ", "UTC"), ("API_TOKEN", "secret"), ("PROXY", "p")];
    let everywhere = |found: &Value| {
        for (name, value) in [("LANG", "C.UTF-8"), ("LC_TIME", "C"), ("TZ", "UTC")] {
            assert_eq!(found[name], value, "{found:#}");
        }
        // Where `python3` is a shim, that puts folders of its own before it.
        let path = std::env::var("PATH").expect("a PATH");
        assert!(found["PATH"].as_str().is_some_and(|found| found.ends_with(&path)), "{found:#}");
        assert!(found["API_TOKEN"].is_null(), "what is not on the list stays here: {found:#}");
    };
    sandbox.configure(&format!("{table}env = {{ FOO = \"1\" }}\n"));
    let set = found(&sandbox, &own);
    everywhere(&set);
    assert_eq!((&set["FOO"], &set["PROXY"]), (&json!("1"), &Value::Null));
    let home = std::env::var("HOME").ok();
    assert_eq!(set["HOME"].as_str(), home.as_deref());

    sandbox.configure(&format!("{table}env = {{ FOO = \"1\", HOME = false }}\npass_env = [\"PROXY\"]\n"));
    let unset = found(&sandbox, &own);
    everywhere(&unset);
    assert_eq!((&unset["FOO"], &unset["HOME"], &unset["PROXY"]), (&json!("1"), &Value::Null, &json!("p")));
}

#[test]
fn c141_the_list_of_what_is_passed_on_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, told) = page.split_once("**Environment.**").expect("a paragraph about it");
    let told = told.split("\n\n").next().expect("the paragraph");
    for name in ["PATH", "HOME", "USER", "LANG", "LC_*", "TZ", "TMPDIR", "PLUGD_*", "PYTHONUNBUFFERED=1"] {
        assert!(told.contains(&format!("`{name}`")), "{name}: {told}");
    }
}
