//! A large result that is kept is read once where all of it is wanted, and not once for each page.

use plugd_protocol::control::ResultParams;
use plugd_protocol::result::PageUnit;
use plugd_tests::{Daemon, Sandbox};
use serde_json::Value;

/// Gives lists and texts of a given size; a list's items are of uneven length.
const PLUGIN: &str = r#"
SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}}
OPERATIONS = [{"name": name, "input_schema": SIZE} for name in ("list", "text")]

def handle(operation, arguments, params):
    if operation == "text":
        return {"data": "三\n" * (arguments["size"] // 5)}
    return {"data": [{"id": at, "pad": "p" * (at % 50)} for at in range(arguments["size"] // 40)]}
"#;

const MIB: usize = 1024 * 1024;

/// More than one answer holds.
const SIZE: usize = 17 * MIB;

/// Keeps a result of about so many bytes; its call's id.
#[track_caller]
fn kept(daemon: &Daemon<'_>, operation: &str, size: usize) -> String {
    let result = daemon.json(&["call", operation, "--page", &format!("size={size}")]);
    result["page"]["ref"].as_str().unwrap_or_else(|| panic!("no page: {result:#}")).to_owned()
}

#[tokio::test]
async fn all_of_a_large_result_is_one_answer() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", PLUGIN));
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    for (operation, unit) in [("fp.list", PageUnit::Items), ("fp.text", PageUnit::Characters)] {
        let id = kept(&daemon, operation, 3 * MIB);
        let params = |whole| ResultParams {
            reference: id.clone().into(),
            pointer: None,
            offset: None,
            limit: None,
            whole,
            caller: None,
        };
        let page = client.result(&params(false)).await.expect("it is kept");
        assert!(page.page.next.is_some() && page.data.get().len() <= 64 * 1024, "{:?}", page.page);
        let whole = client.result(&params(true)).await.expect("it is kept");
        assert_eq!((whole.page.next, whole.page.unit), (None, unit), "{:?}", whole.page);
        assert_eq!((whole.page.count, whole.page.total), (whole.page.total, page.page.total));
        assert_eq!(whole.data.get().len() as u64, whole.page.bytes);
        let shown = daemon.plugd(&["result", &id, "--all"]).expect(0).stdout;
        assert!(shown.trim_end() == whole.data.get(), "{operation}: what is written is what is kept");
    }
    daemon.stop();
}

#[test]
fn what_is_larger_than_an_answer_comes_in_pieces_that_fit_together() {
    let sandbox = Sandbox::new("");
    let table = format!("[limits]\nframe_limit = \"48MiB\"\n{}", sandbox.python("fp", PLUGIN));
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let text = kept(&daemon, "fp.text", SIZE);
    let shown = daemon.plugd(&["result", &text, "--all"]).expect(0).stdout;
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    assert!(all == "三\n".repeat(SIZE / 5), "{} bytes", shown.len());
    daemon.stop();
}
