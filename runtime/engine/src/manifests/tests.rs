//! What is kept of a manifest, for how long it holds, and what becomes of a file that is wrong.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::config::Environment;

const MANIFEST: &str = r#"{ "protocol":1,"name":"fp","version":"1.0.0",  "operations":[] }"#;

/// A folder with a script, its `plugin.toml`, and a state folder beside them.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        place.write("main.sh", "echo one");
        place.write("plugin.toml", "");
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn plugin(&self, lines: &str) -> PluginConfig {
        let text = format!("[plugins.fp]\ncommand = [\"sh\", \"main.sh\"]\n{lines}\n");
        let environment = Environment::of([("HOME", "/home/a"), ("PATH", "/usr/bin:/bin")]);
        let config = Config::parse(&text, &self.0.path().join("plugd.toml"), &environment).unwrap();
        config.plugins.into_values().next().unwrap()
    }

    fn kept(&self) -> PathBuf {
        self.0.path().join("state/manifests/fp.json")
    }

    /// The cache as the next start of plugd finds it.
    fn next_start(&self) -> ManifestCache {
        ManifestCache::open(&self.0.path().join("state"), Opening::Everything)
    }

    async fn known(&self) -> bool {
        let cache = self.next_start();
        let known = cache.known(&self.plugin("")).unwrap().is_some();
        // What was found under another stamp is kept again, and not while the test goes on.
        cache.flush().await;
        known
    }

    /// Describes the plugin, so that its manifest is kept.
    async fn describe(&self) {
        let cache = self.next_start();
        assert!(cache.known(&self.plugin("")).unwrap().is_none());
        note(&cache, &[]).await;
        assert!(self.kept().exists());
    }
}

async fn note(cache: &ManifestCache, quarantined: &[Quarantined]) {
    let manifest = RawValue::from_string(MANIFEST.to_owned()).unwrap();
    cache.note(&PluginName::new("fp").unwrap(), manifest.into(), quarantined, None);
    cache.flush().await;
}

#[tokio::test]
async fn a_manifest_is_known_at_the_next_start_as_it_was_written() {
    let place = Place::new();
    let cache = place.next_start();
    assert!(cache.known(&place.plugin("")).unwrap().is_none());
    let bad = Quarantined { name: "bad".to_owned(), reason: "input_schema: no".to_owned() };
    note(&cache, std::slice::from_ref(&bad)).await;

    let known = place.next_start().known(&place.plugin("")).unwrap().expect("it is kept");
    assert_eq!(known.manifest.get(), MANIFEST);
    let Checked::Before(quarantined) = known.checked else { panic!("it was checked") };
    assert_eq!(quarantined, [bad]);
    assert_eq!(fs::metadata(place.kept()).unwrap().permissions().mode() & 0o777, 0o600);
    let files = fs::read_dir(place.kept().parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "no temporary file is left");
}

#[tokio::test]
async fn a_change_of_any_file_it_is_made_from_makes_it_unknown() {
    for file in ["main.sh", "plugin.toml"] {
        let place = Place::new();
        place.describe().await;
        assert!(place.known().await);
        // As long as before, and within the same moment: the stamp may be the same.
        let before = fs::read_to_string(place.0.path().join(file)).unwrap();
        place.write(file, &before.replace("one", "two"));
        assert_eq!(place.known().await, !before.contains("one"), "{file}");
        place.write(file, "# longer than it was before\n");
        assert!(!place.known().await, "{file}");
        place.write(file, &before);
        assert!(place.known().await, "{file} is as it was");
        fs::remove_file(place.0.path().join(file)).unwrap();
        assert!(!place.known().await, "{file} is gone");
    }
}

#[tokio::test]
async fn a_file_that_was_only_touched_counts_as_it_was_and_its_new_stamp_is_kept() {
    let place = Place::new();
    place.describe().await;
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let script = fs::File::options().append(true).open(place.0.path().join("main.sh")).unwrap();
    script.set_modified(long_ago).unwrap();
    let before = fs::read(place.kept()).unwrap();
    let cache = place.next_start();
    assert!(cache.known(&place.plugin("")).unwrap().is_some());
    cache.flush().await;
    let kept = fs::read_to_string(place.kept()).unwrap();
    assert_ne!(kept.as_bytes(), before);
    assert!(kept.contains("\"mtime\":[1000000000,0]"), "{kept}");
}

#[tokio::test]
async fn another_command_or_environment_makes_it_unknown() {
    let place = Place::new();
    place.describe().await;
    for lines in ["env = { LOG = \"debug\" }", "pass_env = [\"LOG\"]", "cwd = \"/\""] {
        assert!(place.next_start().known(&place.plugin(lines)).unwrap().is_none(), "{lines}");
    }
    let mut plugin = place.plugin("");
    plugin.command.push("--fast".to_owned());
    assert!(place.next_start().known(&plugin).unwrap().is_none());
    assert!(place.known().await);
}

#[tokio::test]
async fn nothing_is_kept_of_a_run_whose_files_have_changed_since() {
    let place = Place::new();
    let cache = place.next_start();
    assert!(cache.known(&place.plugin("")).unwrap().is_none());
    place.write("main.sh", "echo another one, after the start");
    note(&cache, &[]).await;
    assert!(!place.kept().exists());
    // Once the configuration is taken up again, what is there is what runs.
    assert!(cache.known(&place.plugin("")).unwrap().is_none());
    note(&cache, &[]).await;
    assert!(place.known().await);
}

#[tokio::test]
async fn c134_what_cannot_be_read_is_told_once_and_then_made_anew() {
    let place = Place::new();
    place.describe().await;
    let good = fs::read_to_string(place.kept()).unwrap();
    let without_manifest = good.replace("\"manifest\"", "\"manifets\"");
    let older = good.replacen("\"format\":1", "\"format\":0", 1);
    for garbage in ["", "{", "null", "\u{0}\u{1}", r#"{"format":0}"#, &without_manifest, &older] {
        fs::write(place.kept(), garbage).unwrap();
        let cache = place.next_start();
        assert!(cache.known(&place.plugin("")).is_err(), "{garbage:?}");
        assert!(cache.known(&place.plugin("")).unwrap().is_none(), "{garbage:?} is told once");
        note(&cache, &[]).await;
        assert!(place.known().await, "{garbage:?} is replaced");
    }
    fs::remove_file(place.kept()).unwrap();
    fs::create_dir(place.kept()).unwrap();
    assert!(place.next_start().known(&place.plugin("")).is_err());
}

#[tokio::test]
async fn what_another_version_kept_is_made_anew_without_a_word() {
    let place = Place::new();
    place.describe().await;
    let own = format!("\"plugd\":\"{VERSION}\"");
    let other = fs::read_to_string(place.kept()).unwrap().replace(&own, "\"plugd\":\"0.0.1\"");
    fs::write(place.kept(), other).unwrap();
    assert!(!place.known().await);
}

#[tokio::test]
async fn an_engine_for_a_single_call_and_a_plugin_of_its_own_keep_nothing() {
    let place = Place::new();
    let cache = ManifestCache::open(&place.0.path().join("state"), Opening::OnDemand);
    assert!(cache.known(&place.plugin("")).unwrap().is_none());
    note(&cache, &[]).await;
    let cache = place.next_start();
    let embedded = PluginConfig { source: Source::Embedded, ..place.plugin("") };
    assert!(cache.known(&embedded).unwrap().is_none());
    note(&cache, &[]).await;
    assert!(!place.kept().exists());
}

#[tokio::test]
async fn an_engine_for_a_single_call_renews_what_is_kept_of_a_plugin_that_it_started() {
    let place = Place::new();
    let mut cache = ManifestCache::open(&place.0.path().join("state"), Opening::OnDemand);
    cache.look_behind(&place.plugin(""));
    note(&cache, &[]).await;
    assert!(!place.kept().exists(), "its files may have changed since it was started");
    // As if it had been opened when they were long written.
    cache.opened = UnixMillis(unix_now().0 + 1_000);
    cache.look_behind(&place.plugin(""));
    note(&cache, &[]).await;
    assert!(cache.recall(&place.plugin("")).is_some_and(|known| known.manifest.get() == MANIFEST));
    place.write("main.sh", "echo two");
    assert!(cache.recall(&place.plugin("")).is_none());
    assert!(cache.known(&place.plugin("")).unwrap().is_none(), "it looks only where it must");
}

#[tokio::test]
async fn a_plugin_that_is_gone_is_forgotten() {
    let place = Place::new();
    place.describe().await;
    let cache = place.next_start();
    assert!(cache.known(&place.plugin("")).unwrap().is_some());
    cache.forget(&PluginName::new("fp").unwrap());
    cache.flush().await;
    assert!(!place.kept().exists());
    assert!(cache.known(&place.plugin("")).unwrap().is_none());
}

/// Row D19.
#[tokio::test]
async fn d19_what_a_plugin_claimed_before_is_known_whatever_became_of_its_files() {
    let place = Place::new();
    let raw = |text: &str| -> Arc<RawValue> { RawValue::from_string(text.to_owned()).unwrap().into() };
    let agreed = Agreed { manifest: raw("{\"as\":\"before\"}"), since: UnixMillis(7), untold: false };
    let cache = place.next_start();
    cache.known(&place.plugin("")).unwrap();
    cache.note(&PluginName::new("fp").unwrap(), raw(MANIFEST), &[], Some(agreed.clone()));
    cache.flush().await;
    place.write("main.sh", "echo another one");

    let cache = place.next_start();
    let plugin = place.plugin("");
    assert!(cache.known(&plugin).unwrap().is_none());
    let (known, latest) = cache.changed_before(&plugin).unwrap();
    assert!(known == agreed && latest.get() == MANIFEST);
    assert_eq!(cache.agreed_before(&plugin).unwrap().get(), agreed.manifest.get());
    assert_eq!(cache.declared_before(&plugin).unwrap().get(), MANIFEST);
    let pinned = place.plugin(&format!("manifest_sha256 = \"{}\"", pin::digest(&latest)));
    assert!(cache.changed_before(&pinned).is_none(), "the pin agrees to it");
    let embedded = PluginConfig { source: Source::Embedded, ..plugin };
    assert!(cache.agreed_before(&embedded).is_none(), "it is another one's");
}

/// Row D19.
#[tokio::test]
async fn d19_a_manifest_that_is_not_the_pinned_one_is_not_known() {
    let place = Place::new();
    place.describe().await;
    let pinned = |digest: &str| place.plugin(&format!("manifest_sha256 = \"{digest}\""));
    let manifest = RawValue::from_string(MANIFEST.to_owned()).unwrap();
    let (own, other) = (pinned(&pin::digest(&manifest)), pinned(&"0".repeat(64)));
    let cache = place.next_start();
    assert!(cache.known(&own).unwrap().is_some() && cache.recall(&own).is_some());
    assert!(cache.known(&other).unwrap().is_none() && cache.recall(&other).is_none());
}

#[tokio::test]
async fn another_manifest_in_the_configuration_makes_what_is_kept_unknown() {
    let place = Place::new();
    place.describe().await;
    let with = place.plugin("manifest = { version = \"1\", operations = [] }");
    assert!(place.next_start().known(&with).unwrap().is_none());
}
