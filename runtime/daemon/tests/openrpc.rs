//! `docs/control-api.openrpc.json` is what `rpc.discover` answers, frozen; `UPDATE_DOCS=1` rewrites it.

use std::path::Path;

use plugd_daemon::discover::document;

#[test]
fn the_published_document_is_the_one_that_is_answered() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/control-api.openrpc.json");
    let expected = format!("{}\n", serde_json::to_string_pretty(&document()).expect("JSON"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/control-api.openrpc.json can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/control-api.openrpc.json differs from what rpc.discover answers: a member that goes or \
         changes its type breaks clients. If it is meant, rewrite it with\n  \
         UPDATE_DOCS=1 cargo test -p plugd-daemon --test openrpc"
    );
}
