//! Whoever comes with a key that is taken.

use super::super::keyed::KEY_MAX_BYTES;
use super::*;
use plugd_protocol::OperationId;
use plugd_protocol::control::UnixMillis;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON")
}

fn call(key: &str, arguments: &str) -> KeyedCall {
    KeyedCall {
        caller: None,
        key: key.into(),
        operation: OperationId::parse("shop.order").expect("an operation"),
        arguments_digest: digest(Some(&raw(arguments)), None),
        call_id: CallId::new("c1"),
        at: UnixMillis(1),
        idempotent: false,
    }
}

fn patience(within: Duration) -> Patience {
    Patience { background: false, ends: Instant::now() + within }
}

#[test]
fn a_key_is_a_short_line_of_text() {
    let long = "k".repeat(KEY_MAX_BYTES + 1);
    for bad in ["", "a\nb", "\u{1b}[2J", long.as_str()] {
        assert_eq!(check(bad).expect_err(bad).code, ErrorKind::MalformedRequest.code());
    }
    for good in ["k", "订单-1", &long[1..]] {
        check(good).expect(good);
    }
}

#[test]
fn no_arguments_are_the_same_as_an_empty_object() {
    assert_eq!(digest(None, None), digest(Some(&raw("{}")), None));
    assert_eq!(digest(Some(&raw("null")), None), digest(Some(&raw("{ }")), None));
    assert_ne!(digest(Some(&raw("{\"a\":1}")), None), digest(Some(&raw("{\"a\":1.0}")), None));
    assert_ne!(digest(None, Some("/a/x")), digest(None, Some("/b/x")));
}

/// Row X11.
#[tokio::test]
async fn r_x11_one_call_has_a_key_at_a_time_and_others_wait_for_it() {
    let keys = Arc::new(Keys::default());
    let claimed = |call, within| {
        let keys = Arc::clone(&keys);
        async move { claim(&keys, call, None, &patience(within)).await }
    };
    let minute = Duration::from_secs(60);
    let first = claimed(call("k", "{}"), minute).await.expect("free").expect("free");
    let other = claimed(call("k", r#"{"a":1}"#), minute).await.err().expect("a conflict");
    assert_eq!(other.code, ErrorKind::KeyConflict.code());
    let late = claimed(call("k", "{}"), Duration::from_millis(10)).await.err().expect("it still runs");
    assert_eq!((late.code, late.outcome), (ErrorKind::TimedOut.code(), Outcome::Unknown));
    claimed(call("other", "{}"), minute).await.expect("another key").expect("free");
    let background = Patience { background: true, ends: Instant::now() };
    let runs = claim(&keys, call("k", "{}"), None, &background).await.expect("it runs").err();
    assert_eq!(runs, Some(CallId::new("c1")));

    let waits = tokio::spawn(claimed(call("k", "{}"), minute));
    tokio::task::yield_now().await;
    drop(first);
    assert!(waits.await.expect("no panic").expect("free").is_ok());
    assert!(keys.0.lock().unwrap().claimed.is_empty());
}
