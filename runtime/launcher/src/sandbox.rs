//! The read-only sandbox: this process, and all it will start, changes no file any more.
//!
//! It is a ruleset of Landlock (<https://docs.kernel.org/userspace-api/landlock.html>) that names every
//! right to change files and allows none, so reading and executing stay as they are.

use std::os::unix::fs::FileTypeExt;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, RestrictSelf, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
};
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

/// How a refused write reads in the words of C, Python, Node, Go, Java and shells, in lower case.
const REFUSED: [&str; 6] =
    ["permission denied", "not permitted", "eacces", "eperm", "read-only file system", "erofs"];

impl Sandbox {
    /// Whether what failed with these words may well have failed because of it.
    pub fn may_have_refused(self, message: &str) -> bool {
        let message = message.to_lowercase();
        match self {
            Sandbox::None => false,
            Sandbox::ReadOnly => REFUSED.iter().any(|words| message.contains(words)),
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
    use landlock::Access;

    use super::*;

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
