//! One call as it is handed to the record.

use std::borrow::Cow;
use std::sync::Arc;

use plugd_protocol::control::{AnsweredFrom, StageTime, UnixMillis};
use plugd_protocol::{CallError, CallId, OperationId, Status};

/// Of arguments, so many bytes are kept.
pub const GIVEN_MAX: usize = 16 * 1024;

/// Of data, so many bytes are kept.
pub const DATA_MAX: usize = 2 * 1024;

/// Data up to so many bytes is kept whole beside its row, as far as there is time for that.
pub const WHOLE_MAX: usize = 64 * 1024;

/// Of a summary, so many bytes: it is one line.
const SUMMARY_MAX: usize = 512;

/// Of a name that nothing has, so many bytes.
const WRITTEN_MAX: usize = 256;

/// What a row takes in memory besides its texts, generously.
const ROW_BYTES: usize = 1024;

/// One call for the record.
///
/// It is made of what is moved or shared; nothing is serialised on the thread that makes it. What
/// is sensitive must have been masked before. The same call id again replaces the row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its id, a UUIDv7; under any other nothing is recorded.
    pub call_id: CallId,
    /// When it arrived.
    pub at: UnixMillis,
    /// What was called.
    pub called: Called,
    /// Who called; none is the owner of the socket.
    pub caller: Option<Arc<str>>,
    /// How it ended.
    pub status: Status,
    /// The result's summary; where there is none, an error's message takes its place.
    pub summary: Option<Box<str>>,
    /// What went wrong.
    pub error: Option<Box<CallError>>,
    /// Microseconds in all.
    pub duration_us: u64,
    /// How often it was tried.
    pub attempt: u32,
    /// The version of the plugin.
    pub plugin_version: Option<Arc<str>>,
    /// Which run of it.
    pub generation: Option<u64>,
    /// The session it belongs to.
    pub session: Option<Arc<str>>,
    /// Its trace, 32 hexadecimal digits.
    pub trace_id: Option<Box<str>>,
    /// The call it was made for.
    pub parent: Option<CallId>,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// Arguments as they came, [`clipped`] to [`GIVEN_MAX`].
    pub given: Option<Box<str>>,
    /// Arguments as they ran, where that differs; clipped likewise.
    pub run: Option<Box<str>>,
    /// The data, [`clipped`] to [`DATA_MAX`].
    pub data: Option<Box<str>>,
    /// The whole data, where there is [time](crate::Store::has_time_for_data) to keep it; at most
    /// [`WHOLE_MAX`].
    pub whole: Option<Box<str>>,
    /// Whether an earlier answer was given again.
    pub answered_from: Option<AnsweredFrom>,
    /// Bytes of arguments.
    pub argument_bytes: u64,
    /// Bytes of the whole data.
    pub data_bytes: u64,
    /// When it came to each stage.
    pub stages: Vec<StageTime>,
}

/// What was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Called {
    /// An operation.
    Operation(OperationId),
    /// Nothing that exists: what was written.
    Unknown(Box<str>),
}

impl Row {
    /// A row with nothing but this; tried once.
    pub fn new(call_id: CallId, at: UnixMillis, called: Called, status: Status) -> Row {
        Row {
            call_id,
            at,
            called,
            caller: None,
            status,
            summary: None,
            error: None,
            duration_us: 0,
            attempt: 1,
            plugin_version: None,
            generation: None,
            session: None,
            trace_id: None,
            parent: None,
            key: None,
            given: None,
            run: None,
            data: None,
            whole: None,
            answered_from: None,
            argument_bytes: 0,
            data_bytes: 0,
            stages: Vec::new(),
        }
    }

    /// Cuts what is longer than is kept.
    pub(crate) fn bounded(mut self) -> Row {
        let bound = |text: &mut Option<Box<str>>, max| {
            if let Some(long) = text.as_deref().filter(|text| text.len() > max) {
                *text = Some(clipped(long, max));
            }
        };
        bound(&mut self.given, GIVEN_MAX);
        bound(&mut self.run, GIVEN_MAX);
        bound(&mut self.data, DATA_MAX);
        bound(&mut self.summary, SUMMARY_MAX);
        self.whole = self.whole.filter(|whole| whole.len() <= WHOLE_MAX);
        if let Called::Unknown(written) = &mut self.called
            && written.len() > WRITTEN_MAX
        {
            *written = clipped(written, WRITTEN_MAX);
        }
        self
    }

    /// About what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.given, &self.run, &self.data, &self.whole, &self.summary];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        let error = self.error.as_ref().map_or(0, |error| error.message.len() + 256 * error.details.len());
        ROW_BYTES + texts + error
    }

    /// The one line that says how it went.
    pub(crate) fn summary_line(&self) -> Option<Cow<'_, str>> {
        let text = self.summary.as_deref().or_else(|| self.error.as_ref().map(|error| &*error.message))?;
        let line = clip(text, SUMMARY_MAX);
        let one_line = !line.bytes().any(|byte| matches!(byte, b'\r' | b'\n'));
        Some(if one_line { line.into() } else { line.replace(['\r', '\n'], " ").into() })
    }
}

/// The beginning of a text, at most so many bytes, cut between characters.
pub fn clipped(text: &str, max: usize) -> Box<str> {
    clip(text, max).into()
}

fn clip(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(&*clipped("三五", 5), "三");
        assert_eq!(&*clipped("三五", 6), "三五");
        assert_eq!(&*clipped("", 0), "");
    }
}
