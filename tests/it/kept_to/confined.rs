//! A plugin in a read-only sandbox changes no file, and whatever fails for that says so.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use landlock::{ABI, LandlockStatus, RestrictSelf};
use plugd_tests::{Daemon, SERVE, Sandbox, eventually};
use serde_json::{Value, json};

use super::{ended, operations};

/// Each way to change files is one that a plugin which only reads has no business with.
const WAYS: &[&str] = &[
    "create",
    "append",
    "overwrite",
    "truncate",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "symlink",
    "fifo",
    "unnamed",
    "elsewhere",
    "temporary",
    "memory",
    "device",
    "data_dir",
    "child",
];

const WRITES: &str = r#"
import errno, socket, subprocess

DATA_DIR = []

def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

def write(path, mode):
    with open(path, mode) as file:
        file.write("x")

def write_and_remove(folder):
    path = os.path.join(folder, "plugd-test-%d" % os.getpid())
    write(path, "w")
    os.unlink(path)

WAYS = {
    "create": lambda: write("new", "w"),
    "append": lambda: write("kept", "a"),
    "overwrite": lambda: write("kept", "r+"),
    "truncate": lambda: os.truncate("kept", 0),
    "rename": lambda: os.rename("kept", "new"),
    "link": lambda: os.link("kept", "new"),
    "unlink": lambda: os.unlink("kept"),
    "mkdir": lambda: os.mkdir("new"),
    "rmdir": lambda: os.rmdir("folder"),
    "symlink": lambda: os.symlink("kept", "new"),
    "fifo": lambda: os.mkfifo("new"),
    "unnamed": lambda: os.close(os.open(".", os.O_TMPFILE | os.O_RDWR)),
    "elsewhere": lambda: write("../new", "w"),
    "temporary": lambda: write_and_remove(os.environ.get("TMPDIR", "/tmp")),
    "memory": lambda: write_and_remove("/dev/shm"),
    "device": lambda: write("/dev/urandom", "w"),
    "data_dir": lambda: write(os.path.join(DATA_DIR[0], "new"), "w"),
    "child": lambda: run("sh", "-c", "echo x > new"),
}

def on_init(params):
    DATA_DIR.append(params["data_dir"])
    return {}

def read():
    write("/dev/null", "w")
    write("/dev/null", "r+")
    write("/dev/zero", "w")
    os.close(os.open("/dev/full", os.O_WRONLY))
    write("/dev/stderr", "w")
    return {"kept": open("kept").read(), "child": run("sh", "-c", "cat kept; echo x > /dev/null")}

def not_kept_from():
    os.chmod("kept", 0o600)
    os.utime("kept", (1, 1))
    os.chown("kept", os.getuid(), os.getgid())
    try:
        os.setxattr("kept", "user.kept", b"x")
    except OSError as error:
        if error.errno == errno.EACCES:
            raise
    run("sh", "-c", "kill -0 " + str(os.getppid()))
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    socket.socket(socket.AF_UNIX).connect("../../run/plugd.sock")
    giver = socket.socket(socket.AF_UNIX)
    giver.connect("../../giver")
    _, handed, _, _ = socket.recv_fds(giver, 1, 1)
    os.write(handed[0], b"x")
    return "all of it"

def handle(operation, arguments, params):
    if operation == "advised":
        raise Failure("Permission denied", hint="Try another one.")
    if operation == "die":
        sys.stderr.write("cannot open kept: EACCES\n")
        sys.stderr.flush()
        os._exit(3)
    if operation == "connects":
        raise Failure("connect EACCES /run/nobody.sock", hint="Start it.")
    if operation == "unrelated":
        raise Failure("there is no page 5", hint="Pages are numbered 1 to 4.")
    if operation in ("read", "not_kept_from"):
        return {"data": globals()[operation]()}
    try:
        WAYS[arguments["how"]]()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(str(error) + "; " + (getattr(error, "stderr", None) or ""))
    return {"data": "written"}
"#;

/// Whether this kernel can enforce the sandbox; where it cannot, says so past the test's captured output.
pub(super) fn enforceable() -> bool {
    let asked = RestrictSelf::default().no_new_privs(false).apply().map(|status| status.landlock);
    let enforceable = matches!(
        asked, Ok(LandlockStatus::Available { effective_abi, .. }) if effective_abi >= ABI::V3
    );
    if !enforceable {
        let required = ["CI", "PLUGD_TEST_REQUIRE_ALL"].iter().any(|name| std::env::var_os(name).is_some());
        assert!(!required, "no Landlock of ABI 3 here ({asked:?}), and CI allows no skip");
        let skipped = format!("SKIPPED: no Landlock of ABI 3 here ({asked:?}), so the sandbox is untested");
        writeln!(std::io::stderr(), "\n{skipped}\n").expect("stderr is open");
    }
    enforceable
}

fn declared() -> String {
    let declare = |name: &str, read_only: bool| {
        json!({"name": name, "input_schema": {"type": "object", "properties": {"how": {"type": "string"}}},
            "effects": {"read_only": read_only}})
    };
    let names = [
        ("tried", true),
        ("read", true),
        ("advised", true),
        ("not_kept_from", true),
        ("connects", true),
        ("unrelated", true),
        ("die", false),
    ];
    operations(&names.map(|(name, read_only)| declare(name, read_only)))
}

/// The same plugin twice: `boxed` in the sandbox, `free` outside.
fn both() -> Sandbox {
    let sandbox = Sandbox::new("");
    let code = declared() + WRITES;
    let (boxed, free) = (sandbox.python("boxed", &code), sandbox.python("free", &code));
    sandbox.configure(&format!("{boxed}sandbox = \"read_only\"\n{free}sandbox = \"none\"\n"));
    sandbox
}

/// Makes a plugin's folder as it is before a try.
fn prepare(sandbox: &Sandbox, plugin: &str) {
    let folder = sandbox.path().join("plugins").join(plugin);
    for gone in [folder.join("new"), folder.join("../new"), folder.join("folder")] {
        // What is a folder is no file, and the other way round; mostly it is not there at all.
        let _other = fs::remove_file(&gone).or_else(|_| fs::remove_dir(&gone));
    }
    fs::create_dir(folder.join("folder")).expect("a folder is made");
    fs::write(folder.join("kept"), "as it was").expect("a file is written");
}

/// Every file and folder below, with what files say.
fn everything(below: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is a folder").flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("it is there"));
            let text = kind.is_file().then(|| fs::read(&path).expect("it is readable"));
            found.insert(path.display().to_string(), text);
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

fn tried(daemon: &Daemon<'_>, plugin: &str, how: &str) -> Value {
    daemon.json(&["call", &format!("{plugin}.tried"), &format!("how={how}")])
}

fn hint(failed: &Value) -> &str {
    failed["error"]["hint"].as_str().unwrap_or_else(|| panic!("no hint: {failed:#}"))
}

const WHY: &str = "boxed runs in a read-only sandbox and cannot write files";

/// Row D19: what says that it only reads writes nothing, by itself or by a child.
#[test]
fn d19_a_plugin_in_a_read_only_sandbox_changes_no_file_and_its_error_says_why() {
    if !enforceable() {
        return;
    }
    let sandbox = both();
    let daemon = sandbox.serve();
    prepare(&sandbox, "boxed");
    let read = ended(&daemon, 0, &["call", "boxed.read"]);
    assert_eq!(read["data"], json!({"kept": "as it was", "child": "as it was"}), "{read:#}");

    let before = everything(&sandbox.path().join("plugins"));
    for how in WAYS {
        let failed = tried(&daemon, "boxed", how);
        assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("error"), &json!(4001)), "{how}");
        assert!(hint(&failed).ends_with(WHY), "{how}: {failed:#}");
        let message = failed["error"]["message"].as_str().unwrap_or_default();
        assert!(message.to_lowercase().contains("permission denied"), "{how}: {message}");
    }
    assert_eq!(everything(&sandbox.path().join("plugins")), before);
    assert_eq!(everything(&sandbox.path().join("state/data/boxed")), BTreeMap::new());

    // A hint of its own stays, and a plugin that dies of it leaves the reason as well.
    let advised = ended(&daemon, 1, &["call", "boxed.advised"]);
    assert_eq!(hint(&advised), format!("Try another one; {WHY}"));
    let died = ended(&daemon, 6, &["call", "boxed.die"]);
    assert!(died["error"]["code"] == 6001 && hint(&died).contains(WHY), "{died:#}");
    // What fails for something else says nothing of the sandbox.
    let unrelated = ended(&daemon, 1, &["call", "boxed.unrelated"]);
    assert_eq!(hint(&unrelated), "Pages are numbered 1 to 4.");
    let connects = ended(&daemon, 1, &["call", "boxed.connects"]);
    assert_eq!(hint(&connects), "Start it.", "no file was to be written");
    daemon.stop();
}

/// Row D19: outside the sandbox all of that is possible, and nothing is said of one.
#[test]
fn d19_the_same_plugin_without_a_sandbox_is_as_before() {
    let sandbox = both();
    let daemon = sandbox.serve();
    for how in WAYS {
        prepare(&sandbox, "free");
        let written = tried(&daemon, "free", how);
        assert_eq!(written["data"], "written", "{how}: {written:#}");
    }
    let advised = ended(&daemon, 1, &["call", "free.advised"]);
    assert_eq!(hint(&advised), "Try another one.");
    assert_eq!(daemon.status("free")["enforced"]["sandbox"], Value::Null);
    daemon.stop();
}

/// Hands an open file to whoever connects, once; gives up after a while.
const GIVES: &str = r#"
import os, socket
given = open("given", "w")
server = socket.socket(socket.AF_UNIX)
server.settimeout(30)
server.bind("giving")
server.listen()
os.rename("giving", "giver")
socket.send_fds(server.accept()[0], [b"x"], [given.fileno()])
"#;

/// Row D19: `status` shows what holds, and what is changed holds for a new run.
#[test]
fn d19_status_shows_the_sandbox_and_a_changed_one_replaces_the_run() {
    if !enforceable() {
        return;
    }
    let sandbox = Sandbox::new("");
    let table = sandbox.python("boxed", &(declared() + WRITES));
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    prepare(&sandbox, "boxed");
    ended(&daemon, 0, &["call", "boxed.read"]);
    let free = daemon.status("boxed");
    assert_eq!(free["enforced"]["sandbox"], Value::Null, "{free:#}");

    sandbox.configure(&format!("{table}sandbox = \"read_only\"\n"));
    daemon.plugd(&["reload"]).expect(0);
    let boxed = daemon.status("boxed");
    assert_eq!(boxed["enforced"]["sandbox"], "read_only", "{boxed:#}");
    assert!(boxed["pid"] != free["pid"] && boxed["generation"].as_u64() > free["generation"].as_u64());
    let shown = daemon.plugd(&["status", "boxed"]).expect(0).stdout;
    assert!(shown.contains("sandbox: read_only"), "{shown}");

    // What Landlock has no right for stays possible, and the documentation says so.
    let mut giver = Command::new("python3");
    let mut giver = giver.args(["-c", GIVES]).current_dir(sandbox.path()).spawn().expect("python3 runs");
    eventually("it listens", || sandbox.path().join("giver").exists());
    let possible = ended(&daemon, 0, &["call", "boxed.not_kept_from"]);
    assert!(giver.wait().expect("it is ours").success());
    assert_eq!((&possible["data"], &*sandbox.read("given")), (&json!("all of it"), "x"), "{possible:#}");
    daemon.stop();
}

/// Row D19: a plugin that must write to start does not, and the reason names the sandbox.
#[test]
fn d19_a_start_that_fails_in_the_sandbox_says_so() {
    if !enforceable() {
        return;
    }
    let sandbox = Sandbox::new("");
    let writes = r#"
def on_init(params):
    try:
        open(os.path.join(params["data_dir"], "new"), "w")
    except OSError as error:
        raise Failure(error.strerror)
"#;
    let table = sandbox.python("boxed", writes);
    sandbox.configure(&format!("{table}sandbox = \"read_only\"\n"));
    let daemon = sandbox.serve();
    daemon.json(&["call", "boxed.echo"]);
    let reason = &daemon.status("boxed")["reason"];
    assert_eq!(
        reason,
        "init failed: Permission denied; it runs in a read-only sandbox and cannot write files"
    );
    daemon.stop();
}

/// Runs a command in which a system call, by its number, meets with what a seccomp filter may return.
const WITHOUT: &str = r#"
import ctypes, os, struct, sys
number, met_with = int(sys.argv[1]), int(sys.argv[2])
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, met_with), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HP", len(rules), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
assert libc.prctl(22, 2, program, 0, 0) == 0, "seccomp: " + os.strerror(ctypes.get_errno())
os.execv(sys.argv[3], sys.argv[3:])
"#;

/// The number of `landlock_create_ruleset` on every machine.
const CREATE_RULESET: u32 = 444;

/// And of `landlock_restrict_self`.
const RESTRICT_SELF: u32 = 446;

/// In seccomp's words: the call fails with the error of this number.
const FAILS_WITH: u32 = 0x0005_0000;

/// In seccomp's words: whoever makes the call is killed.
const KILLS: u32 = 0x8000_0000;

/// A daemon in which that call, and in all of its children, meets with that.
fn serve_without(sandbox: &Sandbox, number: u32, met_with: u32) -> Daemon<'_> {
    sandbox.write("without.py", WITHOUT);
    let plain = sandbox.command(SERVE);
    let mut command = Command::new("python3");
    command.current_dir(sandbox.path()).args(["without.py", &number.to_string(), &met_with.to_string()]);
    command.arg(plain.get_program()).args(plain.get_args());
    let log = File::create(sandbox.path().join("daemon.log")).expect("a log file");
    sandbox.serve_by(command, log.into())
}

/// Row D19: who asks for no sandbox pays for none.
#[test]
fn d19_without_a_sandbox_landlock_is_not_even_asked() {
    let sandbox = both();
    let daemon = serve_without(&sandbox, CREATE_RULESET, KILLS);
    prepare(&sandbox, "free");
    assert_eq!(tried(&daemon, "free", "create")["data"], "written");
    // It was the filter that it passed: the other one does not.
    daemon.json(&["call", "boxed.tried", "how=create", "--timeout", "1s"]);
    let reason = daemon.status("boxed")["reason"].to_string();
    assert!(reason.contains("SIGSYS"), "{reason}");
    daemon.stop();
}

/// Row D19: where the kernel, or what plugd runs in, allows no Landlock, nothing runs without it.
#[test]
fn d19_what_was_to_be_confined_is_not_run_unconfined() {
    let (opnotsupp, nosys, perm) = (95, 38, 1);
    let refusals = [
        (CREATE_RULESET, opnotsupp, "not switched on"),
        (CREATE_RULESET, nosys, "no Landlock"),
        (RESTRICT_SELF, perm, "restrict the calling thread"),
    ];
    for (number, error, lack) in refusals {
        let sandbox = both();
        let daemon = serve_without(&sandbox, number, FAILS_WITH | error);
        prepare(&sandbox, "free");
        prepare(&sandbox, "boxed");
        let refused = daemon.json(&["call", "boxed.tried", "how=create"]);
        assert_eq!(refused["status"], "error", "{refused:#}");
        let status = daemon.status("boxed");
        let reason = status["reason"].as_str().unwrap_or_default();
        assert_eq!((&status["state"], &status["pid"]), (&json!("failed"), &Value::Null), "{status:#}");
        for part in ["sandbox = \"read_only\" cannot be enforced", lack, "it needs Linux 6.2 or later"] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        assert_eq!(tried(&daemon, "free", "create")["data"], "written");
        daemon.stop();
    }
}
