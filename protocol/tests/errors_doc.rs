//! `docs/errors.md` says exactly what the code says; `UPDATE_DOCS=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use plugd_protocol::error::ErrorClass;
use plugd_protocol::{CallError, ErrorKind};

const HEAD: &str = "\
# Errors

<!-- Generated from `protocol/src/error.rs`. To rewrite it:
     UPDATE_DOCS=1 cargo test -p plugd-protocol --test errors_doc -->

Every call ends in one result. Where its `status` is `error` or `cancelled`, its `error` has:

| member | type | meaning |
|---|---|---|
| `code` | integer | the number below; its thousands are the class |
| `name` | string | the number's name; for 4001 the plugin's own name for its failure, where it gives one |
| `message` | string | what happened, for people; at most 2,000 characters |
| `hint` | string, optional | what to do about it; where the place that failed knows better, not the text below, in which `NAME` is the plugin's |
| `retryable` | boolean | whether the same call may succeed later, and does no harm: below for one that did not run. Of one that may have run it is `false`, unless the operation is declared `read_only` or `idempotent`; with 4xxx it is the plugin's own word |
| `outcome` | string | `not_run`: the plugin never received the call. `unknown`: it did, and what it did cannot be known. `completed`: it answered |
| `cause` | object, optional | the inner call that failed: `operation`, `call_id` and its `error`, of this same form |
| `details` | list, optional | each problem with the arguments: `path` (JSON Pointer), `problem`, `expected`, and where known `got` and `suggestion` |

The exit code is that of a `plugd` command which ended with the error. A call interrupted with
Ctrl-C exits with 130, whatever its error.
";

fn title(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Request => "1xxx: the request",
        ErrorClass::Argument => "2xxx: the arguments",
        ErrorClass::Interaction => "3xxx: a person is needed",
        ErrorClass::Plugin => "4xxx: the plugin's own failure",
        ErrorClass::Time => "5xxx: time",
        ErrorClass::Process => "6xxx: the plugin's process",
        ErrorClass::Permission => "7xxx: permission",
        ErrorClass::Protocol => "8xxx: the plugin broke the protocol",
        ErrorClass::Internal => "9xxx: plugd itself",
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut class = None;
    for kind in ErrorKind::ALL {
        if class != Some(kind.class()) {
            class = Some(kind.class());
            write!(page, "\n## {}\n\n", title(kind.class())).expect("a string takes all");
            page.push_str(
                "| code | name | meaning | retryable | exit code | hint |\n|---|---|---|---|---|---|\n",
            );
        }
        let retryable = if kind.retryable() { "yes" } else { "no" };
        let (code, name, meaning, hint) = (kind.code(), kind.name(), kind.meaning(), kind.hint());
        let exit = CallError::new(*kind, "").exit_code();
        writeln!(page, "| {code} | `{name}` | {meaning} | {retryable} | {exit} | {hint} |")
            .expect("a string takes all");
    }
    page
}

#[test]
fn the_error_page_says_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let expected = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/errors.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "docs/errors.md differs from protocol/src/error.rs; rewrite it with\n  \
         UPDATE_DOCS=1 cargo test -p plugd-protocol --test errors_doc"
    );
}
