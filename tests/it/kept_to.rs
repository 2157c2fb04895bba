//! Rows of the requirements that had no test of their own: each is kept to, and says so here.

mod arguments;
mod claims;
mod confined;
mod declared;
mod errors;
mod found;
mod overlaps;
mod replaced;

use plugd_tests::Daemon;
use serde_json::Value;

/// Operations of a Python plugin, as the fixture takes them.
fn operations(declarations: &[Value]) -> String {
    let text = Value::from(declarations.to_vec()).to_string();
    format!("OPERATIONS = json.loads({text:?})\n")
}

/// The ids in a list, what plugd itself offers left out.
#[track_caller]
fn ids(list: &Value) -> Vec<&str> {
    let all = list.as_array().unwrap_or_else(|| panic!("no list: {list:#}")).iter();
    let ids = all.map(|one| one["id"].as_str().expect("an id"));
    ids.filter(|id| !id.starts_with("plugd.")).collect()
}

/// The one document of a command that ends with this code.
#[track_caller]
fn ended(daemon: &Daemon<'_>, code: i32, words: &[&str]) -> Value {
    daemon.plugd(&[&["--output", "json"], words].concat()).expect(code).json()
}
