//! Environment variables: those of this process, and those a plugin gets.

use std::collections::BTreeMap;

use super::PluginConfig;

/// Variables every plugin gets from plugd's own environment.
const PASSED: &[&str] = &["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];
/// And all whose names begin with one of these.
const PASSED_PREFIXES: &[&str] = &["LC_", "PLUGD_"];
/// Python would otherwise buffer its answers and write them in the locale's encoding.
const SET: &[(&str, &str)] = &[("PYTHONUNBUFFERED", "1"), ("PYTHONUTF8", "1")];

/// A copy of an environment, so that nothing reads the process's own twice.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process; what is not UTF-8 is left out.
    pub fn of_process() -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(std::env::vars_os().filter_map(text).collect())
    }

    /// An environment of these variables.
    pub fn of<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Environment {
        Environment(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// A variable's value, where it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl PluginConfig {
    /// The plugin's whole environment, by name: the allowlist, what plugd sets, what is configured.
    pub fn environment(&self, host: &Environment) -> Vec<(String, String)> {
        let allowed = |name: &str| {
            PASSED.contains(&name)
                || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || self.pass_env.iter().any(|passed| passed == name)
        };
        let mut variables: BTreeMap<String, String> =
            SET.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let passed = host.0.iter().filter(|(name, _)| allowed(name));
        variables.extend(passed.map(|(name, value)| (name.clone(), value.clone())));
        for (name, value) in &self.env {
            match value {
                Some(value) => drop(variables.insert(name.clone(), value.clone())),
                None => drop(variables.remove(name)),
            }
        }
        variables.into_iter().collect()
    }
}
