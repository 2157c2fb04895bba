//! Code of the plugin's author, run so that a panic there fails one request and is told in the log.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};

use plugd_protocol::error::rpc_code;

use crate::error::Error;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// What stands in the place of a stack that was not asked for.
const NO_STACK: &str =
    "the stack comes here, too, where plugd.toml has env = { RUST_BACKTRACE = \"1\" } for this plugin";

thread_local! {
    /// Whether guarded code runs on this thread.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Where and why it panicked so far.
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Has what guarded code panics with kept for the log, and not printed.
///
/// Other threads of the plugin go on printing theirs to stderr, and a hook that the plugin has set before is
/// called as ever.
pub(crate) fn watch_panics() {
    if cfg!(panic = "abort") {
        // Nobody lives to tell the log.
        return;
    }
    let before = panic::take_hook();
    // What is in its place then is the hook that every program begins with.
    let is_own = !is_same(&before, &panic::take_hook());
    panic::set_hook(Box::new(move |panic| {
        if !is_kept(panic) || is_own {
            before(panic);
        }
    }));
}

/// Whether two hooks are one function without a state.
fn is_same(one: &Hook, other: &Hook) -> bool {
    // Both are of no size, so this compares what they do; a wrong answer only prints a panic twice.
    std::ptr::eq(&raw const **one, &raw const **other)
}

/// Keeps a panic of guarded code; `false` where it has to be printed.
fn is_kept(panic: &PanicHookInfo<'_>) -> bool {
    if !IS_GUARDED.get() {
        return false;
    }
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    let stack = Backtrace::capture();
    let stack = match stack.status() {
        BacktraceStatus::Captured => stack.to_string(),
        _ => NO_STACK.to_owned(),
    };
    let text = format!("panicked{place}: {}\n{stack}", words(panic.payload()));
    SAID.try_with(|said| {
        let mut said = said.borrow_mut();
        // A panic while another one unwinds ends the process: then stderr has the last word.
        if let [first] = said.as_slice() {
            drop(writeln!(io::stderr(), "\n{first}"));
        }
        said.push(text);
        said.len() == 1
    })
    .unwrap_or(false)
}

fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}

/// Runs the author's code; a panic there fails this one request.
///
/// `tell` gets what is for the log alone: the text may quote what is not for callers.
pub(crate) fn guarded<T>(
    what: &str,
    tell: impl Fn(&str),
    run: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    IS_GUARDED.set(true);
    let ended = catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(false);
    // What was printed without a line end would come to light with a later call's.
    drop(io::stdout().flush());
    let said = SAID.take();
    said.iter().for_each(|panic| tell(&format!("{what} {panic}")));
    let error = match ended {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error,
        Err(payload) => {
            if said.is_empty() {
                tell(&format!("{what} panicked: {}", words(&*payload)));
            }
            let text = format!("{what} failed unexpectedly: it panicked");
            return Err(Error::coded(rpc_code::HANDLER_FAILED, text));
        }
    };
    if let Some(fault) = error.name_fault() {
        tell(&format!("{what} returned an error of a wrong name: {fault}"));
        return Err(error.without_a_name());
    }
    if error.code() == rpc_code::HANDLER_FAILED {
        tell(&format!("{what} failed: {error}"));
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_of_the_plugins_own_is_told_from_the_one_that_every_program_has() {
        let of_the_tests = panic::take_hook();
        let (one, other) = (panic::take_hook(), panic::take_hook());
        assert!(is_same(&one, &other) && !is_same(&of_the_tests, &other));
        panic::set_hook(of_the_tests);
        let own: Hook = Box::new(|_| {});
        let with_a_state: Hook = Box::new(move |panic| one(panic));
        assert!(!is_same(&own, &other) && !is_same(&with_a_state, &other));
    }

    #[test]
    fn without_a_hook_the_log_has_the_words_of_a_panic() {
        let told = RefCell::new(Vec::new());
        let ended: Result<(), Error> =
            guarded("work", |text| told.borrow_mut().push(text.to_owned()), || panic!("no {}", "way"));
        assert_eq!(ended.expect_err("it panicked").message, "work failed unexpectedly: it panicked");
        assert_eq!(told.take(), ["work panicked: no way"]);
    }
}
