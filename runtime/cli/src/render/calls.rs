//! What is kept of calls, as text: lists, one call with its time line, how operations do, jobs.

use std::fmt::Write;

use plugd_protocol::Status;
use plugd_protocol::control::{
    AnsweredFrom, CallDetail, CallRow, CallsReport, CallsStatsReport, JobProgress, JobsReport, LogEntry,
    OperationStats, Stage,
};

use super::report::error;
use super::table::{Cell, table};
use super::text::{Paint, indented, since, time, visible_line, wire_name};

/// A summary in a list is clipped to so many characters.
const SUMMARY_CHARS: usize = 80;

/// Recorded calls, the latest first, a line each.
pub(crate) fn calls(report: &CallsReport, paint: Paint) -> String {
    if report.calls.is_empty() {
        return "no such calls are recorded\n".to_owned();
    }
    let head = ["AT", "CALL", "OPERATION", "CALLER", "STATUS", "TOOK", ""];
    let mut rows = vec![head.into_iter().map(Cell::from).collect::<Vec<_>>()];
    for call in &report.calls {
        rows.push(vec![
            time(call.at).into(),
            visible_line(call.call_id.as_str()).into_owned().into(),
            visible_line(&call.operation).into_owned().into(),
            visible_line(call.caller.as_deref().unwrap_or("-")).into_owned().into(),
            status_cell(call, paint),
            took(call.duration_us).into(),
            short(call.summary.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table(&rows)
}

fn status_cell(call: &CallRow, paint: Paint) -> Cell {
    let code = call.code.map(|code| format!(" {code}")).unwrap_or_default();
    let plain = format!("{}{code}", wire_name(&call.status));
    let painted = match call.status {
        Status::Error => paint.red(&plain),
        _ => plain.clone(),
    };
    Cell::painted(&plain, painted)
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARS) {
        None => visible_line(text).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&text[..end])),
    }
}

/// How long something took, as people write it.
fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000_000 => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
        _ => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
    }
}

/// Everything that is kept of one call, its time line with what was logged in between.
pub(crate) fn call_detail(detail: &CallDetail, paint: Paint) -> String {
    let call = &detail.call;
    let status = status_cell(call, paint).into_text();
    let mut out = format!(
        "{}  {}  {status}\n",
        visible_line(call.call_id.as_str()),
        paint.bold(&visible_line(&call.operation))
    );
    let mut line = |label: &str, text: Option<&str>| {
        if let Some(text) = text {
            let _ = writeln!(out, "  {label:<9} {}", visible_line(text));
        }
    };
    line("at", Some(&format!("{}, {} in all", time(call.at), took(call.duration_us))));
    let run = detail.generation.map(|generation| format!(", run {generation}")).unwrap_or_default();
    let attempt = if call.attempt > 1 { format!(", attempt {}", call.attempt) } else { String::new() };
    line(
        "plugin",
        detail.plugin_version.as_ref().map(|version| format!("version {version}{run}{attempt}")).as_deref(),
    );
    line("caller", call.caller.as_deref());
    line("session", detail.session.as_deref());
    line("trace", detail.trace_id.as_deref());
    line("for", detail.parent.as_ref().map(|parent| format!("the call {}", parent.as_str())).as_deref());
    line("key", detail.key.as_deref());
    line(
        "answer",
        detail.answered_from.map(|from| match from {
            AnsweredFrom::Cache => "that of an equal call, given again",
            AnsweredFrom::Key => "that of an earlier call with the same key",
        }),
    );
    line("given", detail.given.as_deref());
    line("run with", detail.run.as_deref());
    line("summary", call.summary.as_deref().filter(|_| detail.error.is_none()));
    line("data", detail.data.as_deref());
    line("bytes", Some(&format!("{} of arguments, {} of data", detail.argument_bytes, detail.data_bytes)));
    if let Some(failed) = &detail.error {
        out.push_str(&error(failed, paint));
    }
    out.push_str(&time_line(detail, paint));
    out
}

/// Further lines of what was logged, such as a stack's, lie behind the times and the plugins' names.
const FURTHER_LINES: usize = 18;

/// When it came to each stage, and what its plugins logged in between.
fn time_line(detail: &CallDetail, paint: Paint) -> String {
    let mut points: Vec<(u64, String)> = vec![(0, "arrived".to_owned())];
    points.extend(detail.stages.iter().map(|stage| (stage.at_us, stage_name(stage.stage).to_owned())));
    points.extend(detail.log.iter().map(|entry| (moment(detail, entry), logged(entry, paint))));
    let ended = format!("ended: {}", wire_name(&detail.call.status));
    points.push((detail.call.duration_us, ended));
    // The sort is stable: what comes at once stays in the order of stages, then of lines.
    points.sort_by_key(|(at, _)| *at);
    let mut out = String::from("time line\n");
    for (at, what) in points {
        let _ = writeln!(out, "{:>12}  {what}", took(at));
    }
    out
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Resolved => "resolved",
        Stage::Checked => "checked",
        Stage::Asked => "asked",
        Stage::Confirmed => "confirmed",
        Stage::Queued => "queued",
        Stage::Started => "started",
        Stage::Answered => "answered",
        Stage::Shaped => "shaped",
    }
}

/// When a line was logged, in microseconds after the call arrived.
///
/// Lines are timed to the millisecond: one that may lie within the run is shown there.
fn moment(detail: &CallDetail, entry: &LogEntry) -> u64 {
    const PRECISION_US: u64 = 1_000;
    let at = entry.at.0.saturating_sub(detail.call.at.0).saturating_mul(1_000);
    let stage =
        |wanted| detail.stages.iter().rev().find(|stage| stage.stage == wanted).map(|stage| stage.at_us);
    match (stage(Stage::Started), stage(Stage::Answered)) {
        (Some(started), _) if at < started && at + PRECISION_US >= started => started,
        (_, Some(answered)) if at >= answered && at - answered <= PRECISION_US => answered.saturating_sub(1),
        _ => at,
    }
}

fn logged(entry: &LogEntry, paint: Paint) -> String {
    let (stream, level) = (wire_name(&entry.stream), wire_name(&entry.level));
    let text = indented(&entry.text, FURTHER_LINES);
    format!("  {} {text}", paint.dim(&format!("{} {stream} {level}", entry.plugin)))
}

/// How each operation does.
pub(crate) fn calls_stats(report: &CallsStatsReport, paint: Paint) -> String {
    if report.operations.is_empty() {
        return "no calls are recorded\n".to_owned();
    }
    let head = ["OPERATION", "COUNT", "OK", "P50", "P95", "WRONG ARGUMENTS"];
    let mut rows = vec![head.into_iter().map(Cell::from).collect::<Vec<_>>()];
    for operation in &report.operations {
        let name = visible_line(&operation.operation);
        let of_ended = |text: String| if operation.ended == 0 { "-".to_owned() } else { text };
        rows.push(vec![
            Cell::painted(&name, paint.bold(&name)),
            operation.count.to_string().into(),
            of_ended(format!("{:.1} %", operation.ok_percent)).into(),
            of_ended(took(operation.p50_us)).into(),
            of_ended(took(operation.p95_us)).into(),
            wrong_arguments(operation).into(),
        ]);
    }
    table(&rows)
}

fn wrong_arguments(operation: &OperationStats) -> String {
    let mut errors = operation.argument_errors.iter().map(|error| {
        let place = if error.path.is_empty() { "the arguments" } else { &error.path };
        format!("{} {} ×{}", visible_line(place), visible_line(&error.problem), error.count)
    });
    errors.next().map(|first| errors.fold(first, |all, next| format!("{all}, {next}"))).unwrap_or_default()
}

/// Calls in the background, the latest first.
pub(crate) fn jobs(report: &JobsReport, running: bool, paint: Paint) -> String {
    if report.jobs.is_empty() {
        return if running { "no job runs\n" } else { "no jobs\n" }.to_owned();
    }
    let head = ["JOB", "OPERATION", "CALLER", "SINCE", "STATUS", ""];
    let mut rows = vec![head.into_iter().map(Cell::from).collect::<Vec<_>>()];
    for job in &report.jobs {
        let plain = if job.status == Status::Pending { "running".to_owned() } else { wire_name(&job.status) };
        let painted = if job.status == Status::Error { paint.red(&plain) } else { plain.clone() };
        let far = job.progress.as_ref().filter(|_| job.status == Status::Pending).map(progress);
        rows.push(vec![
            visible_line(job.call_id.as_str()).into_owned().into(),
            job.operation.to_string().into(),
            visible_line(job.caller.as_deref().unwrap_or("-")).into_owned().into(),
            since(job.at).into(),
            Cell::painted(&plain, painted),
            short(&far.or_else(|| job.summary.clone()).unwrap_or_default()).into(),
        ]);
    }
    table(&rows)
}

fn progress(progress: &JobProgress) -> String {
    let far = match progress.total {
        Some(total) => format!("{} of {total}", progress.done),
        None => progress.done.to_string(),
    };
    let message = progress.message.as_deref().map(|message| format!(": {message}"));
    format!("{far}{}", message.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_time_line_has_what_was_logged_between_the_stages() {
        let entry = |at: u64, text: &str| json!({"at": at, "plugin": "mail", "generation": 1, "stream": "stderr", "level": "info", "text": text});
        let detail: CallDetail = serde_json::from_str(
            &json!({"call": {"call_id": "c-1", "at": 1000, "operation": "mail.send", "status": "ok",
                    "duration_us": 12_500, "attempt": 1},
                "given": "{\"count\":\"三\"}", "run": "{\"count\":3}", "argument_bytes": 14, "data_bytes": 4,
                "stages": [{"stage": "resolved", "at_us": 40}, {"stage": "started", "at_us": 900},
                    {"stage": "answered", "at_us": 12_300}],
                "log": [entry(1000, "first\u{1b}[2J"), entry(1007, "second"), entry(1012, "Traceback:\n  File \"a.py\"\n       0 µs  arrived\u{9b}\n")]})
            .to_string(),
        )
        .unwrap();
        let text = call_detail(&detail, Paint::never());
        let line = text.split_once("time line\n").expect("a time line").1;
        let expected = "        0 µs  arrived\n       40 µs  resolved\n      900 µs  started\n      \
            900 µs    mail stderr info first\\u{1b}[2J\n      7.0 ms    mail stderr info second\n     \
            12.0 ms    mail stderr info Traceback:\n                    File \"a.py\"\n                         \
            0 µs  arrived\\u{9b}\n     12.3 ms  answered\n     12.5 ms  ended: ok\n";
        assert_eq!(line, expected);
        assert!(text.contains("given     {\"count\":\"三\"}\n  run with  {\"count\":3}\n"), "{text}");
    }

    #[test]
    fn how_operations_do_is_a_line_each() {
        let report: CallsStatsReport =
            serde_json::from_value(json!({"operations": [{"operation": "mail.send",
            "count": 6, "ended": 4, "ok_percent": 75.0, "p50_us": 900, "p95_us": 12_300_000,
            "argument_errors": [{"path": "/to", "problem": "format", "count": 1}]},
            {"operation": "mail.wipe", "count": 2, "ended": 0, "ok_percent": 0.0, "p50_us": 0, "p95_us": 0}]}))
            .unwrap();
        let text = calls_stats(&report, Paint::never());
        let expected = "OPERATION  COUNT  OK      P50     P95     WRONG ARGUMENTS\n\
            mail.send  6      75.0 %  900 µs  12.3 s  /to format ×1\n\
            mail.wipe  2      -       -       -\n";
        assert_eq!(text, expected);
    }
}
