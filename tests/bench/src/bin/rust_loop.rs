//! The loop that one would write without an SDK: reads a line, parses it, builds the answer, writes it.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize)]
struct Request {
    id: Value,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    payload: String,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: Value,
    result: Result,
}

#[derive(Serialize)]
struct Result {
    data: String,
}

fn main() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let result = Result { data: request.params.arguments.payload };
        let mut answer = serde_json::to_string(&Answer { jsonrpc: "2.0", id: request.id, result })?;
        answer.push('\n');
        stdout.write_all(answer.as_bytes())?;
    }
    Ok(())
}
