//! A row as it waits in the queue: one stretch of bytes, read again without copying its texts.
//!
//! What is written on one thread and freed on another costs an allocator more than SQLite takes to
//! insert it. So no object crosses: the bytes do, in a buffer that both threads use by turns.

use std::borrow::Cow;
use std::ops::Deref;

use plugd_protocol::CallError;
use plugd_protocol::control::{AnsweredFrom, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallId, Status};
use rusqlite::types::{ToSql, ToSqlOutput};
use serde::{Deserialize, Serialize, Serializer};

use crate::packed::{CallNumber, pack_stages};
use crate::row::{Called, Row};

/// An error's text in a row is at most so many bytes; beyond that its details are left out.
const ERROR_MAX: usize = 16 * 1024;

/// So many details of an error are kept.
const DETAILS_MAX: usize = 32;

/// Of one call, so many problems with its arguments are counted.
const PROBLEMS_MAX: usize = 8;

/// A row, its columns as they go into the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line<'a> {
    /// None where its id is no UUIDv7: there is no place for it then.
    pub(crate) number: Option<CallNumber>,
    #[serde(borrow)]
    pub(crate) call_id: Text<'a>,
    pub(crate) at: UnixMillis,
    /// The plugin and its operation; none where what was called does not exist.
    #[serde(borrow)]
    pub(crate) operation: Option<(Text<'a>, Text<'a>)>,
    /// What was written, where that does not exist.
    #[serde(borrow)]
    pub(crate) written: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) caller: Option<Text<'a>>,
    pub(crate) status: Status,
    #[serde(borrow)]
    pub(crate) summary: Option<Text<'a>>,
    pub(crate) code: Option<u16>,
    /// As JSON.
    #[serde(borrow)]
    pub(crate) error: Option<Text<'a>>,
    /// The path and the kind of what was wrong with its arguments.
    #[serde(borrow)]
    pub(crate) problems: Vec<(Text<'a>, Text<'a>)>,
    pub(crate) duration_us: u64,
    pub(crate) attempt: u32,
    #[serde(borrow)]
    pub(crate) plugin_version: Option<Text<'a>>,
    pub(crate) generation: Option<u64>,
    #[serde(borrow)]
    pub(crate) session: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) trace_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) parent: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) key: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) given: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) run: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) data: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) whole: Option<Text<'a>>,
    pub(crate) answered_from: Option<AnsweredFrom>,
    pub(crate) argument_bytes: u64,
    pub(crate) data_bytes: u64,
    #[serde(borrow, serialize_with = "as_bytes")]
    pub(crate) stages: Cow<'a, [u8]>,
}

/// A text that is borrowed where it can be; serde copies that of an `Option<Cow<str>>`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Text<'a> {
        Text(Cow::Borrowed(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl<'a> Line<'a> {
    pub(crate) fn of(row: &'a Row) -> Line<'a> {
        fn text(text: Option<&str>) -> Option<Text<'_>> {
            text.map(Text::of)
        }
        let (operation, written) = match &row.called {
            Called::Operation(id) => {
                (Some((Text::of(id.plugin.as_str()), Text::of(id.operation.as_str()))), None)
            }
            Called::Unknown(written) => (None, Some(Text::of(written))),
        };
        let error = row.error.as_deref();
        Line {
            number: CallNumber::of(&row.call_id),
            call_id: Text::of(row.call_id.as_str()),
            at: row.at,
            operation,
            written,
            caller: text(row.caller.as_deref()),
            status: row.status,
            summary: row.summary_line().map(Text),
            code: error.map(|error| error.code),
            error: error.and_then(error_text).map(|text| Text(text.into())),
            problems: error.map(problems).unwrap_or_default(),
            duration_us: row.duration_us,
            attempt: row.attempt,
            plugin_version: text(row.plugin_version.as_deref()),
            generation: row.generation,
            session: text(row.session.as_deref()),
            trace_id: text(row.trace_id.as_deref()),
            parent: text(row.parent.as_ref().map(CallId::as_str)),
            key: text(row.key.as_deref()),
            given: text(row.given.as_deref()),
            run: text(row.run.as_deref()),
            data: text(row.data.as_deref()),
            whole: text(row.whole.as_deref()),
            answered_from: row.answered_from,
            argument_bytes: row.argument_bytes,
            data_bytes: row.data_bytes,
            stages: pack_stages(&row.stages).into(),
        }
    }

    /// Appends it to others.
    pub(crate) fn append_to(&self, lines: &mut Vec<u8>) -> postcard::Result<()> {
        let before = lines.len();
        postcard::to_io(self, &mut *lines).map(drop).inspect_err(|_| lines.truncate(before))
    }

    /// Takes the first one off the front.
    pub(crate) fn take_from(lines: &mut &'a [u8]) -> postcard::Result<Line<'a>> {
        let (line, rest) = postcard::take_from_bytes(lines)?;
        *lines = rest;
        Ok(line)
    }

    /// What was called, where it exists.
    pub(crate) fn operation_id(&self) -> Option<String> {
        self.operation.as_ref().map(|(plugin, name)| format!("{}.{}", &**plugin, &**name))
    }

    /// How long it took itself, where that was not another call's answer.
    pub(crate) fn own_time(&self) -> Option<u64> {
        self.answered_from.is_none().then_some(self.duration_us)
    }
}

fn as_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// What was wrong with a call's arguments.
fn problems(error: &CallError) -> Vec<(Text<'_>, Text<'_>)> {
    if error.code != ErrorKind::InvalidArguments.code() {
        return Vec::new();
    }
    let problems = error.details.iter().take(PROBLEMS_MAX);
    problems.map(|problem| (Text::of(&problem.path), Text::of(&problem.problem))).collect()
}

/// An error as JSON, within bounds.
fn error_text(error: &CallError) -> Option<String> {
    let text = serde_json::to_string(error).ok()?;
    if text.len() <= ERROR_MAX {
        return Some(text);
    }
    let mut shorter = error.clone();
    shorter.details.truncate(DETAILS_MAX);
    let text = serde_json::to_string(&shorter).ok().filter(|text| text.len() <= ERROR_MAX);
    if text.is_some() {
        return text;
    }
    shorter.details.clear();
    shorter.cause = None;
    serde_json::to_string(&shorter).ok()
}

#[cfg(test)]
mod tests {
    use plugd_protocol::OperationId;
    use plugd_protocol::control::{Stage, StageTime};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn lines_are_read_back_in_order_and_borrow_their_texts() {
        let operation = OperationId::parse("a.b").expect("an operation");
        let mut first = Row::new(
            CallId::new(Uuid::now_v7().to_string()),
            UnixMillis(7),
            Called::Operation(operation),
            Status::Ok,
        );
        first.given = Some("{\"三\":1}".into());
        first.summary = Some("two\nlines".into());
        first.stages = vec![StageTime { stage: Stage::Queued, at_us: 300 }];
        let mut second =
            Row::new(CallId::new("c2"), UnixMillis(8), Called::Unknown("x.y".into()), Status::Error);
        second.error = Some(Box::new(CallError::new(ErrorKind::UnknownOperation, "there is no x.y")));

        let mut bytes = Vec::new();
        for row in [&first, &second] {
            Line::of(row).append_to(&mut bytes).expect("written");
        }
        let mut left = &*bytes;
        let line = Line::take_from(&mut left).expect("the first");
        assert_eq!(
            line.number.map(|call| call.number),
            CallNumber::of(&first.call_id).map(|call| call.number)
        );
        assert!(matches!(&line.given, Some(Text(Cow::Borrowed("{\"三\":1}")))), "{:?}", line.given);
        assert_eq!(line.summary.as_deref(), Some("two lines"));
        assert_eq!(*line.stages, pack_stages(&first.stages));
        assert!(matches!(line.stages, Cow::Borrowed(_)));
        let line = Line::take_from(&mut left).expect("the second");
        assert_eq!((line.number, line.written.as_deref()), (None, Some("x.y")));
        assert_eq!((line.code, line.status), (Some(ErrorKind::UnknownOperation.code()), Status::Error));
        assert!(left.is_empty() && Line::take_from(&mut left).is_err());
    }
}
