//! Reports of the daemon as text: lists, results, errors, events.

use std::fmt::Write;
use std::time::Duration;

use plugd_protocol::control::{Description, Event, ListReport, LogEntry, PluginListing, PluginState, Source};
use plugd_protocol::error::ArgumentProblem;
use plugd_protocol::plugin::LogLevel;
use plugd_protocol::{CallError, ErrorKind, Outcome};

use super::table::{Cell, table};
use super::text::{Paint, indented, time, visible, visible_line, wire_name};

/// An error: its number and name, each detail, what is behind it, and what to do.
pub(crate) fn error(error: &CallError, paint: Paint) -> String {
    let head = format!("error {} {}:", error.code, visible_line(&error.name));
    let mut out = format!("{} {}\n", paint.red(&head), indented(&error.message, 4));
    // A message that says it all need not be said again.
    if !error.details.iter().all(|detail| error.message.contains(&detail.expected)) {
        for detail in &error.details {
            let _ = writeln!(out, "  {}", problem(detail));
        }
    }
    let mut cause = error.cause.as_deref();
    while let Some(inner) = cause {
        let (name, said) = (visible_line(&inner.error.name), indented(&inner.error.message, 6));
        let _ = writeln!(out, "  because {} failed: {} {name}: {said}", inner.operation, inner.error.code);
        cause = inner.error.cause.as_deref();
    }
    if let Some(hint) = &error.hint {
        let _ = writeln!(out, "  {} {}", paint.dim("hint:"), visible_line(hint));
    }
    if error.retryable && may_pass(error) {
        let told = match error.outcome {
            Outcome::NotRun | Outcome::Completed => "the same call may succeed later",
            Outcome::Unknown => "the same call may succeed later; whether this one took effect is not known",
        };
        let _ = writeln!(out, "  retryable: {told}");
    }
    out
}

/// Whether trying again is all that helps: of the rest the hint says what is to be mended before.
fn may_pass(error: &CallError) -> bool {
    let to_be_mended = [
        ErrorKind::Blocked,
        ErrorKind::Unavailable,
        ErrorKind::ProtocolViolation,
        ErrorKind::DaemonUnreachable,
        ErrorKind::NotRecorded,
    ];
    !to_be_mended.iter().any(|kind| kind.code() == error.code)
}

/// One thing wrong with arguments, on one line.
pub(crate) fn problem(detail: &ArgumentProblem) -> String {
    let place = if detail.path.is_empty() { "the arguments" } else { &detail.path };
    // Otherwise whoever reads it looks for what is wrong with a value that is not there.
    let missing = if detail.problem == "required" && detail.got.is_none() { "missing, " } else { "" };
    let mut line = format!("{}: {missing}expected {}", visible_line(place), visible_line(&detail.expected));
    if let Some(got) = &detail.got {
        let _ = write!(line, ", got {}", visible_line(got));
    }
    if let Some(suggestion) = &detail.suggestion {
        let _ = write!(line, "; did you mean {}?", visible_line(suggestion));
    }
    line
}

/// Every plugin with what it offers; where was looked, if there is none.
pub(crate) fn list(report: &ListReport, state: Option<PluginState>, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(state) = state.filter(|_| report.plugins.is_empty()) {
        return format!("no plugin is {}\n", wire_name(&state));
    }
    for plugin in &report.plugins {
        out.push_str(&listing(plugin, paint));
        let row = |operation: &plugd_protocol::control::OperationListing| {
            let description = operation.description.as_deref().unwrap_or_default();
            vec![Cell::from(format!("  {}", operation.id)), first_paragraph(description).into()]
        };
        out.push_str(&table(&plugin.operations.iter().map(row).collect::<Vec<_>>()));
        for bad in &plugin.quarantined {
            let (name, reason) = (visible_line(&bad.name), visible_line(&bad.reason));
            let _ = writeln!(out, "  not offered: {name}: {reason}");
        }
    }
    if report.plugins.is_empty() {
        out.push_str("no plugins\n");
        let config = report.config.as_deref().map_or("none found".into(), visible_line);
        let _ = writeln!(out, "  config file: {config}");
        let looked = report.looked_in.iter().map(|dir| visible_line(dir).into_owned()).collect::<Vec<_>>();
        let _ = writeln!(
            out,
            "  folders looked in: {}",
            if looked.is_empty() { "none".to_owned() } else { looked.join(", ") }
        );
        out.push_str(
            "  add one as [plugins.NAME] with a command, or a folder under scan.dirs, in plugd.toml\n",
        );
    }
    for skipped in &report.skipped {
        let _ = writeln!(
            out,
            "{}",
            paint.dim(&format!("skipped {}: {}", visible_line(&skipped.path), visible_line(&skipped.reason)))
        );
    }
    out
}

fn listing(plugin: &PluginListing, paint: Paint) -> String {
    let state = wire_name(&plugin.state);
    let version =
        plugin.version.as_deref().map(|version| format!(" {}", visible_line(version))).unwrap_or_default();
    let from = source(&plugin.source);
    let mut out =
        format!("{}{version}  {}", paint.bold(plugin.name.as_str()), paint.state(plugin.state, &state));
    if let Some(reason) = &plugin.reason {
        let _ = write!(out, ": {}", visible_line(reason));
    }
    out.push('\n');
    if let Some(description) = &plugin.description {
        let _ = writeln!(out, "  {}", first_paragraph(description));
    }
    let digest =
        plugin.digest.as_deref().map(|digest| format!(", sha256 {}", digest.get(..12).unwrap_or(digest)));
    let source = format!("  {}, {from}{}", visible_line(&plugin.path), digest.unwrap_or_default());
    let _ = writeln!(out, "{}", paint.dim(&source));
    out
}

/// Where a plugin came from.
pub(super) fn source(source: &Source) -> String {
    match source {
        Source::Config { file } => format!("configured in {}", visible_line(file)),
        Source::Scan { dir } => format!("found in {}", visible_line(dir)),
        Source::Added { file } => format!("added; remembered in {}", visible_line(file)),
        _ => "given on the command line".to_owned(),
    }
}

/// The first paragraph of a text, which its author may have written over several lines.
fn first_paragraph(text: &str) -> String {
    let lines = text.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    visible_line(&lines.collect::<Vec<_>>().join(" ")).into_owned()
}

/// One plugin with its operations and their arguments.
pub(crate) fn description(report: &Description, paint: Paint) -> String {
    let mut out = listing(&report.plugin, paint);
    if let Some(digest) = &report.manifest_sha256 {
        let pinned = if report.manifest_pinned { ", pinned" } else { "" };
        let _ =
            writeln!(out, "{}", paint.dim(&format!("  manifest sha256 {}{pinned}", visible_line(digest))));
    }
    for (name, requirement) in &report.requires {
        let optional = if requirement.optional { ", optional" } else { "" };
        let _ = writeln!(out, "  requires {name} {}{optional}", requirement.version);
    }
    for operation in &report.operations {
        let id = format!("{}.{}", report.plugin.name, operation.name);
        let _ = writeln!(out, "\n{}", paint.bold(&id));
        let texts = [
            ("", &operation.description),
            ("use it: ", &operation.when_to_use),
            ("do not use it: ", &operation.when_not_to_use),
        ];
        for (label, text) in texts {
            if let Some(text) = text {
                let _ = writeln!(out, "  {label}{}", visible(text).replace('\n', "\n  "));
            }
        }
        let effects = super::schema::effects(&operation.effects);
        let _ = writeln!(out, "  effects: {effects}");
        let times = [("may take", operation.timeout_ms), ("without progress", operation.stall_timeout_ms)];
        for (what, time) in times.into_iter().filter_map(|(what, time)| time.map(|time| (what, time))) {
            let time = humantime::format_duration(Duration::from_millis(time));
            let _ = writeln!(out, "  {what}: {time} at most");
        }
        out.push_str(&super::schema::arguments(operation.input_schema.get(), paint));
        for example in &operation.examples {
            let _ = writeln!(out, "  for example: {}", visible_line(example));
        }
        if let Some(exported) = report.exported.iter().find(|exported| exported.id == id)
            && let Some(name) = &exported.name
        {
            let told = format!("  models know it as {name}: {}", visible_line(&exported.description));
            let _ = writeln!(out, "{}", paint.dim(&told));
        }
    }
    if !report.quarantined.is_empty() {
        out.push('\n');
    }
    for bad in &report.quarantined {
        let line = format!("not offered: {}: {}", visible_line(&bad.name), visible_line(&bad.reason));
        let _ = writeln!(out, "{}", paint.red(&line));
    }
    out
}

/// A log entry: further lines, such as a stack's, are indented, so that none can pass for an entry.
pub(crate) fn log_entry(entry: &LogEntry, paint: Paint) -> String {
    let level = log_level(entry.level, paint);
    let at = paint.dim(&time(entry.at));
    let stream = wire_name(&entry.stream);
    let call =
        entry.call_id.as_ref().map(|id| format!(" [{}]", visible_line(id.as_str()))).unwrap_or_default();
    let text = indented(&entry.text, 4);
    format!("{at} {}#{} {stream} {level}{call} {text}\n", entry.plugin, entry.generation)
}

/// A level by its name, those in red that somebody should look at.
pub(crate) fn log_level(level: LogLevel, paint: Paint) -> String {
    let name = wire_name(&level);
    match level {
        LogLevel::Error | LogLevel::Warn => paint.red(&name),
        LogLevel::Info | LogLevel::Debug | LogLevel::Trace => name,
    }
}

/// An event on one line.
pub(crate) fn event(event: &Event, paint: Paint) -> String {
    let mut out = format!("{} {}", paint.dim(&time(event.at)), paint.bold(&visible_line(&event.kind)));
    match (&event.operation, &event.plugin) {
        (Some(operation), _) => {
            let _ = write!(out, " {operation}");
        }
        (None, Some(plugin)) => {
            let _ = write!(out, " {plugin}");
        }
        (None, None) => {}
    }
    if let Some(generation) = event.generation {
        let _ = write!(out, "#{generation}");
    }
    if let Some(call) = &event.call_id {
        let _ = write!(out, " [{}]", visible_line(call.as_str()));
    }
    if let Some(status) = &event.status {
        let _ = write!(out, " {}", wire_name(status));
    }
    if let Some(duration) = event.duration_us {
        let _ = write!(out, " {:.1} ms", Duration::from_micros(duration).as_secs_f64() * 1_000.0);
    }
    if let Some(reason) = &event.reason {
        let _ = write!(out, " {}", visible_line(reason));
    }
    if let Some(detail) = &event.detail {
        let _ = write!(out, " {}", visible_line(&detail.to_string()));
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_every_detail_and_what_to_do() {
        let mut error = CallError::new(ErrorKind::InvalidArguments, "2 problems");
        error.details = vec![
            ArgumentProblem {
                path: "/days".to_owned(),
                problem: "maximum".to_owned(),
                expected: "at most 14".to_owned(),
                got: Some("40\u{1b}[2J".to_owned()),
                suggestion: None,
            },
            ArgumentProblem {
                path: "/ciyt".to_owned(),
                problem: "additionalProperties".to_owned(),
                expected: "a declared key".to_owned(),
                got: None,
                suggestion: Some("city".to_owned()),
            },
        ];
        let expected = "error 2001 invalid_arguments: 2 problems\n  /days: expected at most 14, got 40\\u{1b}[2J\n  \
            /ciyt: expected a declared key; did you mean city?\n  hint: correct the arguments named in details and call again\n";
        assert_eq!(super::error(&error, Paint::never()), expected);
    }

    #[test]
    fn an_error_that_may_pass_says_so() {
        let mut error = CallError::new(ErrorKind::PluginError, "the desk is closed");
        assert!(!super::error(&error, Paint::never()).contains("retryable"));
        let broken = CallError::new(ErrorKind::Unavailable, "fp keeps failing to start: SyntaxError");
        assert!(broken.retryable && !super::error(&broken, Paint::never()).contains("retryable"));
        error.retryable = true;
        let text = super::error(&error, Paint::never());
        assert!(text.ends_with("\n  retryable: the same call may succeed later\n"), "{text}");
    }

    #[test]
    fn an_empty_list_says_where_was_looked() {
        let report = ListReport {
            plugins: Vec::new(),
            config: Some("/p/plugd.toml".to_owned()),
            looked_in: vec!["/p/plugins".to_owned()],
            skipped: Vec::new(),
        };
        let text = list(&report, None, Paint::never());
        assert!(text.contains("config file: /p/plugd.toml\n  folders looked in: /p/plugins\n"), "{text}");
    }

    #[test]
    fn what_a_plugin_writes_cannot_draw_on_the_terminal() {
        let entry: LogEntry = serde_json::from_value(serde_json::json!({
            "at": 0, "plugin": "p", "generation": 1, "stream": "stderr", "level": "info", "text": "\u{1b}]0;owned\u{7}\nfake line"
        }))
        .unwrap();
        let line = log_entry(&entry, Paint::never());
        assert_eq!(line, "1970-01-01T00:00:00.000Z p#1 stderr info \\u{1b}]0;owned\\u{7}\n    fake line\n");
    }
}
