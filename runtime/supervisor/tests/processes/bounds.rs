//! What a process is held to, and what is said of it.

use std::fs;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;

use plugd_supervisor::driver::{CgroupLimits, Hosting, Rlimits};
use rustix::io::FdFlags;
use rustix::process::Signal;

use crate::Check;
use crate::support::{
    Owner, WITHOUT_LAUNCHER, field, line, on_runtime, script, spawn, spawner, without_cgroups,
};

pub(crate) const CHECKS: &[Check] = &[
    ("no_descriptor_of_ours_reaches_a_plugin", no_descriptor_of_ours_reaches_a_plugin),
    ("a_plugin_starts_with_default_signals", a_plugin_starts_with_default_signals),
    ("limits_hold_in_the_process_and_are_shown", limits_hold_in_the_process_and_are_shown),
    ("time_on_the_processor_ends_with_its_own_signal", time_on_the_processor_ends_with_its_own_signal),
    ("what_is_not_enforced_is_said", what_is_not_enforced_is_said),
    ("without_launcher_it_is_said_what_is_missing", without_launcher_it_is_said_what_is_missing),
];

fn no_descriptor_of_ours_reaches_a_plugin() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let open = File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(open.as_fd(), FdFlags::empty()).unwrap();
        let (mut process, mut pipes) = spawn(&spawner, &script("echo up; read line")).await;
        assert_eq!(line(&mut pipes).await, "up");
        let descriptors = fs::read_dir(format!("/proc/{}/fd", process.pid())).unwrap().flatten();
        let mut descriptors: Vec<_> = descriptors.map(|entry| entry.file_name()).collect();
        descriptors.sort();
        assert_eq!(descriptors, ["0", "1", "2"]);
        drop(open);
        drop(pipes);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
    });
}

fn a_plugin_starts_with_default_signals() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let (process, mut pipes) = spawn(&spawner, &script("echo up; read line")).await;
        assert_eq!(line(&mut pipes).await, "up");
        let pid = process.pid();
        // SIGPIPE, which Rust programs ignore, is number 13.
        let ignored = u64::from_str_radix(&field(pid, "status", "SigIgn:"), 16).unwrap();
        assert_eq!(ignored & (1 << 12), 0, "it ignores SIGPIPE: {ignored:x}");
        assert_eq!(field(pid, "status", "SigBlk:"), "0000000000000000");
    });
}

fn limits_hold_in_the_process_and_are_shown() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let mut launch = script("echo up; read line");
        launch.rlimits = Rlimits {
            open_files: Some(64),
            address_space: Some(1 << 30),
            cpu_time: Some(100),
            file_size: Some(1 << 20),
            ..Rlimits::default()
        };
        let (mut process, mut pipes) = spawn(&spawner, &launch).await;
        assert_eq!(line(&mut pipes).await, "up");
        let limit = |name: &str| {
            let line = field(process.pid(), "limits", name);
            line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(limit("Max open files"), "64 64");
        assert_eq!(limit("Max address space"), "1073741824 1073741824");
        assert_eq!(limit("Max cpu time"), "100 101");
        assert_eq!(limit("Max file size"), "1048576 1048576");
        assert_eq!(limit("Max core file size"), "0 0");
        let (enforced, _) = process.enforced();
        let shown = [
            ("process_group", "its own"),
            ("parent_death_signal", "SIGKILL"),
            ("close_descriptors", "all but stdin, stdout and stderr"),
            ("open_files", "64"),
            ("core_size", "0"),
        ];
        for (what, how) in shown {
            assert_eq!(enforced.get(what).map(String::as_str), Some(how), "{enforced:?}");
        }
    });
}

fn time_on_the_processor_ends_with_its_own_signal() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let mut launch = script("while :; do :; done");
        launch.rlimits.cpu_time = Some(1);
        let (mut process, _pipes) = spawn(&spawner, &launch).await;
        process.ended().await;
        assert_eq!(process.reap().unwrap().status.signal(), Some(Signal::XCPU.as_raw()));
        process.bury().await;
    });
}

fn what_is_not_enforced_is_said() {
    on_runtime(async {
        let hosting = Hosting { parent_death_signal: false, ..without_cgroups() };
        let spawner = spawner(hosting);
        let mut launch = script("read line");
        launch.rlimits.open_files = Some(1 << 40);
        launch.cgroup = CgroupLimits { memory_max: Some(1 << 20), pids_max: Some(10) };
        let (mut process, _pipes) = spawn(&spawner, &launch).await;
        let (enforced, missing) = process.enforced();
        let off = "switched off with daemon.cgroups";
        for what in ["cgroup", "memory_max", "pids_max"] {
            assert_eq!(missing.get(what).map(String::as_str), Some(off), "{missing:?}");
        }
        assert_eq!(missing["parent_death_signal"], "switched off with daemon.parent_death_signal");
        assert!(missing["open_files"].starts_with("held to "), "{missing:?}");
        assert!(enforced.keys().all(|what| !missing.contains_key(what)), "{enforced:?} {missing:?}");
    });
}

fn without_launcher_it_is_said_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let owner = Owner::start(WITHOUT_LAUNCHER, true, folder.path(), "echo up; read line", 3);
    let reason = "this program does not serve as its own launcher";
    for what in ["parent_death_signal", "close_descriptors", "core_size", "cgroup"] {
        assert!(owner.said[1].contains(&format!("{what:?}: {reason:?}")), "{:?}", owner.said);
    }
    assert_eq!(owner.said[2], "up");
}
