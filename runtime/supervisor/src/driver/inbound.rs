//! What a plugin writes: its answers, notifications and requests, and what is none of these.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plugd_protocol::control::{LogEntry, LogStream};
use plugd_protocol::error::rpc_code;
use plugd_protocol::message::{
    Answer, Message, NotAMessage, host_id, id_in_head, whole_result, write_error, write_request, write_result,
};
use plugd_protocol::plugin::{
    CallContext, CallParams, HostCallParams, LogLevel, LogParams, PartialParams, ProgressParams, method,
};
use plugd_protocol::{CallId, Decoder, Frame, RpcError};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::door::{Answered, RunCall, RunFailure};
use super::host::{HostCall, RunEvent};
use super::in_flight::{Call, Stall};
use super::log_lines::{Spend, text_of, unix_now};
use super::run::{HOST_CALLS_MAX, HostAnswer, Run, Setup};
use crate::machine::Fact;

/// So many lines in a row that are no messages are a violation.
const STRAYS_MAX: u32 = 100;

impl Run {
    /// Handles every frame that is complete.
    pub(super) fn read_frames(&mut self, decoder: &mut Decoder) {
        while let Some(frame) = decoder.next_frame() {
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
                    self.log(LogStream::Stray, LogLevel::Warn, Some(call.call_id.clone()), text_of(line));
                    call.answer(Err(RunFailure::Malformed { why: error.to_string() }));
                    self.call_ended(Instant::now());
                }
                None => self.stray(line, &error),
            },
        }
    }

    fn read_response(&mut self, line: &[u8], id: Option<&RawValue>, answer: Result<Answer<'_>, RpcError>) {
        let given = id.map_or("null", RawValue::get);
        let Some(id) = id.and_then(host_id) else {
            return self.unmatched(given);
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
            if call.reply.is_none() {
                self.door.unmatched_answers.fetch_add(1, Ordering::Relaxed);
            }
            call.answer(outcome);
            return self.call_ended(now);
        }
        match self.setup {
            Some((expected, setup)) if expected == id => {
                self.setup = None;
                self.read_setup(setup, line, answer.err());
            }
            _ => self.unmatched(given),
        }
    }

    fn read_setup(&mut self, setup: Setup, line: &[u8], error: Option<RpcError>) {
        // To know neither `init` nor `shutdown` is to have nothing to do there.
        let error =
            error.filter(|error| setup == Setup::Describe || error.code != rpc_code::METHOD_NOT_FOUND);
        let fact = match (setup, error) {
            (Setup::Describe, Some(error)) => Fact::DescribeRefused { reason: error.message },
            (Setup::Describe, None) => match whole_result(line) {
                Err(error) => Fact::DescribeRefused { reason: error.to_string() },
                Ok(manifest) => match self.host.described(&self.plugin, self.generation, manifest) {
                    Err(reason) => Fact::DescribeRefused { reason },
                    Ok(accepted) => {
                        self.described = true;
                        self.door.concurrency.store(accepted.concurrency, Ordering::Relaxed);
                        Fact::Described(accepted.declared)
                    }
                },
            },
            (Setup::Init, Some(error)) => {
                Fact::InitRefused { reason: format!("init failed: {}", error.message) }
            }
            (Setup::Init, None) => {
                self.ready = true;
                self.note_idle();
                self.door.lanes.add_permits(self.door.concurrency.load(Ordering::Relaxed) as usize);
                Fact::Initialised
            }
            (Setup::Shutdown, _) => Fact::ShutdownAnswered,
        };
        self.report(fact);
    }

    /// Counts an answer that nobody waits for: late, unknown, or given twice.
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
                Ok(log) => {
                    let text = text_of(log.message.as_bytes());
                    self.log(LogStream::Log, log.level, log.call_id, text);
                }
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
            method::MANIFEST_CHANGED => {
                self.host.event(&self.plugin, self.generation, RunEvent::ManifestChanged);
            }
            // What is not known is tolerated: the plugin may be newer than this host.
            _ => {}
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
            if let Some(stall) = &mut call.stall {
                stall.at = Instant::now() + stall.allowed;
            }
            let params = params.to_owned();
            self.host.event(&self.plugin, self.generation, RunEvent::Progress { call_id, params });
        }
    }

    fn unreadable(&mut self, method: &str, error: &serde_json::Error) {
        let text = format!("a {method} notification was dropped: {error}");
        self.log_in_call(LogStream::Runtime, LogLevel::Warn, text);
    }

    fn read_request(&mut self, id: &RawValue, name: &str, params: Option<&RawValue>) {
        if name == method::DESCRIBE && !self.described {
            self.setup = None;
            let reason = "it gives back what it is sent: not a plugin".to_owned();
            return self.report(Fact::DescribeRefused { reason });
        }
        let params = params.map_or("{}", RawValue::get);
        let refused = match name {
            method::HOST_CALL => match serde_json::from_str::<HostCallParams<'_>>(params) {
                Ok(params) => self.host_call(id, params).err(),
                Err(error) => Some(RpcError::new(rpc_code::INVALID_PARAMS, error.to_string())),
            },
            _ => {
                let message = format!("the host has no method {name:?}");
                Some(RpcError::new(rpc_code::METHOD_NOT_FOUND, message))
            }
        };
        if let Some(error) = refused {
            self.answer_plugin(id, Err(error));
        }
    }

    fn host_call(&mut self, id: &RawValue, params: HostCallParams<'_>) -> Result<(), RpcError> {
        let invalid = |message: &str| RpcError::new(rpc_code::INVALID_PARAMS, message);
        if Arc::strong_count(&self.outside) > HOST_CALLS_MAX {
            return Err(RpcError::new(
                rpc_code::HOST_CALL_FAILED,
                format!("{HOST_CALLS_MAX} host/calls of this plugin are already in flight"),
            ));
        }
        let parent = match &params.call_id {
            Some(call_id) => Some(
                self.calls
                    .by_call_id(call_id)
                    .ok_or_else(|| invalid("no call with that call_id is in flight"))?,
            ),
            None if self.calls.len() > 1 => {
                return Err(invalid("several calls are in flight: say which by call_id"));
            }
            None => self.calls.only(),
        };
        let mut call = HostCall {
            plugin: self.plugin.clone(),
            lineage: super::host::Lineage::default(),
            deadline: None,
            operation: params.operation.into_owned(),
            arguments: params.arguments.map(ToOwned::to_owned),
            session: None,
            traceparent: None,
        };
        if let Some(parent) = &parent {
            call.lineage = parent.lineage.clone();
            call.deadline = Some(parent.deadline);
            call.session.clone_from(&parent.session);
            call.traceparent.clone_from(&parent.traceparent);
        }
        let answers = self.host_answers.clone();
        let id = id.to_owned();
        let answered = self.host.call(call);
        let outside = Arc::clone(&self.outside);
        let parent_ended = parent.map(|parent| {
            let (held, ended) = oneshot::channel();
            parent.host_calls.retain(|other| !other.is_closed());
            parent.host_calls.push(held);
            ended
        });
        tokio::spawn(async move {
            let cancelled = async {
                match parent_ended {
                    Some(ended) => drop(ended.await),
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                outcome = answered => outcome,
                () = cancelled => {
                    Err(RpcError::new(rpc_code::CANCELLED, "the call that this one belongs to is over"))
                }
            };
            drop(outside);
            // A run that has ended needs no answer.
            let _gone = answers.send(HostAnswer { id, outcome }).await;
        });
        Ok(())
    }

    /// Sends back what another plugin answered.
    pub(super) fn send_host_answer(&mut self, answer: HostAnswer) {
        match answer.outcome {
            Ok(reply) => self.answer_plugin(&answer.id, Ok(&reply)),
            Err(error) => self.answer_plugin(&answer.id, Err(error)),
        }
    }

    fn answer_plugin(&mut self, id: &RawValue, outcome: Result<&super::host::HostReply, RpcError>) {
        let buffer = self.outbound.buffer();
        let before = buffer.len();
        let written = match &outcome {
            Ok(reply) => write_result(buffer, id, reply),
            Err(error) => write_error(buffer, id, error),
        };
        if buffer.len() - before > self.settings.frame_limit {
            buffer.truncate(before);
            let message =
                format!("the answer is above the frame limit of {} bytes", self.settings.frame_limit);
            return self.answer_plugin(id, Err(RpcError::new(rpc_code::HOST_CALL_FAILED, message)));
        }
        if let Err(error) = written {
            tracing::error!(plugin = %self.plugin, %error, "an answer cannot be written");
        }
    }

    /// Writes a call into the pipe and notes it as in flight.
    pub(super) fn send_call(&mut self, now: Instant, id: u64, call: RunCall) {
        let RunCall { request, reply, lane } = call;
        if reply.is_closed() {
            return;
        }
        let run_ends = now + request.timeout;
        let deadline = request.hard_deadline.map_or(run_ends, |hard| hard.min(run_ends));
        let params = CallParams {
            operation: request.operation.as_str().into(),
            arguments: &request.arguments,
            context: CallContext {
                call_id: request.call_id.clone(),
                session_id: request.session.as_deref().map(Into::into),
                traceparent: request.traceparent.as_deref().map(Into::into),
                deadline_ms: millis(deadline.saturating_duration_since(now)),
                attempt: request.attempt,
                idempotency_key: None,
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
        let left = deadline.saturating_duration_since(now);
        let allowed = if request.lineage.depth() == 0 { request.timeout } else { left };
        let stall = request.stall_timeout.map(|allowed| Stall { allowed, at: now + allowed });
        self.due_at(stall.map_or(deadline, |stall| stall.at.min(deadline)));
        self.calls.open(
            id,
            Call {
                call_id: request.call_id.clone(),
                reply: Some(reply),
                delivered: now,
                deadline,
                timeout: allowed,
                stall,
                heard_before: self.door.heard(),
                cancelled: None,
                lineage: request.lineage.through(self.plugin.clone()),
                session: request.session.clone(),
                traceparent: request.traceparent.clone(),
                host_calls: Vec::new(),
                _lane: lane,
            },
        );
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
            self.first_stray = Some(text.chars().take(200).collect());
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

    /// Logs a line that belongs to the only call there is, where there is just one.
    pub(super) fn log_in_call(&mut self, stream: LogStream, level: LogLevel, text: String) {
        let one_lane = self.door.concurrency.load(Ordering::Relaxed) == 1;
        let call_id = if one_lane { self.calls.only().map(|call| call.call_id.clone()) } else { None };
        self.log(stream, level, call_id, text);
    }

    pub(super) fn log(&mut self, stream: LogStream, level: LogLevel, call_id: Option<CallId>, text: String) {
        let spent = self.budget.spend(Instant::now());
        let entry = |stream, level, call_id, text| LogEntry {
            at: unix_now(),
            plugin: self.plugin.clone(),
            generation: self.generation.0,
            stream,
            level,
            call_id,
            text,
        };
        if let Spend::LogAfterGap(count) = spent {
            let text = format!("{count} lines were not logged: more than 1,000 a second");
            self.host.log(entry(LogStream::Runtime, LogLevel::Warn, None, text));
        }
        if spent != Spend::Suppress {
            self.host.log(entry(stream, level, call_id, text));
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
