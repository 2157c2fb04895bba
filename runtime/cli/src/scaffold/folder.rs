//! A plugin's folder: made whole beside the place where it is to be, then moved there.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use plugd_engine::config::{OWN_NAME, OWN_NAME_TAKEN};
use plugd_protocol::PluginName;
use serde::Serialize;
use tempfile::TempDir;

use super::embedded::{self, Files, README};
use super::language::{Language, crate_name};
use crate::failure::Failure;

/// What was made, and what to do with it.
#[derive(Debug, Serialize)]
pub(crate) struct Made {
    /// The plugin's name; none where only an SDK was renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<PluginName>,
    /// The language.
    pub(crate) lang: &'static str,
    /// The folder, as it was said.
    pub(crate) folder: PathBuf,
    /// Its files, by their paths in it; the copy of the SDK is left out.
    pub(crate) files: Vec<String>,
    /// The copy of the SDK in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sdk: Option<&'static str>,
    /// The commands that come next.
    pub(crate) next: Vec<String>,
    /// What is not installed and will be needed.
    pub(crate) missing: Vec<&'static str>,
}

/// Makes a plugin of that name in a folder of the same name below `parent`.
///
/// # Errors
/// A [`Failure`] where there is something already, or nothing can be written; nothing is left then.
pub(crate) fn make(plugin: &PluginName, language: Language, parent: &Path) -> Result<Made, Failure> {
    if plugin.as_str() == OWN_NAME {
        return Err(Failure::unfit(OWN_NAME_TAKEN));
    }
    let folder = match parent == Path::new(".") {
        true => PathBuf::from(plugin.as_str()),
        false => parent.join(plugin.as_str()),
    };
    let is_taken = match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.symlink_metadata().is_ok(),
    };
    if is_taken {
        let folder = folder.display();
        return Err(Failure::unfit(format!(
            "{folder} is there already: give another name, or remove it first"
        )));
    }
    if !parent.is_dir() {
        let parent = parent.display();
        return Err(Failure::unfit(format!(
            "there is no folder {parent}: make it first, or name another --dir"
        )));
    }
    let own: Vec<(String, String)> = own_files(plugin, language);
    let written = beside(&folder).and_then(|room| {
        let made = room.path().join("made");
        fs::create_dir(&made)?;
        for (name, text) in &own {
            write(&made.join(name), text)?;
        }
        if let Some(sdk) = language.sdk_folder() {
            write_sdk(&made.join(sdk), language)?;
        }
        fs::rename(&made, &folder)
    });
    written.map_err(|error| unwritten(&folder, &error))?;
    Ok(Made {
        plugin: Some(plugin.clone()),
        lang: language.name(),
        files: own.into_iter().map(|(name, _)| name).collect(),
        sdk: language.sdk_folder(),
        next: next(&folder, plugin, language),
        missing: language.missing(),
        folder,
    })
}

/// Puts the SDK of this program in place of the copy in a plugin's folder.
///
/// # Errors
/// A [`Failure`] where there is no such copy, or it cannot be replaced.
pub(crate) fn renew_sdk(folder: &Path) -> Result<Made, Failure> {
    use clap::ValueEnum;
    let marked = |language: &Language| {
        language.sdk_folder().filter(|sdk| folder.join(sdk).join(NOTE).is_file()).map(|sdk| (*language, sdk))
    };
    let Some((language, sdk)) = Language::value_variants().iter().find_map(marked) else {
        let message = format!("{} has no copy of an SDK that `plugd new` made", folder.display());
        return Err(Failure::unfit(format!("{message}: name the folder of a plugin that has one")));
    };
    let place = folder.join(sdk);
    let replaced = beside(&place).and_then(|room| {
        let (new, old) = (room.path().join("new"), room.path().join("old"));
        write_sdk(&new, language)?;
        fs::rename(&place, &old)?;
        fs::rename(&new, &place).inspect_err(|_| drop(fs::rename(&old, &place)))
    });
    replaced.map_err(|error| unwritten(&place, &error))?;
    Ok(Made {
        plugin: None,
        lang: language.name(),
        folder: folder.to_owned(),
        files: Vec::new(),
        sdk: Some(sdk),
        next: vec![in_folder(folder, language.tests().1)],
        missing: language.missing(),
    })
}

fn unwritten(folder: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", folder.display());
    Failure::environment(message, "name a folder that can be written to with --dir")
}

/// Room on the same file system, which goes with whatever is left in it.
fn beside(folder: &Path) -> io::Result<TempDir> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    tempfile::Builder::new().prefix(".plugd-new-").tempdir_in(parent.unwrap_or(Path::new(".")))
}

/// The files of the plugin's own, by their names, as they are to be written.
fn own_files(plugin: &PluginName, language: Language) -> Vec<(String, String)> {
    let of_template = embedded::template(language).iter().map(|(name, text)| {
        let text = text.replace("PLUGIN_NAME", plugin.as_str());
        (file_name(name), text.replace("PLUGIN_CRATE", &crate_name(plugin.as_str())))
    });
    let mut all: Vec<(String, String)> = of_template.collect();
    all.push(("README.md".to_owned(), readme(plugin, language, &build_of(&all))));
    all.sort();
    all
}

/// The name that a file of a template gets: some would mean something where the templates lie.
fn file_name(template: &str) -> String {
    match template {
        "gitignore" => ".gitignore".to_owned(),
        name => name.strip_suffix(".in").unwrap_or(name).to_owned(),
    }
}

/// The command that builds it, as its plugin.toml says; empty where nothing is built.
fn build_of(files: &[(String, String)]) -> String {
    let toml = files.iter().find(|(name, _)| name == "plugin.toml").map(|(_, text)| text.as_str());
    let line = toml.into_iter().flat_map(str::lines).find_map(|line| line.strip_prefix("build = "));
    let words = line.and_then(|line| serde_json::from_str::<Vec<String>>(line).ok());
    words.map(|words| plugd_engine::command_line(&words)).unwrap_or_default()
}

fn readme(plugin: &PluginName, language: Language, build: &str) -> String {
    let (tests, test) = language.tests();
    let building = match build {
        "" => String::new(),
        build => format!(" (it runs `{build}`\nfor you)"),
    };
    let sdk = match language.sdk_folder() {
        Some(sdk) => format!(" |\n| `{sdk}` | a copy of plugd's SDK: `{NOTE}` in it says how to renew it"),
        None => " |\n| `json.awk` | what takes a JSON message apart".to_owned(),
    };
    let blanks = [
        ("{{language}}", language.title()),
        ("{{source}}", language.source()),
        ("{{tests}}", tests),
        ("{{test}}", test),
        ("{{building}}", &building),
        ("{{sdk}}", &sdk),
        ("{{name}}", plugin.as_str()),
    ];
    blanks.into_iter().fold(README.to_owned(), |text, (blank, said)| text.replace(blank, said))
}

/// The file in a copied SDK that says where it came from.
const NOTE: &str = "VENDORED.md";

fn write_sdk(folder: &Path, language: Language) -> io::Result<()> {
    let files: [Files; 2] = [embedded::sdk(language), embedded::licences()];
    for (name, text) in files.into_iter().flatten() {
        write(&folder.join(name), text)?;
    }
    let (title, version) = (language.title(), env!("CARGO_PKG_VERSION"));
    let note = format!(
        "# A copy of plugd's SDK for {title}\n\n\
         `plugd new` put it here, so that nothing has to be installed. It is the SDK that plugd {version} was built\n\
         with, its own tests left out. Change nothing in it: `plugd new --update-sdk FOLDER` of another version of\n\
         plugd, with the plugin's folder, replaces it as a whole.\n\n\
         Licence: MIT (`LICENSE-MIT`) or Apache-2.0 (`LICENSE-APACHE`), as you like.\n"
    );
    write(&folder.join(NOTE), &note)
}

/// Writes a file, its folders made; one that names its interpreter can be executed.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    match text.starts_with("#!") {
        true => {
            let mode = path.metadata()?.permissions().mode();
            // Whoever may read it may execute it.
            fs::set_permissions(path, fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))
        }
        false => Ok(()),
    }
}

/// What to type next, from the folder that this was typed in.
fn next(folder: &Path, plugin: &PluginName, language: Language) -> Vec<String> {
    let path = match folder.is_absolute() {
        true => folder.to_owned(),
        false => Path::new(".").join(folder),
    };
    let shown = plugd_engine::command_line(&[path.to_string_lossy().into_owned()]);
    let build = build_of(&own_files(plugin, language));
    let mut next = Vec::new();
    if !build.is_empty() {
        next.push(in_folder(folder, &build));
    }
    next.push(format!("plugd check {shown}"));
    next.push(format!("plugd call {shown} hello name=World"));
    next.push(in_folder(folder, language.tests().1));
    next.push(format!("plugd dev {shown}"));
    next
}

fn in_folder(folder: &Path, command: &str) -> String {
    let folder = plugd_engine::command_line(&[folder.to_string_lossy().into_owned()]);
    format!("(cd {folder} && {command})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        let plugin = PluginName::new("greet").unwrap();
        for language in Language::value_variants() {
            for (name, text) in own_files(&plugin, *language) {
                let is_blank =
                    |word: &&str| word.starts_with("PLUGIN_") || (word.contains("{{") && word.contains("}}"));
                let blank = text.split_whitespace().find(is_blank);
                assert_eq!(blank, None, "{} {name}", language.name());
            }
        }
    }

    #[test]
    fn what_is_there_is_left_alone_and_nothing_is_half_written() {
        let dir = tempfile::tempdir().unwrap();
        let plugin = PluginName::new("greet").unwrap();
        let entries = || fs::read_dir(dir.path()).unwrap().count();
        fs::create_dir(dir.path().join("greet")).unwrap();
        assert!(make(&plugin, Language::Sh, dir.path()).is_ok(), "an empty folder is none");
        let error = make(&plugin, Language::Python, dir.path()).unwrap_err();
        assert!(error.error.message.contains("greet is there already"), "{error:?}");
        assert_eq!((error.exit, entries()), (2, 1));
        assert!(!dir.path().join("greet/plugin.py").exists());
        let nowhere = make(&plugin, Language::Go, &dir.path().join("no/where")).unwrap_err();
        assert!(nowhere.error.message.contains("there is no folder"), "{nowhere:?}");
        assert_eq!(entries(), 1);
        fs::write(dir.path().join("file"), "").unwrap();
        let file = PluginName::new("file").unwrap();
        assert!(make(&file, Language::Go, dir.path()).is_err(), "a file is in the way");
    }

    #[test]
    fn a_copied_sdk_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let plugin = PluginName::new("greet").unwrap();
        let folder = make(&plugin, Language::Python, dir.path()).unwrap().folder;
        let (shipped, _) = embedded::sdk(Language::Python)[0];
        fs::write(folder.join("plugd_sdk").join(shipped), "changed").unwrap();
        fs::write(folder.join("plugd_sdk/stale.py"), "").unwrap();
        renew_sdk(&folder).unwrap();
        assert!(!folder.join("plugd_sdk/stale.py").exists());
        assert_ne!(fs::read_to_string(folder.join("plugd_sdk").join(shipped)).unwrap(), "changed");
        let error = renew_sdk(dir.path()).unwrap_err();
        assert!(error.error.message.contains("has no copy of an SDK"), "{error:?}");
    }
}
