//! The languages that `plugd new` knows, and what is different about a plugin in each.

use plugd_engine::config::Environment;

/// A language to write a plugin in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// Built by cargo.
    Rust,
    /// 3.9 or later.
    Python,
    /// 18.14 or later.
    Node,
    /// 1.19 or later.
    Go,
    /// With awk.
    Sh,
}

impl Language {
    /// All of them, as they are written on the command line.
    pub(crate) const NAMES: &str = "rust, python, node, go, sh";

    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::Python => "python",
            Language::Node => "node",
            Language::Go => "go",
            Language::Sh => "sh",
        }
    }

    /// As it calls itself.
    pub(super) fn title(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::Python => "Python",
            Language::Node => "Node",
            Language::Go => "Go",
            Language::Sh => "sh",
        }
    }

    /// The programs that a plugin in it needs.
    pub(super) fn needs(self) -> &'static [&'static str] {
        match self {
            Language::Rust => &["cargo"],
            Language::Python => &["python3"],
            Language::Node => &["node"],
            Language::Go => &["go"],
            Language::Sh => &["sh", "awk"],
        }
    }

    /// The file with the operation.
    pub(super) fn source(self) -> &'static str {
        match self {
            Language::Rust => "src/main.rs",
            Language::Python => "plugin.py",
            Language::Node => "plugin.js",
            Language::Go => "main.go",
            Language::Sh => "plugin.sh",
        }
    }

    /// The file with the tests, and the command that runs them.
    pub(super) fn tests(self) -> (&'static str, &'static str) {
        match self {
            Language::Rust => ("src/tests.rs", "cargo test"),
            Language::Python => ("test_plugin.py", "python3 -m unittest"),
            Language::Node => ("plugin.test.js", "node --test"),
            Language::Go => ("main_test.go", "go test ."),
            Language::Sh => ("test.sh", "sh test.sh"),
        }
    }

    /// Where the copy of its SDK lies in a plugin's folder; none in sh.
    pub(super) fn sdk_folder(self) -> Option<&'static str> {
        match self {
            Language::Rust => Some("vendor/plugd"),
            Language::Python => Some("plugd_sdk"),
            Language::Node => Some("vendor/plugd-sdk"),
            Language::Go => Some("plugd-sdk"),
            Language::Sh => None,
        }
    }

    /// What of its needs is not there to be run.
    pub(crate) fn missing(self) -> Vec<&'static str> {
        let environment = Environment::of_process();
        let path = environment.get("PATH").unwrap_or_default();
        let is_there = |program: &&&str| {
            let dirs = path.split(':').filter(|dir| dir.starts_with('/'));
            dirs.map(|dir| std::path::Path::new(dir).join(program)).any(|file| file.is_file())
        };
        self.needs().iter().filter(|program| !is_there(program)).copied().collect()
    }
}

/// The name of a crate for a plugin of that name: some that plugins may have are taken or not allowed.
pub(super) fn crate_name(plugin: &str) -> String {
    /// Keywords, crates that every Rust program has or this one depends on, and folders of cargo's own.
    const TAKEN: &str = "abstract alloc as async await become box break build const continue core crate deps do dyn else \
        enum examples extern false final fn for gen if impl in incremental let loop macro match mod move \
        mut override plugd-sdk plugd_sdk priv proc_macro pub ref return schemars self Self serde \
        serde_json static std struct super test trait true try type typeof unsafe unsized use virtual \
        where while yield";
    let is_allowed = !plugin.starts_with(|first: char| first.is_ascii_digit())
        && !TAKEN.split(' ').any(|taken| taken == plugin);
    if is_allowed { plugin.to_owned() } else { format!("plugin-{plugin}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn all_languages_are_named() {
        let names: Vec<&str> = Language::value_variants().iter().map(|language| language.name()).collect();
        assert_eq!(names.join(", "), Language::NAMES);
    }

    #[test]
    fn any_plugin_has_a_crate_name() {
        for (plugin, expected) in
            [("greet", "greet"), ("3d", "plugin-3d"), ("match", "plugin-match"), ("serde", "plugin-serde")]
        {
            assert_eq!(crate_name(plugin), expected);
        }
    }
}
