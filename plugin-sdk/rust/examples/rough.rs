//! A plugin whose handlers do what handlers should not: the process tests run it.

use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::Duration;

use plugd_sdk::{Context, Error, Plugin, operation};

/// Says it back. Whatever it is.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

fn echo(args: Echo, _: &Context) -> Result<String, Error> {
    Ok(args.text)
}

/// Prints to stdout, as a forgotten debug line does.
fn print(_: (), _: &Context) -> Result<&'static str, Error> {
    write!(std::io::stdout(), "stray {{\"jsonrpc\":\"2.0\"}}\nno line end")?;
    std::io::stdout().flush()?;
    Ok("printed")
}

/// Runs a program that reads its stdin to the end and writes to its stdout.
fn child(_: (), _: &Context) -> Result<bool, Error> {
    Ok(Command::new("sh").args(["-c", "cat; echo from the child"]).status()?.success())
}

fn panics(_: (), _: &Context) -> Result<(), Error> {
    panic!("the secret is /etc/rough");
}

/// Works on, whatever happens.
fn stuck(_: (), cx: &Context) -> Result<(), Error> {
    cx.progress(1, None, "stuck");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Logs from a thread that outlives the call.
fn chatter(_: (), cx: &Context) -> Result<(), Error> {
    let cx = cx.clone();
    std::thread::spawn(move || {
        loop {
            cx.info("still here");
        }
    });
    Ok(())
}

fn main() -> ExitCode {
    Plugin::new("rough", "1.0.0")
        .description("Does what handlers should not.")
        .concurrency(2)
        .operation(operation!(echo))
        .operation(operation!(print))
        .operation(operation!(child))
        .operation(operation!(panics))
        .operation(operation!(stuck))
        .operation(operation!(chatter))
        .shutdown(|()| Ok(()))
        .serve()
}
