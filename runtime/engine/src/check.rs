//! What is wrong with a configuration beyond its form, found without running anything.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plugd_contract::Contract;
use plugd_protocol::PluginName;
use plugd_protocol::manifest::{Manifest, Requirement};
use plugd_supervisor::driver::{command_line, not_on_path};
use plugd_supervisor::machine::{Graph, Needs, Problem};
use serde_json::value::to_raw_value;

use crate::config::{Config, PluginConfig};
use crate::manifests;
use crate::registry::Snapshot;

/// Everything that would keep a configured plugin from running, as far as files tell.
///
/// What only a manifest says is looked at where it lies beside the program, or is remembered from
/// a run of just these files.
pub fn check(config: &Config) -> Vec<String> {
    let found = problems(config, &manifests::remembered(config));
    let of_plugins = found.into_iter().map(|(plugin, problem)| format!("plugin {plugin}: {problem}"));
    let broken = config.broken.iter().flat_map(|broken| &broken.problems).map(ToString::to_string);
    no_folder(&config.state_dir).into_iter().chain(broken).chain(of_plugins).collect()
}

/// What is wrong with the state folder: it, or what it would be made in, is no folder.
fn no_folder(state_dir: &Path) -> Option<String> {
    let there = state_dir.ancestors().find(|path| path.exists())?;
    let message = || {
        format!(
            "the state folder {} cannot be made: {} is a file; name a folder as state_dir under [daemon]",
            state_dir.display(),
            there.display()
        )
    };
    (!there.is_dir()).then(message)
}

/// The same with the manifests that are known, each problem with the plugin it is one of.
pub(crate) fn problems(config: &Config, known: &Snapshot) -> Vec<(PluginName, String)> {
    let mut problems = Vec::new();
    let mut needs = BTreeMap::new();
    let mut versions = BTreeMap::new();
    for (name, plugin) in config.plugins.iter().filter(|(_, plugin)| plugin.enabled) {
        let beside =
            plugin.manifest.as_ref().and_then(|manifest| Manifest::parse(&manifest.to_string()).ok());
        let manifest = known.plugin(name).map(|known| &known.manifest).or(beside.as_ref());
        problems.extend(files(plugin).map(|problem| (name.clone(), problem)));
        let own = manifest.and_then(|manifest| own_config(plugin, manifest));
        problems.extend(own.map(|problem| (name.clone(), problem)));
        let mut requires = manifest.map(|manifest| manifest.requires.clone()).unwrap_or_default();
        requires.extend(plugin.requires.clone());
        versions.extend(manifest.map(|manifest| (name.clone(), manifest.semver())));
        let priority =
            plugin.priority.or_else(|| manifest.and_then(|manifest| manifest.priority)).unwrap_or(0);
        needs.insert(name.clone(), Needs { requires, priority });
    }
    for (name, needs) in &needs {
        let unfit = needs.requires.iter().filter_map(|(to, wanted)| unfit(to, wanted, versions.get(to)?));
        problems.extend(unfit.map(|problem| (name.clone(), problem.to_string())));
    }
    let graph = Graph::new(needs);
    for name in config.plugins.keys() {
        problems.extend(graph.problems(name).iter().map(|problem| (name.clone(), problem.to_string())));
    }
    problems
}

/// What is wrong with the version of a plugin that is required, where it is known.
fn unfit(name: &PluginName, requirement: &Requirement, found: &Option<semver::Version>) -> Option<Problem> {
    let wanted = &requirement.version;
    let fits = wanted.comparators.is_empty() || found.as_ref().is_some_and(|found| wanted.matches(found));
    let (wanted, found) = (wanted.clone(), found.clone());
    (!fits && !requirement.optional).then(|| Problem::VersionMismatch { name: name.clone(), wanted, found })
}

fn files(plugin: &PluginConfig) -> Option<String> {
    let (program, cwd) = (&plugin.program, &plugin.cwd);
    if !cwd.is_dir() {
        return Some(format!("its folder {} does not exist", cwd.display()));
    }
    if let Some(problem) = not_on_path(program, cwd) {
        return Some(problem);
    }
    // One that was not found on PATH is only a name yet.
    let Ok(metadata) = cwd.join(program).metadata() else {
        let build = Some(&plugin.dev.build).filter(|build| !build.is_empty());
        let build = build.map(|build| format!("; build it first: {}", command_line(build)));
        return Some(format!("its program {} is not found{}", program.display(), build.unwrap_or_default()));
    };
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        let path: &Path = program;
        return Some(format!("its program {} is no executable file", path.display()));
    }
    None
}

/// Whether the plugin's own configuration fits the schema it declares.
fn own_config(plugin: &PluginConfig, manifest: &Manifest) -> Option<String> {
    let schema = manifest.config_schema.as_deref()?;
    let contract = match Contract::compile(schema) {
        Ok(contract) => contract,
        Err(error) => return Some(format!("config_schema: {error}")),
    };
    let filled = plugd_contract::fill_defaults(schema, &plugin.config);
    let written = to_raw_value(&filled).ok()?;
    let wrong = contract.check(&written).err()?;
    let told: Vec<String> =
        wrong.iter().map(|problem| format!("config.{}", crate::call::in_words(problem))).collect();
    Some(told.join("; "))
}
