//! That nothing of a run stays, and that nobody else is hurt.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plugd_supervisor::driver::{Hosting, Spawner};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Check;
use crate::support::{
    OWNER, Owner, alive, eventually, line, number, on_runtime, script, spawn, spawner, start_time,
    without_cgroups, zombies,
};

/// Where orphans go elsewhere, and a child may be somebody's else.
pub(crate) const CHECKS_AMONG_OTHERS: &[Check] = &[
    ("a_child_of_this_program_is_not_reaped", a_child_of_this_program_is_not_reaped),
    ("a_run_that_left_its_session_ends_with_it", a_run_that_left_its_session_ends_with_it),
    ("a_killed_owner_takes_its_plugins_along", a_killed_owner_takes_its_plugins_along),
    ("the_next_start_ends_what_a_killed_owner_left", the_next_start_ends_what_a_killed_owner_left),
    (
        "records_of_the_living_and_their_runs_are_left_alone",
        records_of_the_living_and_their_runs_are_left_alone,
    ),
    (
        "c068_a_number_that_is_somebody_elses_now_is_left_alone",
        c068_a_number_that_is_somebody_elses_now_is_left_alone,
    ),
    ("records_come_and_go_with_runs", records_come_and_go_with_runs),
];

/// Where orphans come to this program.
pub(crate) const CHECKS_AS_REAPER: &[Check] = &[
    ("an_adopted_orphan_ends_with_its_run", a_run_that_left_its_session_ends_with_it),
    ("orphans_of_orphans_end_with_their_run", orphans_of_orphans_end_with_their_run),
    ("a_run_that_hops_from_child_to_child_is_caught", a_run_that_hops_from_child_to_child_is_caught),
    ("other_runs_outlive_a_burial", other_runs_outlive_a_burial),
    ("orphans_of_one_run_do_not_hold_up_another", orphans_of_one_run_do_not_hold_up_another),
    ("a_cgroup_ends_what_hides_its_mark", a_cgroup_ends_what_hides_its_mark),
    ("a_grandchild_that_holds_stdout_delays_nothing", a_grandchild_that_holds_stdout_delays_nothing),
    ("a_leader_that_left_its_group_is_killed", a_leader_that_left_its_group_is_killed),
    ("a_dropped_process_is_ended_and_reaped", a_dropped_process_is_ended_and_reaped),
    ("c058_nobody_stays_a_zombie", c058_nobody_stays_a_zombie),
    ("two_spawners_of_one_program_have_cgroups_apart", two_spawners_of_one_program_have_cgroups_apart),
    ("no_cgroup_folder_stays", no_cgroup_folder_stays),
];

/// A grandchild in a session of its own, which says its pid.
const STRAY: &str = "setsid sh -c 'echo $$; exec sleep 300' & wait";

fn each_way(check: impl AsyncFn(Spawner)) {
    for hosting in [Hosting::default(), without_cgroups()] {
        on_runtime(check(spawner(hosting)));
    }
}

fn a_child_of_this_program_is_not_reaped() {
    let mut own = Command::new("/bin/sh").args(["-c", "exit 7"]).spawn().unwrap();
    eventually("it has ended", || zombies().contains(&own.id()));
    each_way(async |spawner| {
        let (mut process, _pipes) = spawn(&spawner, &script("exit 0")).await;
        process.ended().await;
        process.reap().unwrap();
        spawner.reap_orphans();
        process.bury().await;
        spawner.close().await;
    });
    assert_eq!(own.wait().unwrap().code(), Some(7));
}

fn a_run_that_left_its_session_ends_with_it() {
    each_way(async |spawner| {
        let (mut process, mut pipes) = spawn(&spawner, &script(STRAY)).await;
        let stray = number(&mut pipes).await;
        assert!(alive(stray));
        process.signal_group(Signal::KILL);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        assert!(!alive(stray), "it outlived its run");
    });
}

fn orphans_of_orphans_end_with_their_run() {
    let text = "setsid sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 300\" & sleep 300' & wait";
    each_way(async |spawner| {
        let (mut process, mut pipes) = spawn(&spawner, &script(text)).await;
        let stray = number(&mut pipes).await;
        process.signal_group(Signal::KILL);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        assert!(!alive(stray), "it outlived its run");
    });
}

/// Each process of it lives for a moment; all hold stdout, so its end is the end of the last.
fn a_run_that_hops_from_child_to_child_is_caught() {
    let text = "import os, time
until = time.monotonic() + 20
if os.fork() == 0:
    os.setsid()
    os.write(1, b'up\\n')
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
else:
    time.sleep(300)";
    each_way(async |spawner| {
        let (mut process, mut pipes) =
            spawn(&spawner, &crate::support::launch("python3", &["-c", text])).await;
        assert_eq!(line(&mut pipes).await, "up");
        process.signal_group(Signal::KILL);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        let end = tokio::time::timeout(Duration::from_secs(5), line(&mut pipes)).await;
        assert_eq!(end.as_deref(), Ok(""), "it hops on");
    });
}

fn other_runs_outlive_a_burial() {
    each_way(async |spawner| {
        let (mut other, mut others) = spawn(&spawner, &script(STRAY)).await;
        let stray = number(&mut others).await;
        let mark = crate::support::run_mark(2);
        let (mut process, _pipes) = spawner.spawn(&script("exit 0"), &mark).await.unwrap();
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        assert!(alive(other.pid()) && alive(stray), "a burial hit another run");
        other.signal_group(Signal::KILL);
        other.ended().await;
        other.reap().unwrap();
        other.bury().await;
        assert!(!alive(stray));
    });
}

fn orphans_of_one_run_do_not_hold_up_another() {
    // One orphan that never reaps its child, and others that come and go all the time.
    let text = "setsid sh -c 'sh -c \"exit 0\" & exec sleep 300' &
        echo up; while :; do setsid sh -c ':' & wait; done";
    each_way(async |spawner| {
        let (mut busy, mut of_busy) = spawn(&spawner, &script(text)).await;
        assert_eq!(line(&mut of_busy).await, "up");
        for generation in 2..6 {
            let mark = crate::support::run_mark(generation);
            let (mut process, _pipes) = spawner.spawn(&script("exit 0"), &mark).await.unwrap();
            process.ended().await;
            process.reap().unwrap();
            let began = Instant::now();
            process.bury().await;
            assert!(began.elapsed() < Duration::from_millis(1500), "it was given up on");
        }
        busy.signal_group(Signal::KILL);
        busy.ended().await;
        busy.reap().unwrap();
        busy.bury().await;
    });
}

fn a_cgroup_ends_what_hides_its_mark() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let text = "setsid env -i sh -c 'echo $$; exec sleep 300' & wait";
        let (mut process, mut pipes) = spawn(&spawner, &script(text)).await;
        let stray = number(&mut pipes).await;
        let (enforced, missing) = process.enforced();
        process.signal_group(Signal::KILL);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        if enforced.contains_key("cgroup") {
            assert!(!alive(stray), "it outlived its run");
        } else {
            println!("  no cgroup here: {}", missing["cgroup"]);
            let stray = rustix::process::Pid::from_raw(i32::try_from(stray).unwrap()).unwrap();
            rustix::process::kill_process(stray, Signal::KILL).unwrap();
        }
    });
}

fn a_grandchild_that_holds_stdout_delays_nothing() {
    each_way(async |spawner| {
        let (mut process, mut pipes) = spawn(&spawner, &script("sleep 300 & echo $!; exit 5")).await;
        let grandchild = number(&mut pipes).await;
        process.ended().await;
        assert_eq!(process.reap().unwrap().status.code(), Some(5));
        process.bury().await;
        eventually("the group is gone", || !alive(grandchild));
    });
}

fn a_leader_that_left_its_group_is_killed() {
    let text = "import os, time\nos.setpgid(0, os.getpgid(os.getppid()))\nprint(os.getpid(), flush=True)\ntime.sleep(300)";
    on_runtime(async {
        let spawner = spawner(without_cgroups());
        let launch = crate::support::launch("python3", &["-c", text]);
        let (mut process, mut pipes) = spawn(&spawner, &launch).await;
        number(&mut pipes).await;
        process.signal_group(Signal::KILL);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
    });
}

fn a_dropped_process_is_ended_and_reaped() {
    each_way(async |spawner| {
        let (process, mut pipes) = spawn(&spawner, &script(STRAY)).await;
        let (leader, stray) = (process.pid(), number(&mut pipes).await);
        drop(process);
        spawner.close().await;
        assert!(!alive(leader) && !alive(stray));
        assert!(!Path::new(&format!("/proc/{leader}")).exists(), "it was not reaped");
    });
}

fn c058_nobody_stays_a_zombie() {
    each_way(async |spawner| {
        for _ in 0..20 {
            // It leaves an orphan that dies by itself.
            let launch = script("setsid sh -c 'exit 0' & exit 1");
            let (mut process, _pipes) = spawn(&spawner, &launch).await;
            process.ended().await;
            process.reap().unwrap();
            process.bury().await;
        }
        eventually("all are reaped", || {
            spawner.reap_orphans();
            zombies().is_empty()
        });
    });
}

fn two_spawners_of_one_program_have_cgroups_apart() {
    on_runtime(async {
        let spawners = [spawner(Hosting::default()), spawner(Hosting::default())];
        let text = script("echo $$; sleep 300");
        let (mut first, mut of_first) = spawn(&spawners[0], &text).await;
        let (second, mut of_second) = spawn(&spawners[1], &text).await;
        number(&mut of_first).await;
        number(&mut of_second).await;
        first.signal_group(Signal::KILL);
        first.ended().await;
        first.reap().unwrap();
        first.bury().await;
        spawners[0].close().await;
        assert!(alive(second.pid()), "a burial hit another spawner's run of the same name");
        drop(second);
        spawners[1].close().await;
    });
}

fn no_cgroup_folder_stays() {
    on_runtime(async {
        let spawner = spawner(Hosting::default());
        let (mut process, mut pipes) = spawn(&spawner, &script("echo $$; read line")).await;
        number(&mut pipes).await;
        let (enforced, _) = process.enforced();
        let leaf = enforced.get("cgroup").map(|leaf| Path::new(leaf).to_owned());
        if let Some(leaf) = &leaf {
            let members = fs::read_to_string(leaf.join("cgroup.procs")).unwrap();
            assert!(members.lines().any(|line| line == process.pid().to_string()), "{members:?}");
        }
        drop(pipes);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        spawner.close().await;
        if let Some(leaf) = leaf {
            assert!(!leaf.exists() && !leaf.parent().unwrap().exists());
        }
    });
}

fn a_killed_owner_takes_its_plugins_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = Owner::start(OWNER, false, folder.path(), "trap '' TERM HUP; echo up; sleep 300", 3);
    let plugin: u32 = owner.said[0].parse().unwrap();
    assert!(alive(plugin));
    owner.kill();
    eventually("the plugin is gone", || !alive(plugin));
}

fn the_next_start_ends_what_a_killed_owner_left() {
    for cgroups in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut owner = Owner::start(OWNER, cgroups, folder.path(), STRAY, 3);
        let plugin: u32 = owner.said[0].parse().unwrap();
        let stray: u32 = owner.said[2].parse().unwrap();
        owner.kill();
        eventually("the plugin is gone", || !alive(plugin));
        assert!(alive(stray), "nobody was to end it yet");
        on_runtime(async {
            let _next = spawner(Hosting { runs_dir: Some(folder.path().to_owned()), ..Hosting::default() });
        });
        assert!(!alive(stray), "it outlived its owner and the next start");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a record stays");
    }
}

fn records_of_the_living_and_their_runs_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let owner = Owner::start(OWNER, true, folder.path(), "echo up; sleep 300", 3);
    let plugin: u32 = owner.said[0].parse().unwrap();
    on_runtime(async {
        let _other = spawner(Hosting { runs_dir: Some(folder.path().to_owned()), ..Hosting::default() });
    });
    assert!(alive(plugin));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "its journal is gone");
}

/// A journal with one run as it is written, with some of it changed; its last line is torn.
fn journal(folder: &Path, pid: u32, change: impl FnOnce(&mut Value, &mut Value)) {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut owner = json!({ "pid": 1, "start_time": 1_u64 << 60, "boot_id": boot_id.trim() });
    let mut run = json!({
        "pid": pid, "start_time": start_time(pid), "plugin": "probe", "generation": 1, "mark": "0/probe/1",
        "cgroup": null,
    });
    change(&mut owner, &mut run);
    let lines = [json!({ "owner": owner }), json!({ "run": { "no": "record" } }), json!({ "run": run })];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join(format!("{pid}.jsonl")), text + "{\"gone\":").unwrap();
}

fn c068_a_number_that_is_somebody_elses_now_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let sleep = || Command::new("sleep").arg("300").stdout(Stdio::null()).spawn().unwrap();
    let [mut reused, mut rebooted, mut left] = [sleep(), sleep(), sleep()];
    journal(folder.path(), reused.id(), |_, run| run["start_time"] = json!(7));
    journal(folder.path(), rebooted.id(), |owner, _| owner["boot_id"] = json!("another start"));
    journal(folder.path(), left.id(), |_, run| run["cgroup"] = json!(folder.path()));
    fs::write(folder.path().join("1.jsonl"), "{\"pid\":").unwrap();
    fs::write(folder.path().join("notes.txt"), "not ours").unwrap();
    on_runtime(async {
        let _next = spawner(Hosting { runs_dir: Some(folder.path().to_owned()), ..Hosting::default() });
    });
    eventually("what was left is gone", || !alive(left.id()));
    let survived = [alive(reused.id()), alive(rebooted.id())];
    for child in [&mut reused, &mut rebooted, &mut left] {
        let _gone = child.kill();
        child.wait().unwrap();
    }
    assert_eq!(survived, [true, true], "an innocent process was killed");
    let stays: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(stays, ["notes.txt"]);
}

/// The lines of the only journal in a folder; none where there is none.
fn journal_of(runs: &Path) -> Vec<Value> {
    let paths = fs::read_dir(runs).into_iter().flatten().map(|entry| entry.unwrap().path());
    // It comes into being under another name.
    let mut paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let Some(path) = paths.next() else { return Vec::new() };
    assert_eq!(paths.next(), None, "one journal for all runs");
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn records_come_and_go_with_runs() {
    on_runtime(async {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("state/runs");
        let spawner = spawner(Hosting { runs_dir: Some(runs.clone()), ..Hosting::default() });
        let (mut process, pipes) = spawn(&spawner, &script("read line")).await;
        let pid = process.pid();
        eventually("it is noted", || journal_of(&runs).len() == 2);
        let journal = journal_of(&runs);
        let own = std::process::id();
        assert_eq!(journal[0]["owner"]["pid"], own);
        assert_eq!(journal[0]["owner"]["start_time"], start_time(own));
        assert_eq!(journal[1]["run"]["pid"], pid);
        assert_eq!(journal[1]["run"]["start_time"], start_time(pid));
        drop(pipes);
        process.ended().await;
        process.reap().unwrap();
        process.bury().await;
        let gone = json!({ "gone": pid });
        eventually("that it is gone is noted", || journal_of(&runs).get(2) == Some(&gone));
        spawner.close().await;
        assert_eq!(fs::read_dir(&runs).unwrap().count(), 0, "a journal stays");
    });
}
