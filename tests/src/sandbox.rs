//! A folder of a test's own, with a configuration and plugins, and the program to run on it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;

/// What a daemon of a test is started with.
pub const SERVE: &[&str] = &["--output", "json", "--log", "info", "serve"];

/// A folder of a test's own; it goes when the test ends.
pub struct Sandbox {
    dir: TempDir,
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
    /// What it wrote on stdout.
    pub stdout: String,
    /// What it wrote on stderr.
    pub stderr: String,
}

impl Ran {
    /// Stdout as the one JSON document that it must be.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one document ({error}): {self:?}"))
    }

    /// The same run, if it ended with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Sandbox {
    /// An empty folder with a `plugd.toml` of this text after the lines that keep it to itself.
    ///
    /// The lines set the socket and the state folder; `config` goes on after `[daemon]`.
    pub fn new(config: &str) -> Sandbox {
        let dir = tempfile::Builder::new().prefix("plugd-").tempdir().expect("a folder for the test");
        let sandbox = Sandbox { dir };
        sandbox.configure(config);
        sandbox
    }

    /// Writes the `plugd.toml` anew.
    pub fn configure(&self, config: &str) {
        let text = format!("[daemon]\nsocket = \"run/plugd.sock\"\nstate_dir = \"state\"\n\n{config}");
        self.write("plugd.toml", &text);
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The control socket of a daemon here.
    pub fn socket(&self) -> PathBuf {
        self.path().join("run/plugd.sock")
    }

    /// Writes a file, its folders made.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("inside the folder")).expect("folders are made");
        fs::write(&path, text).expect("the file is written");
        path
    }

    /// Writes an executable file.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is made executable");
        path
    }

    /// Copies a fixture, executable, under a name.
    pub fn fixture(&self, fixture: &str, name: &str) -> PathBuf {
        let text = fs::read_to_string(fixtures().join(fixture)).expect("the fixture exists");
        self.program(name, &text)
    }

    /// Writes a Python plugin: the fixture `plugin.py`, then these definitions, then `main()`.
    ///
    /// The folder of the plugin is `plugins/NAME`, its program `main.py`, and a `[plugins.NAME]`
    /// table for it is returned, to be put into the configuration.
    pub fn python(&self, name: &str, definitions: &str) -> String {
        let base = fs::read_to_string(fixtures().join("plugin.py")).expect("the fixture exists");
        let program = format!("#!/usr/bin/env python3\n{base}\n\n{definitions}\n\nmain()\n");
        self.program(&format!("plugins/{name}/main.py"), &program);
        format!("[plugins.{name}]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/{name}\"\n")
    }

    /// Writes the plugin of the fixture `bare.sh` as `plugins/NAME/main.sh`.
    ///
    /// It is the quickest to start. Its `[plugins.NAME]` table is returned.
    pub fn shell(&self, name: &str) -> String {
        self.fixture("bare.sh", &format!("plugins/{name}/main.sh"));
        format!("[plugins.{name}]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/{name}\"\n")
    }

    /// Writes the plugin of the fixture `misbehave.py`, with these flags, as `plugins/NAME/main.py`.
    ///
    /// Its `[plugins.NAME]` table is returned.
    pub fn misbehaving(&self, name: &str, flags: &[&str]) -> String {
        self.fixture("misbehave.py", &format!("plugins/{name}/main.py"));
        let command = [&["python3", "main.py"], flags].concat();
        format!("[plugins.{name}]\ncommand = {command:?}\ncwd = \"plugins/{name}\"\n")
    }

    /// The processes that run in a folder here or below it, zombies left out.
    ///
    /// What a plugin starts runs in its folder unless it goes elsewhere itself.
    pub fn processes_in(&self, folder: &str) -> Vec<u32> {
        let folder = self.path().canonicalize().expect("the sandbox is there").join(folder);
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let here =
            |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
        pids.filter(here).collect()
    }

    /// What a file here says; empty if it is not there.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// The program, ready to run here: `plugd --config plugd.toml …`.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(plugd());
        command
            .current_dir(self.path())
            .env_remove("PLUGD_CONFIG")
            .env_remove("PLUGD_LOG")
            .env_remove("PLUGD_AS");
        command.arg("--config").arg(self.path().join("plugd.toml")).args(args);
        command
    }

    /// Runs the program to its end, its stdin empty.
    pub fn plugd(&self, args: &[&str]) -> Ran {
        self.command(args).stdin(Stdio::null()).output().expect("plugd runs").into()
    }

    /// Runs the program under `--output json`, and takes its one document.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.plugd(&[&["--output", "json"], args].concat()).json()
    }

    /// Runs the program with this on its stdin.
    pub fn plugd_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plugd runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        let stdin = stdin.to_vec();
        // A program that reads nothing breaks the pipe, which is its own affair.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        let ran = child.wait_with_output().expect("plugd ends").into();
        writer.join().expect("the writer ends");
        ran
    }

    /// Starts `plugd serve` here and waits until it is ready.
    #[track_caller]
    pub fn serve(&self) -> Daemon<'_> {
        let log = File::create(self.path().join("daemon.log")).expect("a log file");
        self.serve_by(self.command(SERVE), log.into())
    }

    /// Starts a daemon here by a command of the test's own, its stderr led elsewhere.
    #[track_caller]
    pub fn serve_by(&self, command: Command, stderr: Stdio) -> Daemon<'_> {
        Daemon::start(self, command, stderr)
    }
}

/// The program under test: built beside the test itself.
pub fn plugd() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().and_then(Path::parent).expect("target/<profile>/deps/test");
    let program = folder.join("plugd");
    assert!(
        program.exists(),
        "{} is missing: run the tests by `make test`, which builds it",
        program.display()
    );
    program
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}
