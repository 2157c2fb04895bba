//! `plugd new`: a plugin that works at once, to be changed.

use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::path::PathBuf;

use clap::ValueEnum;
use plugd_protocol::PluginName;

use super::plugin_name;
use crate::ask;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Paint, visible_line};
use crate::scaffold::{self, Language, Made};

/// Make a plugin that works at once, to be changed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes a folder of that name with a plugin of one operation, its tests, a page of the next three steps and a \
copy of the SDK, so that nothing but the language is to be installed (Rust gets the crates that the SDK \
uses when it is built first). Without --lang you are asked at a terminal.

Examples:
  plugd new greet --lang python
  plugd new greet --lang go --dir plugins        in plugins/greet
  plugd new --update-sdk ./greet                 another copy of the SDK, that of this plugd")]
pub(crate) struct Args {
    /// What to call it: letters, digits, - and _
    #[arg(value_parser = plugin_name, required_unless_present = "update_sdk")]
    name: Option<PluginName>,
    /// The language
    #[arg(long, short, value_enum, conflicts_with = "update_sdk")]
    lang: Option<Language>,
    /// The folder to make its folder in
    #[arg(long, value_name = "FOLDER", default_value = ".", conflicts_with = "update_sdk")]
    dir: PathBuf,
    /// Replace the copy of the SDK in a plugin's folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "name")]
    update_sdk: Option<PathBuf>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let made = match (&args.update_sdk, &args.name) {
        (Some(folder), _) => scaffold::renew_sdk(folder)?,
        (None, Some(name)) => {
            let language = match args.lang {
                Some(language) => language,
                None => asked()?,
            };
            scaffold::make(name, language, &args.dir)?
        }
        (None, None) => return Err(Failure::usage("expected a name for the plugin")),
    };
    context.output.report(&made, |paint| told(&made, paint))?;
    for program in &made.missing {
        context.output.note(&format!(
            "warning: {program} is not on PATH, and the plugin needs it: install it before you go on"
        ));
    }
    Ok(0)
}

/// The language that whoever sits at the terminal wants.
fn asked() -> Result<Language, Failure> {
    let names = Language::NAMES;
    if !ask::somebody_is_there() {
        return Err(Failure::usage(format!("in which language? expected --lang with one of {names}")));
    }
    let mut line = String::new();
    let typed = write!(std::io::stderr(), "In which language ({names})? ")
        .and_then(|()| std::io::stdin().lock().read_line(&mut line));
    match typed {
        Ok(count) if count > 0 => Language::from_str(line.trim(), true)
            .map_err(|_| Failure::usage(format!("{:?} is none of the languages: {names}", line.trim()))),
        _ => Err(Failure::usage(format!("no language was given: {names}"))),
    }
}

fn told(made: &Made, paint: Paint) -> String {
    let folder = visible_line(&made.folder.to_string_lossy()).into_owned();
    let mut out = match (&made.plugin, made.sdk) {
        (None, Some(sdk)) => {
            format!("{folder}/{sdk} is the SDK of plugd {} now\n", env!("CARGO_PKG_VERSION"))
        }
        _ => format!("{} is a plugin in {}\n", paint.bold(&folder), made.lang),
    };
    for file in &made.files {
        let _ = writeln!(out, "  {folder}/{file}");
    }
    if let (Some(_), Some(sdk)) = (&made.plugin, made.sdk) {
        let _ = writeln!(out, "  {folder}/{sdk}/  the SDK");
    }
    out.push_str("next:\n");
    for command in &made.next {
        let _ = writeln!(out, "  {}", visible_line(command));
    }
    out
}
