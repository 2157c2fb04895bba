//! What is wrong with a configuration beyond its form, found without running anything.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use plugd_contract::Contract;
use plugd_protocol::PluginName;
use plugd_protocol::manifest::Manifest;
use plugd_supervisor::machine::{Graph, Needs};
use serde_json::value::to_raw_value;

use crate::config::{Config, PluginConfig};

/// Everything that would keep a configured plugin from running, as far as files tell.
///
/// What only a manifest says is looked at where it lies beside the program.
pub fn check(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    let mut needs = BTreeMap::new();
    for (name, plugin) in config.plugins.iter().filter(|(_, plugin)| plugin.enabled) {
        let manifest =
            plugin.manifest.as_ref().and_then(|manifest| Manifest::parse(&manifest.to_string()).ok());
        problems.extend(files(name, plugin));
        problems.extend(manifest.as_ref().and_then(|manifest| own_config(name, plugin, manifest)));
        let mut requires = manifest.as_ref().map(|manifest| manifest.requires.clone()).unwrap_or_default();
        requires.extend(plugin.requires.clone());
        let priority =
            plugin.priority.or_else(|| manifest.and_then(|manifest| manifest.priority)).unwrap_or(0);
        needs.insert(name.clone(), Needs { requires, priority });
    }
    let graph = Graph::new(needs);
    for name in config.plugins.keys() {
        problems.extend(graph.problems(name).iter().map(|problem| format!("plugin {name}: {problem}")));
    }
    problems
}

fn files(name: &PluginName, plugin: &PluginConfig) -> Option<String> {
    let (program, cwd) = (&plugin.program, &plugin.cwd);
    if !cwd.is_dir() {
        return Some(format!("plugin {name}: its folder {} does not exist", cwd.display()));
    }
    let Ok(metadata) = program.metadata() else {
        return Some(format!("plugin {name}: its program {} is not found", program.display()));
    };
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        let path: &Path = program;
        return Some(format!("plugin {name}: its program {} is no executable file", path.display()));
    }
    None
}

/// Whether the plugin's own configuration fits the schema it declares.
fn own_config(name: &PluginName, plugin: &PluginConfig, manifest: &Manifest) -> Option<String> {
    let schema = manifest.config_schema.as_deref()?;
    let contract = match Contract::compile(schema) {
        Ok(contract) => contract,
        Err(error) => return Some(format!("plugin {name}: config_schema: {error}")),
    };
    let filled = plugd_contract::fill_defaults(schema, &plugin.config);
    let written = to_raw_value(&filled).ok()?;
    let wrong = contract.check(&written).err()?;
    let told: Vec<String> =
        wrong.iter().map(|problem| format!("config.{}", crate::pipeline::in_words(problem))).collect();
    Some(format!("plugin {name}: {}", told.join("; ")))
}
