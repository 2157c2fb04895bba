//! The files that a plugin is made from, and which of them changed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More files than these are no plugin's sources; others are not looked at.
const FILES_MAX: usize = 10_000;

/// Folders that are made from sources, or hold those of others; so is all that is hidden.
const NO_SOURCES: &[&str] = &["target", "node_modules", "bin", "__pycache__"];

/// Where a plugin's sources lie.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    place: Place,
    /// Names that count as little as those that never do.
    pub(crate) ignore: Vec<String>,
}

#[derive(Debug, Clone)]
enum Place {
    /// All that lies in a folder and below it.
    Folder(PathBuf),
    /// A program, and what lies beside it under the same ending: its modules.
    Program(PathBuf),
}

/// How they are at one moment, by their paths from the plugin's folder on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Stamp>);

/// By what a file that was written anew is told from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
    mode: u32,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }
}

impl Sources {
    /// Those of a plugin's folder, or of an executable.
    pub(crate) fn of(path: &Path, ignore: Vec<String>) -> Sources {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let place = if path.is_dir() { Place::Folder(path) } else { Place::Program(path) };
        Sources { place, ignore }
    }

    /// How they are now. What cannot be read is not there.
    pub(crate) fn look(&self) -> Snapshot {
        let mut found = BTreeMap::new();
        match &self.place {
            Place::Program(program) => {
                let folder = program.parent().unwrap_or(Path::new("/"));
                let ending = program.extension();
                let is_beside =
                    |path: &Path| path == program || (ending.is_some() && path.extension() == ending);
                self.take(folder, folder, &mut found, &is_beside, &mut Vec::new());
            }
            Place::Folder(folder) => {
                let mut open = vec![folder.clone()];
                while let Some(dir) = open.pop().filter(|_| found.len() < FILES_MAX) {
                    self.take(&dir, folder, &mut found, &|_| true, &mut open);
                }
            }
        }
        Snapshot(found)
    }

    /// Takes the files of one folder that are wanted; the folders in it are handed back.
    fn take(
        &self,
        dir: &Path,
        folder: &Path,
        found: &mut BTreeMap<PathBuf, Stamp>,
        wanted: &dyn Fn(&Path) -> bool,
        folders: &mut Vec<PathBuf>,
    ) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if found.len() >= FILES_MAX || self.is_none_of_them(&entry.file_name().to_string_lossy()) {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if wanted(&path)
                && let Ok(metadata) = fs::metadata(&path)
                && metadata.is_file()
            {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                found.insert(name, Stamp::of(&metadata));
            }
        }
    }

    fn is_none_of_them(&self, name: &str) -> bool {
        let is_a_copy = name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'));
        let is_left_out = || NO_SOURCES.contains(&name) || self.ignore.iter().any(|ignored| ignored == name);
        name.starts_with('.') || is_a_copy || is_left_out()
    }
}

impl Snapshot {
    /// The files that came, went or were written since then.
    pub(crate) fn changed_since(&self, before: &Snapshot) -> Vec<PathBuf> {
        let written = self.0.iter().filter(|(name, stamp)| before.0.get(*name) != Some(*stamp));
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        let mut changed: Vec<PathBuf> = written.map(|(name, _)| name).chain(gone).cloned().collect();
        changed.sort();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sources: &Sources) -> Vec<String> {
        let found = sources.look().changed_since(&Snapshot::default());
        found.into_iter().map(|name| name.display().to_string()).collect()
    }

    fn write(dir: &Path, name: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }

    #[test]
    fn what_is_made_hidden_or_a_copy_is_no_source() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "plugin.toml",
            "src/main.rs",
            "src/deep/er.rs",
            "target/debug/x",
            "node_modules/a/b.js",
            "bin/greet",
            "__pycache__/a.pyc",
            ".git/HEAD",
            ".env",
            "plugin.toml~",
            "#plugin.toml#",
            "notes.db",
            "data/1",
        ] {
            write(dir.path(), name);
        }
        let sources = Sources::of(dir.path(), vec!["notes.db".to_owned(), "data".to_owned()]);
        assert_eq!(names(&sources), ["plugin.toml", "src/deep/er.rs", "src/main.rs"]);
    }

    #[test]
    fn a_program_goes_with_what_lies_beside_it_under_its_ending() {
        let dir = tempfile::tempdir().unwrap();
        ["greet.py", "words.py", "notes.txt", "more/deep.py"]
            .into_iter()
            .for_each(|name| write(dir.path(), name));
        assert_eq!(names(&Sources::of(&dir.path().join("greet.py"), Vec::new())), ["greet.py", "words.py"]);
        write(dir.path(), "greet");
        assert_eq!(names(&Sources::of(&dir.path().join("greet"), Vec::new())), ["greet"]);
    }

    #[test]
    fn what_came_went_or_was_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        ["a", "b", "c"].into_iter().for_each(|name| write(dir.path(), name));
        let sources = Sources::of(dir.path(), Vec::new());
        let before = sources.look();
        assert_eq!(sources.look(), before);
        fs::write(dir.path().join("a"), "other").unwrap();
        fs::remove_file(dir.path().join("b")).unwrap();
        write(dir.path(), "d/e");
        let changed = sources.look().changed_since(&before);
        assert_eq!(changed, ["a", "b", "d/e"].map(PathBuf::from));
    }
}
