//! Where the file, the socket and the state lie when nobody says.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Environment;

const FILE_NAME: &str = "plugd.toml";

/// The longest path a Unix socket can have on Linux: 108 bytes with the NUL that ends it.
pub(super) const SOCKET_PATH_MAX: usize = 107;

/// The outcome of looking for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file to read; one that was named counts as found, there or not.
    pub file: Option<PathBuf>,
    /// Where it was looked for, in order.
    pub searched: Vec<PathBuf>,
}

/// Where things lie by default for one configuration.
pub(super) struct Places {
    pub(super) state_dir: Option<PathBuf>,
    /// The socket's folder and name; the folder is the state's where there is no runtime folder.
    runtime: Option<PathBuf>,
    socket_name: String,
}

pub(super) fn find(explicit: Option<&Path>, folder: &Path, environment: &Environment) -> Found {
    let named = explicit.map(Path::to_owned).or_else(|| environment.get("PLUGD_CONFIG").map(PathBuf::from));
    if let Some(named) = named {
        let file = folder.join(named);
        return Found { file: Some(file.clone()), searched: vec![file] };
    }
    let mut searched = Vec::new();
    for candidate in std::iter::once(folder.join(FILE_NAME)).chain(shared_files(environment)) {
        searched.push(candidate.clone());
        if is_there(&candidate) {
            return Found { file: Some(candidate), searched };
        }
    }
    Found { file: None, searched }
}

/// Whether something lies there that was meant as the file, also where it cannot be read: that is said
/// when it is. Reading a pipe would wait for whoever writes it.
fn is_there(candidate: &Path) -> bool {
    std::fs::symlink_metadata(candidate).is_ok_and(|metadata| !metadata.file_type().is_fifo())
}

/// The files of the XDG folders: one daemon of the user's, whatever folder it is called from.
fn shared_files(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.get("HOME").map(|home| Path::new(home).join(".config"));
    let own = absolute(environment.get("XDG_CONFIG_HOME")).or(home);
    let system = environment.get("XDG_CONFIG_DIRS").unwrap_or("/etc/xdg").split(':');
    own.into_iter()
        .chain(system.filter_map(|dir| absolute(Some(dir))))
        .map(|dir| dir.join("plugd").join(FILE_NAME))
        .collect()
}

/// A folder from the environment; the XDG specification has relative ones ignored.
fn absolute(dir: Option<&str>) -> Option<PathBuf> {
    dir.map(PathBuf::from).filter(|dir| dir.is_absolute())
}

impl Places {
    /// The places of the configuration in this file: a project's has its own.
    pub(super) fn of(file: Option<&Path>, environment: &Environment) -> Places {
        let home = environment.get("HOME").map(|home| Path::new(home).join(".local/state"));
        let state = absolute(environment.get("XDG_STATE_HOME")).or(home).map(|dir| dir.join("plugd"));
        let runtime = absolute(environment.get("XDG_RUNTIME_DIR")).map(|dir| dir.join("plugd"));
        let shared = shared_files(environment);
        match file.filter(|file| !shared.iter().any(|shared| shared == file)) {
            None => Places { state_dir: state, runtime, socket_name: "plugd.sock".to_owned() },
            Some(file) => {
                let own = fingerprint(file);
                let state_dir = state.map(|dir| dir.join(&own));
                Places { state_dir, runtime, socket_name: format!("{own}.sock") }
            }
        }
    }

    pub(super) fn socket(&self, state_dir: &Path) -> PathBuf {
        match &self.runtime {
            Some(runtime) => runtime.join(&self.socket_name),
            None => state_dir.join("plugd.sock"),
        }
    }
}

/// The first sixteen hexadecimal digits of the SHA-256 of a path.
fn fingerprint(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
