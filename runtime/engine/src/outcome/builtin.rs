//! The operations that plugd itself offers, under the name of a plugin that cannot be configured.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use plugd_contract::export::spelling;
use plugd_protocol::control::ResultParams;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, Operation, OperationId, Outcome};
use plugd_supervisor::driver::Answered;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::{Origin, Trail};
use crate::config::OWN_NAME;
use crate::registry::RegisteredOperation;

/// What `plugd.read_result` declares of itself.
const READ_RESULT: &str = r#"{
    "name": "read_result",
    "title": "Read a large result",
    "description": "Reads one more page of a result that was too large to be given at once. The result of such a call has a page with a ref; pass that ref, and the page's next as offset.",
    "when_to_use": "A result has a page with next in it, and what is needed is not on the pages seen so far.",
    "when_not_to_use": "The result has no page: then it was given whole. To run the operation again, call it.",
    "examples": ["show me the next orders of that list", "给我看下一页结果"],
    "category": "plugd",
    "input_schema": {
        "type": "object",
        "properties": {
            "ref": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The reference: page.ref of the result.", "examples": ["0193e4a2-5f00-7000-8000-000000000000"]},
            "pointer": {"type": "string", "description": "A JSON Pointer to the part that is wanted, such as page.pointer of the result; the whole if left out.", "examples": ["/orders"]},
            "offset": {"type": "integer", "minimum": 0, "description": "The first item, or character, to give: page.next of the page before; 0 if left out.", "examples": [20]},
            "limit": {"type": "integer", "minimum": 1, "description": "At most so many items or characters; as many as fit a page if left out.", "examples": [20]}
        },
        "required": ["ref"]
    },
    "effects": {"read_only": true, "destructive": false, "idempotent": true, "open_world": false}
}"#;

/// Arguments of `plugd.read_result`.
#[derive(Deserialize)]
struct ReadResult {
    #[serde(rename = "ref")]
    reference: CallId,
    pointer: Option<String>,
    offset: Option<u64>,
    limit: Option<u64>,
}

static ALL: LazyLock<Vec<Arc<RegisteredOperation>>> = LazyLock::new(|| {
    let declared: Operation = serde_json::from_str(READ_RESULT).expect("plugd's own declaration is right");
    let id = OperationId::parse(&format!("{OWN_NAME}.{}", declared.name)).expect("plugd's own name is one");
    vec![Arc::new(RegisteredOperation::new(id, declared, env!("CARGO_PKG_VERSION").into()))]
});

/// All of them.
pub(crate) fn all() -> &'static [Arc<RegisteredOperation>] {
    &ALL
}

/// The one of that name, in any of its spellings.
pub(crate) fn operation(name: &str) -> Option<&'static Arc<RegisteredOperation>> {
    // Most names are not; nothing is put together to see that.
    if !name.starts_with(OWN_NAME) {
        return None;
    }
    all().iter().find(|own| own.id.to_string() == name || spelling(&own.id) == name)
}

/// Whether it is one of them.
pub(crate) fn is_builtin(id: &OperationId) -> bool {
    id.plugin.as_str() == OWN_NAME
}

/// Runs one of them: arguments are in order, and the caller may use it.
///
/// # Errors
/// As [`Engine::result`](crate::engine::Engine::result).
pub(crate) async fn run(
    trail: &Trail,
    _operation: &RegisteredOperation,
    arguments: &RawValue,
) -> Result<Answered, CallError> {
    let began = Instant::now();
    let wanted: ReadResult = serde_json::from_str(arguments.get())
        .map_err(|error| CallError::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let ReadResult { reference, pointer, offset, limit } = wanted;
    let caller = trail.request.caller.as_deref().map(ToOwned::to_owned);
    let caller = caller.filter(|_| matches!(trail.request.origin, Origin::Caller));
    let params = ResultParams { reference, pointer, offset, limit, whole: false, caller };
    let report = trail.engine.result(params).await?;
    let data = to_raw_value(&report).map_err(|error| {
        CallError::new(ErrorKind::Internal, error.to_string()).outcome(Outcome::Completed)
    })?;
    Ok(Answered { data, summary: None, next_actions: None, took: began.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plugd_offers_itself_is_declared_as_it_asks_of_plugins() {
        let own = operation("plugd.read_result").expect("it is offered");
        assert!(Arc::ptr_eq(own, operation("plugd__read_result").expect("it is offered")));
        assert!(operation("plugd.other").is_none() && operation("shop.query").is_none());
        let contract = own.contract().expect("its schema compiles");
        for (arguments, fits) in [
            (r#"{"ref":"c1"}"#, true),
            (r#"{"ref":"c1","pointer":"/a","offset":20,"limit":5}"#, true),
            (r#"{"offset":1}"#, false),
            (r#"{"ref":"c1","limit":0}"#, false),
        ] {
            let arguments = RawValue::from_string(arguments.to_owned()).expect("JSON");
            assert_eq!(contract.check(&arguments).is_ok(), fits, "{arguments}");
        }
    }
}
