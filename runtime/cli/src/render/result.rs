//! A call's result as text: what it says, what it brought, and what a person must do for it to go on.

use std::fmt::Write;

use plugd_protocol::control::ResultReport;
use plugd_protocol::result::{Page, PageUnit, Pending};
use plugd_protocol::{CallResult, Status};
use serde_json::Value;

use super::json::pretty;
use super::schema::{members_of, to_give};
use super::table::{Cell, table};
use super::text::{Paint, in_one_line, until, visible, visible_line};
use super::value::Layers;
use crate::ask;

/// A call's result without its error: the summary, then single facts, then lists.
pub(crate) fn result(result: &CallResult, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(summary) = &result.summary {
        let _ = writeln!(out, "{}", paint.bold(&visible_line(summary)));
    }
    if let Some(data) = &result.data {
        let layers = Layers::of(data.get(), paint);
        // What a summary says already need not be said again.
        if result.summary.as_deref().is_none_or(|summary| summary != layers.text.trim_end()) {
            out.push_str(&layers.text);
        }
        if layers.clipped && result.page.is_none() {
            let _ = writeln!(out, "{}", paint.dim("(clipped: --output data gives all)"));
        }
    }
    if let Some(page) = &result.page {
        let _ = writeln!(out, "{}", paint.dim(&place(page, page.pointer.as_deref())));
    }
    if let (Status::Pending, Some(call_id)) = (result.status, &result.meta.call_id) {
        let id = visible_line(call_id.as_str());
        if result.summary.is_none() {
            let _ = writeln!(out, "job {id} runs in the background");
        }
        let _ = writeln!(out, "  plugd jobs wait {id}");
    }
    for next in &result.next_actions {
        let operation = visible_line(next.operation.as_deref().unwrap_or("next"));
        let _ = match &next.description {
            Some(description) => writeln!(out, "→ {operation}: {}", visible_line(description)),
            None => writeln!(out, "→ {operation}"),
        };
    }
    if let Some(from) = earlier(result) {
        let _ = writeln!(out, "{}", paint.dim(&from));
    }
    out
}

/// Whose answer this is, where nothing ran for it.
fn earlier(result: &CallResult) -> Option<String> {
    let why = match (result.meta.replayed, result.meta.cached) {
        (true, _) => "of the call with this key",
        (false, true) => "of an equal call a moment ago",
        (false, false) => return None,
    };
    let id = result.meta.answer_of.as_ref().map(|id| format!(": {}", visible_line(id.as_str())));
    Some(format!("(the answer {why}{})", id.unwrap_or_default()))
}

/// A page of a kept result, and where it is in the whole.
pub(crate) fn result_page(report: &ResultReport, pointer: Option<&str>) -> String {
    let page = &report.page;
    let whole = page.offset == 0 && page.next.is_none();
    let data = match page.unit {
        PageUnit::Characters if !whole => match serde_json::from_str::<String>(report.data.get()) {
            Ok(text) => visible(&text).into_owned(),
            Err(_) => pretty(report.data.get()),
        },
        PageUnit::Characters | PageUnit::Items => pretty(report.data.get()),
    };
    let place = if whole { String::new() } else { format!("{}\n", place(page, pointer)) };
    format!("{data}\n{place}")
}

/// Which part a page is, and how to get the next one.
fn place(page: &Page, pointer: Option<&str>) -> String {
    let unit = match page.unit {
        PageUnit::Items => "items",
        PageUnit::Characters => "characters",
    };
    let last = page.offset + page.count.saturating_sub(1);
    let part = pointer.map(|pointer| format!(" of {}", visible_line(pointer))).unwrap_or_default();
    let mut out = format!("({unit} {} to {last} of {}{part}", page.offset, page.total);
    if let Some(next) = page.next {
        let pointer = pointer.map(|pointer| format!(" --pointer {}", visible_line(pointer)));
        let (id, pointer) = (visible_line(page.reference.as_str()), pointer.unwrap_or_default());
        let _ = write!(out, "; the next: plugd result {id}{pointer} --offset {next}");
    }
    out.push(')');
    out
}

/// How a call that stopped goes on where no token carries it on.
pub(crate) enum Instead<'a> {
    /// In words.
    Hint(&'a str),
    /// By this command line.
    Command(&'a str),
}

/// What a person must say, and the command that says it, or what to do `instead`; `line` makes a command
/// line of its end.
pub(crate) fn pending(
    pending: &Pending,
    instead: Option<Instead<'_>>,
    paint: Paint,
    line: impl Fn(&str) -> String,
) -> String {
    let mut out = format!("{}\n", visible(&pending.prompt));
    let schema = |question: &plugd_protocol::plugin::Question| -> Value {
        let schema = question.schema.as_deref();
        schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default()
    };
    let row = |question: &plugd_protocol::plugin::Question| -> Vec<Cell> {
        let name = visible_line(&question.name);
        let expected = ask::expected(&schema(question)).unwrap_or_else(|| "text".to_owned());
        vec![
            Cell::painted(&format!("  {name}"), format!("  {}", paint.bold(&name))),
            visible_line(&expected).into_owned().into(),
            in_one_line(&question.prompt).into(),
        ]
    };
    out.push_str(&table(&pending.questions.iter().map(row).collect::<Vec<_>>()));
    for question in &pending.questions {
        let within = members_of(&schema(question));
        if !within.is_empty() {
            let _ = write!(out, "  in {}:\n{}", visible_line(&question.name), indented_lines(&within));
        }
    }
    if let Some(arguments) = &pending.arguments {
        let _ = writeln!(out, "  {}", pretty(&arguments.to_string()).replace('\n', "\n  "));
    }
    match instead {
        Some(Instead::Hint(hint)) => {
            let _ = writeln!(out, "  {} {}", paint.dim("hint:"), visible_line(hint));
            return out;
        }
        Some(Instead::Command(command)) => {
            let what = if pending.questions.is_empty() { "to let it run" } else { "to go on" };
            let _ = writeln!(out, "{what}:\n  {}", visible_line(command));
            return out;
        }
        None => {}
    }
    let (Some(token), Some(expires)) = (&pending.token, pending.expires) else { return out };
    let (token, until) = (visible_line(token), until(expires));
    if pending.questions.is_empty() {
        let (yes, no) = (line(&format!("answer {token} --yes")), line(&format!("answer {token} --no")));
        let _ = writeln!(
            out,
            "to let it run, within {until}:\n  {}\nnot to:\n  {}",
            visible_line(&yes),
            visible_line(&no)
        );
    } else {
        let names = pending.questions.iter();
        let names: String =
            names.map(|question| format!(" {}", to_give(&question.name, &schema(question)))).collect();
        let command = line(&format!("answer {token}{names}"));
        let _ = writeln!(out, "to go on, within {until}:\n  {}", visible_line(&command));
    }
    out
}

fn indented_lines(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(written: Value) -> CallResult {
        serde_json::from_str(&written.to_string()).unwrap()
    }

    const META: &str =
        r#"{"call_id":"c-1","attempt":1,"queue_us":0,"run_us":0,"argument_bytes":2,"data_bytes":2}"#;

    fn meta() -> Value {
        serde_json::from_str(META).unwrap()
    }

    #[test]
    fn a_result_says_its_summary_then_facts_then_lists() {
        let told = read(json!({"status": "ok", "summary": "2 orders", "meta": meta(),
            "data": {"orders": [{"id": 1}, {"id": 2}], "total": 3200}}));
        let text = result(&told, Paint::never());
        assert_eq!(text, "2 orders\ntotal: 3200\norders: 2 items\n  - {\"id\":1}\n  - {\"id\":2}\n");
    }

    #[test]
    fn a_page_says_where_it_is_and_how_to_get_the_next() {
        let told =
            read(json!({"status": "ok", "data": [1], "meta": meta(), "page": {"ref": "c-1", "unit": "items",
            "offset": 0, "count": 1, "total": 7, "next": 1, "bytes": 9}}));
        let text = result(&told, Paint::never());
        assert!(text.ends_with("(items 0 to 0 of 7; the next: plugd result c-1 --offset 1)\n"), "{text}");
    }

    #[test]
    fn what_to_do_next_is_said_with_or_without_a_description() {
        let next = json!([{"operation": "t.one"}, {"operation": "t.two", "description": "now"}]);
        let told = read(json!({"status": "ok", "data": 1, "meta": meta(), "next_actions": next}));
        assert_eq!(result(&told, Paint::never()), "1\n→ t.one\n→ t.two: now\n");
    }

    #[test]
    fn a_job_and_an_earlier_answer_are_told() {
        let job = read(json!({"status": "pending", "meta": meta()}));
        assert_eq!(result(&job, Paint::never()), "job c-1 runs in the background\n  plugd jobs wait c-1\n");
        let mut told = job;
        told.summary = Some("t.long runs in the background as c-1".to_owned());
        let text = result(&told, Paint::never());
        assert_eq!(text, "t.long runs in the background as c-1\n  plugd jobs wait c-1\n", "said once");
        let mut again = read(json!({"status": "ok", "data": 1, "meta": meta()}));
        again.meta.replayed = true;
        assert_eq!(result(&again, Paint::never()), "1\n(the answer of the call with this key)\n");
    }

    #[test]
    fn what_must_be_said_comes_with_the_command_that_says_it() {
        let waits = |questions: Value, arguments: Value| -> String {
            let written = json!({"token": "t-1", "expires": 0, "prompt": "Which ticket, and when?",
                "questions": questions, "arguments": arguments});
            let waits: Pending = serde_json::from_str(&written.to_string()).unwrap();
            pending(&waits, None, Paint::never(), |rest| format!("plugd {rest}"))
        };
        let text = waits(
            json!([{"name": "id", "prompt": "The ticket's\nnumber"},
                {"name": "days", "prompt": "For how long", "schema": {"type": "integer"}}]),
            Value::Null,
        );
        assert_eq!(
            text,
            "Which ticket, and when?\n  id    text     The ticket's number\n  days  integer  For how long\n\
             to go on, within 0s:\n  plugd answer t-1 id=… days=…\n"
        );
        let text = waits(json!([]), json!({"to": "\u{1b}[2J"}));
        assert!(
            text.contains("\"to\": \"\\u001b[2J\"") && text.contains("  plugd answer t-1 --yes\n"),
            "{text}"
        );
        assert!(text.ends_with("not to:\n  plugd answer t-1 --no\n"), "{text}");
        let waits = r#"{"token":"t-1","expires":0,"prompt":"Run it?"}"#;
        let waits: Pending = serde_json::from_str(waits).unwrap();
        let hint = Some(Instead::Hint("call again with --yes"));
        let text = pending(&waits, hint, Paint::never(), str::to_owned);
        assert_eq!(text, "Run it?\n  hint: call again with --yes\n");
        let command = Some(Instead::Command("plugd call ./x wipe --yes"));
        let text = pending(&waits, command, Paint::never(), str::to_owned);
        assert_eq!(text, "Run it?\nto let it run:\n  plugd call ./x wipe --yes\n");
    }
}
