//! Tests of the plugin: cargo test

use plugd_sdk::testing::Host;
use serde_json::json;

use super::*;

/// An operation is a function: call it.
#[test]
fn nobody_is_not_greeted() {
    let refused = hello(" ".to_owned(), &Context::for_test()).unwrap_err();
    assert_eq!(refused.name.as_deref(), Some("nobody_to_greet"));
}

/// The whole plugin, in memory, as plugd would use it.
#[test]
fn somebody_is_greeted_by_name() {
    let reply = Host::new(plugin()).call("hello", json!({ "name": " Ada " }));
    assert_eq!(reply.data(), "Hello, Ada!");
}
