//! What there is and what is wrong with it: manifests that are remembered, `status`, `doctor`, `graph`.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::Value;

/// `[plugins.p000]` and so on, all of one folder.
fn many(sandbox: &Sandbox, count: usize) -> String {
    sandbox.fixture("bare.sh", "plugins/fp/main.sh");
    (0..count).fold(String::new(), |mut tables, number| {
        let _ =
            writeln!(tables, "[plugins.p{number:03}]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/fp\"");
        tables
    })
}

/// How many processes of these plugins there ever were.
fn spawned(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/fp/spawned").lines().count()
}

fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    value[what].as_str().unwrap_or_else(|| panic!("no text {what}: {value:#}"))
}

/// The findings about a plugin, or about plugd itself.
fn findings<'a>(report: &'a Value, plugin: Option<&str>) -> Vec<&'a Value> {
    let all = report["findings"].as_array().unwrap_or_else(|| panic!("no findings: {report:#}"));
    all.iter().filter(|finding| finding["plugin"].as_str() == plugin).collect()
}

#[track_caller]
fn assert_found(report: &Value, plugin: Option<&str>, severity: &str, parts: &[&str]) {
    let found = findings(report, plugin);
    let fits = |finding: &&&Value| {
        let text = finding.to_string();
        finding["severity"] == severity && parts.iter().all(|part| text.contains(part))
    };
    assert!(found.iter().any(|finding| fits(&finding)), "{severity} {parts:?}: {report:#}");
}

#[test]
fn five_hundred_plugins_are_listed_and_described_with_none_running() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&many(&sandbox, 1));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["list"])["plugins"][0]["operations"].as_array().map(Vec::len), Some(2));
    daemon.stop();
    // All are made from the same files by the same command: one that was described tells of all.
    let one = sandbox.read("state/manifests/p000.json");
    assert!(!one.is_empty(), "its manifest is kept");
    for number in 1..500 {
        sandbox.write(&format!("state/manifests/p{number:03}.json"), &one);
    }
    sandbox.configure(&many(&sandbox, 500));
    let before = spawned(&sandbox);

    let daemon = sandbox.serve();
    let began = Instant::now();
    let list = daemon.json(&["list"]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let plugins = list["plugins"].as_array().expect("a list");
    assert_eq!(plugins.len(), 500);
    for plugin in plugins {
        assert_eq!(plugin["operations"].as_array().map(Vec::len), Some(2), "{plugin:#}");
        assert_eq!(plugin["version"], "1.0.0", "{plugin:#}");
    }
    let description = daemon.json(&["describe", "p321.pid"]);
    assert_eq!(description["operations"][0]["name"], "pid", "{description:#}");
    let status = daemon.json(&["status"]);
    for plugin in status["plugins"].as_array().expect("a list") {
        assert!(plugin["pid"].is_null() && plugin["generation"] == 0, "{plugin:#}");
    }
    assert_eq!(spawned(&sandbox), before, "nothing was started to tell what there is");
    assert_eq!(daemon.json(&["call", "p499.pid"])["status"], "ok");
    assert_eq!(spawned(&sandbox), before + 1);
    daemon.stop();
}

#[test]
fn what_is_described_once_is_known_at_the_next_start_until_its_program_changes() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&many(&sandbox, 20));
    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    daemon.stop();
    assert_eq!(spawned(&sandbox), 20);

    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["list"])["plugins"][7]["operations"].as_array().map(Vec::len), Some(2));
    daemon.stop();
    assert_eq!(spawned(&sandbox), 20, "all were known");

    let script = sandbox.read("plugins/fp/main.sh").replace("crash", "break");
    sandbox.program("plugins/fp/main.sh", &script);
    let daemon = sandbox.serve();
    let list = daemon.json(&["list"]);
    assert_eq!(list["plugins"][7]["operations"][1]["id"], "p007.break", "{list:#}");
    daemon.stop();
    assert_eq!(spawned(&sandbox), 40, "all were described afresh");
}

#[test]
fn c134_a_description_that_cannot_be_read_is_ignored_with_one_warning_and_made_anew() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&many(&sandbox, 3));
    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    daemon.stop();
    let good = sandbox.read("state/manifests/p002.json");
    let older = good.replacen("\"format\":1", "\"format\":0", 1);
    assert_ne!(older, good, "the form of the file changed");
    sandbox.write("state/manifests/p000.json", "\u{0}\u{1} no JSON");
    sandbox.write("state/manifests/p001.json", "");
    sandbox.write("state/manifests/p002.json", &older);

    let daemon = sandbox.serve();
    let list = daemon.json(&["list"]);
    for plugin in list["plugins"].as_array().expect("a list") {
        assert_eq!(plugin["operations"].as_array().map(Vec::len), Some(2), "{plugin:#}");
    }
    for plugin in ["p000", "p001", "p002"] {
        assert_eq!(daemon.json(&["start", plugin])["plugins"][0]["state"], "ready");
    }
    daemon.stop();
    let log = sandbox.read("daemon.log");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("kept manifests")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    for plugin in ["p000", "p001", "p002"] {
        let kept = sandbox.read(&format!("state/manifests/{plugin}.json"));
        let kept: Value = serde_json::from_str(&kept).expect("it is made anew");
        assert_eq!((&kept["format"], &kept["manifest"]["version"]), (&1.into(), &"1.0.0".into()), "{kept:#}");
    }
}

#[test]
fn a_schema_that_is_not_offered_stays_so_when_it_is_only_remembered() {
    let sandbox = Sandbox::new("");
    let table = sandbox
        .python("fp", "OPERATIONS = [{'name': 'bad', 'input_schema': {'type': 'objct'}}, OPERATIONS[0]]");
    sandbox.configure(&table);
    for start in ["described", "remembered"] {
        let daemon = sandbox.serve();
        let list = daemon.json(&["list"]);
        let plugin = &list["plugins"][0];
        assert_eq!(plugin["operations"].as_array().map(Vec::len), Some(1), "{start}: {list:#}");
        assert!(text(&plugin["quarantined"][0], "reason").starts_with("input_schema: "), "{start}: {list:#}");
        daemon.plugd(&["call", "fp.bad"]).expect(4);
        assert_found(&daemon.json(&["doctor"]), Some("fp"), "warning", &["fp.bad is not offered"]);
        daemon.stop();
    }
    assert_eq!(sandbox.json(&["call", "fp.echo", "a=b"])["data"]["a"], "b");
}

#[test]
fn l6_a_plugin_whose_init_fails_is_disabled_alone() {
    let sandbox = Sandbox::new("");
    let mut tables = String::new();
    for name in ["one", "two", "three", "four", "five"] {
        tables += &format!("{}start = \"eager\"\n", sandbox.shell(name));
    }
    sandbox.write("plugins/three/refuses", "no ledger\n");
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    for name in ["one", "two", "four", "five"] {
        daemon.wait_for_state(name, "ready");
    }
    let disabled = daemon.wait_for_state("three", "disabled");
    assert!(text(&disabled, "reason").contains("no ledger"), "{disabled:#}");
    daemon.stop();
}

#[test]
fn l7_which_plugins_are_disabled_and_why_can_be_asked_right_after_the_start() {
    let sandbox = Sandbox::new("");
    let good = sandbox.shell("good");
    let refuses = format!("{}start = \"eager\"\n", sandbox.shell("refuses"));
    sandbox.write("plugins/refuses/refuses", "no ledger\n");
    let forbidden = format!("{}enabled = false\n", sandbox.shell("forbidden"));
    let itself = format!("{}requires = {{ itself = \"*\" }}\n", sandbox.shell("itself"));
    let garbled = sandbox.python("garbled", "MANIFEST = {'version': 1}");
    sandbox.configure(&[good, refuses, forbidden, itself, garbled].join("\n"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("refuses", "disabled");
    let list = daemon.json(&["list", "--state", "disabled"]);
    let plugins = list["plugins"].as_array().expect("a list");
    let names: Vec<&str> = plugins.iter().map(|plugin| text(plugin, "name")).collect();
    assert_eq!(names, ["forbidden", "garbled", "itself", "refuses"], "{list:#}");
    for (plugin, part) in plugins.iter().zip(["disabled", "version", "itself", "no ledger"]) {
        assert!(text(plugin, "reason").contains(part), "{part}: {plugin:#}");
    }
    let shown = daemon.plugd(&["list", "--state", "disabled"]).expect(0).stdout;
    assert!(shown.contains("no ledger") && !shown.contains("good"), "{shown}");
    daemon.stop();
}

#[test]
fn t4_status_says_how_long_describe_and_init_took() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "def on_init(params):\n    time.sleep(0.3)\n    return {}\n");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "fp"]).expect(0);
    let status = daemon.status("fp");
    assert!(status["init_ms"].as_u64().is_some_and(|took| (300..20_000).contains(&took)), "{status:#}");
    assert!(status["describe_ms"].as_u64().is_some_and(|took| took < 20_000), "{status:#}");
    let shown = daemon.plugd(&["status", "fp"]).expect(0).stdout;
    let took = format!("describe {} ms, init {} ms", status["describe_ms"], status["init_ms"]);
    assert!(shown.contains(&took), "{took}: {shown}");
    daemon.stop();
}

#[test]
fn status_tells_the_last_exits_and_what_a_blocked_plugin_waits_for_down_to_the_root() {
    let sandbox = Sandbox::new("");
    let root = format!("{}[plugins.root.restart]\npolicy = \"never\"\n", sandbox.shell("root"));
    let middle = format!("{}requires = {{ root = \"*\" }}\n", sandbox.shell("middle"));
    let top = format!("{}requires = {{ middle = \"*\" }}\nstart = \"eager\"\n", sandbox.shell("top"));
    sandbox.configure(&[root, middle, top].join("\n"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("top", "ready");
    daemon.plugd(&["call", "root.crash"]).expect(6);
    let failed = daemon.wait_for_state("root", "failed");
    let exit = &failed["exits"][0];
    assert_eq!((&exit["code"], &exit["stderr_tail"][0]), (&3.into(), &"boom".into()), "{failed:#}");
    let shown = daemon.plugd(&["status", "root"]).expect(0).stdout;
    assert!(shown.contains("exit status 3 (run ") && shown.contains("boom"), "{shown}");

    for plugin in ["top", "middle"] {
        daemon.plugd(&["stop", plugin]).expect(0);
    }
    for plugin in ["middle", "top"] {
        daemon.plugd(&["start", plugin]).expect(6);
    }
    daemon.wait_for_state("top", "blocked");
    let shown = daemon.plugd(&["status", "top"]).expect(0).stdout;
    assert!(shown.contains("middle (blocked) → root (failed: "), "{shown}");
    let ran = daemon.plugd(&["--output", "json", "doctor", "top"]).expect(6);
    let parts =
        ["top is blocked", "it waits for middle, which is blocked", "it waits for root, which has failed"];
    assert_found(&ran.json(), Some("top"), "problem", &parts);
    let graph = daemon.plugd(&["graph"]).expect(0).stdout;
    assert!(graph.contains("chain: top → middle → root\n") && graph.contains("failed"), "{graph}");
    daemon.stop();
}

/// A sandbox in which all that can be wrong with plugins is wrong, and one is well.
fn hospital() -> Sandbox {
    let sandbox = Sandbox::new("");
    let well = sandbox.shell("well");
    let crashes = format!("{}[plugins.crashes.restart]\nmax = 0\n", sandbox.shell("crashes"));
    sandbox.write("plugins/crashes/broken", "7\n");
    let refuses = format!("{}start = \"eager\"\n", sandbox.shell("refuses"));
    sandbox.write("plugins/refuses/refuses", "no ledger\n");
    sandbox.write("plugins/plain/plain.sh", "#!/bin/sh\n");
    let plain = "[plugins.plain]\ncommand = [\"./plain.sh\"]\ncwd = \"plugins/plain\"\n".to_owned();
    sandbox.program("plugins/lost/lost.sh", "#!/no/such/interpreter\n");
    let lost = "[plugins.lost]\ncommand = [\"./lost.sh\"]\ncwd = \"plugins/lost\"\n".to_owned();
    let gone = "[plugins.gone]\ncommand = [\"./gone.sh\"]\ncwd = \"plugins/plain\"\n".to_owned();
    let typo = format!("{}requires = {{ wel = \"*\" }}\n", sandbox.shell("typo"));
    let forbidden = format!("{}enabled = false\n", sandbox.shell("forbidden"));
    for name in ["_common.py", "weather.py~", ".weather.py.swp"] {
        sandbox.program(&format!("scanned/{name}"), "#!/bin/sh\necho started >> started\n");
    }
    let scan = "[scan]\ndirs = [\"scanned\"]\n".to_owned();
    sandbox.configure(&[scan, well, crashes, refuses, plain, lost, gone, typo, forbidden].join("\n"));
    sandbox
}

#[test]
fn doctor_says_what_is_wrong_with_each_plugin_and_what_to_do() {
    let sandbox = hospital();
    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    daemon.wait_for_state("refuses", "disabled");
    let ran = daemon.plugd(&["--output", "json", "doctor"]).expect(6);
    let report = ran.json();
    let problem = |plugin: &str, parts: &[&str]| assert_found(&report, Some(plugin), "problem", parts);
    problem("crashes", &["exit status 7", "stderr: the ledger is locked", "plugd logs crashes"]);
    problem("refuses", &["no ledger", "plugd reload refuses"]);
    problem("plain", &["chmod +x", "plugd start plain"]);
    problem("lost", &["install /no/such/interpreter, or", "plugd start lost"]);
    problem("gone", &["gone.sh", "install", "plugd start gone"]);
    problem("typo", &["did you mean well?", "configure wel, or mend the name"]);
    assert_found(&report, None, "ok", &["a daemon runs"]);
    for plugin in ["well", "forbidden"] {
        assert!(findings(&report, Some(plugin)).is_empty(), "{plugin} is as it should be: {report:#}");
    }
    assert_found(
        &daemon.json(&["doctor", "forbidden"]),
        Some("forbidden"),
        "ok",
        &["plugd enable forbidden"],
    );
    daemon.plugd(&["doctor", "well"]).expect(0);
    daemon.plugd(&["doctor", "wel"]).expect(4);
    let severities: Vec<&str> =
        findings(&report, None).iter().map(|finding| text(finding, "severity")).collect();
    assert!(!severities.contains(&"problem"), "plugd itself is well: {report:#}");
    let shown = daemon.plugd(&["doctor"]).expect(6).stdout;
    assert!(shown.starts_with("problem"), "the worst comes first: {shown}");
    assert!(shown.contains("hint: "), "{shown}");
    daemon.stop();
}

#[test]
fn r6_doctor_lists_what_a_scan_passed_over_with_and_without_a_daemon() {
    let sandbox = hospital();
    let passed_over = |report: &Value| {
        for (file, reason) in
            [("_common.py", "begin with _"), ("weather.py~", "backup"), (".weather.py.swp", "begin")]
        {
            assert_found(report, None, "ok", &["passed over", file, reason]);
        }
    };
    let report = sandbox.json(&["doctor"]);
    passed_over(&report);
    assert_found(&report, None, "ok", &["no daemon is running", "plugd serve --detach"]);
    // Without a daemon nothing is started to find out: the files alone tell.
    assert_found(&report, Some("plain"), "problem", &["plain.sh is no executable file"]);
    assert_found(&report, Some("gone"), "problem", &["gone.sh is not found"]);
    assert_found(&report, Some("typo"), "problem", &["did you mean well?"]);
    let daemon = sandbox.serve();
    passed_over(&daemon.json(&["doctor"]));
    daemon.stop();
    assert_eq!(sandbox.read("scanned/started"), "", "none of them was run");
}

#[test]
fn doctor_without_a_daemon_starts_nothing_and_finds_nothing_where_all_is_well() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}start = \"eager\"\n", sandbox.shell("well")));
    let ran = sandbox.plugd(&["doctor"]).expect(0);
    assert!(ran.stdout.contains("1 plugin was found with nothing wrong; none was run"), "{ran:?}");
    assert_eq!(sandbox.read("plugins/well/spawned"), "", "nothing was started");
}

#[test]
fn doctor_explains_a_configuration_that_cannot_be_used() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("fp");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    sandbox.configure(&format!("{table}timout = \"5s\"\n"));
    let ran = daemon.plugd(&["--output", "json", "doctor"]).expect(9);
    assert_found(
        &ran.json(),
        None,
        "problem",
        &["plugins.fp.timout", "did you mean timeout?", "config check"],
    );
    assert_found(&ran.json(), None, "warning", &["goes on with what the config file said before"]);
    assert_found(&ran.json(), None, "ok", &["a daemon runs"]);
    daemon.stop();
    let ran = sandbox.plugd(&["doctor"]).expect(9);
    assert!(ran.stdout.contains("did you mean timeout?"), "{ran:?}");
}

#[test]
fn doctor_says_that_the_state_folder_cannot_be_used() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("fp"));
    sandbox.write("state", "a file, not a folder");
    let ran = sandbox.plugd(&["--output", "json", "doctor"]).expect(9);
    assert_found(&ran.json(), None, "problem", &["cannot use the state folder"]);
}

#[test]
fn doctor_tells_of_what_works_and_should_not_be_so() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        "
def handle(operation, arguments, params):
    raw(b'progress: 50 %\\n')
    send({'jsonrpc': '2.0', 'id': 9999, 'result': {}})
    return {'data': 1}
",
    );
    sandbox.configure(&format!("{table}\n{}", sandbox.shell("restless")));
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    daemon.plugd(&["call", "restless.crash"]).expect(6);
    daemon.plugd(&["call", "restless.pid"]).expect(0);
    let wait = |plugin: &str, parts: &[&str]| wait_for_warning(&daemon, plugin, parts);
    wait("fp", &["fp wrote 1 line of text on stdout", "plugd logs fp"]);
    wait("fp", &["fp gave 1 answer that nobody waited for"]);
    wait("restless", &["restless ended unasked once lately", "exit status 3", "stderr: boom"]);
    daemon.plugd(&["doctor"]).expect(0);
    daemon.plugd(&["stop", "restless"]).expect(0);
    wait("restless", &["restless is stopped", "plugd start restless"]);
    daemon.stop();
}

fn wait_for_warning(daemon: &Daemon<'_>, plugin: &str, parts: &[&str]) {
    eventually(&format!("a warning with {parts:?}"), || {
        let report = daemon.json(&["doctor"]);
        findings(&report, Some(plugin)).iter().any(|finding| {
            let text = finding.to_string();
            finding["severity"] == "warning" && parts.iter().all(|part| text.contains(part))
        })
    });
}

#[test]
fn r4_an_added_plugin_says_so_in_the_list_with_its_digest() {
    let sandbox = Sandbox::new("");
    let program = sandbox.fixture("bare.sh", "elsewhere/greet.sh");
    let daemon = sandbox.serve();
    daemon.plugd(&["add", &program.display().to_string()]).expect(0);
    let list = daemon.json(&["list"]);
    let plugin = &list["plugins"][0];
    assert_eq!((&plugin["name"], &plugin["source"]["kind"]), (&"greet".into(), &"added".into()), "{list:#}");
    let file = fs::read_to_string(text(&plugin["source"], "file")).expect("the file that remembers it");
    assert!(file.contains("greet.sh"), "{file}");
    assert_eq!(text(plugin, "digest").len(), 64, "{list:#}");
    assert_eq!(text(plugin, "path"), program.display().to_string());
    daemon.stop();
}

#[test]
fn a_remembered_manifest_refuses_nothing_before_its_plugin_was_asked() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "from declared import OPERATIONS");
    let declare =
        |operations: &str| sandbox.write("plugins/fp/declared.py", &format!("OPERATIONS = [{operations}]\n"));
    let number =
        "{'name': 'echo', 'input_schema': {'type': 'object', 'properties': {'n': {'type': 'integer'}}}}";
    declare(number);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo", "n:=\"text\""]).expect(3);
    daemon.stop();

    // What the program loads besides is not among the files that its manifest is kept for.
    declare(&format!(
        "{}, {{'name': 'more', 'input_schema': {{'type': 'object'}}}}",
        number.replace("integer", "string")
    ));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo", "n:=\"text\""])["data"]["n"], "text");
    daemon.stop();

    declare(&format!("{number}, {{'name': 'other', 'input_schema': {{'type': 'object'}}}}"));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.other", "a=b"])["data"]["a"], "b");
    daemon.plugd(&["call", "fp.more"]).expect(4);
    daemon.plugd(&["call", "fp.echo", "n:=\"text\""]).expect(3);
    daemon.stop();
}
