//! The read-only sandbox: what a run in it cannot do, and that there is no run where it cannot be had.

use std::fs;
use std::process::{Command, ExitCode};

use landlock::{ABI, LandlockStatus, RestrictSelf};
use plugd_supervisor::driver::{Hosting, Launch, Sandbox};

use crate::Check;
use crate::support::{field, line, on_runtime, run_mark, script, spawn, spawner};

/// The argument that makes this program one that is not its own launcher and would run something confined.
pub(crate) const WITHOUT_LAUNCHER: &str = "--confined-without-launcher";

pub(crate) const CHECKS: &[Check] = &[
    ("a_confined_run_and_its_children_change_no_file", a_confined_run_and_its_children_change_no_file),
    ("an_unconfined_run_is_as_before", an_unconfined_run_is_as_before),
    ("what_cannot_be_confined_is_not_run", what_cannot_be_confined_is_not_run),
];

/// Whether this kernel can enforce the sandbox; where it cannot, says that nothing was checked.
fn enforceable() -> bool {
    let asked = RestrictSelf::default().no_new_privs(false).apply().map(|status| status.landlock);
    let enforceable = matches!(
        asked, Ok(LandlockStatus::Available { effective_abi, .. }) if effective_abi >= ABI::V3
    );
    if !enforceable {
        let required = ["CI", "PLUGD_TEST_REQUIRE_ALL"].iter().any(|name| std::env::var_os(name).is_some());
        assert!(!required, "no Landlock of ABI 3 here ({asked:?}), and CI allows no skip");
        println!("\nSKIPPED: no Landlock of ABI 3 here ({asked:?}), so the sandbox is untested\n");
    }
    enforceable
}

fn confined(text: &str) -> Launch {
    Launch { sandbox: Sandbox::ReadOnly, ..script(text) }
}

fn a_confined_run_and_its_children_change_no_file() {
    if !enforceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kept"), "as it was").unwrap();
    let text = "cat kept; echo; \
        { true > kept; } 2>&-; { true >> new; } 2>&-; rm kept 2>&-; mkdir new 2>&-; sh -c 'echo x > new' 2>&-; \
        echo x > /dev/null && echo to stderr > /dev/stderr && echo done; read line";
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let launch = Launch { cwd: folder.path().to_owned(), ..confined(text) };
        let (mut process, mut pipes) = spawn(&spawner, &launch).await;
        assert_eq!(line(&mut pipes).await, "as it was");
        assert_eq!(line(&mut pipes).await, "done");
        assert_eq!(field(process.pid(), "status", "NoNewPrivs:"), "1");
        let (enforced, missing) = process.enforced();
        assert_eq!(enforced.get("sandbox").map(String::as_str), Some("read_only"), "{enforced:?}");
        assert!(!missing.contains_key("sandbox"), "{missing:?}");
    });
    assert_eq!(fs::read_to_string(folder.path().join("kept")).unwrap(), "as it was");
    assert!(!folder.path().join("new").exists());
}

fn an_unconfined_run_is_as_before() {
    let folder = tempfile::tempdir().unwrap();
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let launch = Launch { cwd: folder.path().to_owned(), ..script("echo x > new; echo up; read line") };
        let (mut process, mut pipes) = spawn(&spawner, &launch).await;
        assert_eq!(line(&mut pipes).await, "up");
        assert_eq!(field(process.pid(), "status", "NoNewPrivs:"), "0");
        assert!(!process.enforced().0.contains_key("sandbox"));
    });
    assert_eq!(fs::read_to_string(folder.path().join("new")).unwrap(), "x\n");
}

fn what_cannot_be_confined_is_not_run() {
    let program = std::env::current_exe().unwrap();
    let said = Command::new(program).arg(WITHOUT_LAUNCHER).output().unwrap();
    let expected = "/bin/sh cannot be started: sandbox = \"read_only\" cannot be enforced, and it is not run \
        without: this program does not serve as its own launcher\n";
    assert_eq!(String::from_utf8(said.stdout).unwrap(), expected);
}

/// Tries to run something confined in a program that is not its own launcher, and says what came of it.
pub(crate) fn say_why_not() -> ExitCode {
    on_runtime(async {
        match spawner(Hosting::default()).spawn(&confined("exit 3"), &run_mark(1)).await {
            Ok(_) => println!("it runs"),
            Err(refused) => println!("{}", refused.reason),
        }
    });
    ExitCode::SUCCESS
}
