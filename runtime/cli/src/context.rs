//! What every command has at hand: the global options, the configuration, and a way to a runtime.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use plugd_daemon::Limits;
use plugd_daemon::client::{CONNECT_TIMEOUT, Client, ConnectError};
use plugd_engine::Opening;
use plugd_engine::config::Config;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

use crate::args::Global;
use crate::failure::Failure;
use crate::output::Output;
use crate::runtime::Runtime;
use crate::settings::Settings;

/// Lines of the log that wait for stderr; room for them is taken at once, 32 bytes each.
const LINES_QUEUED: usize = 4_096;

/// A daemon has so much more than a call's own time to take the connection.
const CONNECTING: Duration = Duration::from_secs(2);

/// How long the record may take to open, for a call of so much time: the rest is the call's.
pub(crate) fn for_record(timeout: Duration) -> Duration {
    timeout / 2
}

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) output: Output,
    /// Its end is awaited when this goes: the last lines are written, if somebody reads them.
    pub(crate) log: OnceLock<WorkerGuard>,
}

/// A daemon's socket, told from one that another daemon makes in the same place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: PathBuf) -> Option<SocketFile> {
        let metadata = std::fs::symlink_metadata(&path).ok()?;
        Some(SocketFile { path, device: metadata.dev(), inode: metadata.ino() })
    }

    pub(crate) fn is_still_there(&self) -> bool {
        let now = SocketFile::of(self.path.clone());
        now.is_some_and(|now| (now.device, now.inode) == (self.device, self.inode))
    }
}

impl Context {
    /// The configuration, found and loaded.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        Ok(Settings::load(self.global.config.as_deref())?)
    }

    /// The daemon; an error where none runs.
    pub(crate) async fn daemon(&self) -> Result<Client, Failure> {
        self.start_log(None);
        match self.address(None) {
            Ok((socket, limits)) => Ok(Client::connect_with(&socket, limits).await?),
            Err(failure) => self.daemon_despite(failure).await,
        }
    }

    /// The daemon that goes on with what its config file said before that was made wrong.
    async fn daemon_despite(&self, failure: Failure) -> Result<Client, Failure> {
        let file = Config::find(self.global.config.as_deref()).file;
        let Some(socket) = file.and_then(|file| Config::socket_of(&file)) else { return Err(failure) };
        let Ok(client) = Client::connect(&socket).await else { return Err(failure) };
        self.output.note("the config file is wrong now, and the daemon goes on with what it said before: see `plugd config check`");
        Ok(client)
    }

    /// A command line that speaks to the same plugins as this one did, to be typed or pasted.
    pub(crate) fn command_line(&self, rest: &str) -> String {
        let paths = [("--config", &self.global.config), ("--socket", &self.global.socket)];
        let given = paths.into_iter().filter_map(|(option, path)| path.as_deref().map(|path| (option, path)));
        let given: String = given.map(|(option, path)| format!("{option} {} ", quoted(path))).collect();
        format!("plugd {given}{rest}")
    }

    /// The daemon, or the engine in this process where none runs.
    pub(crate) async fn runtime(&self, opening: Opening) -> Result<Runtime, Failure> {
        self.runtime_within(None, opening).await
    }

    /// The same for a call of so much time: neither a daemon that does not answer takes it all, nor a
    /// record that cannot be opened.
    pub(crate) async fn runtime_within(
        &self,
        timeout: Option<Duration>,
        opening: Opening,
    ) -> Result<Runtime, Failure> {
        self.start_log(None);
        let time = timeout
            .map_or(CONNECT_TIMEOUT, |timeout| CONNECT_TIMEOUT.min(timeout.saturating_add(CONNECTING)));
        let mut settings = None;
        let (socket, limits) = match self.address(Some(&mut settings)) {
            Ok(address) => address,
            Err(failure) => return self.daemon_despite(failure).await.map(Runtime::Daemon),
        };
        match Client::connect_within(time, &socket, limits).await {
            Ok(client) => Ok(Runtime::Daemon(client)),
            // A socket that was named is meant; another set of plugins beside it is not.
            Err(ConnectError::NotRunning { .. }) if self.global.socket.is_none() => {
                let settings = match settings {
                    Some(settings) => settings,
                    None => self.settings()?,
                };
                Runtime::embedded_within(settings.config, opening, timeout.map(for_record)).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The daemon's socket as it is now, where there is one.
    pub(crate) fn socket_file(&self) -> Option<SocketFile> {
        let socket = self.address(None).map(|(socket, _)| socket).ok();
        // A daemon goes on where its config file was made wrong.
        let despite = || Config::socket_of(&Config::find(self.global.config.as_deref()).file?);
        SocketFile::of(socket.or_else(despite)?)
    }

    /// Where the daemon is; reads the config only if `--socket` does not say.
    fn address(&self, keep: Option<&mut Option<Settings>>) -> Result<(PathBuf, Limits), Failure> {
        if let Some(socket) = &self.global.socket {
            return Ok((socket.clone(), Limits::default()));
        }
        let settings = self.settings()?;
        let address = (settings.socket(), settings.limits());
        if let Some(keep) = keep {
            *keep = Some(settings);
        }
        Ok(address)
    }

    /// Logs to stderr as `--log` asks, or else as `default` does, or else not at all.
    pub(crate) fn start_log(&self, default: Option<&str>) {
        let Some(filter) = self.global.log.as_deref().or(default) else { return };
        let mut filter = tracing_subscriber::EnvFilter::builder().parse_lossy(filter);
        if filter.max_level_hint() == Some(tracing::level_filters::LevelFilter::TRACE) {
            // At that level it writes out requests whole, and with them secrets that people answered.
            filter = filter.add_directive("jsonrpsee=debug".parse().expect("a directive"));
        }
        // Written by a thread of its own, and what it cannot take in time is left out: nothing waits
        // for whoever does or does not read our stderr.
        let (stderr, written) =
            NonBlockingBuilder::default().buffered_lines_limit(LINES_QUEUED).finish(std::io::stderr());
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let started = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(stderr)
            .with_ansi(terminal && std::env::var_os("NO_COLOR").is_none())
            .try_init();
        // It fails only where a log was started before, which will do.
        if started.is_ok() {
            self.log.set(written).ok();
        }
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    plugd_engine::command_line(&[path.to_string_lossy().into_owned()])
}
