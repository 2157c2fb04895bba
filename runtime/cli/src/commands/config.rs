//! `plugd config`: checks, shows and describes the config file.

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, invalid_config};
use crate::render;

/// Check, show or describe the config file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd config check
  plugd config check --config other/plugd.toml
  plugd config show                    defaults filled in, values of secrets masked
  plugd config schema > plugd.schema.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Read the file and everything it names; exits 2 with every problem
    #[command(after_help = "Examples:\n  plugd config check\n  plugd config check --output json")]
    Check,
    /// Show the configuration as it took effect
    #[command(after_help = "Examples:\n  plugd config show\n  plugd config show --output json | jq .plugins")]
    Show,
    /// Print the JSON Schema of plugd.toml, for editors
    #[command(after_help = "Examples:\n  plugd config schema > plugd.schema.json")]
    Schema,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    match args.action {
        Action::Check => check(context)?,
        Action::Show => show(&context.settings()?.config.show(), context)?,
        Action::Schema => show(&plugd_engine::config::schema(), context)?,
    }
    Ok(0)
}

fn check(context: &Context) -> Result<(), Failure> {
    let config = context.settings()?.config;
    let problems = plugd_engine::check(&config);
    if !problems.is_empty() {
        let hint =
            "what runs does not need these mended to go on; the plugins named will not run as they are";
        return Err(invalid_config(problems.join("\n")).hint(hint).into());
    }
    let file = config.file.as_deref().map(|file| file.display().to_string());
    let searched: Vec<String> = config.searched.iter().map(|file| file.display().to_string()).collect();
    let report = json!({
        "ok": true,
        "file": file,
        "searched": searched,
        "plugins": config.plugins.keys().collect::<Vec<_>>(),
        "skipped": config.skipped,
    });
    context.output.report(&report, |_| {
        let mut text = match &file {
            Some(file) => format!("{} is right", render::visible(file)),
            None => format!("there is no config file (looked for {})", searched.join(", ")),
        };
        let plugins = if config.plugins.len() == 1 { "plugin" } else { "plugins" };
        text.push_str(&format!(": {} {plugins}\n", config.plugins.len()));
        for skipped in &config.skipped {
            let line = format!("skipped {}: {}\n", skipped.path, skipped.reason);
            text.push_str(&render::visible(&line));
        }
        text
    })
}

fn show(document: &Value, context: &Context) -> Result<(), Failure> {
    context.output.report(document, |_| render::pretty(&document.to_string()))
}
