//! Who starts and stops when: dependencies first, then priority, never the order in the file.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// An eager sh plugin with these lines in its table.
fn eager(sandbox: &Sandbox, name: &str, lines: &str) -> String {
    format!("{}start = \"eager\"\n{lines}\n", sandbox.shell(name))
}

/// The plugins in the order they came to a state.
fn order_of(daemon: &Daemon<'_>, state: &str) -> Vec<String> {
    let events = daemon.json(&["events", "--tail", "1000"]);
    let kind = format!("plugin.{state}");
    let entered = events.as_array().expect("a list").iter().filter(|event| event["kind"] == *kind);
    entered.map(|event| event["plugin"].as_str().expect("a plugin").to_owned()).collect()
}

/// The plugins in the order they were asked to init.
fn inits(sandbox: &Sandbox) -> Vec<String> {
    sandbox.read("plugins/inits").lines().map(str::to_owned).collect()
}

fn edges(graph: &Value) -> Vec<(&str, &str)> {
    let edges = graph["edges"].as_array().expect("a list").iter();
    edges.map(|edge| (edge["from"].as_str().expect("a name"), edge["to"].as_str().expect("a name"))).collect()
}

fn levels(graph: &Value) -> Vec<(&str, Option<u64>)> {
    let nodes = graph["nodes"].as_array().expect("a list").iter();
    nodes.map(|node| (node["name"].as_str().expect("a name"), node["level"].as_u64())).collect()
}

#[test]
fn l8_what_a_plugin_requires_starts_first_though_nobody_asked_for_it() {
    let sandbox = Sandbox::new("");
    let trip = format!("{}env = {{ REQUIRES = '{{\"weather\":\"*\"}}' }}\n", sandbox.shell("trip"));
    let weather = format!("{}env = {{ REQUIRES = '{{\"auth\":\">=1.0\"}}' }}\n", sandbox.shell("weather"));
    let auth = sandbox.shell("auth");
    sandbox.configure(&format!("{trip}{weather}{auth}"));
    let daemon = sandbox.serve();

    let call = daemon.json(&["call", "trip.pid"]);
    assert_eq!(call["status"], "ok", "{call:#}");
    assert_eq!(order_of(&daemon, "ready"), ["auth", "weather", "trip"]);
    assert_eq!(
        inits(&sandbox),
        ["auth", "weather", "trip"],
        "none was asked to init before what it requires was ready"
    );

    let graph = daemon.json(&["graph"]);
    assert_eq!(levels(&graph), [("auth", Some(0)), ("weather", Some(1)), ("trip", Some(2))], "{graph:#}");
    assert_eq!(edges(&graph).len(), 2, "{graph:#}");
    assert!(
        edges(&graph).contains(&("trip", "weather")) && edges(&graph).contains(&("weather", "auth")),
        "{graph:#}"
    );
    let text = daemon.plugd(&["graph"]).expect(0).stdout;
    assert!(["auth", "weather", "trip"].iter().all(|name| text.contains(name)), "{text}");
    daemon.stop();
}

#[test]
fn l9_dependency_beats_priority_whatever_the_numbers_and_the_order_in_the_file() {
    for (auth_priority, weather_priority) in [(100, 5), (5, 100)] {
        for auth_is_written_first in [true, false] {
            let sandbox = Sandbox::new("");
            let auth = eager(&sandbox, "auth", &format!("priority = {auth_priority}"));
            let weather = eager(
                &sandbox,
                "weather",
                &format!("priority = {weather_priority}\nenv = {{ REQUIRES = '{{\"auth\":\"*\"}}' }}"),
            );
            let config =
                if auth_is_written_first { [auth, weather].concat() } else { [weather, auth].concat() };
            sandbox.configure(&config);
            let daemon = sandbox.serve();
            daemon.wait_for_state("weather", "ready");
            assert_eq!(order_of(&daemon, "ready"), ["auth", "weather"]);
            assert_eq!(inits(&sandbox), ["auth", "weather"]);
            daemon.stop();
        }
    }
}

#[test]
fn l9_within_a_level_larger_priority_starts_first_then_the_name_decides() {
    let sandbox = Sandbox::new("");
    let tables = [("zeta", 7), ("alpha", 1), ("middle", 1), ("beta", 3)]
        .map(|(name, priority)| eager(&sandbox, name, &format!("priority = {priority}")));
    let expected = ["zeta", "beta", "alpha", "middle"];
    let reversed: Vec<String> = tables.iter().rev().cloned().collect();
    for config in [tables.concat(), reversed.concat()] {
        sandbox.configure(&config);
        let daemon = sandbox.serve();
        for name in expected {
            daemon.wait_for_state(name, "ready");
        }
        assert_eq!(order_of(&daemon, "starting"), expected);
        daemon.stop();
    }
}

#[test]
fn l10_a_requirement_in_the_configuration_blocks_while_what_it_names_is_down() {
    let sandbox = Sandbox::new("");
    let auth = sandbox.shell("auth");
    let weather = format!("{}requires = {{ auth = \">=1.0\" }}\n", sandbox.shell("weather"));
    sandbox.write("plugins/auth/refuses", "the key has expired\n");
    sandbox.configure(&format!("{weather}{auth}"));
    let daemon = sandbox.serve();

    let refused = daemon.plugd(&["--output", "json", "call", "weather.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "blocked", "{refused:#}");
    assert_eq!(refused["error"]["outcome"], "not_run", "{refused:#}");
    let weather = daemon.wait_for_state("weather", "blocked");
    let reason = weather["reason"].as_str().expect("a reason");
    assert!(reason.contains("auth") && reason.contains("the key has expired"), "{reason}");
    assert_eq!(weather["waits_for"], json!(["auth"]), "{weather:#}");
    assert_eq!(daemon.status("auth")["state"], "disabled");

    std::fs::remove_file(sandbox.path().join("plugins/auth/refuses")).expect("it is mended");
    daemon.plugd(&["start", "auth"]).expect(0);
    let call = daemon.json(&["call", "weather.pid"]);
    assert_eq!(call["status"], "ok", "{call:#}");
    daemon.stop();
}

#[test]
fn l10_a_version_that_will_not_do_disables_with_both_versions_and_a_missing_plugin_blocks() {
    let sandbox = Sandbox::new("");
    let auth = format!("{}env = {{ VERSION = \"0.9.0\" }}\n", sandbox.shell("auth"));
    let weather = eager(&sandbox, "weather", "requires = { auth = \">=1.0\" }");
    let trip = eager(&sandbox, "trip", "requires = { wether = \"*\" }");
    sandbox.configure(&format!("{weather}{auth}{trip}"));
    let daemon = sandbox.serve();
    let weather = daemon.wait_for_state("weather", "disabled");
    assert_eq!(weather["reason"], "requires auth >=1.0, but its version is 0.9.0", "{weather:#}");
    let trip = daemon.wait_for_state("trip", "blocked");
    let reason = trip["reason"].as_str().expect("a reason");
    assert!(reason.contains("wether") && reason.contains("did you mean weather?"), "{reason}");
    assert_eq!(daemon.json(&["call", "auth.pid"])["status"], "ok", "others are not touched");
    daemon.stop();
}

#[test]
fn l12_a_chain_of_five_starts_in_order_against_its_priorities_and_stops_in_reverse() {
    let sandbox = Sandbox::new("");
    let chain = ["e_base", "d_cache", "c_store", "b_auth", "a_trip"];
    let table = |at: usize| {
        let requires =
            at.checked_sub(1).map(|below| format!("\"{}\":\"*\"", chain[below])).unwrap_or_default();
        let lines = format!("priority = {}\nenv = {{ REQUIRES = '{{{requires}}}' }}", at * 10);
        eager(&sandbox, chain[at], &lines)
    };
    let config: String = [3, 0, 4, 1, 2].into_iter().map(table).collect();
    sandbox.configure(&config);
    let mut daemon = sandbox.serve();
    daemon.wait_for_state("a_trip", "ready");
    assert_eq!(order_of(&daemon, "ready"), chain);
    assert_eq!(inits(&sandbox), chain);

    let shutdown = daemon.json(&["shutdown"]);
    let ended: Vec<&str> = shutdown["plugins"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|stopped| stopped["name"].as_str().expect("a name"))
        .collect();
    let reversed: Vec<&str> = chain.into_iter().rev().collect();
    assert_eq!(ended, reversed, "{shutdown:#}");
    assert_eq!(daemon.wait(), 0);
}

#[test]
fn l12_a_cycle_prints_its_path_and_touches_nobody_else() {
    let sandbox = Sandbox::new("");
    let in_circle =
        |name: &str, next: &str| eager(&sandbox, name, &format!("requires = {{ {next} = \"*\" }}"));
    let circle = [in_circle("p", "q"), in_circle("q", "r"), in_circle("r", "p")].concat();
    let itself = in_circle("narcissus", "narcissus");
    let other = eager(&sandbox, "other", "");
    sandbox.configure(&format!("{circle}{itself}{other}"));
    let daemon = sandbox.serve();
    for name in ["p", "q", "r"] {
        let status = daemon.wait_for_state(name, "disabled");
        let reason = status["reason"].as_str().expect("a reason");
        let paths = ["p -> q -> r -> p", "q -> r -> p -> q", "r -> p -> q -> r"];
        assert!(paths.iter().any(|path| reason.contains(path)), "{reason}");
        let refused = daemon.plugd(&["--output", "json", "call", &format!("{name}.pid")]).expect(6).json();
        assert!(refused["error"]["message"].as_str().expect("a message").contains(" -> "), "{refused:#}");
    }
    let reason = daemon.wait_for_state("narcissus", "disabled")["reason"].clone();
    assert!(reason.as_str().expect("a reason").contains("itself"), "{reason}");
    daemon.wait_for_state("other", "ready");
    assert_eq!(daemon.json(&["call", "other.pid"])["status"], "ok");
    let graph = daemon.json(&["graph"]);
    assert_eq!(graph["cycles"].as_array().expect("a list").len(), 1, "{graph:#}");
    assert!(inits(&sandbox).iter().all(|name| name == "other"), "{:?}", inits(&sandbox));
    daemon.stop();
}

#[test]
fn a_dependent_of_a_failed_plugin_names_the_root_cause_and_starts_by_itself_after_recovery() {
    let sandbox = Sandbox::new("");
    let auth = format!("{}restart = {{ max = 0 }}\n", sandbox.shell("auth"));
    let weather = eager(&sandbox, "weather", "requires = { auth = \"*\" }");
    let trip = eager(&sandbox, "trip", "requires = { weather = \"*\" }");
    let other = eager(&sandbox, "other", "");
    sandbox.write("plugins/auth/broken", "3\n");
    sandbox.configure(&format!("{trip}{weather}{auth}{other}"));
    let daemon = sandbox.serve();

    daemon.wait_for_state("auth", "failed");
    let trip = daemon.wait_for_state("trip", "blocked");
    let reason = trip["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("requires weather, which is blocked by auth, which is failed"), "{reason}");
    assert!(reason.contains("exit status 3"), "{reason}");
    assert_eq!(trip["waits_for"], json!(["weather"]), "{trip:#}");
    let refused = daemon.plugd(&["--output", "json", "call", "trip.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "blocked", "{refused:#}");
    assert!(refused["error"]["message"].as_str().expect("a message").contains("auth"), "{refused:#}");
    daemon.wait_for_state("other", "ready");
    assert_eq!(daemon.json(&["status"])["daemon"]["health"], "degraded");

    std::fs::remove_file(sandbox.path().join("plugins/auth/broken")).expect("it is mended");
    daemon.plugd(&["start", "auth"]).expect(0);
    daemon.wait_for_state("trip", "ready");
    assert_eq!(
        inits(&sandbox).iter().filter(|name| *name != "other").collect::<Vec<_>>(),
        ["auth", "weather", "trip"]
    );
    assert_eq!(daemon.json(&["status"])["daemon"]["health"], "ok");
    daemon.stop();
}
