//! What is executed, and what is said of what cannot be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use plugd_supervisor::driver::{Hosting, Launch, Pipes, Stdio, not_launched};
use serde_json::Value;

use crate::Check;
use crate::support::{launch, line, on_runtime, run_mark, script, spawner};

pub(crate) const CHECKS: &[Check] = &[
    (
        "a_program_gets_its_arguments_folder_and_environment",
        a_program_gets_its_arguments_folder_and_environment,
    ),
    ("what_cannot_be_executed_is_explained", what_cannot_be_executed_is_explained),
    ("no_shell_runs_what_is_no_program", no_shell_runs_what_is_no_program),
    ("the_exit_status_is_the_plugins_own", the_exit_status_is_the_plugins_own),
    ("sockets_end_and_fill_up_as_pipes_do", sockets_end_and_fill_up_as_pipes_do),
];

fn a_program_gets_its_arguments_folder_and_environment() {
    on_runtime(async {
        let folder = tempfile::tempdir().unwrap();
        let spawner = spawner(Hosting::default());
        let text = "echo \"$0|$1|$2\"; pwd -P; env | grep -v '^PWD=\\|^_=\\|^SHLVL=' | sort";
        let mut launch = launch("sh", &["-c", text, "zero", "a b", "{\"c\":'d'}"]);
        launch.cwd = folder.path().canonicalize().unwrap();
        launch.env.push(("GREETING".to_owned(), "grüß\tdich".to_owned()));
        launch.env.push(("PLUGD_RUN".to_owned(), "somebody/else/7".to_owned()));
        let (mut process, mut pipes) = spawner.spawn(&launch, &run_mark(3)).await.unwrap();
        assert_eq!(line(&mut pipes).await, "zero|a b|{\"c\":'d'}");
        assert_eq!(line(&mut pipes).await, launch.cwd.display().to_string());
        assert_eq!(line(&mut pipes).await, "GREETING=grüß\tdich");
        assert!(line(&mut pipes).await.starts_with("PATH="));
        let mark = line(&mut pipes).await;
        assert!(mark.starts_with("PLUGD_RUN=") && mark.ends_with("/probe/3"), "{mark}");
        assert_eq!(line(&mut pipes).await, "");
        process.ended().await;
        assert!(process.reap().unwrap().status.success());
        process.bury().await;
    });
}

/// What is said of a launch, by the spawner or through the launcher.
fn said_of(launch: &Launch) -> String {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let (mut process, mut pipes) = match spawner.spawn(launch, &run_mark(1)).await {
            Ok(spawned) => spawned,
            Err(refused) => return refused.reason,
        };
        let line = line(&mut pipes).await;
        process.ended().await;
        assert_eq!(process.reap().unwrap().status.code(), Some(127), "{launch:?}: {line}");
        process.bury().await;
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["method"], "launcher/failed");
        let errno = said["params"]["errno"].as_i64().unwrap();
        not_launched(launch, i32::try_from(errno).unwrap()).reason
    })
}

fn file(folder: &Path, name: &str, text: &[u8], mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn what_cannot_be_executed_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &Path| said_of(&launch(path.to_str().unwrap(), &[]));
    let missing = folder.path().join("missing");
    assert_eq!(of(&missing), format!("{} not found", missing.display()));
    let build = ["go", "build", "-o", "out dir/it", "."].map(str::to_owned).to_vec();
    let unbuilt = Launch { build, ..launch(missing.to_str().unwrap(), &[]) };
    let expected = format!("{} not found; build it first: go build -o 'out dir/it' .", missing.display());
    assert_eq!(said_of(&unbuilt), expected);
    assert_eq!(said_of(&launch("no-such-program-anywhere", &[])), "no-such-program-anywhere not found");
    let unmarked = file(folder.path(), "unmarked", b"#!/bin/sh\n", 0o644);
    let advice = "is not executable: chmod +x it, or name its interpreter";
    assert_eq!(of(&unmarked), format!("{} {advice}", unmarked.display()));
    assert_eq!(of(folder.path()), format!("{} is a folder", folder.path().display()));
    let lost = file(folder.path(), "lost", b"#!/no/such/interpreter -x\n", 0o755);
    let expected = format!("interpreter /no/such/interpreter not found (first line of {})", lost.display());
    assert_eq!(of(&lost), expected);
    let written = file(folder.path(), "written", &fs::read("/bin/true").unwrap(), 0o755);
    let held = fs::OpenOptions::new().write(true).open(&written).unwrap();
    assert_eq!(of(&written), format!("{} is being written to", written.display()));
    drop(held);
    let mut homeless = script("true");
    homeless.cwd = folder.path().join("nowhere");
    assert_eq!(said_of(&homeless), format!("the folder {} does not exist", homeless.cwd.display()));
}

/// `execvp` would have a shell run it, and the plugin would die of its own text.
fn no_shell_runs_what_is_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let text = format!("touch {}\n", ran.display());
    let script = file(folder.path(), "script", text.as_bytes(), 0o755);
    let said = said_of(&launch(script.to_str().unwrap(), &[]));
    let expected = "is no program for this machine, or a script without a #! line";
    assert_eq!(said, format!("{} {expected}", script.display()));
    assert!(!ran.exists(), "a shell ran it");
}

fn the_exit_status_is_the_plugins_own() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        for (text, code, signal) in [("exit 3", Some(3), None), ("kill -SEGV $$", None, Some(11))] {
            let (mut process, _pipes) = spawner.spawn(&script(text), &run_mark(1)).await.unwrap();
            process.ended().await;
            let ended = process.reap().unwrap();
            assert_eq!((ended.status.code(), ended.status.signal(), ended.oom), (code, signal, false));
            process.bury().await;
        }
    });
}

/// More than either holds, both ways, and the end of one way before that of the other.
fn sockets_end_and_fill_up_as_pipes_do() {
    use tokio::io::AsyncReadExt;
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        for stdio in [Stdio::Socketpair, Stdio::Pipes, Stdio::Socketpair, Stdio::Socketpair] {
            let launch = Launch { stdio, ..script("cat; echo it is over") };
            let (mut process, pipes) = spawner.spawn(&launch, &run_mark(1)).await.unwrap();
            let Pipes { mut stdin, mut stdout, .. } = pipes;
            let sent = vec![b'x'; 3 << 20];
            let send = async {
                let mut left = sent.as_slice();
                while !left.is_empty() {
                    let count = stdin.write(left).await.unwrap();
                    left = &left[count..];
                }
                // What it wrote is still read.
                drop(stdin);
            };
            let mut came = Vec::new();
            let (read, ()) = tokio::join!(stdout.read_to_end(&mut came), send);
            read.unwrap();
            assert!(came.starts_with(&sent), "{stdio:?}");
            assert_eq!(&came[sent.len()..], b"it is over\n", "{stdio:?}");
            process.ended().await;
            assert!(process.reap().unwrap().status.success());
            process.bury().await;
        }
    });
}
