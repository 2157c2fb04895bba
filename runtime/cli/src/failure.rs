//! Why a command did not succeed: an error for people and programs, and an exit code.

use plugd_daemon::client::{ClientError, ConnectError};
use plugd_daemon::{BindError, ServeError};
use plugd_engine::OpenError;
use plugd_engine::config::ConfigError;
use plugd_protocol::{CallError, ErrorKind};

/// A command's failure.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: CallError,
    pub(crate) exit: u8,
}

impl Failure {
    /// The command line is wrong; the command's help has the forms there are.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        let typed = || std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let hint = match typed().skip(1).find(|word| crate::args::is_command(word)) {
            Some(command) => format!("`plugd {command} --help` shows the forms there are"),
            None => "`plugd --help` shows the commands there are".to_owned(),
        };
        CallError::new(ErrorKind::MalformedRequest, message).hint(hint).into()
    }

    /// What the command line names is not as it must be, and the message says what to do.
    pub(crate) fn unfit(message: impl Into<String>) -> Failure {
        let mut error = CallError::new(ErrorKind::MalformedRequest, message);
        error.hint = None;
        error.into()
    }

    /// The arguments are no JSON.
    pub(crate) fn unreadable_arguments(message: impl Into<String>) -> Failure {
        CallError::new(ErrorKind::UnreadableArguments, message).into()
    }

    /// The same with another hint.
    pub(crate) fn hint(mut self, hint: &str) -> Failure {
        self.error.hint = Some(hint.to_owned());
        self
    }

    /// Something failed that is nobody's mistake.
    pub(crate) fn internal(message: impl Into<String>) -> Failure {
        CallError::new(ErrorKind::Internal, message).into()
    }

    /// The machine did not let us, as the message says.
    pub(crate) fn environment(message: impl Into<String>, hint: &str) -> Failure {
        CallError::new(ErrorKind::CannotServe, message).hint(hint).into()
    }

    /// No socket to serve on; whether that lies in the state folder says which other place helps.
    pub(crate) fn bind(error: BindError, in_state_dir: bool) -> Failure {
        let message = error.to_string();
        match error {
            BindError::AlreadyRunning { .. } => CallError::new(ErrorKind::AlreadyRunning, message)
                .hint("use it, or end it with `plugd shutdown`; if it is just ending, try again in a moment")
                .into(),
            BindError::StateInUse { .. } => Failure::environment(
                message,
                "set state_dir under [daemon] for this one, or end the other with `plugd shutdown`",
            ),
            BindError::Folder { .. } | BindError::Io { .. } if in_state_dir => Failure::environment(
                message,
                "plugd must be able to write to its state folder: another can be named with daemon.state_dir",
            ),
            BindError::PathTooLong { .. }
            | BindError::Folder { .. }
            | BindError::InUse { .. }
            | BindError::NotASocket { .. }
            | BindError::Io { .. } => {
                Failure::environment(message, "another socket can be named with --socket or daemon.socket")
            }
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let exit = error.exit_code();
        Failure { error, exit }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let hint = "`plugd config schema` describes the file, `plugd config check` reads it";
        invalid_config(error.to_string()).hint(hint).into()
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        let kind = ErrorKind::DaemonUnreachable;
        let failure = CallError::new(kind, error.to_string());
        match error {
            ConnectError::NotRunning { .. } => failure.into(),
            ConnectError::Io { .. } => failure.hint("the socket must belong to the user who calls").into(),
            ConnectError::Silent { .. } => failure
                .hint("it hangs or is stopped: `ps` shows its process, and ending that frees the socket")
                .into(),
            ConnectError::Refused { .. } => {
                failure.hint("name the daemon's own socket with --socket or in plugd.toml").into()
            }
        }
    }
}

/// The error for a configuration that cannot be used, with every problem: unlike what a plugin says,
/// this is not clipped.
pub(crate) fn invalid_config(message: String) -> CallError {
    CallError { message, ..CallError::new(ErrorKind::InvalidConfig, "") }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let message = error.to_string();
        match error {
            ClientError::Command(error) => (*error).into(),
            ClientError::Malformed { .. } => CallError::new(ErrorKind::MalformedRequest, message)
                .hint("program and daemon may be of different versions: `plugd status` shows the daemon's")
                .into(),
            ClientError::Lost(_) => CallError::new(ErrorKind::DaemonUnreachable, message)
                .hint("`plugd status` tells whether it still runs")
                .outcome(plugd_protocol::Outcome::Unknown)
                .into(),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::environment(error.to_string(), "another folder can be named with daemon.state_dir")
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::environment(error.to_string(), "try again; the log says more with --log debug")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_bound_in_the_state_folder_points_at_that() {
        let hint = |in_state_dir| {
            let dir = "/var/lib/plugd".into();
            let error = BindError::Folder { dir, problem: "cannot be written to".to_owned() };
            Failure::bind(error, in_state_dir).error.hint.expect("a hint")
        };
        assert!(hint(true).contains("daemon.state_dir"), "{}", hint(true));
        assert!(hint(false).contains("--socket"), "{}", hint(false));
    }
}
