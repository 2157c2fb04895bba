//! Stderr while a run lasts, and everything about how it ends.

use std::sync::atomic::Ordering;

use plugd_protocol::CallId;
use plugd_protocol::control::LogStream;
use plugd_protocol::plugin::LogLevel;
use tokio::sync::mpsc;

use super::door::{RunCall, RunFailure};
use super::exit::{self, ExitRecord};
use super::launch::{NotSpawned, Process};
use super::log_lines::{Whose, text_of, unix_now};
use super::reading::Streams;
use super::run::Run;
use crate::machine::StopReason;
use crate::machine::{Exit, Fact};

/// How much is read from a dead plugin's pipes at most, where a grandchild goes on writing.
const LAST_WORDS_MAX: usize = 32 * 1024 * 1024;

/// So many turns of reading empty a pipe.
const STDERR_TURNS: usize = 4;

impl Run {
    /// Handles the lines that are complete in what was read of stderr.
    pub(super) fn read_stderr(&mut self, streams: &mut Streams) {
        // Most plugins write there seldom: no room is kept for it.
        let read = std::mem::take(&mut streams.stderr_read);
        let now = self.whose();
        // A line that was begun in another call may hold what that one gave.
        let mut first =
            if streams.lines.is_begun() && self.line_begun != now { Whose::Unclear } else { now.clone() };
        streams.lines.push(&read, |line| {
            let of = std::mem::replace(&mut first, now.clone());
            self.log_stderr(line, of);
        });
        self.line_begun = first;
    }

    /// Handles what stands in stderr before something else is handled that comes after it: as much as a
    /// pipe holds.
    pub(super) fn read_waiting_stderr(&mut self, streams: &mut Streams) {
        for _ in 0..STDERR_TURNS {
            if !streams.stderr_open || !streams.read_stderr_now() {
                break;
            }
            self.read_stderr(streams);
        }
    }

    /// What is written to stderr now belongs to this.
    fn whose(&mut self) -> Whose {
        match self.calls.only() {
            Some(call) => Whose::Call(call.call_id.clone()),
            None if self.called => Whose::Unclear,
            None => Whose::Before,
        }
    }

    fn log_stderr(&mut self, line: &[u8], of: Whose) {
        self.tail.push(line, of);
        if self.may_log() {
            self.log_admitted_in_call(LogStream::Stderr, LogLevel::Info, text_of(line));
        }
    }

    /// A line that a call began ends with that call: what is written later is not glued to it.
    pub(super) fn end_line_of(&mut self, call_id: CallId, streams: &mut Streams) {
        if self.calls.by_call_id(&call_id).is_none()
            && let Some(line) = streams.lines.finish()
        {
            self.tail.push(&line, Whose::Call(call_id.clone()));
            self.log(LogStream::Stderr, LogLevel::Info, Some(call_id), text_of(&line));
        }
    }

    /// Reads what the process left in its pipes; a grandchild may hold them open for ever.
    fn last_words(&mut self, mut streams: Streams) {
        let mut left = LAST_WORDS_MAX;
        while left > 0 && streams.read_stdout_now() {
            left = left.saturating_sub(streams.frames.buffered());
            self.read_frames(&mut streams.frames);
        }
        self.read_last_frame(&mut streams.frames);
        while left > 0 && streams.read_stderr_now() {
            left = left.saturating_sub(streams.stderr_read.len());
            self.read_stderr(&mut streams);
        }
        if let Some(line) = streams.lines.finish() {
            let of = self.line_begun.clone();
            self.log_stderr(&line, of);
        }
        if let Some(count) = self.budget.last_gap() {
            self.log_gap(count);
        }
    }

    /// Takes the exit status, answers every call that is still open, reports the end, and then that
    /// nothing of the run is left.
    pub(super) async fn finish(
        &mut self,
        process: &mut Process,
        streams: Streams,
        mut calls: mpsc::Receiver<RunCall>,
    ) {
        self.last_words(streams);
        self.door.lanes.close();
        calls.close();
        let (exit, oom) = match process.reap() {
            Ok(ended) => (exit::from_status(ended.status), ended.oom),
            Err(error) => {
                tracing::error!(plugin = %self.plugin, %error, "the exit status is lost");
                (Exit::Code(-1), false)
            }
        };
        let by_plugd = self.stopping.is_some_and(|reason| reason != StopReason::Misbehaved);
        let record = ExitRecord {
            generation: self.generation,
            exit,
            at: unix_now(),
            unasked: !by_plugd,
            by_plugd,
            oom,
            fault: self.fault.clone(),
            stderr_tail: self.tail.lines(),
            before_calls: self.tail.before_calls(),
            first_stray: self.first_stray.take(),
            silent: !self.said_something,
        };
        for call_id in self.calls.open_ids() {
            self.log_of_call(&call_id, "the process ended before it was answered");
        }
        for mut call in self.calls.drain() {
            // What it said in another call is not for this one's caller, and not why this one ended.
            let words = self.tail.for_call(&call.call_id);
            call.answer(Err(RunFailure::Died {
                exit: ExitRecord { stderr_tail: words, ..record.clone() },
                fault: self.fault.clone(),
                stopping: self.stopping,
            }));
        }
        self.door.in_flight.store(0, Ordering::Relaxed);
        // What described itself was launched, whatever it says.
        match self.not_launched.take().filter(|_| !self.described) {
            Some(NotSpawned { reason, passing }) => self.report(Fact::NotSpawned { reason, passing }),
            None => {
                self.report(Fact::Exited(exit));
                if let Some(report) = self.seen.last_mut() {
                    report.exit = Some(record);
                }
            }
        }
        // The next run need not wait for the burial of this one; whoever asked for its end does.
        self.send_seen().await;
        process.bury().await;
        self.send_buried().await;
    }
}
