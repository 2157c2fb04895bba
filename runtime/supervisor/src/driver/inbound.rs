//! What a plugin writes: its answers and notifications, and what is no message.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plugd_protocol::control::LogStream;
use plugd_protocol::message::{Answer, Message, NotAMessage, host_id, id_in_head, write_request};
use plugd_protocol::plugin::{
    CallContext, CallParams, LogLevel, LogParams, PartialParams, ProgressParams, method,
};
use plugd_protocol::{CallId, Decoder, Frame, RpcError};
use serde_json::value::RawValue;

use super::deadline::Deadline;
use super::door::{Answered, RunCall, RunFailure};
use super::host::RunEvent;
use super::in_flight::{Call, Deadlines, Holds, Stall};
use super::launch::{self, NotSpawned};
use super::log_lines::text_of;
use super::run::Run;
use super::setup::Setup;
use crate::launcher::{self, Failed};
use crate::machine::Fact;

/// So many lines in a row that are no messages are a violation.
const STRAYS_MAX: u32 = 100;

impl Run {
    /// Handles every frame that is complete.
    pub(super) fn read_frames(&mut self, decoder: &mut Decoder) {
        while let Some(frame) = decoder.next_frame() {
            self.frames_in_a_row += 1;
            match frame {
                Frame::Line(line) => self.read_line(line),
                Frame::TooLong { head } => self.read_too_long(head),
            }
        }
    }

    /// Handles a last line that came without its newline.
    pub(super) fn read_last_frame(&mut self, decoder: &mut Decoder) {
        if let Some(Frame::Line(line)) = decoder.finish() {
            self.read_line(line);
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        match Message::parse(line) {
            Ok(message) => {
                self.strays_in_a_row = 0;
                match message {
                    Message::Response { id, answer } => self.read_response(line, id, answer),
                    Message::Notification { method, params } => self.read_notification(&method, params),
                    Message::Request { id, method, params } => self.read_request(id, &method, params),
                }
            }
            Err(error) => match id_in_head(line).and_then(|id| self.calls.close(id)) {
                Some(mut call) => {
                    self.door.stray_lines.fetch_add(1, Ordering::Relaxed);
                    self.log(LogStream::Stray, LogLevel::Warn, Some(call.call_id.clone()), text_of(line));
                    call.answer(Err(RunFailure::Malformed { why: error.to_string() }));
                    self.call_ended(Instant::now());
                }
                None => {
                    self.stray(line, &error);
                    let asked = self.describe_waits_for();
                    if asked.is_some() && id_in_head(line) == asked {
                        self.describe_refused(&error.to_string());
                    }
                }
            },
        }
    }

    fn read_response(&mut self, line: &[u8], id: Option<&RawValue>, answer: Result<Answer<'_>, RpcError>) {
        let given = id.map_or("null", RawValue::get);
        let Some(id) = id.and_then(host_id) else {
            return match self.describe_waits_for() {
                Some(asked) if resembles(given, asked) => {
                    let why = format!("an id is given back as it came: expected {asked}, got {given}");
                    self.describe_refused(&why);
                }
                _ => self.unmatched(given),
            };
        };
        if let Some(mut call) = self.calls.close(id) {
            let now = Instant::now();
            let outcome = match answer {
                Ok(Answer::Object(object)) => match object.data {
                    Some(data) => Ok(Answered {
                        data: data.to_owned(),
                        summary: object.summary.map(std::borrow::Cow::into_owned),
                        next_actions: object.next_actions.map(ToOwned::to_owned),
                        took: now.saturating_duration_since(call.delivered),
                    }),
                    None => Err(RunFailure::MissingData),
                },
                Ok(Answer::Other) => Err(RunFailure::MissingData),
                Err(error) => Err(RunFailure::Plugin(error)),
            };
            // One to a call that was cancelled is as it should be: it frees the lane.
            call.answer(outcome);
            return self.call_ended(now);
        }
        match self.setup {
            Some((expected, setup)) if expected == id => {
                self.setup = None;
                self.read_setup(setup, line, answer.err());
            }
            _ if self.health.as_mut().is_some_and(|health| health.answered(id, Instant::now())) => {}
            _ => self.unmatched(given),
        }
    }

    /// Counts an answer that nobody waits for: of an unknown id, or given twice.
    fn unmatched(&mut self, id: &str) {
        if self.door.unmatched_answers.fetch_add(1, Ordering::Relaxed) == 0 {
            let id = text_of(id.as_bytes());
            let text = format!("an answer was dropped: no request with its id waits for one, got id {id}");
            self.log(LogStream::Runtime, LogLevel::Warn, None, text);
        }
    }

    fn read_notification(&mut self, name: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        match name {
            method::LOG => match serde_json::from_str::<LogParams<'_>>(params) {
                Ok(log) => self.log_said(log),
                Err(error) => self.unreadable(name, &error),
            },
            method::PROGRESS => match serde_json::from_str::<ProgressParams<'_>>(params) {
                Ok(progress) => self.progressed(progress.call_id, params),
                Err(error) => self.unreadable(name, &error),
            },
            method::PARTIAL => match serde_json::from_str::<PartialParams<'_>>(params) {
                Ok(partial) => {
                    let call = self.calls.by_call_id(&partial.call_id);
                    if call.is_some_and(|call| call.cancelled.is_none()) {
                        let event = RunEvent::Partial { call_id: partial.call_id, params: params.to_owned() };
                        self.host.event(&self.plugin, self.generation, event);
                    }
                }
                Err(error) => self.unreadable(name, &error),
            },
            launcher::FAILED | launcher::NOTE if !self.described => self.read_launcher(name, params),
            method::MANIFEST_CHANGED => self.manifest_changed(),
            // What is not known is tolerated: the plugin may be newer than this host.
            _ => {}
        }
    }

    /// Takes what the launcher says before the plugin's own program runs.
    fn read_launcher(&mut self, name: &str, params: &str) {
        if name == launcher::FAILED {
            let launch = &self.settings.launch;
            self.not_launched = serde_json::from_str(params).ok().map(|failed| match failed {
                Failed::Errno(errno) => launch::not_launched(launch, errno),
                Failed::Sandbox(why) => NotSpawned::unconfined(launch.sandbox, &why),
            });
        } else if let Ok(launcher::Note { what, why }) = serde_json::from_str(params) {
            self.door.let_go(what, why);
        }
    }

    fn progressed(&mut self, call_id: Option<CallId>, params: &str) {
        let Some(call_id) = call_id else {
            if matches!(self.setup, Some((_, Setup::Init | Setup::Describe))) {
                self.report(Fact::Progressed);
            }
            return;
        };
        if let Some(call) = self.calls.by_call_id(&call_id).filter(|call| call.cancelled.is_none()) {
            call.progressed(Instant::now());
            let params = params.to_owned();
            self.host.event(&self.plugin, self.generation, RunEvent::Progress { call_id, params });
        }
    }

    fn unreadable(&mut self, method: &str, error: &serde_json::Error) {
        let text = format!("a {method} notification was dropped: {error}");
        self.log_in_call(LogStream::Runtime, LogLevel::Warn, text);
    }

    /// Writes a call into the pipe and notes it as in flight.
    pub(super) fn send_call(&mut self, now: Instant, id: u64, call: RunCall) {
        let RunCall { request, reply, lane } = call;
        if reply.is_closed() {
            return;
        }
        let lineage = request.lineage.through(self.plugin.clone());
        let run_ends = now + request.timeout;
        let own = request.hard_deadline.map_or(run_ends, |hard| hard.min(run_ends));
        let own = Deadline::new(own, now, &lineage);
        let deadlines = Deadlines { own, inherited: request.inherited.clone() };
        let left = deadlines.first(now).moment(now).saturating_duration_since(now);
        let params = CallParams {
            operation: request.operation.as_str().into(),
            arguments: &request.arguments,
            context: CallContext {
                call_id: request.call_id.clone(),
                session_id: request.session.as_deref().map(Into::into),
                traceparent: request.traceparent.as_deref().map(Into::into),
                deadline_ms: millis(left),
                attempt: request.attempt,
                idempotency_key: request.key.as_deref().map(Into::into),
                caller: request.caller.as_deref().map(Into::into),
                locale: None,
            },
        };
        let buffer = self.outbound.buffer();
        let before = buffer.len();
        let written = write_request(buffer, id, method::CALL, &params);
        let limit = self.settings.frame_limit;
        if written.is_err() || buffer.len() - before > limit + 1 {
            buffer.truncate(before);
            // A caller that has gone away wants no answer.
            let _gone = reply.send(Err(RunFailure::ArgumentsTooLarge { limit }));
            return;
        }
        // What is said when the time is over: what was asked for, or less where it was inherited.
        let allowed = if request.lineage.depth() == 0 { request.timeout } else { left };
        let stall = request.stall_timeout.map(|allowed| Stall::begin(allowed, now, &lineage));
        let call = Call {
            call_id: request.call_id.clone(),
            reply: Some(reply),
            delivered: now,
            deadlines,
            timeout: allowed,
            stall,
            heard_before: self.door.heard(),
            cancelled: None,
            lineage,
            session: request.session.clone(),
            traceparent: request.traceparent.clone(),
            host_calls: Holds::default(),
            asks: Holds::default(),
            _lane: lane,
        };
        self.due_at(call.due(now));
        self.calls.open(id, call);
    }

    fn read_too_long(&mut self, head: &[u8]) {
        let limit = self.settings.frame_limit;
        if let Some(mut call) = id_in_head(head).and_then(|id| self.calls.close(id)) {
            call.answer(Err(RunFailure::FrameTooLarge { limit }));
            let text = format!("a frame above the limit of {limit} bytes was skipped");
            self.log(LogStream::Runtime, LogLevel::Warn, Some(call.call_id.clone()), text);
            return self.call_ended(Instant::now());
        }
        // Whose answer it is cannot be told: it may be anybody's.
        for mut call in self.calls.drain() {
            call.answer(Err(RunFailure::FrameTooLarge { limit }));
        }
        self.misbehaved(format!("frame too large: a line above the limit of {limit} bytes"));
    }

    fn stray(&mut self, line: &[u8], why: &NotAMessage) {
        self.door.stray_lines.fetch_add(1, Ordering::Relaxed);
        self.strays_in_a_row += 1;
        let text = text_of(line);
        if self.first_stray.is_none() {
            let beginning: String = text.chars().take(200).collect();
            // Of what was meant as a message it helps to know why it is none.
            let meant = line.trim_ascii_start().starts_with(b"{") || why.is_glued();
            self.first_stray = Some(if meant { format!("{beginning} ({why})") } else { beginning });
            self.log_in_call(
                LogStream::Runtime,
                LogLevel::Warn,
                format!("the next line on stdout is no message: {why}"),
            );
        }
        self.log_in_call(LogStream::Stray, LogLevel::Warn, text);
        if self.settings.strict {
            self.misbehaved(format!("stray output on stdout, and strict is on: {why}"));
        } else if self.strays_in_a_row >= STRAYS_MAX {
            self.misbehaved(format!("{STRAYS_MAX} lines in a row on stdout that are no messages"));
        }
    }
}

/// Whether an id that is not the one asked with was meant to be that one.
fn resembles(given: &str, asked: u64) -> bool {
    let whole = given.trim_matches('"').split('.').next().unwrap_or_default();
    whole.parse() == Ok(asked)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
