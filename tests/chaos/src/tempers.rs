//! The plugins and what they are like, and the calls that are made to them.

use crate::numbers::Numbers;

/// One plugin.
pub(crate) struct Temper {
    /// Its name, and the word its program is told.
    pub(crate) name: &'static str,
    /// What it runs as; several plugins may be of one temper.
    pub(crate) program: &'static str,
    /// Its share of the calls.
    pub(crate) weight: u64,
    /// Nobody kills it, stops it or cancels its calls: what happens to others must not reach it.
    pub(crate) calm: bool,
    /// What else its `[plugins.NAME]` table says.
    pub(crate) table: &'static str,
    /// The arguments of a call, as JSON; the token belongs to this call alone.
    pub(crate) arguments: fn(&mut Numbers, token: &str) -> String,
}

/// Back-off and restart window are set aside: it is killed more often than any plugin fails.
const TOUGH: &str = "restart = { stable_after = \"0s\", backoff = \"20ms\", backoff_cap = \"200ms\", window = \"1s\", max = 1000000 }\n";

/// Whose executions are written to the ledger.
pub(crate) const COUNTER: &str = "counter";

/// The one that is given up now and then.
pub(crate) const HOPELESS: &str = "hopeless";

/// All of them.
pub(crate) const TEMPERS: &[Temper] = &[
    Temper { name: "calm_a", program: "calm", weight: 25, calm: true, table: "", arguments: nothing },
    Temper { name: "calm_b", program: "calm", weight: 25, calm: true, table: "", arguments: some_text },
    tough("lanes", 8, |numbers, _| format!(r#"{{"ms":{}}}"#, 20 + numbers.below(130))),
    tough("lane", 6, |numbers, _| format!(r#"{{"ms":{}}}"#, 1 + numbers.below(10))),
    tough("crashy", 3, crash),
    tough("deaf", 4, nothing),
    tough("flood", 1, nothing),
    tough("leaky", 1, leak),
    tough("late", 4, nothing),
    tough("base", 3, nothing),
    tough("stays", 4, |_, _| r#"{"through":"base.work","with":{"ms":2}}"#.to_owned()),
    tough("restarts", 4, |_, _| r#"{"through":"stays.work","with":{"through":"base.work"}}"#.to_owned()),
    tough("stops", 2, |_, _| r#"{"through":"base.work"}"#.to_owned()),
    tough("changes", 3, some_text),
    tough(COUNTER, 9, |numbers, token| format!(r#"{{"token":"{token}","ms":{}}}"#, numbers.below(20))),
    Temper { name: HOPELESS, program: HOPELESS, weight: 1, calm: false, table: "", arguments: nothing },
];

const fn tough(name: &'static str, weight: u64, arguments: fn(&mut Numbers, &str) -> String) -> Temper {
    Temper { name, program: name, weight, calm: false, table: TOUGH, arguments }
}

/// One of them, by their shares.
pub(crate) fn any(numbers: &mut Numbers) -> &'static Temper {
    let all = TEMPERS.iter().map(|temper| temper.weight).sum();
    let mut left = numbers.below(all);
    let found = TEMPERS.iter().find(|temper| match left.checked_sub(temper.weight) {
        Some(less) => {
            left = less;
            false
        }
        None => true,
    });
    found.expect("the number is below the sum of the shares")
}

/// One that may be hurt.
pub(crate) fn any_victim(numbers: &mut Numbers) -> &'static Temper {
    loop {
        let temper = numbers.pick(TEMPERS);
        if !temper.calm {
            return temper;
        }
    }
}

fn nothing(_: &mut Numbers, _: &str) -> String {
    "{}".to_owned()
}

fn some_text(numbers: &mut Numbers, _: &str) -> String {
    let length = usize::try_from(numbers.below(2_000)).expect("a short text");
    format!(r#"{{"text":"{}"}}"#, "x".repeat(length))
}

/// One call in four ends the process: by an exit, or by a signal that a fault gives.
fn crash(numbers: &mut Numbers, _: &str) -> String {
    match numbers.below(8) {
        0 => r#"{"crash":0}"#.to_owned(),
        1 => r#"{"crash":11}"#.to_owned(),
        _ => "{}".to_owned(),
    }
}

fn leak(numbers: &mut Numbers, _: &str) -> String {
    format!(r#"{{"session":{},"hold":{}}}"#, numbers.one_in(2), numbers.one_in(2))
}
