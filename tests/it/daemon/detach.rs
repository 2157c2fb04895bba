//! A daemon in the background: ready when its starter returns, and holding nothing of it.

use std::fs;
use std::path::{Path, PathBuf};

use plugd_tests::{Detached, Ran, Sandbox, alive, eventually, shell};

/// What a process's descriptors lead to.
fn descriptors(pid: u32) -> Vec<(String, PathBuf)> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").flatten();
    let lead = |entry: fs::DirEntry| {
        Some((entry.file_name().into_string().ok()?, fs::read_link(entry.path()).ok()?))
    };
    open.filter_map(lead).collect()
}

#[test]
fn c061_a_detached_daemon_is_ready_and_holds_none_of_the_callers_descriptors() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "") + "start = \"eager\"\n";
    sandbox.configure(&table);
    // Descriptor 9 is the captured stdout once more, 8 a file; both are left open by the caller.
    let script =
        "exec 9>&1 8>held; readlink /proc/self/fd/9; readlink /proc/self/fd/2; \"$0\" serve --detach";
    let ran = shell(&sandbox, script).expect(0);
    let daemon = Detached::of(&sandbox);

    let held: Vec<&Path> = ran.stdout.lines().take(2).map(Path::new).collect();
    assert!(held.iter().all(|pipe| pipe.to_string_lossy().starts_with("pipe:")), "{ran:?}");
    let ready = sandbox.json(&["start", "fp"])["plugins"][0].clone();
    let plugin = ready["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    for pid in [daemon.pid(), plugin] {
        for (number, target) in descriptors(pid) {
            assert!(
                !held.contains(&target.as_path()) && !target.ends_with("held"),
                "{pid}: {number} is {target:?}"
            );
        }
    }
    for (number, target) in descriptors(daemon.pid()) {
        if ["0", "1", "2"].contains(&number.as_str()) {
            assert!(
                target == Path::new("/dev/null") || target.ends_with("daemon.log"),
                "{number} is {target:?}"
            );
        }
    }
    sandbox.plugd(&["shutdown"]).expect(0);
    eventually("daemon and plugin are gone", || !alive(daemon.pid()) && !alive(plugin));
}

#[test]
fn c061_a_script_that_starts_a_daemon_and_calls_it_ends() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let script =
        "out=$(\"$0\" serve --detach 2>&1; \"$0\" call fp.echo x=1 2>&1); echo \"$out\" | grep -c '^x: 1$'";
    let ran = shell(&sandbox, script);
    let daemon = Detached::of(&sandbox);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "1\n"), "{ran:?}");
    shell(&sandbox, "\"$0\" shutdown | cat").expect(0);
    eventually("the daemon is gone", || !alive(daemon.pid()));
}

#[test]
fn of_several_daemons_started_at_once_one_serves_and_the_others_name_it() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let runs: Vec<Ran> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(|| sandbox.plugd(&["serve", "--detach"]))).collect();
        starts.into_iter().map(|start| start.join().expect("it ends")).collect()
    });
    let daemon = Detached::of(&sandbox);
    let (won, lost): (Vec<Ran>, Vec<Ran>) =
        runs.into_iter().partition(|ran| ran.stderr.starts_with("serving 1 plugin"));
    assert_eq!((won.len(), lost.len()), (1, 3), "{won:?} {lost:?}");
    for ran in lost {
        let ran = ran.expect(0);
        assert!(ran.stderr.contains(&format!("already running, pid {}", daemon.pid())), "{ran:?}");
    }
    sandbox.plugd(&["shutdown"]).expect(0);
    eventually("the daemon is gone", || !alive(daemon.pid()));
}

#[test]
fn a_daemon_that_cannot_start_in_the_background_says_why() {
    let sandbox = Sandbox::new("[plugins.a]\ncomand = [\"x\"]\n");
    let ran = sandbox.plugd(&["serve", "--detach"]).expect(2);
    assert!(ran.stderr.contains("comand"), "{ran:?}");
    sandbox.configure("");
    sandbox.write("state/logs", "in the way");
    let ran = sandbox.plugd(&["serve", "--detach"]).expect(9);
    assert!(ran.stderr.contains("state"), "{ran:?}");
}
