//! What the checks share: a spawner, launches, and looking at processes.

use std::fs;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_supervisor::driver::{
    CgroupLimits, Hosting, Launch, NotSpawned, Pipes, Process, Rlimits, RunMark, Sandbox, Spawner,
};
use plugd_supervisor::machine::Generation;

/// The argument that makes this program one that owns a run and waits to be killed.
pub(crate) const OWNER: &str = "--owner";

/// The same, from a program that is not its own launcher.
pub(crate) const WITHOUT_LAUNCHER: &str = "--owner-without-launcher";

/// Runs something on a runtime such as plugd's own.
pub(crate) fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be had").block_on(future)
}

/// Waits for a condition, generously.
pub(crate) fn eventually(expected: &str, mut condition: impl FnMut() -> bool) {
    let ends = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < ends, "not within 20 s: {expected}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A program in /tmp with nothing but PATH.
pub(crate) fn launch(program: &str, args: &[&str]) -> Launch {
    Launch {
        program: PathBuf::from(program),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        cwd: std::env::temp_dir(),
        env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())],
        rlimits: Rlimits::default(),
        cgroup: CgroupLimits::default(),
        sandbox: Sandbox::None,
        stdio: plugd_supervisor::driver::Stdio::Pipes,
        build: Vec::new(),
    }
}

/// A shell that carries out a script.
pub(crate) fn script(text: &str) -> Launch {
    launch("/bin/sh", &["-c", text])
}

pub(crate) fn run_mark(generation: u64) -> RunMark {
    let plugin = PluginName::try_from("probe".to_owned()).expect("a fine name");
    RunMark { plugin, generation: Generation(generation) }
}

pub(crate) fn spawner(hosting: Hosting) -> Spawner {
    Spawner::start(hosting).expect("a thread can be had")
}

pub(crate) fn without_cgroups() -> Hosting {
    Hosting { cgroups: false, ..Hosting::default() }
}

pub(crate) async fn spawn(spawner: &Spawner, launch: &Launch) -> (Process, Pipes) {
    let spawned: Result<_, NotSpawned> = spawner.spawn(launch, &run_mark(1)).await;
    spawned.unwrap_or_else(|error| panic!("{launch:?}: {}", error.reason))
}

/// Reads one line of what a plugin writes.
pub(crate) async fn line(pipes: &mut Pipes) -> String {
    use tokio::io::AsyncReadExt;
    let mut line = Vec::new();
    while let Ok(byte) = pipes.stdout.read_u8().await {
        if byte == b'\n' {
            break;
        }
        line.push(byte);
    }
    String::from_utf8(line).expect("it writes text")
}

/// Reads one number that a plugin writes.
pub(crate) async fn number(pipes: &mut Pipes) -> u32 {
    let line = line(pipes).await;
    line.trim().parse().unwrap_or_else(|_| panic!("no pid: {line:?}"))
}

/// Whether a process exists and is no zombie.
pub(crate) fn alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// When a process started, as /proc has it.
pub(crate) fn start_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields = stat.rsplit_once(") ").expect("a name stands in parentheses").1;
    fields.split(' ').nth(19).expect("Linux writes it").parse().expect("it is a number")
}

/// The children of this process that are dead and unreaped.
pub(crate) fn zombies() -> Vec<u32> {
    let children = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let tasks = fs::read_dir("/proc/self/task").expect("this process has threads").flatten();
    let listed: Vec<String> = tasks.map(children).collect();
    let pids = listed.iter().flat_map(|line| line.split_whitespace()).filter_map(|pid| pid.parse().ok());
    pids.filter(|pid| state(*pid) == Some('Z')).collect()
}

/// A line of a file in /proc about a process, behind its name.
pub(crate) fn field(pid: u32, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it lives");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
}

/// A process of this program that owns one run of a script, and what it said.
pub(crate) struct Owner {
    child: Child,
    runs: PathBuf,
    pub(crate) said: Vec<String>,
}

impl Owner {
    /// Starts it and reads so many lines.
    pub(crate) fn start(role: &str, cgroups: bool, runs: &Path, script: &str, lines: usize) -> Owner {
        let program = std::env::current_exe().expect("this program is somewhere");
        let cgroups = if cgroups { "cgroups" } else { "no-cgroups" };
        let mut command = Command::new(program);
        command.arg(role).arg(cgroups).arg(runs).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let said = output.lines().take(lines).map(|line| line.expect("text")).collect();
        Owner { child, runs: runs.to_owned(), said }
    }

    /// Ends it without a chance to clean up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        // What it left must not outlive the checks.
        let _swept = spawner(Hosting { runs_dir: Some(self.runs.clone()), ..Hosting::default() });
    }
}

/// Owns a run until killed: says its pid and what it is not held to, then what it says.
pub(crate) fn serve_as_owner(args: &[String]) -> ! {
    let [cgroups, runs, text] = args else { panic!("wrong arguments: {args:?}") };
    on_runtime(async {
        let hosting = Hosting {
            cgroups: cgroups == "cgroups",
            runs_dir: Some(PathBuf::from(runs)),
            ..Hosting::default()
        };
        let spawner = spawner(hosting);
        let (mut process, mut pipes) = spawn(&spawner, &script(text)).await;
        println!("{}", process.pid());
        println!("{:?}", process.enforced().1);
        loop {
            let said = line(&mut pipes).await;
            if said.is_empty() {
                break;
            }
            println!("{said}");
        }
        process.ended().await;
        std::future::pending::<()>().await;
    });
    unreachable!("it waits for ever");
}
