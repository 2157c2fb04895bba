//! A cgroup leaf for each run, where this process may make one.
//!
//! Nothing leaves a cgroup by leaving its session or its group, so whatever a plugin started ends
//! with it. Leaves are `<own cgroup>/plugd-<pid>/<plugin>.<generation>`; further spawners of one
//! process have `plugd-<pid>.2` and so on. Only version 2 will do.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::limits::{CgroupLimits, Held};
use super::procfs;

/// The folders of all that run plugins here begin like this.
const PREFIX: &str = "plugd-";

/// Where this process goes when its own cgroup must be empty, beside the leaves.
const DAEMON: &str = "daemon";

/// Folders of one number; more than a process has spawners.
const BASES_MAX: u32 = 100;

/// So deep are folders removed that a plugin made in its leaf.
const DEPTH_MAX: usize = 8;

/// The cgroup of this process, and what can be done there.
#[derive(Debug)]
pub(super) struct Cgroups {
    own: PathBuf,
    base: PathBuf,
    /// Whether this process has moved into the base, to make room for controllers.
    moved: bool,
    /// Each controller asked for, or why there is none.
    controllers: BTreeMap<&'static str, Result<(), String>>,
}

/// The cgroup of one run.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    path: PathBuf,
}

impl Cgroups {
    /// Finds out whether leaves can be made.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn find() -> Result<Cgroups, String> {
        let unreadable = |error: io::Error| format!("/proc cannot be read: {error}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(unreadable)?;
        let member = fs::read_to_string("/proc/self/cgroup").map_err(unreadable)?;
        let own = own_folder(&mounts, &member).filter(|own| own.join("cgroup.procs").exists());
        let own = own.ok_or("there is no cgroup of version 2 here")?;
        remove_left_over(&own);
        let base =
            new_base(&own).map_err(|error| format!("no cgroup can be made in {}: {error}", own.display()))?;
        Ok(Cgroups { own, base, moved: false, controllers: BTreeMap::new() })
    }

    /// Makes the leaf of a run, with its limits as far as they can be had.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn leaf(&mut self, name: &str, limits: CgroupLimits, held: &mut Held) -> io::Result<Leaf> {
        // Somebody may have removed the base while it was empty.
        make(&self.base)?;
        let leaf = Leaf { path: self.base.join(name) };
        // One that exists is somebody else's, and would be killed with him.
        fs::create_dir(&leaf.path)?;
        held.holds("cgroup", leaf.path.display().to_string());
        self.limit(&leaf, ("memory", "memory_max", "memory.max"), limits.memory_max, held);
        self.limit(&leaf, ("pids", "pids_max", "pids.max"), limits.pids_max, held);
        if limits.memory_max.is_some() {
            // Half a plugin is worse than none. Where that cannot be set, the kernel picks one process.
            let _one_by_one = fs::write(leaf.path.join("memory.oom.group"), "1");
        }
        Ok(leaf)
    }

    fn limit(
        &mut self,
        leaf: &Leaf,
        (controller, key, file): (&'static str, &str, &str),
        most: Option<u64>,
        held: &mut Held,
    ) {
        let Some(most) = most else {
            return;
        };
        let written = self.controller(controller).and_then(|()| {
            fs::write(leaf.path.join(file), most.to_string()).map_err(|error| format!("{file}: {error}"))
        });
        match written {
            Ok(()) => held.holds(key, most.to_string()),
            Err(reason) => held.lacks(key, reason),
        }
    }

    /// Turns a controller on for the leaves; what came of it the first time holds from then on.
    fn controller(&mut self, name: &'static str) -> Result<(), String> {
        if let Some(known) = self.controllers.get(name) {
            return known.clone();
        }
        let outcome = self.enable(name);
        self.controllers.insert(name, outcome.clone());
        outcome
    }

    fn enable(&mut self, name: &str) -> Result<(), String> {
        let own = self.own.display().to_string();
        let available = fs::read_to_string(self.own.join("cgroup.controllers")).unwrap_or_default();
        if !available.split_ascii_whitespace().any(|controller| controller == name) {
            return Err(format!("the {name} controller is not available in {own}"));
        }
        let mut outcome = self.control(&self.own, &format!("+{name}"));
        // A cgroup hands controllers down only while no process is in it. We can leave; others we
        // leave alone.
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) && !self.moved {
            outcome = self.leave().and_then(|()| self.control(&self.own, &format!("+{name}")));
            if outcome.is_err() {
                self.come_back();
            }
        }
        outcome
            .and_then(|()| self.control(&self.base, &format!("+{name}")))
            .map_err(|error| format!("the {name} controller cannot be handed down from {own}: {error}"))
    }

    fn control(&self, folder: &Path, change: &str) -> io::Result<()> {
        fs::write(folder.join("cgroup.subtree_control"), change)
    }

    fn leave(&mut self) -> io::Result<()> {
        let aside = self.base.join(DAEMON);
        make(&aside)?;
        join(&aside)?;
        self.moved = true;
        Ok(())
    }

    fn come_back(&mut self) {
        if self.moved && join(&self.own).is_ok() {
            self.moved = false;
            let _removed = fs::remove_dir(self.base.join(DAEMON));
        }
    }

    /// Undoes what was done: no folder of ours stays where that is possible.
    pub(super) fn close(&mut self) {
        for (name, outcome) in std::mem::take(&mut self.controllers) {
            if outcome.is_ok() && self.moved {
                // Refused where another of us needs it: then it stays, and so do we.
                let off = format!("-{name}");
                let _refused = self.control(&self.base, &off).and_then(|()| self.control(&self.own, &off));
            }
        }
        self.come_back();
        // What cannot be removed now the next start removes.
        let _busy = fs::remove_dir(&self.base);
    }
}

impl Leaf {
    /// The leaf that a dead owner left, where it is still there.
    pub(super) fn left(path: &Path) -> Option<Leaf> {
        // The path stands in a file: nothing is killed or removed but a cgroup of our making.
        let base = path.parent()?.file_name()?.to_str()?;
        let ours = base.starts_with(PREFIX) && path.join("cgroup.procs").exists();
        ours.then(|| Leaf { path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) {
        if fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // Before Linux 5.14: one by one, and whoever was born meanwhile the next time.
        let members = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines().filter_map(|line| line.parse::<u32>().ok()) {
            procfs::kill_where(pid, || true);
        }
    }

    /// Whether the kernel killed something in it for want of memory.
    pub(super) fn out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        events.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
    }

    /// Removes the folder that a dead owner kept his leaves in, once the last is gone.
    pub(super) fn remove_base(&self) {
        let _not_empty = self.path.parent().map(fs::remove_dir);
    }

    /// Removes it; says whether it is gone, which it cannot be while anybody lives in it.
    pub(super) fn remove(&self) -> bool {
        remove_tree(&self.path, DEPTH_MAX)
    }
}

/// Removes a cgroup with those below it, and says whether it is gone.
fn remove_tree(path: &Path, depth: usize) -> bool {
    match fs::remove_dir(path) {
        Ok(()) => return true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
        Err(_) if depth == 0 => return false,
        Err(_) => {}
    }
    let folders = fs::read_dir(path).into_iter().flatten().flatten();
    for folder in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_tree(&folder.path(), depth - 1);
    }
    fs::remove_dir(path).is_ok()
}

/// Moves this process.
fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), "0")
}

/// A folder that is ours alone: another spawner may be in this process, or one of our number in
/// another pid namespace.
fn new_base(own: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut base = own.join(format!("{PREFIX}{pid}"));
    for count in 2..BASES_MAX {
        match fs::create_dir(&base) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                base = own.join(format!("{PREFIX}{pid}.{count}"));
            }
            made => return made.map(|()| base),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Removes empty folders of those who are gone. Whoever lives in one is left alone: he may belong to
/// somebody whose processes we do not see.
fn remove_left_over(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok());
        if let Some(pid) = pid
            && procfs::Identity::of(pid).is_none()
        {
            let _busy = remove_tree(&entry.path(), 2);
        }
    }
}

/// The folder of this process's own cgroup, from `mountinfo` and `cgroup` in /proc/self.
fn own_folder(mounts: &str, member: &str) -> Option<PathBuf> {
    let path = Path::new(member.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        // 41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        // What lies outside of the part that is mounted cannot be reached.
        let below = path.strip_prefix(unescaped(root)).ok()?;
        // By components: joining nothing would leave a slash at the end.
        Some(Path::new(&unescaped(point)).join(below).components().collect())
    })
}

/// `mountinfo` writes blanks as `\040`, and the like.
fn unescaped(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(mounts: &str, member: &str) -> Option<String> {
        own_folder(mounts, member).map(|own| own.display().to_string())
    }

    #[test]
    fn the_own_cgroup_is_found_wherever_it_is_mounted() {
        let unified = "26 23 0:24 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let service = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/plugd.service\n";
        let expected = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/plugd.service";
        assert_eq!(own(unified, service).as_deref(), Some(expected));
        let both = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                    41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own(both, "4:memory:/jobs\n0::/\n").as_deref(), Some("/sys/fs/cgroup/unified"));
        let part = "50 41 0:24 /box /my\\040cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(own(part, "0::/box/inner\n").as_deref(), Some("/my cgroup/inner"));
        assert_eq!(own(part, "0::/elsewhere\n"), None);
        assert_eq!(own(unified, "4:memory:/jobs\n"), None);
        assert_eq!(own("", service), None);
    }

    /// A folder that looks as a delegated cgroup does; the kernel's part is missing.
    fn delegated(controllers: &str) -> (tempfile::TempDir, Cgroups) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        let own = folder.path().to_owned();
        let base = new_base(&own).unwrap();
        (folder, Cgroups { own, base, moved: false, controllers: BTreeMap::new() })
    }

    #[test]
    fn limits_are_written_where_their_controllers_are_handed_down() {
        let (folder, mut cgroups) = delegated("cpu memory pids\n");
        let limits = CgroupLimits { memory_max: Some(1 << 20), pids_max: Some(9) };
        let mut held = Held::default();
        let leaf = cgroups.leaf("probe.1", limits, &mut held).unwrap();
        let written = |file: &str| fs::read_to_string(leaf.path().join(file)).unwrap();
        assert_eq!(["memory.max", "memory.oom.group", "pids.max"].map(written), ["1048576", "1", "9"]);
        let handed = fs::read_to_string(folder.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(handed, "+pids", "each is handed down by itself, the last one last");
        assert_eq!((held.enforced["memory_max"].as_str(), held.not_enforced.len()), ("1048576", 0));
        assert!(cgroups.leaf("probe.1", limits, &mut held).is_err(), "two runs would share a leaf");
    }

    #[test]
    fn a_missing_controller_is_said() {
        let (folder, mut cgroups) = delegated("cpu\n");
        let limits = CgroupLimits { memory_max: Some(1 << 20), pids_max: None };
        let mut held = Held::default();
        cgroups.leaf("probe.1", limits, &mut held).unwrap();
        let reason = format!("the memory controller is not available in {}", folder.path().display());
        assert_eq!(held.not_enforced["memory_max"], reason);
        assert!(held.enforced.contains_key("cgroup") && !held.not_enforced.contains_key("pids_max"));
    }

    #[test]
    fn a_kill_for_want_of_memory_is_seen() {
        let (_folder, mut cgroups) = delegated("");
        let leaf = cgroups.leaf("probe.1", CgroupLimits::default(), &mut Held::default()).unwrap();
        assert!(!leaf.out_of_memory());
        for (count, seen) in [(0, false), (2, true)] {
            let events = format!("low 0\nhigh 0\nmax 7\noom 3\noom_kill {count}\noom_group_kill 0\n");
            fs::write(leaf.path().join("memory.events"), events).unwrap();
            assert_eq!(leaf.out_of_memory(), seen);
        }
    }

    #[test]
    fn a_record_leads_to_nothing_but_a_cgroup_of_ours() {
        let (folder, mut cgroups) = delegated("");
        let leaf = cgroups.leaf("probe.1", CgroupLimits::default(), &mut Held::default()).unwrap();
        assert!(Leaf::left(leaf.path()).is_none(), "it is a folder like any other");
        fs::write(leaf.path().join("cgroup.procs"), "").unwrap();
        assert!(Leaf::left(leaf.path()).is_some());
        let service = folder.path().join("ssh.service");
        fs::create_dir(&service).unwrap();
        fs::write(service.join("cgroup.procs"), "").unwrap();
        assert!(Leaf::left(&service).is_none(), "somebody else's");
    }
}
