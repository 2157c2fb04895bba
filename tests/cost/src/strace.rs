//! System calls, counted from what strace saw.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::mark;
use crate::process::run;

/// Calls of one sort of thread between two marks, by name.
pub(crate) type Calls = BTreeMap<String, u64>;

/// What was seen between two marks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Of the thread that the program began with.
    pub(crate) first: Calls,
    /// Of its other threads.
    pub(crate) aside: Calls,
    /// Of the programs that it started, each by the name of its file.
    pub(crate) others: BTreeMap<String, Calls>,
}

/// Runs a program and its children under strace; what lies before the first mark is the first part.
pub(crate) fn count<A: AsRef<OsStr>>(words: &[A], folder: &Path) -> io::Result<Vec<Part>> {
    let file = folder.join("strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-s", "256", "--signal=none", "-o"]).arg(&file).args(words);
    run(&mut command)?;
    let text = std::fs::read(&file)?;
    Ok(read(&String::from_utf8_lossy(&text)))
}

/// Whose a thread is.
#[derive(Clone, PartialEq, Eq)]
enum Whose {
    First,
    Aside,
    Other(String),
}

/// Lines such as `1234 read(3, "…", 16) = 16`, the first by the program itself.
fn read(text: &str) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    let mut threads = BTreeMap::<&str, Whose>::new();
    for (thread, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
        let rest = rest.trim_start();
        let first_of_all = threads.is_empty();
        let whose = threads.entry(thread).or_insert(if first_of_all { Whose::First } else { Whose::Aside });
        // The end of a call that another thread's stands in between, a signal or an exit.
        let Some(name) = name_of(rest) else { continue };
        if name == "execve" && !first_of_all {
            if let Some(program) = program_of(rest) {
                *whose = Whose::Other(program.to_owned());
            }
            continue;
        }
        if *whose == Whose::First && rest.contains(mark::FILE) {
            parts.push(Part::default());
            continue;
        }
        let part = parts.last_mut().expect("there is always one");
        let calls = match whose {
            Whose::First => &mut part.first,
            Whose::Aside => &mut part.aside,
            Whose::Other(program) => part.others.entry(program.clone()).or_default(),
        };
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    parts
}

fn name_of(call: &str) -> Option<&str> {
    let name = call.split_once('(')?.0;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

/// The file's name in `execve("/a/file", …`.
fn program_of(execve: &str) -> Option<&str> {
    let path = execve.split('"').nth(1)?;
    path.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: &[(&str, u64)]) -> Calls {
        calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn calls_are_told_apart_by_thread_program_and_mark() {
        let seen = read(
            "10 execve(\"/a/plugd-cost\", [\"/a/plugd-cost\", \"drive\"], 0x7ffd /* 30 vars */) = 0\n\
             10 clone3({flags=CLONE_VM|CLONE_VFORK}, 88) = 12\n\
             12 execve(\"/a/echo_plugin\", [\"/a/echo_plugin\"], 0x7ffd /* 30 vars */) = 0\n\
             10 statx(AT_FDCWD, \"/plugd-cost/mark\", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (No such file or directory)\n\
             10 write(8, \"call(\", 5)  = 5\n\
             12 read(0,  <unfinished ...>\n\
             11 pwrite64(5, \"row\", 3, 0) = 3\n\
             12 <... read resumed>\"call(\", 131072) = 5\n\
             12 write(1, \"ok\\n\", 3) = 3\n\
             10 read(9, \"ok\\n\", 100) = 3\n\
             10 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
             10 statx(AT_FDCWD, \"/plugd-cost/mark\", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffd) = -1 ENOENT (No such file or directory)\n\
             10 +++ exited with 0 +++\n",
        );
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[1].first, calls(&[("read", 1), ("write", 1)]));
        assert_eq!(seen[1].aside, calls(&[("pwrite64", 1)]));
        let plugin = calls(&[("read", 1), ("write", 1)]);
        assert_eq!(seen[1].others, BTreeMap::from([("echo_plugin".to_owned(), plugin)]));
        assert_eq!(seen[2], Part::default());
    }

    #[test]
    fn a_program_without_marks_is_one_part_with_its_own_start() {
        let seen = read(
            "7 execve(\"/a/plugd\", [\"plugd\"], 0x1) = 0\n7 brk(NULL) = 0x5\n7 +++ exited with 0 +++\n",
        );
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].first, calls(&[("brk", 1), ("execve", 1)]));
    }
}
