//! A lean plugin that holds calls back: `hold` is never answered, `echo` at once.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use plugd_bench::lines::Lines;
use serde::Deserialize;
use serde_json::value::RawValue;

/// As many calls at once as the protocol has.
const MANIFEST: &str = r#"{"protocol":1,"name":"hold","version":"1.0.0","features":{"concurrency":256},"operations":[{"name":"echo","description":"Gives its arguments back.","input_schema":{"type":"object","properties":{"payload":{"type":"string","description":"What to give back."}},"required":["payload"],"additionalProperties":false},"effects":{"read_only":true,"idempotent":true}},{"name":"hold","description":"Is never answered.","input_schema":{"type":"object","properties":{},"additionalProperties":false},"effects":{"read_only":true,"idempotent":true}}]}"#;

#[derive(Deserialize)]
struct Request<'a> {
    /// Absent in a notification, none of which matter here.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    operation: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn main() -> io::Result<()> {
    let mut lines = Lines::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut leaving = false;
    while !leaving {
        let Some(line) = lines.next_line()? else { break };
        let request: Request<'_> = serde_json::from_slice(line)?;
        leaving = request.method == "shutdown";
        if let Some(answer) = answer(&request) {
            stdout.write_all(answer.as_bytes())?;
        }
    }
    Ok(())
}

fn answer(request: &Request<'_>) -> Option<String> {
    let id = request.id?.get();
    let result = match (request.method, request.params.operation, request.params.arguments) {
        ("call", Some("hold"), _) => return None,
        ("call", _, Some(arguments)) => format!(r#"{{"data":{}}}"#, arguments.get()),
        ("describe", ..) => MANIFEST.to_owned(),
        _ => "{}".to_owned(),
    };
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"))
}
