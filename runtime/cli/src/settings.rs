//! The configuration as the commands need it: found, loaded, and asked for a few things.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use plugd_daemon::Limits;
use plugd_engine::config::{Config, ConfigError, Environment, Found};
use plugd_protocol::control::Source;
use plugd_protocol::name::NAME_MAX;

use crate::failure::Failure;

/// A loaded configuration.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
}

impl Settings {
    /// Finds the file, or takes the one given, and loads it; none at all is the empty configuration.
    pub(crate) fn load(explicit: Option<&Path>) -> Result<Settings, ConfigError> {
        let config = Config::open(&Config::find(explicit), &Environment::of_process())?;
        Ok(Settings { config })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.config.socket.clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { frame: self.config.limits.frame_limit }
    }

    /// Makes the folder for state, closed to others: logs and the socket may lie in it.
    pub(crate) fn make_state_dir(&self) -> Result<(), Failure> {
        let dir = &self.config.state_dir;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).and_then(|()| {
            let metadata = std::fs::metadata(dir)?;
            let ours = metadata.uid() == rustix::process::geteuid().as_raw() && *dir != self.config.dir;
            match ours && metadata.mode() & 0o077 != 0 {
                true => std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)),
                false => Ok(()),
            }
        });
        made.map_err(|error| {
            Failure::environment(
                format!("cannot use the state folder {}: {error}", dir.display()),
                "another folder can be named with daemon.state_dir",
            )
        })
    }
}

/// A configuration of one executable and nothing else.
///
/// # Errors
/// A [`Failure`] when there is no such file, or nothing can be configured for it.
pub(crate) fn single(program: &Path) -> Result<Config, Failure> {
    let found = std::fs::canonicalize(program)
        .map_err(|error| Failure::unfit(format!("cannot run {}: {error}", program.display())))?;
    if std::fs::metadata(&found).is_ok_and(|metadata| metadata.mode() & 0o111 == 0) {
        let program = program.display();
        return Err(Failure::unfit(format!("{program} is not executable: `chmod +x {program}` makes it so")));
    }
    let environment = Environment::of_process();
    let nothing = Found { file: None, searched: Vec::new() };
    let places = Config::open(&nothing, &environment)?;
    // Read as if a file beside the executable named it: one way in, one set of defaults.
    let beside = found.with_file_name("plugd.toml");
    let command = serde_json::Value::from(found.to_string_lossy().into_owned());
    // By whatever links it is reached, it is called as it was typed.
    let typed = std::path::absolute(program).unwrap_or_else(|_| found.clone());
    let text = format!("[plugins.{}]\ncommand = [{command}]\n", plugin_name(&typed));
    let mut plugins = Config::parse(&text, &beside, &environment)?.plugins;
    for plugin in plugins.values_mut() {
        plugin.source = Source::Embedded;
    }
    Ok(places.with_only(plugins))
}

/// A path's stem as the name of its plugin.
fn plugin_name(program: &Path) -> String {
    fitting_name(&program.file_stem().unwrap_or_default().to_string_lossy())
}

/// A name that a plugin may have: what it may not hold is replaced.
pub(crate) fn fitting_name(written: &str) -> String {
    let legal = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    let name: String = written
        .chars()
        .map(|character| if legal(character) { character } else { '_' })
        .skip_while(|character| !character.is_ascii_alphanumeric())
        .take(NAME_MAX)
        .collect();
    if name.is_empty() { "plugin".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_executable_gets_a_legal_plugin_name() {
        for (path, name) in
            [("/x/plugin.py", "plugin"), ("/x/my plugin.v2.sh", "my_plugin_v2"), ("/x/_天气", "plugin")]
        {
            assert_eq!(plugin_name(Path::new(path)), name);
        }
    }

    #[test]
    fn a_single_executable_is_configured_under_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("it's \"odd\".py");
        std::fs::write(&program, "").unwrap();
        let error = single(&program).unwrap_err().error;
        assert!(error.message.contains("chmod +x"), "{error:?}");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let config = single(&program).unwrap();
        let plugin = config.plugins.values().next().unwrap();
        assert_eq!(config.plugins.len(), 1);
        assert_eq!(plugin.command, [program.canonicalize().unwrap().to_string_lossy()]);
        assert!(matches!(plugin.source, Source::Embedded));
    }
}
