//! Why there is no process, in a sentence that says what to do.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use plugd_protocol::error::{MESSAGE_MAX_CHARS, clip};

use super::launch::Launch;
use crate::launcher::Sandbox;

/// Why there is no process.
#[derive(Debug)]
pub struct NotSpawned {
    /// In a sentence.
    pub reason: String,
    /// Whether this machine is short of something for now.
    pub passing: bool,
}

/// What the launcher's error number says about a launch.
pub fn not_launched(launch: &Launch, errno: i32) -> NotSpawned {
    NotSpawned::because(&io::Error::from_raw_os_error(errno), launch)
}

impl NotSpawned {
    /// What was to be confined is not run unconfined.
    pub(super) fn unconfined(sandbox: Sandbox, why: &str) -> NotSpawned {
        // A plugin that says it in the launcher's stead may say any amount.
        NotSpawned { reason: clip(unenforced(sandbox, why), MESSAGE_MAX_CHARS), passing: false }
    }

    pub(super) fn because(error: &io::Error, launch: &Launch) -> NotSpawned {
        NotSpawned { reason: explain(error, launch), passing: is_shortage(error) }
    }
}

/// Why a sandbox that is configured cannot be had.
pub(super) fn unenforced(sandbox: Sandbox, why: &str) -> String {
    format!("sandbox = \"{}\" cannot be enforced, and it is not run without: {why}", sandbox.as_str())
}

/// Whether the machine is short of descriptors, processes or memory, which passes.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Says what is missing when a program cannot be started.
fn explain(error: &io::Error, launch: &Launch) -> String {
    let program = launch.program.display();
    if is_shortage(error) {
        return format!("short of resources to start {program}: {error}; `ulimit -a` shows the limits");
    }
    if !launch.cwd.is_dir() {
        return format!("the folder {} does not exist", launch.cwd.display());
    }
    if error.kind() == io::ErrorKind::NotFound
        && let Some(said) = not_on_path(&launch.program, &launch.cwd)
    {
        return said;
    }
    match error.kind() {
        io::ErrorKind::NotFound => match interpreter(&launch.program) {
            Some(interpreter) => format!("interpreter {interpreter} not found (first line of {program})"),
            None if launch.program.exists() => {
                format!(
                    "{program} cannot be executed here: its loader is missing (another architecture or libc?)"
                )
            }
            None if !launch.build.is_empty() => {
                format!("{program} not found; build it first: {}", command_line(&launch.build))
            }
            None => format!("{program} not found"),
        },
        io::ErrorKind::PermissionDenied if launch.program.is_dir() => format!("{program} is a folder"),
        io::ErrorKind::PermissionDenied if is_program(&launch.program) => {
            format!("{program} is not executable: chmod +x it, or name its interpreter")
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "{program} is not executable and has no #! line: name its interpreter before it in `command`"
            )
        }
        io::ErrorKind::ExecutableFileBusy => format!("{program} is being written to"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            format!("{program} is no program for this machine, or a script without a #! line")
        }
        _ => format!("{program} cannot be started: {error}"),
    }
}

/// Words as a shell takes them.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What to say of a program that was named without a folder and lies in the folder it would run in.
pub fn not_on_path(program: &Path, cwd: &Path) -> Option<String> {
    let is_bare = program.is_relative() && program.components().count() == 1;
    let name = program.display();
    (is_bare && cwd.join(program).is_file()).then(|| format!("{name} is not on PATH; did you mean ./{name}?"))
}

/// Whether a file would be a program if it were executable: a script with a `#!` line, or an ELF file.
pub fn is_program(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut begin));
    // What may be executed and not read cannot be looked at.
    read.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        || begin.starts_with(b"#!")
        || begin == b"\x7fELF"
}

/// The interpreter that a script's first line names, when it does not exist.
fn interpreter(program: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(File::open(program).ok()?.take(512)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?.to_owned();
    (!Path::new(&interpreter).exists()).then_some(interpreter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_take_it_apart() {
        let words = ["/a/plugd.toml", "it's here", ""].map(str::to_owned);
        assert_eq!(command_line(&words), "/a/plugd.toml 'it'\\''s here' ''");
    }
}
