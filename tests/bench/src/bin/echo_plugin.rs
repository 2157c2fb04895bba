//! A lean plugin without the SDK: it gives its arguments back, unparsed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use plugd_bench::lines::Lines;
use serde::Deserialize;
use serde_json::value::RawValue;

const MANIFEST: &str = r#"{"protocol":1,"name":"echo","version":"1.0.0","features":{"concurrency":64},"operations":[{"name":"echo","description":"Gives its arguments back.","input_schema":{"type":"object","properties":{"payload":{"type":"string","description":"What to give back."}},"required":["payload"],"additionalProperties":false},"effects":{"read_only":true,"idempotent":true}}]}"#;

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
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn main() -> io::Result<()> {
    let mut lines = Lines::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut answers = Vec::new();
    let mut leaving = false;
    while !leaving {
        let Some(line) = lines.next_line()? else { break };
        let request: Request<'_> = serde_json::from_slice(line)?;
        leaving = request.method == "shutdown";
        answer(&request, &mut answers);
        // All that came in one read is answered in one write.
        if leaving || !lines.has_line() {
            stdout.write_all(&answers)?;
            answers.clear();
        }
    }
    Ok(())
}

fn answer(request: &Request<'_>, answers: &mut Vec<u8>) {
    let Some(id) = request.id else { return };
    let (before, payload, after) = match (request.method, request.params.arguments) {
        ("call", Some(arguments)) => (r#""result":{"data":"#, arguments.get(), "}"),
        ("describe", _) => (r#""result":"#, MANIFEST, ""),
        ("init" | "shutdown", _) => (r#""result":"#, "{}", ""),
        _ => (r#""error":"#, r#"{"code":-32601,"message":"no such method"}"#, ""),
    };
    for part in [r#"{"jsonrpc":"2.0","id":"#, id.get(), ",", before, payload, after, "}\n"] {
        answers.extend_from_slice(part.as_bytes());
    }
}
