//! Stack traces within a text, found by how the common languages write them.

use std::borrow::Cow;

/// Which lines belong to the trace that has begun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// Those that are indented.
    Indented,
    /// Those up to the next empty one.
    UntilEmpty,
}

/// The text without stack traces; of Python's the last line, which says what happened, stays.
pub(super) fn removed(text: &str) -> Cow<'_, str> {
    let unfolded = unfolded(text);
    if !unfolded.contains('\n') && python_trace(&unfolded).is_none() {
        return unfolded;
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut dropped = false;
    let mut within = Within::Nothing;
    for line in unfolded.lines() {
        let belongs = match within {
            Within::Nothing => false,
            Within::Indented => line.is_empty() || line.starts_with([' ', '\t']),
            Within::UntilEmpty => !line.is_empty(),
        };
        if let Some((before, _)) = python_trace(line) {
            within = Within::Indented;
            kept.extend(Some(before.trim_end()).filter(|before| !before.is_empty()));
        } else if is_joint(line) {
            within = Within::Indented;
            // What an earlier trace ended with is not what was reported at last.
            while kept.pop().is_some_and(str::is_empty) {}
        } else if !belongs && !is_frame(line) {
            within = begun_by(line);
            if within == Within::Nothing {
                kept.push(line);
                continue;
            }
        }
        dropped = true;
    }
    if dropped { Cow::Owned(kept.join("\n").trim().to_owned()) } else { unfolded }
}

/// A trace that was written on one line, with `\n` for its line ends, has lines again.
fn unfolded(text: &str) -> Cow<'_, str> {
    let folded = text.contains("\\n") && (python_trace(text).is_some() || text.contains("\\n    at "));
    if folded { Cow::Owned(text.replace("\\r", "").replace("\\n", "\n")) } else { Cow::Borrowed(text) }
}

/// What is before and after the words that a trace of Python begins with.
fn python_trace(line: &str) -> Option<(&str, &str)> {
    line.split_once("Traceback (most recent call last)")
}

/// Between two traces of Python, and before one of Java's causes: an earlier error.
fn is_joint(line: &str) -> bool {
    line.starts_with("During handling of the above exception")
        || line.starts_with("The above exception was the direct cause")
}

/// What a line begins, where that is a trace.
fn begun_by(line: &str) -> Within {
    let line = line.trim_start();
    if line.starts_with("goroutine ") && line.ends_with("]:") {
        Within::UntilEmpty
    } else if line.starts_with("stack backtrace:") || line.starts_with("Stack trace:") {
        Within::Indented
    } else {
        Within::Nothing
    }
}

/// One frame of a stack: of JavaScript, Java, C#, Python, Ruby, Go or PHP.
fn is_frame(line: &str) -> bool {
    let indented = line.starts_with([' ', '\t']);
    let inner = line.trim();
    let place = || inner.rsplit(' ').next().is_some_and(has_line_number);
    match inner.split_once(' ') {
        Some(("at", rest)) => {
            indented && (place() || rest.contains(") in ") || (rest.contains('(') && rest.ends_with(')')))
        }
        Some(("File", rest)) => indented && rest.starts_with('"') && rest.contains("line "),
        Some(("from", rest)) => {
            // Ruby: file:line:in `name'.
            let mut parts = rest.splitn(3, ':');
            let file = parts.next().unwrap_or_default();
            file.contains('.') && parts.next().is_some_and(is_number)
        }
        Some(("...", rest)) => rest.ends_with(" more"),
        Some((word, rest)) => {
            let of_go = indented && rest.starts_with("+0x");
            let of_php = word.strip_prefix('#').is_some_and(is_number) && rest.contains(['(', '{']);
            of_go || of_php
        }
        None => indented && inner.starts_with('/') && has_line_number(inner),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a place in a file: `main.go:12`, `(main.js:3:5)`.
fn has_line_number(word: &str) -> bool {
    let place = word.trim_end_matches([')', ':']).rsplit_once(':');
    place.is_some_and(|(file, line)| file.contains('.') && is_number(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(removed(text), expected);
    }

    #[test]
    fn a_python_trace_leaves_what_happened() {
        let trace = "Traceback (most recent call last):\n  File \"/srv/main.py\", line 3, in run\n    connect()\n    \
             ~~~~~~~^^\nConnectionError: no route to the ledger";
        check(trace, "ConnectionError: no route to the ledger");
        check(
            &format!("the ledger failed: {trace}"),
            "the ledger failed:\nConnectionError: no route to the ledger",
        );
        check(&trace.replace('\n', "\\n"), "ConnectionError: no route to the ledger");
        let chained = format!(
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n\n\
             During handling of the above exception, another exception occurred:\n\n{trace}"
        );
        check(&chained, "ConnectionError: no route to the ledger");
    }

    #[test]
    fn frames_of_other_languages_go() {
        check(
            "TypeError: x is undefined\n    at run (/srv/app/main.js:10:5)\n    at process.processTicks (node:internal:95:5)",
            "TypeError: x is undefined",
        );
        check(
            "java.lang.IllegalStateException: closed\n\tat com.shop.Ledger.open(Ledger.java:12)\n\t... 23 more",
            "java.lang.IllegalStateException: closed",
        );
        check(
            "panic: closed\n\ngoroutine 1 [running]:\nmain.run(...)\n\t/srv/main.go:12 +0x1d\n",
            "panic: closed",
        );
        check(
            "thread 'main' panicked: closed\nstack backtrace:\n   0: core::panicking::panic\n             at /rustc/lib.rs:5:9\n   1: main",
            "thread 'main' panicked: closed",
        );
        check(
            "closed (RuntimeError)\n\tfrom lib/ledger.rb:3:in `open'\n\tfrom main.rb:9:in `<main>'",
            "closed (RuntimeError)",
        );
        check(
            "PHP Fatal error: closed\nStack trace:\n#0 /srv/a.php(5): open()\n#1 {main}",
            "PHP Fatal error: closed",
        );
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "no order TK-1",
            "two problems:\n  1: the date is in the past\n  at noon nobody is there",
            "from 9:00 to 10:00 nobody answers\nat 10:00 somebody does",
            r"the pattern \n is wrong",
            "File the complaint\nwithin 3 days",
        ] {
            check(text, text);
        }
    }
}
