//! A plugin whose handlers do what handlers should not: the process tests run it.

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use plugd_sdk::{Context, Error, Operation, Plugin};

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
    Ok("printed")
}

/// Runs a program that reads its stdin to the end and writes to its stdout.
fn child(_: (), _: &Context) -> Result<bool, Error> {
    Ok(Command::new("sh").args(["-c", "cat; echo from the child"]).status()?.success())
}

/// Runs programs that read their stdin, and says what they found there.
fn tools(_: (), _: &Context) -> Result<Vec<String>, Error> {
    let run = |program: &str, args: &[&str]| {
        let child =
            Command::new(program).args(args).stdin(Stdio::inherit()).stdout(Stdio::piped()).spawn()?;
        Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
    };
    [run("cat", &[]), run("head", &["-c", "20"])].into_iter().collect()
}

/// Asks what to do before it is done.
fn asks(_: (), cx: &Context) -> Result<String, Error> {
    let times: u8 = cx.ask("How often?")?;
    let secret = cx.ask_secret("And the password?")?;
    Ok(format!("{times} times, {} letters", secret.chars().count()))
}

fn panics(_: (), _: &Context) -> Result<(), Error> {
    panic!("the secret is /etc/rough");
}

/// Fails under a name that is none.
fn misnamed(_: (), _: &Context) -> Result<(), Error> {
    Err(Error::new("NotThere", "it is gone"))
}

/// Catches a panic of its own, and one of a thread.
fn catches(_: (), _: &Context) -> Result<bool, Error> {
    let caught = std::panic::catch_unwind(|| panic!("caught by the handler"));
    let thread = std::thread::spawn(|| panic!("in a thread of its own"));
    Ok(caught.is_err() && thread.join().is_err())
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

/// Gives back a text of nearly 16 MiB, longer by what it got: above that none fits into a message.
fn large(args: Echo, _: &Context) -> Result<String, Error> {
    Ok("x".repeat(16 * 1024 * 1024 - 100 + args.text.len()))
}

/// Works on until it is cancelled or its time is over; says whether it was cancelled.
fn busy(_: (), cx: &Context) -> Result<bool, Error> {
    cx.progress(1, None, "busy");
    while !cx.is_cancelled() && !cx.time_left().is_zero() {
        std::hint::spin_loop();
    }
    Ok(cx.is_cancelled())
}

/// As many as the tests ask for.
fn lanes() -> u32 {
    std::env::var("ROUGH_LANES").ok().and_then(|lanes| lanes.parse().ok()).unwrap_or(2)
}

fn main() -> ExitCode {
    if std::env::var_os("ROUGH_HOOK").is_some() {
        std::panic::set_hook(Box::new(|_| drop(writeln!(std::io::stderr(), "the hook of its own"))));
    }
    Plugin::new("rough", "1.0.0")
        .description("Does what handlers should not.")
        .concurrency(lanes())
        .operation(Operation::new("echo", echo))
        .operation(Operation::new("print", print))
        .operation(Operation::new("child", child))
        .operation(Operation::new("tools", tools))
        .operation(Operation::new("asks", asks))
        .operation(Operation::new("panics", panics))
        .operation(Operation::new("misname", misnamed))
        .operation(Operation::new("catches", catches))
        .operation(Operation::new("stuck", stuck))
        .operation(Operation::new("chatter", chatter))
        .operation(Operation::new("large", large))
        .operation(Operation::new("busy", busy))
        .shutdown(|()| Ok(()))
        .serve()
}
