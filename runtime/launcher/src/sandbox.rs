//! The read-only sandbox: this process, and all it will start, changes no file any more.
//!
//! It is a ruleset of Landlock (<https://docs.kernel.org/userspace-api/landlock.html>) that names every
//! right to change files and allows none, so reading and executing stay as they are.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictSelf, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

/// The first that knows truncation; before it a file could be emptied.
const ABI_NEEDED: ABI = ABI::V3;

/// What an operator is told to get.
const NEEDED: &str = "it needs Linux 6.2 or later, built and booted with Landlock";

/// Devices that keep nothing of what is written to them; programs open them for writing.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// What a process is kept from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// From nothing that its user may do.
    #[default]
    None,
    /// From changing files: it may read and execute them.
    ReadOnly,
}

/// How a refused write reads in the words of C, Python, Node, Go, Java, shells and SQLite, in lower case.
///
/// Landlock refuses with `EACCES` and nothing else: `EPERM` and `EROFS` have other causes.
const REFUSED: [&str; 3] = ["permission denied", "eacces", "readonly database"];

/// What else is refused in the same words, and never by the sandbox: to log in, to connect, to start a
/// program, to read a folder, to change a mode or an owner.
const NO_WRITE: [&str; 17] = [
    "publickey",
    "password",
    "connect",
    "connecting",
    "connection",
    "socket",
    "listen",
    "bind",
    "port",
    "spawn",
    "exec",
    "execve",
    "scandir",
    "opendir",
    "kill",
    "chmod",
    "chown",
];

impl Sandbox {
    /// Whether what failed with these words may well have failed because of it.
    ///
    /// What its user may not write to anyway, the sandbox is not the reason for.
    pub fn may_have_refused(self, message: &str) -> bool {
        let said = message.to_lowercase();
        match self {
            Sandbox::None => false,
            Sandbox::ReadOnly => {
                REFUSED.iter().any(|words| said.contains(words))
                    && !words_in(&said).any(|word| NO_WRITE.contains(&word))
                    && !paths_in(message).any(is_refused_anyway)
            }
        }
    }

    /// As it is called in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Sandbox::None => "none",
            Sandbox::ReadOnly => "read_only",
        }
    }
}

/// The words of a message, outside of paths.
fn words_in(message: &str) -> impl Iterator<Item = &str> {
    let words = message.split_whitespace().filter(|word| !word.contains('/'));
    words.flat_map(|word| word.split(|letter: char| !letter.is_alphanumeric()))
}

/// The absolute paths in a message, bare or quoted.
fn paths_in(message: &str) -> impl Iterator<Item = &Path> {
    let parts = message.split(|letter: char| letter.is_whitespace() || "'\"`()<>,;".contains(letter));
    parts.map(|part| part.trim_end_matches([':', '.'])).filter(|part| part.starts_with('/')).map(Path::new)
}

/// Whether this user may not write to a file, or make it where it is not there; the plugin's user is the same.
fn is_refused_anyway(path: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    match path.symlink_metadata() {
        Ok(_) => !may_write(path),
        Err(_) => path.parent().is_some_and(|folder| folder.is_dir() && !may_write(folder)),
    }
}

/// Keeps this process from it for good; or says why that cannot be, and then the process must not go on.
pub(crate) fn confine(sandbox: Sandbox) -> Result<(), String> {
    match sandbox {
        Sandbox::None => Ok(()),
        Sandbox::ReadOnly => match allow_sinks_only() {
            Ok(true) => Ok(()),
            Ok(false) => Err(unenforced(None)),
            Err(error) => Err(unenforced(Some(&error))),
        },
    }
}

/// Says whether the kernel enforces all of it.
fn allow_sinks_only() -> Result<bool, RulesetError> {
    let changes = AccessFs::from_write(ABI_NEEDED);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(changes)?
        .create()?;
    let is_device = |path: &str| std::fs::metadata(path).is_ok_and(|file| file.file_type().is_char_device());
    for sink in SINKS.into_iter().filter(|path| is_device(path)) {
        // One that cannot be opened cannot be written to either.
        if let Ok(sink) = PathFd::new(sink) {
            ruleset = ruleset.add_rule(PathBeneath::new(sink, AccessFs::WriteFile | AccessFs::Truncate))?;
        }
    }
    // It sets no_new_privs as well: Landlock asks for that, since a set-user-ID program would be confined, too.
    let status = ruleset.restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs)
}

fn unenforced(error: Option<&RulesetError>) -> String {
    // Without any flag it asks which Landlock there is, and does nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply().map(|asked| asked.landlock);
    let lack = status.ok().and_then(lack);
    let said = lack.or_else(|| error.map(ToString::to_string));
    said.map_or_else(|| NEEDED.to_owned(), |said| format!("{said}; {NEEDED}"))
}

/// What this kernel's Landlock lacks.
fn lack(status: LandlockStatus) -> Option<String> {
    match status {
        LandlockStatus::NotImplemented => Some("this kernel has no Landlock".to_owned()),
        LandlockStatus::NotEnabled => Some("Landlock is not switched on in this kernel".to_owned()),
        LandlockStatus::Available { effective_abi, .. } => (effective_abi < ABI_NEEDED)
            .then(|| format!("this kernel's Landlock has ABI {effective_abi}, and {ABI_NEEDED} is needed")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use landlock::Access;

    use super::*;

    #[test]
    fn only_a_refused_write_is_laid_to_the_sandbox() {
        let folder = std::env::temp_dir();
        let there = folder.display();
        let may = |message: &str| Sandbox::ReadOnly.may_have_refused(message);
        for message in [
            "Permission denied",
            &format!("[Errno 13] Permission denied: '{there}/new'"),
            &format!("EACCES: permission denied, mkdir '{there}/exec/kill'"),
            &format!("open {there}: permission denied"),
            "attempt to write a readonly database",
        ] {
            assert!(may(message), "{message}");
            assert!(!Sandbox::None.may_have_refused(message), "{message}");
        }
        for message in [
            "git@example.org: Permission denied (publickey).",
            &format!("connect EACCES {there}/docker.sock"),
            "spawn ./tool EACCES",
            "[Errno 1] Operation not permitted",
            "EROFS: read-only file system, open '/mnt/cd/new'",
            "No such file",
        ] {
            assert!(!may(message), "{message}");
        }
        // What may not be written to without a sandbox either is another matter; root may write to everything.
        let file = folder.join(format!("plugd-refused-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        let may_be = may(&format!("Permission denied: '{}'", file.display()));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(may_be, rustix::process::geteuid().is_root());
        let paths: Vec<&Path> = paths_in("cp: cannot create '/a/b': denied, open(/c) /d: no").collect();
        assert_eq!(paths, ["/a/b", "/c", "/d"].map(Path::new));
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let with = |abi| LandlockStatus::Available { effective_abi: abi, kernel_abi: None };
        let of = |status| lack(status).unwrap_or_default();
        assert_eq!(of(LandlockStatus::NotImplemented), "this kernel has no Landlock");
        assert_eq!(of(LandlockStatus::NotEnabled), "Landlock is not switched on in this kernel");
        assert_eq!(of(with(ABI::V2)), "this kernel's Landlock has ABI 2, and 3 is needed");
        assert_eq!((of(with(ABI::V3)), of(with(ABI::V7))), (String::new(), String::new()));
    }

    #[test]
    fn every_right_to_change_files_up_to_truncation_is_named() {
        let free = AccessFs::from_all(ABI_NEEDED) & !AccessFs::from_write(ABI_NEEDED);
        assert_eq!(free, AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir);
    }
}
