//! Tests of the patrol, with endpoints of their own.

use std::io::{Read, Write};
use std::net::TcpListener;

use plugd_sdk::testing::Host;
use serde_json::{Value, json};

use super::{address, plugin};

/// An endpoint that gives this to whoever asks first, and the address of it; with nothing to give it keeps silent.
fn endpoint(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        if let Some(answer) = answer {
            let mut request = [0; 4];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"GET ");
            stream.write_all(answer.as_bytes()).unwrap();
        } else {
            // The other side hangs up once it is out of patience.
            drop(stream.read_to_end(&mut Vec::new()));
        }
    });
    url
}

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn each_endpoint_is_told_of_as_soon_as_it_is_known_and_all_in_their_order_in_the_end() {
    let urls =
        [endpoint(Some("HTTP/1.1 200 OK\r\n\r\n")), nobody(), endpoint(Some("HTTP/1.1 503 Busy\r\n\r\n"))];
    let reply = Host::new(plugin()).call("visit_endpoints", json!({"urls": urls}));
    let data = reply.data();
    let told: Vec<(&Value, &Value, &Value)> = data
        .as_array()
        .unwrap()
        .iter()
        .map(|visit| (&visit["url"], &visit["up"], &visit["status"]))
        .collect();
    let expected = [
        (json!(urls[0]), json!(true), json!(200)),
        (json!(urls[1]), json!(false), json!(null)),
        (json!(urls[2]), json!(false), json!(503)),
    ];
    assert_eq!(told, expected.iter().map(|(url, up, status)| (url, up, status)).collect::<Vec<_>>());
    assert_eq!(reply.summary.as_deref(), Some("1 of 3 endpoints are up"));
    assert_eq!(reply.partials.len(), 3);
    assert_eq!(reply.progress.last().map(|last| (last.done, last.total)), Some((3.0, Some(3.0))));
}

#[test]
fn an_endpoint_that_keeps_silent_is_given_up() {
    let host = Host::new(plugin()).config(json!({"patience_ms": 50}));
    let data = host.call("visit_endpoints", json!({"urls": [endpoint(None)]})).data();
    assert_eq!((&data[0]["up"], &data[0]["problem"]), (&json!(false), &json!("no answer in time")));
}

#[test]
fn a_patrol_that_is_cancelled_ends_although_an_endpoint_keeps_silent() {
    let host = Host::new(plugin()).config(json!({"patience_ms": 60_000}));
    let urls = [endpoint(Some("HTTP/1.1 204 No Content\r\n\r\n")), endpoint(None)];
    let running = host.begin("visit_endpoints", json!({"urls": urls}));
    running.wait_for_progress(1);
    running.cancel();
    let reply = running.wait();
    assert_eq!(reply.error().code(), -32800);
    assert_eq!(reply.partials[0]["status"], 204);
}

#[test]
fn what_is_no_address_is_refused_before_anybody_is_visited() {
    let host = Host::new(plugin());
    let reply = host.call("visit_endpoints", json!({"urls": [nobody(), "ftp://example.org"]}));
    assert_eq!(reply.error().name.as_deref(), Some("no_address"));
    assert_eq!(address("http://a"), Some(("a:80".to_owned(), "/".to_owned())));
    assert_eq!(address("http://a:8080/b/c"), Some(("a:8080".to_owned(), "/b/c".to_owned())));
    assert_eq!(address("http:///b"), None);
}
