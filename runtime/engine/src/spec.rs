//! From a configured plugin to what the supervisor needs to know of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugd_protocol::PluginName;
use plugd_protocol::control::Source;
use plugd_protocol::manifest::Manifest;
use plugd_protocol::plugin::LogLevel;
use plugd_supervisor::driver::{Launch, LiveSettings, PluginSpec, RunSettings};
use plugd_supervisor::machine::{Clocks, Declared, OnChange, Revision, Spec};

use crate::config::{self, Config, Environment, PluginConfig, StartMode};
use crate::engine::Opening;
use crate::outcome::redact::secret_variables;

/// Everything the supervisor is to run; `known` is what is known of manifests without running anything.
pub(crate) fn plugin_specs(
    config: &Config,
    environment: &Environment,
    opening: Opening,
    known: &BTreeMap<PluginName, Declared>,
) -> Vec<PluginSpec> {
    let spec = |plugin| plugin_spec(config, plugin, environment, opening, known);
    config.plugins.values().map(spec).collect()
}

fn plugin_spec(
    config: &Config,
    plugin: &PluginConfig,
    environment: &Environment,
    opening: Opening,
    known: &BTreeMap<PluginName, Declared>,
) -> PluginSpec {
    let eager = plugin.start == StartMode::Eager && opening == Opening::Everything;
    let settings = settings_of(config, plugin, environment, eager);
    let spec = Spec {
        name: plugin.name.clone(),
        enabled: plugin.enabled,
        overruled: plugin.enabled != plugin.enabled_as_written,
        held: config.operator.stopped.contains(&plugin.name),
        eager,
        describe: opening == Opening::Everything,
        lingers: opening == Opening::OnDemand && matches!(plugin.source, Source::Embedded),
        priority: plugin.priority,
        requires: plugin.requires.clone(),
        declared: known.get(&plugin.name).cloned(),
        spare: plugin.spare,
        restart: plugin.restart.clone(),
        clocks: clocks(&plugin.limits),
        on_change: match plugin.on_change {
            config::OnChange::Replace => OnChange::Replace,
            config::OnChange::Manual => OnChange::Manual,
        },
        facets: Arc::new(facets(plugin, &settings)),
        // The driver counts them.
        revision: Revision::default(),
    };
    PluginSpec { spec, settings }
}

/// How a plugin's process is made, and what it is told: for whoever runs one beside an engine.
///
/// `None` where no plugin of that name is configured.
pub fn run_settings(config: &Config, name: &PluginName, environment: &Environment) -> Option<RunSettings> {
    config.plugins.get(name).map(|plugin| settings_of(config, plugin, environment, false))
}

fn settings_of(
    config: &Config,
    plugin: &PluginConfig,
    environment: &Environment,
    eager: bool,
) -> RunSettings {
    RunSettings {
        launch: Launch {
            program: plugin.program.clone(),
            args: plugin.command.iter().skip(1).cloned().collect(),
            cwd: plugin.cwd.clone(),
            env: plugin.environment(environment),
            rlimits: plugin.rlimits,
            cgroup: plugin.cgroup,
            sandbox: plugin.sandbox,
            stdio: plugin.stdio,
            build: plugin.dev.build.clone(),
        },
        secret_env: secret_variables(plugin, environment).map(|(name, _)| name).collect(),
        config: Arc::new(plugin.config.clone()),
        data_dir: data_dir(config, &plugin.name),
        locale: locale(environment),
        log_level: LogLevel::Info,
        frame_limit: plugin.limits.frame_limit,
        strict: plugin.strict,
        live: LiveSettings {
            cancel_grace: plugin.limits.cancel_grace,
            idle_timeout: plugin.idle_timeout.filter(|_| !eager),
            queue_length: u32::try_from(plugin.limits.queue_length).unwrap_or(u32::MAX),
            ping_interval: plugin.limits.ping_interval,
            ping_misses: plugin.limits.ping_misses,
        },
    }
}

/// What a manifest means for a plugin's life.
pub(crate) fn declared(manifest: &Manifest) -> Declared {
    Declared {
        version: manifest.semver(),
        requires: manifest.requires.clone(),
        priority: manifest.priority,
        reload: manifest.features.reload,
    }
}

/// Where a plugin keeps what outlives its runs.
pub(crate) fn data_dir(config: &Config, plugin: &PluginName) -> PathBuf {
    config.state_dir.join("data").join(plugin.as_str())
}

/// The file that a plugin is: its script where an interpreter runs one, its program otherwise.
pub(crate) fn plugin_file(plugin: &PluginConfig) -> PathBuf {
    let mut arguments = files(plugin).skip(1);
    arguments.next().map_or_else(|| plugin.program.clone(), |(_, path)| path)
}

/// The files that a plugin's process is made from, its program first, each by the word for it.
pub(crate) fn files(plugin: &PluginConfig) -> impl Iterator<Item = (&str, PathBuf)> {
    let arguments = plugin.command.iter().skip(1).map(|word| (word.as_str(), plugin.cwd.join(word)));
    let program = plugin.command.first().map(|word| (word.as_str(), plugin.program.clone()));
    program.into_iter().chain(arguments.filter(|(_, path)| path.is_file()))
}

fn clocks(limits: &config::Limits) -> Clocks {
    Clocks {
        describe: limits.describe_timeout,
        init: limits.init_timeout,
        init_max: limits.start_timeout_max.max(limits.init_timeout),
        drain: limits.drain_timeout,
        shutdown: limits.shutdown_timeout,
        term: limits.term_timeout,
        kill: limits.kill_timeout,
        unkillable: limits.unkillable_timeout,
    }
}

/// What a process is made from, key by key: where one differs, a running process is not what is
/// configured. What it can take up while it runs is not among them.
///
/// A `plugin.toml` is not either: what it says is, under the keys that it says it with.
fn facets(plugin: &PluginConfig, settings: &RunSettings) -> BTreeMap<String, u64> {
    let RunSettings {
        launch,
        config,
        data_dir,
        locale,
        log_level,
        frame_limit,
        strict,
        secret_env: _,
        live: _,
    } = settings;
    let Launch { program, args, cwd, env, rlimits, cgroup, sandbox, stdio, build: _ } = launch;
    let manifest = plugin.manifest.as_ref().map(ToString::to_string);
    let mut facets = BTreeMap::from([
        ("command", hash(&(program, args))),
        ("cwd", hash(cwd)),
        ("data_dir", hash(data_dir)),
        ("locale", hash(locale)),
        ("log_level", hash(log_level)),
        ("frame_limit", hash(frame_limit)),
        ("strict", hash(strict)),
        ("rlimits", hash(&format!("{rlimits:?}"))),
        ("cgroup", hash(&format!("{cgroup:?}"))),
        ("sandbox", hash(sandbox)),
        ("stdio", hash(stdio)),
        ("concurrency", hash(&plugin.concurrency)),
        ("manifest", hash(&manifest)),
        ("manifest_sha256", hash(&plugin.manifest_sha256)),
    ])
    .into_iter()
    .map(|(key, hash)| (key.to_owned(), hash))
    .collect::<BTreeMap<String, u64>>();
    facets.extend(env.iter().map(|(name, value)| (format!("env.{name}"), hash(value))));
    facets.extend(files(plugin).map(|(word, path)| (format!("file {word}"), hash(&Stamp::of(&path)))));
    let members = config.as_object().into_iter().flatten();
    facets.extend(members.map(|(key, value)| (format!("config.{key}"), hash(&canonical(value)))));
    facets
}

/// Two that are equal are the same for the life of this process; nobody else sees them.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The text of a value, its keys in order: to write them in another order changes nothing.
fn canonical(value: &serde_json::Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// By what a file that was written anew is told from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
    mode: u32,
}

impl Stamp {
    /// That of a file or a folder, where there is one.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        path.metadata().ok().map(|metadata| Stamp {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
            mode: metadata.mode(),
        })
    }
}

#[cfg(test)]
impl Stamp {
    /// That of a file of this length.
    pub(crate) fn of_size(size: u64) -> Stamp {
        Stamp { modified: (0, 0), size, inode: 1, mode: 0o644 }
    }
}

/// The language of this process as a BCP 47 tag: `zh_CN.UTF-8` is `zh-CN`.
fn locale(environment: &Environment) -> String {
    let language = environment.get("LC_ALL").or_else(|| environment.get("LANG")).unwrap_or("en");
    let tag = language.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    if tag.is_empty() || tag == "C" || tag == "POSIX" { "en".to_owned() } else { tag }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            let world = World { dir: tempfile::tempdir().unwrap() };
            world.write("run.sh", "exit 0");
            world.write("main.py", "1");
            world
        }

        fn write(&self, name: &str, text: &str) {
            // Replaced, as editors do: another inode whatever the clock says.
            let temporary = self.dir.path().join("temporary");
            fs::write(&temporary, text).unwrap();
            fs::rename(temporary, self.dir.path().join(name)).unwrap();
        }

        fn spec(&self, plugin: &str) -> PluginSpec {
            let text = format!("[daemon]\nstate_dir = \"state\"\n[plugins.p]\n{plugin}");
            let environment = Environment::of([("PATH", "/bin"), ("HOME", "/")]);
            let config = Config::parse(&text, &self.dir.path().join("plugd.toml"), &environment).unwrap();
            plugin_specs(&config, &environment, Opening::Everything, &BTreeMap::new()).remove(0)
        }

        /// The keys of what differs between two ways to configure a plugin.
        fn changed(&self, before: &PluginSpec, plugin: &str) -> Vec<String> {
            let after = self.spec(plugin).spec.facets;
            let mut changed: Vec<String> = after
                .iter()
                .filter(|(key, hash)| before.spec.facets.get(*key) != Some(hash))
                .map(|(key, _)| key.clone())
                .collect();
            changed.extend(before.spec.facets.keys().filter(|key| !after.contains_key(*key)).cloned());
            changed.sort();
            changed
        }
    }

    const PLUGIN: &str = "command = [\"./run.sh\", \"main.py\", \"-v\"]\n";

    #[test]
    fn what_a_process_is_made_from_is_named_key_by_key() {
        let world = World::new();
        let with = |more: &str| format!("{PLUGIN}{more}");
        let rich = "env = { A = \"1\", B = \"2\" }\nconfig = { x = 1, y = { z = 2 } }\n";
        let pin = format!("manifest_sha256 = \"{}\"\n", "0".repeat(64));
        let (plain, full) = (world.spec(PLUGIN), world.spec(&with(rich)));
        let cases: &[(&PluginSpec, &str, &[&str])] = &[
            (&plain, "", &[]),
            (&plain, "env = { A = \"1\" }\n", &["env.A"]),
            (&plain, "env = { HOME = false }\n", &["env.HOME"]),
            (
                &full,
                "env = { A = \"1\", B = \"3\" }\nconfig = { y = { z = 3 }, x = 1 }\n",
                &["config.y", "env.B"],
            ),
            (&full, "env = { B = \"2\", A = \"1\" }\nconfig = { y = { z = 2 }, x = 1 }\n", &[]),
            (&full, "", &["config.x", "config.y", "env.A", "env.B"]),
            (&plain, "cwd = \"/\"\n", &["command", "cwd", "file ./run.sh", "file main.py"]),
            (&plain, "concurrency = 2\nstrict = true\n", &["concurrency", "strict"]),
            (&plain, "frame_limit = 2048\n", &["frame_limit"]),
            (&plain, "rlimits = { open_files = 9 }\ncgroup = { pids_max = 9 }\n", &["cgroup", "rlimits"]),
            (&plain, "sandbox = \"read_only\"\n", &["sandbox"]),
            (&plain, "sandbox = \"none\"\n", &[]),
            (&plain, "stdio = \"socketpair\"\n", &["stdio"]),
            (&plain, "stdio = \"pipes\"\n", &[]),
            (&plain, &pin, &["manifest_sha256"]),
            (&plain, "manifest = { version = \"1.0.0\", operations = [] }\n", &["manifest"]),
        ];
        for (before, more, expected) in cases {
            assert_eq!(world.changed(before, &with(more)), *expected, "{more}");
        }
    }

    #[test]
    fn what_a_process_can_take_up_while_it_runs_asks_for_no_other() {
        let world = World::new();
        let plain = world.spec(PLUGIN);
        let policy = "timeout = \"1s\"\nqueue_length = 3\ncancel_grace = \"9s\"\nidle_timeout = \"9m\"\n\
            start = \"eager\"\npriority = 3\nrestart = \"never\"\nrequires = { q = \"*\" }\nterm_timeout = \"9s\"\n\
            on_change = \"manual\"\nspares = 0\nping_misses = 9\nlog_size = 99\nenabled = false\n";
        let after = format!("{PLUGIN}{policy}");
        assert_eq!(world.changed(&plain, &after), Vec::<String>::new());
        assert_ne!(plain, world.spec(&after), "it is a change all the same");
    }

    #[test]
    fn a_file_written_anew_is_another_file() {
        let world = World::new();
        let before = world.spec(PLUGIN);
        world.write("main.py", "1");
        assert_eq!(world.changed(&before, PLUGIN), ["file main.py"]);
        let before = world.spec(PLUGIN);
        world.write("run.sh", "exit 1");
        world.write("beside.py", "1");
        assert_eq!(world.changed(&before, PLUGIN), ["file ./run.sh"]);
        fs::remove_file(world.dir.path().join("main.py")).unwrap();
        assert_eq!(world.changed(&before, PLUGIN), ["file ./run.sh", "file main.py"]);
    }
}
