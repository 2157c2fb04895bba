//! Lines of a run on their way to the log, with the call, session and trace they belong to.

use std::sync::atomic::Ordering;
use std::time::Instant;

use plugd_protocol::CallId;
use plugd_protocol::control::{LogEntry, LogStream};
use plugd_protocol::plugin::{LogLevel, LogParams};

use super::log_lines::{Spend, text_of, unix_now};
use super::run::Run;

impl Run {
    /// Logs a line that belongs to the only call there is, where there is just one.
    pub(super) fn log_in_call(&mut self, stream: LogStream, level: LogLevel, text: String) {
        if self.may_log() {
            self.log_admitted_in_call(stream, level, text);
        }
    }

    /// The same of a line that may be logged.
    pub(super) fn log_admitted_in_call(&mut self, stream: LogStream, level: LogLevel, text: String) {
        let call_id = self.only_call();
        self.hand_over(stream, level, call_id, None, text);
    }

    /// The only call there is, where there can be but one: what is written now belongs to it.
    pub(super) fn only_call(&mut self) -> Option<CallId> {
        let one_lane = self.door.concurrency.load(Ordering::Relaxed) == 1;
        self.calls.only().filter(|_| one_lane).map(|call| call.call_id.clone())
    }

    /// Logs what the plugin says in a `log` notification.
    pub(super) fn log_said(&mut self, said: LogParams<'_>) {
        if self.may_log() {
            let text = text_of(said.message.as_bytes());
            let trace = said.trace_id.filter(|id| is_trace_id(id)).map(Into::into);
            self.hand_over(LogStream::Log, said.level, said.call_id, trace, text);
        }
    }

    pub(super) fn log(&mut self, stream: LogStream, level: LogLevel, call_id: Option<CallId>, text: String) {
        if self.may_log() {
            self.hand_over(stream, level, call_id, None, text);
        }
    }

    /// Whether another line may be logged in this second; one that may not is counted.
    pub(super) fn may_log(&mut self) -> bool {
        match self.budget.spend(Instant::now()) {
            Spend::Log => true,
            Spend::LogAfterGap(count) => {
                self.log_gap(count);
                true
            }
            Spend::Suppress => {
                if let Some(due) = self.budget.due() {
                    self.due_at(due);
                }
                false
            }
        }
    }

    /// Says that so many lines were not logged.
    pub(super) fn log_gap(&mut self, count: u64) {
        let text = format!("{count} lines were not logged: more than 1,000 a second");
        self.hand_over(LogStream::Runtime, LogLevel::Warn, None, None, text);
    }

    /// Gives a line to the host; of a call that is over only the plugin may still know the trace.
    fn hand_over(
        &mut self,
        stream: LogStream,
        level: LogLevel,
        call_id: Option<CallId>,
        said_trace: Option<String>,
        text: String,
    ) {
        self.said_something |= stream != LogStream::Runtime;
        let call = call_id.as_ref().and_then(|call_id| self.calls.by_call_id(call_id));
        let (session_id, trace_id) = call.map_or((None, None), |call| {
            (call.session.as_deref().map(str::to_owned), call.traceparent.as_deref().and_then(trace_id))
        });
        self.host.log(LogEntry {
            at: unix_now(),
            plugin: self.plugin.clone(),
            generation: self.generation.0,
            stream,
            level,
            call_id,
            session_id,
            trace_id: trace_id.or(said_trace),
            text,
        });
    }

    /// Says in the log of a call what became of it, where that was not its answer.
    pub(super) fn log_of_call(&mut self, call_id: &CallId, text: &str) {
        self.log(LogStream::Runtime, LogLevel::Info, Some(call_id.clone()), text.to_owned());
    }
}

/// The trace of a W3C `traceparent`: its second field.
fn trace_id(traceparent: &str) -> Option<String> {
    let id = traceparent.split('-').nth(1)?;
    is_trace_id(id).then(|| id.to_owned())
}

fn is_trace_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::trace_id;

    #[test]
    fn a_trace_is_told_by_its_second_field() {
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(traceparent).as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace_id("what-ever"), None);
    }
}
