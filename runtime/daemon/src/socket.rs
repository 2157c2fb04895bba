//! The control socket's place in the file system: private, locked before bind, never stolen.

mod lock;

use std::fs::{DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use self::lock::{Lock, lock_path, take_lock};

/// The kernel's limit for a socket's path (`sun_path` less its closing zero).
const PATH_MAX: usize = 107;

/// The file of a state folder whose lock a daemon holds.
const STATE_LOCK: &str = "daemon.lock";

/// A daemon that has let go of its socket lets go of its state folder within this.
const STATE_FREE_WITHIN: Duration = Duration::from_millis(200);

/// A bound, listening control socket, locked for as long as this lives.
///
/// Dropping it removes the socket file, unless another one lies there by then. The lock file
/// stays: removing it would let two daemons hold locks on two files of one name.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file we bound.
    identity: (u64, u64),
    /// The state folder's lock, given back before the socket's: whoever gets that gets this.
    _state: Option<File>,
    /// Held, never read: closing it gives the lock back.
    _lock: File,
}

/// Why the socket could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon has it.
    #[error(
        "already running, pid {pid} (socket {socket}): use it, or end it with `plugd shutdown`; if it cannot be reached, end its process",
        pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        socket = socket.display()
    )]
    AlreadyRunning {
        /// Its process, as its lock file says; for messages only.
        pid: Option<u32>,
        /// The socket.
        socket: PathBuf,
    },
    /// Another daemon, with another socket, keeps its state in the same folder.
    #[error(
        "the state folder {dir} is used by plugd, pid {pid}: give this one another state_dir",
        dir = dir.display(),
        pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string())
    )]
    StateInUse {
        /// Its process, as its lock file says; for messages only.
        pid: Option<u32>,
        /// The folder.
        dir: PathBuf,
    },
    /// The path does not fit into a socket address.
    #[error(
        "the socket path {path} has {length} bytes and at most {PATH_MAX} fit: set daemon.socket to a shorter one",
        path = path.display()
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: usize,
    },
    /// The folder cannot be used.
    #[error("the socket's folder {dir} {problem}", dir = dir.display())]
    Folder {
        /// Which.
        dir: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// Another program listens there.
    #[error(
        "another program listens on {path}: end it, or set daemon.socket to another path",
        path = path.display()
    )]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something that is no socket lies there.
    #[error(
        "{path} exists and is no socket: move it away, or set daemon.socket to another path",
        path = path.display()
    )]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl ControlSocket {
    /// Takes the socket: folder 0700, lock, then a socket that is 0600 before it has its name.
    ///
    /// # Errors
    /// [`BindError`]; a daemon that has the socket already is left unharmed.
    pub fn bind(path: &Path) -> Result<ControlSocket, BindError> {
        let Place { path, dir, unfinished } = Place::of(path)?;
        private_folder(&dir, &path)?;
        let lock = match take_lock(&lock_path(&path))? {
            Lock::Ours(lock) => lock,
            Lock::Theirs { pid } => return Err(BindError::AlreadyRunning { pid, socket: path }),
        };
        remove_leftover(&path)?;
        remove_leftover(&unfinished)?;
        let listener = UnixListener::bind(&unfinished).map_err(failed("bind", &path))?;
        let identity = finish(&unfinished, &path).inspect_err(|_| {
            let _ = std::fs::remove_file(&unfinished);
        })?;
        Ok(ControlSocket { listener, path, identity, _state: None, _lock: lock })
    }

    /// What [`ControlSocket::bind`] would refuse, as far as it is seen without taking or making anything.
    ///
    /// # Errors
    /// The [`BindError`] that a daemon would end with. One that starts at this moment is not seen.
    pub fn examine(path: &Path) -> Result<(), BindError> {
        let Place { path, dir, .. } = Place::of(path)?;
        if dir.is_dir() {
            is_open_to_others(&dir, &path)?;
        }
        can_write_to(&dir)?;
        lock::can_be_locked(&lock_path(&path))?;
        is_leftover(&path).map(drop)
    }

    /// The same of [`ControlSocket::with_state`].
    ///
    /// # Errors
    /// [`BindError`]
    pub fn examine_state(dir: &Path) -> Result<(), BindError> {
        can_write_to(dir)?;
        match lock::held_by(&dir.join(STATE_LOCK))? {
            Some(pid) => Err(BindError::StateInUse { pid, dir: dir.to_owned() }),
            None => Ok(()),
        }
    }

    /// Takes the folder for state along: two daemons would undo there what the other one keeps.
    ///
    /// # Errors
    /// [`BindError`]; a daemon that has the folder already is left unharmed.
    pub fn with_state(mut self, dir: &Path) -> Result<ControlSocket, BindError> {
        let path = dir.join(STATE_LOCK);
        let ends = Instant::now() + STATE_FREE_WITHIN;
        loop {
            match take_lock(&path)? {
                Lock::Ours(state) => {
                    self._state = Some(state);
                    return Ok(self);
                }
                Lock::Theirs { pid } if Instant::now() >= ends => {
                    return Err(BindError::StateInUse { pid, dir: dir.to_owned() });
                }
                // One that was killed gives back its locks one after the other.
                Lock::Theirs { .. } => std::thread::sleep(STATE_FREE_WITHIN / 10),
            }
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A second handle to the listening socket, for the runtime to accept on.
    pub(crate) fn listener(&self) -> std::io::Result<UnixListener> {
        self.listener.set_nonblocking(true)?;
        self.listener.try_clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Where a socket is to lie.
struct Place {
    path: PathBuf,
    dir: PathBuf,
    /// It is bound under this name first, so that it is private before anyone can find it.
    unfinished: PathBuf,
}

impl Place {
    fn of(path: &Path) -> Result<Place, BindError> {
        let path = std::path::absolute(path).map_err(failed("use", path))?;
        let (Some(dir), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(BindError::NotASocket { path });
        };
        let unfinished = dir.join(format!(".{}", std::process::id()));
        for candidate in [&path, &unfinished] {
            let length = candidate.as_os_str().len();
            if length > PATH_MAX {
                return Err(BindError::PathTooLong { path: candidate.clone(), length });
            }
        }
        Ok(Place { dir: dir.to_owned(), unfinished, path })
    }
}

/// Gives the bound socket its mode, then its name.
fn finish(unfinished: &Path, path: &Path) -> Result<(u64, u64), BindError> {
    std::fs::set_permissions(unfinished, Permissions::from_mode(0o600)).map_err(failed("protect", path))?;
    let metadata = std::fs::symlink_metadata(unfinished).map_err(failed("look at", path))?;
    std::fs::rename(unfinished, path).map_err(failed("name", path))?;
    Ok(identity(&metadata))
}

fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BindError {
    let path = path.to_owned();
    move |source| BindError::Io { action, path, source }
}

/// Makes the folder, or checks that nobody else can reach into it.
///
/// A folder that lets others in is tightened only where it plainly exists for the socket alone;
/// changing the mode of somebody's project folder would be a surprise.
fn private_folder(dir: &Path, socket: &Path) -> Result<(), BindError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("make the folder", dir))?;
    match is_open_to_others(dir, socket)? {
        true => std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed("protect", dir)),
        false => Ok(()),
    }
}

/// Whether the folder lets others in and is to be tightened; an error where it is not ours to tighten.
fn is_open_to_others(dir: &Path, socket: &Path) -> Result<bool, BindError> {
    let metadata = std::fs::metadata(dir).map_err(failed("look at", dir))?;
    let problem = |problem: String| Err(BindError::Folder { dir: dir.to_owned(), problem });
    let (owner, us) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != us {
        return problem(format!(
            "belongs to uid {owner} and not to us (uid {us}): set daemon.socket to a folder of your own"
        ));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(false);
    }
    if mode & 0o022 == 0 && holds_only(dir, socket) {
        return Ok(true);
    }
    problem(format!(
        "lets others in (mode {mode:04o}): expected 0700; run `chmod 700 {}`, or set daemon.socket to a folder of its own",
        dir.display()
    ))
}

/// Whether files can be made in a folder, or the folder itself where there is none yet.
fn can_write_to(dir: &Path) -> Result<(), BindError> {
    let Some(there) = dir.ancestors().find(|ancestor| ancestor.exists()) else { return Ok(()) };
    let action = if there == dir && dir.is_dir() { "write to the folder" } else { "make the folder" };
    let looked = match there.is_dir() {
        true => access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(std::io::Error::from),
        false if there == dir => Err(rustix::io::Errno::EXIST.into()),
        false => Err(rustix::io::Errno::NOTDIR.into()),
    };
    looked.map_err(failed(action, dir))
}

/// Whether the folder holds nothing but what a daemon leaves there.
fn holds_only(dir: &Path, socket: &Path) -> bool {
    let lock = lock_path(socket);
    let ours = |name: &Path| dir.join(name) == socket || dir.join(name) == lock;
    std::fs::read_dir(dir).is_ok_and(|entries| {
        entries.into_iter().all(|entry| entry.is_ok_and(|entry| ours(entry.file_name().as_ref())))
    })
}

/// Removes what a daemon that died left behind.
fn remove_leftover(path: &Path) -> Result<(), BindError> {
    match is_leftover(path)? {
        true => std::fs::remove_file(path).map_err(failed("remove the leftover socket", path)),
        false => Ok(()),
    }
}

/// Whether a daemon that died left its socket there; anything but a socket is somebody's file.
fn is_leftover(path: &Path) -> Result<bool, BindError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look at", path)(error)),
        Ok(metadata) if metadata.file_type().is_socket() => {
            // Nobody listens on what a daemon that died left; on another program's, somebody does.
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(BindError::InUse { path: path.to_owned() });
            }
            Ok(true)
        }
        Ok(_) => Err(BindError::NotASocket { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_bound_socket_is_private_and_leaves_no_other_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("run/deep/plugd.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        UnixStream::connect(&path).unwrap();
        drop(socket);
        let left: Vec<_> =
            std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["plugd.sock.lock"]);
    }

    #[test]
    fn a_second_daemon_is_told_and_the_first_is_unharmed() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("plugd.sock");
        let _first = ControlSocket::bind(&path).unwrap();
        let error = ControlSocket::bind(&path).expect_err("locked");
        let expected = format!("already running, pid {}", std::process::id());
        assert!(error.to_string().starts_with(&expected), "{error}");
        UnixStream::connect(&path).expect("the first still listens");
    }

    #[test]
    fn two_daemons_do_not_share_a_state_folder() {
        let temp = tempfile::tempdir().unwrap();
        let bind = |name: &str| ControlSocket::bind(&temp.path().join(name)).unwrap();
        let first = bind("one.sock").with_state(temp.path()).unwrap();
        let error = bind("two.sock").with_state(temp.path()).expect_err("it is taken").to_string();
        let pid = std::process::id();
        assert!(error.contains(&format!("is used by plugd, pid {pid}: ")), "{error}");
        assert!(!temp.path().join("two.sock").exists(), "nothing is left of the refused one");
        UnixStream::connect(first.path()).expect("the first still listens");
        drop(first);
        bind("two.sock").with_state(temp.path()).expect("the folder is free");
    }

    #[test]
    fn a_leftover_socket_is_replaced_and_a_stale_pid_means_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("plugd.sock");
        drop(UnixListener::bind(&path).unwrap());
        std::fs::write(lock_path(&path), "1\n").unwrap();
        let _socket = ControlSocket::bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        let pid = std::fs::read_to_string(lock_path(&path)).unwrap();
        assert_eq!(pid.trim(), std::process::id().to_string());
    }

    #[test]
    fn a_file_where_the_socket_should_be_is_not_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("plugd.sock");
        std::fs::write(&path, "precious").unwrap();
        let error = ControlSocket::bind(&path).expect_err("no socket");
        assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_shared_folder_is_refused_and_keeps_its_mode() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("project");
        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.join("notes.txt"), "").unwrap();
        let error = ControlSocket::bind(&dir.join("plugd.sock")).expect_err("lets others in");
        assert!(error.to_string().contains("chmod 700"), "{error}");
        assert_eq!(mode(&dir), 0o755);
        std::fs::remove_file(dir.join("notes.txt")).unwrap();
        ControlSocket::bind(&dir.join("plugd.sock")).expect("a folder for the socket alone is tightened");
        assert_eq!(mode(&dir), 0o700);
    }

    #[test]
    fn a_socket_that_another_program_listens_on_is_left_to_it() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::set_permissions(temp.path(), Permissions::from_mode(0o700)).unwrap();
        let path = temp.path().join("plugd.sock");
        let other = UnixListener::bind(&path).unwrap();
        let error = ControlSocket::bind(&path).expect_err("it is somebody's");
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        UnixStream::connect(&path).expect("the other program still has it");
        drop(other);
        ControlSocket::bind(&path).expect("nobody listens on what is left");
    }

    #[test]
    fn what_would_be_refused_is_seen_beforehand_and_nothing_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("run/plugd.sock");
        let said = |path: &Path| ControlSocket::examine(path).err().map(|error| error.to_string());
        assert_eq!(said(&path), None);
        assert!(!path.parent().unwrap().exists(), "looking makes nothing");
        let check = || {
            let seen = said(&path).expect("it is seen");
            assert_eq!(ControlSocket::bind(&path).expect_err("it is refused").to_string(), seen);
        };
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
        check();
        std::fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o700)).unwrap();
        std::fs::write(&path, "precious").unwrap();
        check();
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(lock_path(&path)).unwrap();
        std::fs::create_dir(lock_path(&path)).unwrap();
        check();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path.parent().unwrap(), "no folder").unwrap();
        check();
        std::fs::remove_file(path.parent().unwrap()).unwrap();
        let _socket = ControlSocket::bind(&path).unwrap().with_state(temp.path()).unwrap();
        let error = ControlSocket::examine_state(temp.path()).expect_err("it is in use").to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
    }

    #[test]
    fn a_path_no_socket_address_can_hold_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let error = ControlSocket::bind(&temp.path().join("x".repeat(120))).expect_err("too long");
        assert!(matches!(error, BindError::PathTooLong { .. }), "{error}");
    }

    #[test]
    fn going_away_removes_only_the_socket_that_was_bound() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("plugd.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "somebody else's").unwrap();
        drop(socket);
        assert!(path.exists());
    }
}
