//! The control socket: private, one daemon at a time, nothing of others touched.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use plugd_tests::{Sandbox, alive, eventually};
use rustix::process::Signal;

fn echo() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    sandbox
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn the_socket_is_for_its_owner_alone() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    assert_eq!(mode(&sandbox.socket()), 0o600);
    assert_eq!(mode(&sandbox.path().join("run")), 0o700);
    daemon.stop();
    assert!(!sandbox.socket().exists(), "it goes with the daemon");
}

#[test]
fn c071_a_second_daemon_is_refused_and_the_first_unharmed() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "fp.echo"])["meta"]["generation"].clone();
    let pid = daemon.status("fp")["pid"].clone();
    let refused = sandbox.plugd(&["serve"]).expect(9);
    assert!(refused.stderr.contains(&format!("already running, pid {}", daemon.pid())), "{refused:?}");
    // Whoever only wants one to be there has it.
    let there = sandbox.plugd(&["serve", "--detach"]).expect(0);
    assert!(there.stderr.contains(&format!("already running, pid {}", daemon.pid())), "{there:?}");
    let there = sandbox.json(&["serve", "--detach"]);
    assert_eq!((&there["pid"], &there["already_running"]), (&daemon.pid().into(), &true.into()), "{there}");
    assert_eq!(daemon.json(&["call", "fp.echo"])["meta"]["generation"], before);
    assert_eq!(daemon.status("fp")["pid"], pid);
    daemon.stop();
}

#[test]
fn a_second_daemon_on_another_socket_does_not_share_the_state_folder() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let expected = format!("is used by plugd, pid {}: ", daemon.pid());
    for detach in [&["serve"][..], &["serve", "--detach"]] {
        let refused = sandbox.plugd(&[&["--socket", "run/other.sock"], detach].concat()).expect(9);
        assert!(refused.stderr.contains(&expected), "{refused:?}");
        assert!(refused.stderr.contains("state_dir"), "it says what to do: {refused:?}");
    }
    assert!(!sandbox.path().join("run/other.sock").exists(), "nothing is left of it");
    // What runs in this process for one call is no daemon.
    assert_eq!(daemon.json(&["call", "fp.echo"])["status"], "ok");
    daemon.stop();
    sandbox.serve().stop();
}

#[test]
fn c071_a_socket_left_over_by_a_crash_is_replaced() {
    let sandbox = echo();
    let mut daemon = sandbox.serve();
    daemon.json(&["call", "fp.echo"]);
    let plugin = daemon.status("fp")["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    daemon.signal(Signal::KILL);
    daemon.wait();
    drop(daemon);
    assert!(sandbox.socket().exists(), "the crash left it");
    eventually("the plugin goes with its daemon", || !alive(plugin));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo", "x=1"])["data"]["x"], "1");
    daemon.stop();
}

#[test]
fn c071_a_socket_nobody_listens_on_is_replaced() {
    let sandbox = echo();
    std::fs::create_dir(sandbox.path().join("run")).expect("a folder");
    std::fs::set_permissions(sandbox.path().join("run"), PermissionsExt::from_mode(0o700)).expect("private");
    drop(UnixListener::bind(sandbox.socket()).expect("a socket"));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo", "x=1"])["data"]["x"], "1");
    daemon.stop();
}

#[test]
fn c071_a_file_in_the_sockets_place_is_refused_and_kept() {
    let sandbox = echo();
    sandbox.write("run/plugd.sock", "somebody's notes");
    std::fs::set_permissions(sandbox.path().join("run"), PermissionsExt::from_mode(0o700)).expect("private");
    let refused = sandbox.plugd(&["serve"]).expect(9);
    assert!(refused.stderr.contains("plugd.sock") && refused.stderr.contains("no socket"), "{refused:?}");
    assert_eq!(sandbox.read("run/plugd.sock"), "somebody's notes");
}

#[test]
fn a_folder_that_lets_others_in_is_refused() {
    let sandbox = echo();
    sandbox.write("run/other", "");
    std::fs::set_permissions(sandbox.path().join("run"), PermissionsExt::from_mode(0o777))
        .expect("open to all");
    let refused = sandbox.plugd(&["serve"]).expect(9);
    assert!(refused.stderr.contains("0700"), "{refused:?}");
    assert_eq!(mode(&sandbox.path().join("run")), 0o777, "and not changed");
}
