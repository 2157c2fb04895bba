//! Stderr while a run lasts, and everything about how it ends.

use std::sync::atomic::Ordering;

use plugd_protocol::Decoder;
use plugd_protocol::control::LogStream;
use plugd_protocol::plugin::LogLevel;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::door::{RunCall, RunFailure};
use super::exit::{self, ExitRecord};
use super::launch::Process;
use super::log_lines::{LineSplitter, unix_now};
use super::run::Run;
use crate::machine::{Exit, Fact};

/// How much is read from a dead plugin's pipes at most, where a grandchild goes on writing.
const LAST_WORDS_MAX: usize = 32 * 1024 * 1024;

/// How much is taken from stderr in one turn.
const STDERR_READ: usize = 16 * 1024;

impl Run {
    pub(super) fn read_stderr(&mut self, splitter: &mut LineSplitter, buffer: &mut Vec<u8>) {
        let mut lines = Vec::new();
        splitter.push(buffer, |line| lines.push(line));
        buffer.clear();
        if buffer.capacity() < STDERR_READ {
            buffer.reserve(STDERR_READ);
        }
        for line in lines {
            self.log_stderr(line);
        }
    }

    /// Takes what stands in stderr: what was written there before an answer belongs to that call.
    pub(super) fn read_stderr_first(
        &mut self,
        stderr: &pipe::Receiver,
        splitter: &mut LineSplitter,
        buffer: &mut Vec<u8>,
    ) {
        if stderr.try_read_buf(buffer).is_ok_and(|count| count > 0) {
            self.read_stderr(splitter, buffer);
        }
    }

    fn log_stderr(&mut self, line: String) {
        self.tail.push(&line);
        self.log_in_call(LogStream::Stderr, LogLevel::Info, line);
    }

    /// Reads what the process left in its pipes; a grandchild may hold them open for ever.
    pub(super) fn last_words(
        &mut self,
        decoder: &mut Decoder,
        stdout: &mut pipe::Receiver,
        splitter: &mut LineSplitter,
        stderr: &mut pipe::Receiver,
    ) {
        let mut left = LAST_WORDS_MAX;
        while left > 0 {
            match stdout.try_read_buf(decoder.room()) {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                _ => break,
            }
            self.read_frames(decoder);
        }
        self.read_last_frame(decoder);
        let mut buffer = Vec::with_capacity(STDERR_READ);
        while left > 0 {
            match stderr.try_read_buf(&mut buffer) {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                _ => break,
            }
            self.read_stderr(splitter, &mut buffer);
        }
        if let Some(line) = splitter.finish() {
            self.log_stderr(line);
        }
    }

    /// Takes the exit status, answers every call that is still open, and reports the end.
    pub(super) async fn finish(&mut self, process: &mut Process, mut calls: mpsc::Receiver<RunCall>) {
        self.door.lanes.close();
        calls.close();
        let exit = match process.reap() {
            Ok(status) => exit::from_status(status),
            Err(error) => {
                tracing::error!(plugin = %self.plugin, %error, "the exit status is lost");
                Exit::Code(-1)
            }
        };
        let record = ExitRecord {
            generation: self.generation,
            exit,
            at: unix_now(),
            stderr_tail: self.tail.lines(),
            first_stray: self.first_stray.take(),
        };
        for mut call in self.calls.drain() {
            call.answer(Err(RunFailure::Died {
                exit: record.clone(),
                fault: self.fault.clone(),
                stopping: self.stopping,
            }));
        }
        self.door.in_flight.store(0, Ordering::Relaxed);
        self.report(Fact::Exited(exit));
        if let Some(report) = self.seen.last_mut() {
            report.exit = Some(record);
        }
        self.send_seen().await;
    }
}
