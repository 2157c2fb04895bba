//! One meaningful use of each example plugin, as a real process under a real daemon.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use plugd_tests::{Daemon, eventually};
use serde_json::{Value, json};

use super::{scanned, skipped};

/// The one document of a command that ends with this code.
#[track_caller]
fn ended(daemon: &Daemon<'_>, code: i32, words: &[&str]) -> Value {
    daemon.plugd(&[&["--output", "json"], words].concat()).expect(code).json()
}

#[test]
fn calculator_works_out_an_expression_and_says_what_it_cannot_read() {
    let Some(sandbox) = scanned(&["calculator"], "") else { return };
    let daemon = sandbox.serve();
    let worked = ended(&daemon, 0, &["call", "calculator.calculate", "expression=3200 * 12.5 / 100"]);
    assert_eq!((&worked["data"], &worked["summary"]), (&json!(400), &json!("3200 * 12.5 / 100 = 400")));
    let failed = ended(&daemon, 1, &["call", "calculator.calculate", "expression=2 * (3 + "]);
    assert_eq!(failed["error"]["name"], "unreadable_expression", "{failed:#}");
    assert_eq!(failed["error"]["message"], "expected a number at character 10, got the end", "{failed:#}");
    daemon.stop();
}

#[test]
fn what_search_says_to_call_next_can_be_called_as_it_stands() {
    let Some(sandbox) = scanned(&["search"], "") else { return };
    let daemon = sandbox.serve();
    let found = ended(&daemon, 0, &["call", "search.find_pages", "query=invoices days"]);
    let next = &found["next_actions"][0];
    assert_eq!(next["operation"], "search.read_page", "{found:#}");
    let arguments = next["arguments"].to_string();
    let page = ended(&daemon, 0, &["call", "search.read_page", "--json", &arguments]);
    assert!(page["data"].as_str().is_some_and(|text| text.starts_with("# Expenses\n")), "{page:#}");
    let missing = ended(&daemon, 1, &["call", "search.read_page", "page=parking"]);
    assert_eq!(missing["error"]["name"], "page_not_found", "{missing:#}");
    daemon.stop();
}

#[test]
fn cities_is_for_plugins_and_offered_to_no_model() {
    let Some(sandbox) = scanned(&["cities"], "[callers.model]\n") else { return };
    let asks = "
MANIFEST = {'requires': {'cities': '>=1.0'}}
def handle(operation, arguments, params):
    return {'data': host_call('cities.parse', {'text': arguments['text']})['result']['data']['country']}
";
    let table = sandbox.python("asks", asks);
    sandbox.configure(&format!("[scan]\ndirs = [\"plugins\"]\n\n[callers.model]\n{table}"));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "asks.echo", "text=a week in Vienna"])["data"], "AT");
    let offered = daemon.json(&["tools", "--for", "openai"]).to_string();
    assert!(offered.contains("asks__echo") && !offered.contains("cities"), "{offered}");
    let refused = ended(&daemon, 7, &["call", "cities.parse", "text=Vienna", "--as", "model"]);
    assert_eq!(refused["status"], "error", "{refused:#}");
    daemon.stop();
}

#[test]
fn hello_says_any_name_back_and_hands_it_to_no_shell() {
    let Some(sandbox) = scanned(&["hello"], "") else { return };
    let daemon = sandbox.serve();
    let name = "小明 \"the first\" $(touch made) `touch made`; touch made\n\\";
    let said =
        ended(&daemon, 0, &["call", "hello.say_hello", "--json", &json!({ "name": name }).to_string()]);
    assert_eq!(said["data"], json!(format!("Hello, {name}!")));
    assert!(!sandbox.path().join("plugins/hello/made").exists());
    daemon.stop();
}

#[test]
fn mail_goes_out_once_somebody_agrees_and_once_under_a_key() {
    let Some(sandbox) = scanned(&["mail"], "") else { return };
    let outbox = sandbox.path().join("state/data/mail/outbox");
    let mails = || std::fs::read_dir(&outbox).map_or(0, Iterator::count);
    let send = ["call", "mail.send", "to=ada@example.org", "subject=Meeting", "body=At three."];
    let under_key = [&send[..], &["--key", "meeting-7", "--yes"]].concat();

    let daemon = sandbox.serve();
    let held = ended(&daemon, 8, &send);
    assert_eq!((&held["status"], mails()), (&json!("needs_confirmation"), 0), "{held:#}");
    let first = ended(&daemon, 0, &under_key);
    let again = ended(&daemon, 0, &under_key);
    assert_eq!((&again["data"], mails()), (&first["data"], 1), "{again:#}");
    let other = ended(&daemon, 0, &[&send[..], &["--yes"]].concat());
    assert_eq!(mails(), 2, "without a key it is another mail: {other:#}");
    daemon.stop();

    // A host that has lost its record of calls knows nothing of the key. The plugin does.
    for file in std::fs::read_dir(sandbox.path().join("state")).expect("the state folder").flatten() {
        if file.file_name().to_string_lossy().starts_with("plugd.db") {
            std::fs::remove_file(file.path()).expect("the record is removed");
        }
    }
    let daemon = sandbox.serve();
    let replayed = ended(&daemon, 0, &under_key);
    assert_eq!((&replayed["data"], mails()), (&first["data"], 2), "{replayed:#}");
    assert!(
        replayed["summary"].as_str().is_some_and(|text| text.contains("was sent before")),
        "{replayed:#}"
    );
    daemon.stop();
}

#[test]
fn orders_takes_a_number_or_a_user_and_asks_for_one_of_them() {
    let Some(sandbox) = scanned(&["orders"], "[plugins.orders]\nsandbox = \"read_only\"\n") else { return };
    let daemon = sandbox.serve();
    let started = daemon.plugd(&["start", "orders"]);
    if started.code != 0 && daemon.status("orders").to_string().contains("Landlock") {
        skipped("this kernel holds no plugin to a read-only sandbox, so orders is not used");
        return daemon.stop();
    }
    started.expect(0);
    assert_eq!(daemon.status("orders")["enforced"]["sandbox"], "read_only");

    let of_user = ended(&daemon, 0, &["call", "orders.query", "user_id=U-1042"]);
    assert_eq!(
        (&of_user["data"]["count"], &of_user["data"]["total"]),
        (&json!(5), &json!(3200)),
        "{of_user:#}"
    );
    assert_eq!(of_user["summary"], "5 orders, total 3200");
    let by_number = ended(&daemon, 0, &["call", "orders.query", "order_id=ON-000243"]);
    assert_eq!(by_number["data"]["orders"][0]["user_id"], "U-1042", "{by_number:#}");
    let neither = ended(&daemon, 8, &["call", "orders.query"]);
    assert_eq!(neither["status"], "needs_input", "{neither:#}");
    let prompt = neither["pending"]["prompt"].as_str().expect("a prompt");
    assert!(prompt.starts_with("Please give: order_id or user_id"), "{neither:#}");
    let token = neither["pending"]["token"].as_str().expect("a token");
    let given = ended(&daemon, 0, &["answer", token, "user_id=U-1042"]);
    assert_eq!(given["data"]["count"], 5, "one of them will do: {given:#}");
    let wrong = ended(&daemon, 3, &["call", "orders.query", "order_id=243"]);
    assert_eq!(wrong["error"]["details"][0]["path"], "/order_id", "{wrong:#}");

    let id = of_user["meta"]["call_id"].as_str().expect("an id");
    let row = daemon.json(&["calls", "show", id]).to_string();
    assert!(row.contains("ON-000243") && !row.contains("7700"), "no phone number is kept: {row}");
    daemon.stop();
}

#[test]
fn the_3200_orders_of_one_user_come_in_pages() {
    let Some(sandbox) = scanned(&["orders"], "") else { return };
    let daemon = sandbox.serve();
    let first = ended(&daemon, 0, &["call", "orders.query", "user_id=U-2000", "--page"]);
    let page = &first["page"];
    assert_eq!((&first["data"]["count"], &page["total"]), (&json!(3200), &json!(3200)), "{page:#}");
    let shown = first["data"]["orders"].as_array().expect("orders").len();
    assert!((1..3200).contains(&shown), "{shown}");
    let reference = page["ref"].as_str().expect("a reference");
    let words = ["result", reference, "--pointer", "/orders", "--offset", "3199"];
    let last = ended(&daemon, 0, &words);
    assert_eq!(last["data"][0]["user_id"], "U-2000", "{last:#}");
    daemon.stop();
}

#[test]
fn vocabulary_starts_when_it_is_wanted_and_for_as_long_as_it_says_how_far_it_is() {
    // Without the progress of its init, the start would be over long before it is done.
    let slow =
        "[plugins.vocabulary]\ninit_timeout = \"500ms\"\n\n[plugins.vocabulary.config]\npause_ms = 60\n";
    let Some(sandbox) = scanned(&["vocabulary"], slow) else { return };
    let begun = Instant::now();
    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    let state = daemon.status("vocabulary")["state"].clone();
    assert!(["idle", "registered"].iter().any(|idle| state == *idle), "nobody has wanted it yet: {state}");
    let exported = ended(&daemon, 0, &["call", "vocabulary.export_words", "prefix=ba", "format=csv"]);
    assert!(
        begun.elapsed() > Duration::from_millis(20 * 60),
        "its start takes so long: {:?}",
        begun.elapsed()
    );
    assert_eq!(exported["data"]["words"], 10_000, "{exported:#}");
    let file = exported["data"]["file"].as_str().expect("a path");
    assert!(file.contains("state/data/vocabulary/"), "it is in the plugin's own folder: {file}");
    let text = std::fs::read_to_string(file).expect("the file is there");
    assert!(text.starts_with("1,bababa\n") && text.lines().count() == 10_000, "{:?}", text.get(..40));
    assert_eq!(daemon.status("vocabulary")["restarts"], 0);
    daemon.stop();
}

/// An endpoint that answers once it is told to, and its address.
fn endpoint() -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/health", listener.local_addr().expect("an address"));
    let (go, told) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        // Where the test ends without telling, it is over, too.
        if told.recv().is_ok() {
            let mut begin = [0; 4];
            drop(
                stream
                    .read_exact(&mut begin)
                    .and_then(|()| stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")),
            );
        }
    });
    (url, go)
}

/// A job of the daemon, as `jobs` lists it.
#[track_caller]
fn job(daemon: &Daemon<'_>, id: &str) -> Value {
    let report = daemon.json(&["jobs"]);
    let jobs = report["jobs"].as_array().expect("a list");
    jobs.iter().find(|job| job["call_id"] == id).unwrap_or_else(|| panic!("{id}: {report:#}")).clone()
}

/// Starts a patrol of two endpoints, of which only the first one answers; gives its job, and the other one's key.
fn under_way(daemon: &Daemon<'_>) -> (String, Sender<()>) {
    let ((quick, go), (slow, later)) = (endpoint(), endpoint());
    go.send(()).expect("it waits");
    let urls = json!({"urls": [quick, slow]}).to_string();
    let pending = ended(daemon, 0, &["call", "patrol.visit_endpoints", "--json", &urls]);
    assert_eq!(pending["status"], "pending", "{pending:#}");
    let id = pending["meta"]["call_id"].as_str().expect("an id").to_owned();
    eventually("one of two is visited", || job(daemon, &id)["progress"]["done"] == 1.0);
    assert_eq!(job(daemon, &id)["progress"]["total"], 2.0);
    (id, later)
}

#[test]
fn patrol_is_a_job_that_says_how_far_it_is_and_what_it_has_seen() {
    let Some(sandbox) = scanned(&["patrol"], "[plugins.patrol.config]\npatience_ms = 60_000\n") else {
        return;
    };
    let daemon = sandbox.serve();
    let (id, later) = under_way(&daemon);
    let seen = |kind: &str| daemon.plugd(&["--output", "json", "events"]).stdout.matches(kind).count();
    eventually("a piece was sent ahead", || seen("call.partial") >= 1);
    later.send(()).expect("it waits");
    let result = ended(&daemon, 0, &["jobs", "wait", &id]);
    assert_eq!(result["summary"], "2 of 2 endpoints are up", "{result:#}");
    assert_eq!(result["data"][1]["status"], 204, "{result:#}");
    daemon.stop();
}

#[test]
fn patrol_stops_when_it_is_cancelled_and_its_process_goes_on() {
    let Some(sandbox) = scanned(&["patrol"], "[plugins.patrol.config]\npatience_ms = 60_000\n") else {
        return;
    };
    let daemon = sandbox.serve();
    let (id, _later) = under_way(&daemon);
    let before = daemon.status("patrol");
    daemon.plugd(&["jobs", "cancel", &id]).expect(0);
    let result = ended(&daemon, 5, &["jobs", "wait", &id]);
    assert_eq!(result["status"], "cancelled", "{result:#}");
    eventually("its lane is free", || daemon.status("patrol")["in_flight"] == 0);
    let after = daemon.status("patrol");
    assert_eq!((&after["pid"], &after["state"]), (&before["pid"], &json!("ready")), "{after:#}");
    daemon.stop();
}
