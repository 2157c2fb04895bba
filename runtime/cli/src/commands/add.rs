//! `plugd add`: adds a plugin, to be there from now on.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use plugd_engine::Opening;
use plugd_engine::config::{Config, folder_as_written};
use plugd_protocol::PluginName;
use plugd_protocol::control::{AddParams, PluginState};
use serde_json::{Map, Value};

use super::{PLUGIN_UNAVAILABLE, plugin_name};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::settings::fitting_name;

/// Add a plugin, or restore one that was removed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes an executable, a folder with a plugin.toml (which is read once, now), a program on PATH, or the \
name of a plugin that was removed. It is kept, and there again when plugd starts anew. Ends by showing \
what each operation is called by models. Exits 6 if it cannot be described, or an operation cannot \
be called; it stays added. Works with and without a daemon.

Examples:
  plugd add ./greet.py
  plugd add ./plugins/mailbox --name post --start eager
  plugd add python3 --name news --env LOG=debug -- news.py --fast
  plugd add ./greet.py --config-json '{\"greeting\":\"Hello\"}'
  plugd add mailbox                    one of the config file that `plugd remove mailbox` took away")]
pub(crate) struct Args {
    /// A path, a program on PATH, or the name of a plugin that was removed
    #[arg(value_name = "PATH|NAME")]
    program: String,
    /// What to call it; otherwise the file's stem or the folder's name
    #[arg(long, value_parser = plugin_name)]
    name: Option<PluginName>,
    /// With the first call, or with plugd itself
    #[arg(long, value_parser = ["lazy", "eager"])]
    start: Option<String>,
    /// A variable of its environment; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The folder it runs in; otherwise its own, for a program on PATH the current one
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Its own configuration, a JSON object
    #[arg(long, value_name = "JSON")]
    config_json: Option<String>,
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGUMENT")]
    args: Vec<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let params = params(args)?;
    let runtime = context.runtime(Opening::OnDemand).await?;
    let added = runtime.add(&params).await;
    let place = place(context);
    let shown = added.and_then(|report| {
        context.output.report(&report, |paint| render::added(&report, place.as_deref(), paint))?;
        let up = match report.plugin.state {
            PluginState::Failed | PluginState::Disabled | PluginState::Backoff => false,
            PluginState::Registered
            | PluginState::Starting
            | PluginState::Ready
            | PluginState::Busy
            | PluginState::Idle
            | PluginState::Blocked
            | PluginState::Stopping
            | PluginState::Stopped => true,
        };
        let callable = report.exported.iter().all(|exported| exported.unreachable.is_none());
        Ok(if up && callable { 0 } else { PLUGIN_UNAVAILABLE })
    });
    runtime.finish().await;
    shown
}

/// Which configuration a plugin goes to; `None` where the socket that was named says so.
fn place(context: &Context) -> Option<String> {
    if context.global.socket.is_some() {
        return None;
    }
    let found = Config::find(context.global.config.as_deref()).file;
    let found = found.map(|file| std::path::absolute(&file).unwrap_or(file));
    Some(match found {
        Some(file) => {
            let file = file.display();
            format!(
                "to the configuration {file}: the file stays as it is, `plugd list` shows what remembers it"
            )
        }
        None => "to your own configuration: no config file was found from here (--config FILE names one)"
            .to_owned(),
    })
}

/// What was meant: by its path, by the name of a program, or by the name of one that was removed.
fn params(args: Args) -> Result<AddParams, Failure> {
    let word = args.program.as_str();
    let bare = args.name.is_none()
        && args.start.is_none()
        && args.env.is_empty()
        && args.cwd.is_none()
        && args.config_json.is_none()
        && args.args.is_empty();
    let is_path = word.contains('/') || (PluginName::new(word).is_err() && Path::new(word).exists());
    let (stem, mut plugin) = if is_path {
        by_path(Path::new(word), &args.args)?
    } else if bare {
        let name = PluginName::new(word).map_err(|error| Failure::unfit(error.to_string()))?;
        return Ok(AddParams { name, plugin: Map::new() });
    } else {
        (word.to_owned(), table(word, &args.args, Path::new("."))?)
    };
    if let Some(cwd) = &args.cwd {
        plugin.insert("cwd".to_owned(), absolute(cwd)?.into());
    }
    if let Some(start) = args.start {
        plugin.insert("start".to_owned(), start.into());
    }
    if let Some(config) = &args.config_json {
        let config: Map<String, Value> = serde_json::from_str(config)
            .map_err(|error| Failure::usage(format!("--config-json: expected a JSON object: {error}")))?;
        plugin.insert("config".to_owned(), config.into());
    }
    if !args.env.is_empty() {
        let env = plugin.entry("env").or_insert_with(|| Map::new().into());
        for variable in &args.env {
            let Some((name, value)) = variable.split_once('=') else {
                return Err(Failure::usage(format!("--env {variable}: expected NAME=VALUE")));
            };
            if let Some(env) = env.as_object_mut() {
                env.insert(name.to_owned(), value.into());
            }
        }
    }
    let name = match args.name {
        Some(name) => name,
        None => PluginName::new(&stem).map_err(|error| {
            let fitting = fitting_name(&stem);
            Failure::unfit(format!("{error}: give it another one, such as --name {fitting}"))
        })?,
    };
    Ok(AddParams { name, plugin })
}

/// An executable, or a folder with a plugin.toml, under the name that its path suggests: what no plugin's
/// name may hold is replaced, for nobody has to keep it.
pub(crate) fn of_path(path: &Path, args: &[String]) -> Result<AddParams, Failure> {
    let (stem, plugin) = by_path(path, args)?;
    let name = PluginName::new(&fitting_name(&stem)).map_err(|error| Failure::unfit(error.to_string()))?;
    Ok(AddParams { name, plugin })
}

/// The name that a path suggests, and what its table says.
fn by_path(path: &Path, args: &[String]) -> Result<(String, Map<String, Value>), Failure> {
    let full = std::path::absolute(path)
        .and_then(|full| full.metadata().map(|metadata| (full, metadata)))
        .map_err(|error| Failure::unfit(format!("cannot use {}: {error}", path.display())));
    let (full, metadata) = full?;
    // `.` and `..` have no name of their own.
    let named =
        if full.file_name().is_some() { full.clone() } else { full.canonicalize().unwrap_or_default() };
    if metadata.is_dir() {
        if !args.is_empty() {
            return Err(Failure::unfit(format!(
                "{} is a folder: its plugin.toml says which arguments its program gets",
                path.display()
            )));
        }
        if !full.join("plugin.toml").exists() {
            return Err(Failure::unfit(format!(
                "{0} is a folder without a plugin.toml: name the program in it, or write one",
                path.display()
            )));
        }
        let name = named.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((name, folder_as_written(&full)?));
    }
    if named.file_name().is_some_and(|name| name == "plugin.toml") {
        return Err(Failure::unfit(format!(
            "{0} is no program: name the folder that it lies in",
            path.display()
        )));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        let shown = path.display();
        return Err(Failure::unfit(format!(
            "{shown} is not executable: `chmod +x {shown}`, or add it by its interpreter: \
             `plugd add python3 --name NAME -- {shown}`"
        )));
    }
    let stem = named.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = full.parent().unwrap_or(Path::new("/")).to_owned();
    Ok((stem, table(&full.to_string_lossy(), args, &folder)?))
}

fn table(program: &str, args: &[String], cwd: &Path) -> Result<Map<String, Value>, Failure> {
    let command: Vec<Value> =
        std::iter::once(program).chain(args.iter().map(String::as_str)).map(Value::from).collect();
    Ok(Map::from_iter([("command".to_owned(), command.into()), ("cwd".to_owned(), absolute(cwd)?.into())]))
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let full = std::path::absolute(path)
        .map_err(|error| Failure::unfit(format!("cannot use {}: {error}", path.display())))?;
    Ok(full.components().collect::<PathBuf>().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(words: &[&str]) -> Result<AddParams, Failure> {
        params(Line::parse_from([&["add"], words].concat()).args)
    }

    #[test]
    fn an_executable_is_added_under_its_stem_and_runs_in_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("greet.py");
        std::fs::write(&program, "").unwrap();
        let error = read(&[program.to_str().unwrap()]).unwrap_err().error.message;
        assert!(error.contains("greet.py is not executable: `chmod +x "), "{error}");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = program.to_str().unwrap();
        let folder = dir.path().to_str().unwrap();
        let added = read(&[path]).unwrap();
        assert_eq!(added.name.as_str(), "greet");
        assert_eq!(Value::from(added.plugin), json!({"command": [path], "cwd": folder}));
        let words = [
            path,
            "--name",
            "post",
            "--start",
            "eager",
            "--env",
            "A=b=c",
            "--config-json",
            "{\"x\":1}",
            "--",
            "-v",
        ];
        let added = read(&words).unwrap();
        assert_eq!(added.name.as_str(), "post");
        let expected = json!({
            "command": [path, "-v"], "cwd": folder, "start": "eager", "config": {"x": 1}, "env": {"A": "b=c"}
        });
        assert_eq!(Value::from(added.plugin), expected);
    }

    #[test]
    fn a_folder_is_added_as_its_file_says_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("mailbox");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.to_str().unwrap();
        let error = read(&[path]).unwrap_err().error.message;
        assert!(error.contains(" is a folder without a plugin.toml: "), "{error}");
        let text = "command = [\"./run\"]\nenv = { A = \"1\", B = false }\ntimeout = \"2s\"\n";
        std::fs::write(folder.join("plugin.toml"), text).unwrap();
        let error = read(&[folder.join("plugin.toml").to_str().unwrap()]).unwrap_err().error.message;
        assert!(error.ends_with("plugin.toml is no program: name the folder that it lies in"), "{error}");
        let added = read(&[path, "--env", "C=3"]).unwrap();
        assert_eq!(added.name.as_str(), "mailbox");
        let expected = json!({
            "command": ["./run"], "cwd": path, "timeout": "2s", "env": {"A": "1", "B": false, "C": "3"}
        });
        assert_eq!(Value::from(added.plugin), expected);
    }

    #[test]
    fn a_word_is_a_program_on_the_path_or_one_that_was_removed() {
        let removed = read(&["mailbox"]).unwrap();
        assert_eq!((removed.name.as_str(), removed.plugin.len()), ("mailbox", 0));
        let program = read(&["python3", "--name", "w", "--", "w.py"]).unwrap();
        assert_eq!(program.plugin["command"], json!(["python3", "w.py"]));
        let here = std::env::current_dir().unwrap();
        assert_eq!(program.plugin["cwd"], json!(here.to_str().unwrap()));
    }

    #[test]
    fn what_cannot_be_meant_is_said_at_once() {
        for (words, expected) in [
            (&["./no-such-file"][..], "cannot use ./no-such-file: "),
            (&["sh", "--env", "A"], "--env A: expected NAME=VALUE"),
            (&["sh", "--config-json", "[1]"], "--config-json: expected a JSON object"),
            (&["a b"], "\"a b\" is not a plugin name"),
        ] {
            let failure = read(words).unwrap_err();
            assert!(failure.error.message.starts_with(expected), "{words:?}: {}", failure.error.message);
            assert_eq!(failure.exit, 2, "{words:?}");
        }
    }
}
