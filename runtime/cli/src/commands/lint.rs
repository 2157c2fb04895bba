//! `plugd lint`: what declarations could say better to models.

use std::path::Path;

use plugd_engine::Opening;
use plugd_engine::config::{Config, Environment, Found};
use plugd_protocol::control::{AddParams, LintParams};
use plugd_protocol::{OperationId, PluginName};

use super::add;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::runtime::Runtime;

/// The exit code where something could be said better.
const FOUND: u8 = 1;

/// What declarations could say better to models
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads what plugins declare as what it is, an instruction to a model, in English or Chinese. Nothing \
is called. Overlaps are looked for among all plugins that are enabled. Works with and without a \
daemon. Exits 0 if nothing was found, 1 otherwise. docs/lint.md has every rule.

Examples:
  plugd lint
  plugd lint archive greet  
  plugd lint ./greet.py                          an executable, or a folder with a plugin.toml
  plugd lint --output json")]
pub(crate) struct Args {
    /// Only these plugins; or paths of executables and folders, without any configuration
    #[arg(value_name = "PLUGIN|PATH")]
    targets: Vec<String>,
}

/// What a command looks at.
pub(super) enum Targets {
    /// Plugins of the configuration; none are all.
    Plugins(Vec<PluginName>),
    /// Executables and folders, each a plugin of its own.
    Paths(Vec<AddParams>),
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let (runtime, plugins) = open(&Targets::read(&args.targets, &[])?, context).await?;
    let shown = match runtime.lint(&LintParams { plugins }).await {
        Ok(report) => context
            .output
            .report(&report, |paint| render::lint(&report, paint))
            .map(|()| if report.findings.is_empty() { 0 } else { FOUND }),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown
}

impl Targets {
    /// A word with a slash, or one that is a file and no plugin's name, is a path; `args` are for the only one.
    pub(super) fn read(words: &[String], args: &[String]) -> Result<Targets, Failure> {
        let is_path = |word: &&String| {
            word.contains('/') || (PluginName::new(word).is_err() && Path::new(word.as_str()).exists())
        };
        let (paths, names): (Vec<&String>, Vec<&String>) = words.iter().partition(is_path);
        if !args.is_empty() && (paths.len() != 1 || !names.is_empty()) {
            return Err(Failure::usage(
                "arguments after -- are those of one executable: name its path alone",
            ));
        }
        if paths.is_empty() {
            let name = |word: &&String| {
                PluginName::new(word).map_err(|error| match OperationId::parse(word) {
                    Ok(id) => {
                        Failure::unfit(format!("{word} is an operation: name its plugin, {}", id.plugin))
                    }
                    Err(_) => Failure::unfit(error.to_string()),
                })
            };
            return Ok(Targets::Plugins(names.iter().map(name).collect::<Result<_, _>>()?));
        }
        if let Some(name) = names.first() {
            let message = format!("{name} is a plugin and {} a path: look at one kind at a time", paths[0]);
            return Err(Failure::usage(message));
        }
        let mut plugins: Vec<AddParams> = Vec::new();
        for path in paths {
            let plugin = add::of_path(Path::new(path), args)?;
            if plugins.iter().any(|known| known.name == plugin.name) {
                return Err(Failure::usage(format!("two paths are both called {}", plugin.name)));
            }
            plugins.push(plugin);
        }
        Ok(Targets::Paths(plugins))
    }
}

/// Where these are known, and their names there.
pub(super) async fn open(
    targets: &Targets,
    context: &Context,
) -> Result<(Runtime, Vec<PluginName>), Failure> {
    match targets {
        Targets::Plugins(names) => Ok((context.runtime(Opening::Everything).await?, names.clone())),
        Targets::Paths(given) => {
            context.start_log(None);
            let config = alone(given, &Environment::of_process())?;
            let runtime = Runtime::embedded(config, Opening::OnDemand).await?;
            Ok((runtime, given.iter().map(|plugin| plugin.name.clone()).collect()))
        }
    }
}

/// The same of one path.
pub(super) async fn open_path(path: &str, context: &Context) -> Result<(Runtime, PluginName), Failure> {
    let plugin = add::of_path(Path::new(path), &[])?;
    let name = plugin.name.clone();
    let (runtime, _) = open(&Targets::Paths(vec![plugin]), context).await?;
    Ok((runtime, name))
}

/// A configuration of these alone: what was added to one's own is none of them.
pub(super) fn alone(given: &[AddParams], environment: &Environment) -> Result<Config, Failure> {
    let nothing = Found { file: None, searched: Vec::new() };
    Ok(Config::open(&nothing, environment)?.with_given(given, environment)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_told_apart_and_not_mixed() {
        let read =
            |words: &[&str]| Targets::read(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &[]);
        assert!(matches!(read(&[]), Ok(Targets::Plugins(names)) if names.is_empty()));
        assert!(matches!(read(&["desk", "meteo"]), Ok(Targets::Plugins(names)) if names.len() == 2));
        for (words, expected) in [
            (&["./nowhere.py"][..], "cannot use ./nowhere.py"),
            (&["desk", "./x.py"], "desk is a plugin and ./x.py a path"),
            (&["lib.search"], "lib.search is an operation: name its plugin, lib"),
            (&["a b"], "\"a b\" is not a plugin name"),
        ] {
            let Err(failure) = read(words) else { panic!("{words:?}") };
            assert!(failure.error.message.starts_with(expected), "{}", failure.error.message);
        }
    }
}
