//! One process of the plugin and the conversation with it, line by line.
//!
//! Nothing is read or written but while something is waited for, so that a scenario decides when the
//! host reads. Whatever becomes of a session, its process is killed with all that it started.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use plugd_protocol::Decoder;
use plugd_supervisor::driver::{FromPlugin, Pipes, Process, ToPlugin, telling};
use rustix::process::Signal;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::broken::Broken;
use crate::ear::{Answer, Ear};
use crate::observe;
use crate::oddity::Oddity;
use crate::scenario::Finding;
use crate::transcript::clipped;

/// So much of stderr is kept, its end.
const STDERR_KEPT: usize = 2 * 1024;

/// Room for one read of stderr.
const STDERR_PIECE: usize = 16 * 1024;

/// Processes that were just signalled have this long to be gone before they count as left.
const DYING: Duration = Duration::from_millis(400);

/// How often is looked whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One process of the plugin.
pub(crate) struct Session {
    process: Process,
    pid: u32,
    stdin: Option<ToPlugin>,
    stdout: Option<FromPlugin>,
    stderr: Option<pipe::Receiver>,
    decoder: Decoder,
    outgoing: Vec<u8>,
    /// How much of it is written.
    written: usize,
    /// Whether stdout is read; stderr always is.
    reading: bool,
    /// Once the process has ended and all of its output was read.
    ended: Option<ExitStatus>,
    stderr_tail: Vec<u8>,
    /// Bytes that came on stderr.
    pub(crate) stderr_bytes: u64,
    next_id: u64,
    pub(crate) ear: Ear,
    /// When it was started.
    pub(crate) started: Instant,
}

/// What came of one turn of reading and writing.
enum Turn {
    Moved,
    Ended,
    Late,
}

impl Session {
    pub(crate) fn new((process, pipes): (Process, Pipes), frame_limit: usize, ear: Ear) -> Session {
        let pid = process.pid();
        let Pipes { stdin, stdout, stderr } = pipes;
        Session {
            process,
            pid,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            decoder: Decoder::new(frame_limit),
            outgoing: Vec::new(),
            written: 0,
            reading: true,
            ended: None,
            stderr_tail: Vec::new(),
            stderr_bytes: 0,
            next_id: 1,
            ear,
            started: Instant::now(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it can be asked for more.
    pub(crate) fn is_up(&self) -> bool {
        self.ended.is_none() && self.stdin.is_some() && self.stdout.is_some() && self.outgoing.is_empty()
    }

    /// Its exit status, once it has ended.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Stops or begins to read stdout.
    pub(crate) fn read_stdout(&mut self, reading: bool) {
        self.reading = reading;
    }

    /// Appends bytes to what is to be written; they go out while something is waited for.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    /// The next id, and the line of a request with it; an answer is expected from now on.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> (u64, Vec<u8>) {
        let id = self.next_id;
        self.next_id += 1;
        (id, self.request_with(id, method, params))
    }

    /// The line of a request with an id of one's own.
    pub(crate) fn request_with(&mut self, id: u64, method: &str, params: &Value) -> Vec<u8> {
        let call_id = params.pointer("/context/call_id").and_then(Value::as_str).map(str::to_owned);
        self.ear.asked(id, method, call_id);
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
        self.ear.transcript.sent(line.as_bytes());
        line.into_bytes()
    }

    /// Sends a request, and gives its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let (id, line) = self.request(method, params);
        self.write(&line);
        id
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n");
        self.write_noted(line.as_bytes());
    }

    /// Sends bytes as they are, and shows them where something goes wrong.
    pub(crate) fn write_noted(&mut self, bytes: &[u8]) {
        self.ear.transcript.sent(bytes);
        self.write(bytes);
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<(Answer, Duration), Finding> {
        let id = self.send(method, params);
        self.answer(id, within).await
    }

    /// Waits for an answer; a broken one is one, too.
    pub(crate) async fn answer(&mut self, id: u64, within: Duration) -> Result<(Answer, Duration), Finding> {
        self.wait(within, |session| session.ear.answer(id).is_some()).await;
        match self.ear.answer(id) {
            Some(answered) => Ok(answered.clone()),
            None => Err(self.unanswered(id, within)),
        }
    }

    /// As [`Session::ask`], where only a result will do.
    pub(crate) async fn result(
        &mut self,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<(Box<RawValue>, Duration), Finding> {
        let (answer, took) = self.ask(method, params, within).await?;
        match answer {
            Answer::Result(result) => Ok((result, took)),
            Answer::Error(error) => {
                Err(self.fault(format!("{method} was answered with error {}: {}", error.code, error.message)))
            }
            Answer::Broken(broken) => Err(self.broken(method, &broken)),
        }
    }

    /// Why there is no answer.
    pub(crate) fn unanswered(&self, id: u64, within: Duration) -> Finding {
        let method = self.ear.request(id).map_or("the request", |asked| asked.method()).to_owned();
        if self.ended.is_none() && self.ear.answered_another(id) {
            let said = format!("no answer to {method} with its id, {id}: what came has another one");
            return self.fault(said).fix("answer with the id of the request, as it came, its type included");
        }
        let why = match (self.ended, &self.stdout, &self.stdin) {
            (Some(status), _, _) => format!("it ended ({status}) instead of answering {method}"),
            (None, None, _) => format!("it closed its stdout and lives on: {method} can never be answered"),
            (None, _, None) => format!("it closed its stdin and lives on: {method} does not reach it"),
            (None, Some(_), Some(_)) if !self.outgoing.is_empty() => {
                format!("it does not read its stdin: {method} could not be sent within {within:.1?}")
            }
            (None, Some(_), Some(_)) => format!("no answer to {method} within {within:.1?}"),
        };
        self.fault(why)
    }

    /// A failure about an answer that is none, with what to do about that.
    pub(crate) fn broken(&self, method: &str, broken: &Broken) -> Finding {
        self.fault(format!("the answer to {method} is broken: {broken}")).fix(broken.fix)
    }

    /// Whether both of its pipes are open, and it reads what is sent.
    pub(crate) fn listens(&self) -> bool {
        self.stdin.is_some() && self.stdout.is_some() && self.outgoing.is_empty()
    }

    /// A failure with the latest lines of this conversation.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Finding {
        Finding::failure(what).with(self.evidence())
    }

    /// The latest lines of this conversation, and of stderr.
    pub(crate) fn evidence(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.ear.transcript.lines().collect();
        let tail = String::from_utf8_lossy(&self.stderr_tail);
        let tail: Vec<String> = tail.lines().map(str::to_owned).collect();
        lines.extend(telling(&tail).map(|line| format!("stderr: {}", clipped(line.as_bytes()))));
        lines
    }

    /// Reads and writes for that long.
    pub(crate) async fn listen(&mut self, for_: Duration) {
        self.wait(for_, |_| false).await;
    }

    /// Waits until everything is written, which a plugin that does not read prevents.
    pub(crate) async fn flush(&mut self, within: Duration) -> bool {
        self.wait(within, |session| session.outgoing.is_empty()).await
    }

    /// Closes stdin; what is not written by then never is.
    pub(crate) fn close_stdin(&mut self) {
        self.ear.transcript.note("(stdin is closed)".to_owned());
        self.outgoing.clear();
        self.written = 0;
        self.stdin = None;
    }

    /// Sends a signal to its process group.
    pub(crate) fn signal(&mut self, signal: Signal, name: &str) {
        self.ear.transcript.note(format!("({name} to its process group)"));
        self.process.signal_group(signal);
    }

    /// Waits for its end.
    pub(crate) async fn leaves(&mut self, within: Duration) -> bool {
        self.wait(within, |session| session.ended.is_some()).await
    }

    /// Who else belongs to its run.
    pub(crate) fn relatives(&self) -> Vec<u32> {
        self.process.relatives()
    }

    /// Reads and writes until enough has come; false where the time is over first, or nothing more can come.
    pub(crate) async fn wait(
        &mut self,
        within: Duration,
        mut enough: impl FnMut(&Session) -> bool + Send,
    ) -> bool {
        let until = Instant::now() + within;
        loop {
            self.ear.take_frames(&mut self.decoder);
            if !self.ear.replies.is_empty() {
                let replies = std::mem::take(&mut self.ear.replies);
                self.write(&replies);
            }
            if enough(self) {
                return true;
            }
            if self.ended.is_some() || Instant::now() >= until {
                return false;
            }
            match self.turn(until).await {
                Turn::Moved => {}
                Turn::Ended => self.settle().await,
                Turn::Late => return enough(self),
            }
        }
    }

    async fn turn(&mut self, until: Instant) -> Turn {
        let mut piece = [0; STDERR_PIECE];
        let Session { process, stdin, stdout, stderr, decoder, outgoing, written, reading, .. } = self;
        let reads = *reading && stdout.is_some();
        let (speaks, writes) = (stderr.is_some(), stdin.is_some() && !outgoing.is_empty());
        tokio::select! {
            read = async { stdout.as_mut().expect("it is open").read_buf(decoder.room()).await }, if reads => {
                if !matches!(read, Ok(count) if count > 0) {
                    *stdout = None;
                    self.ear.take_last(&mut self.decoder);
                }
            }
            read = async { stderr.as_mut().expect("it is open").read(&mut piece).await }, if speaks => {
                match read {
                    Ok(count) if count > 0 => self.heard_aside(&piece[..count]),
                    _ => *stderr = None,
                }
            }
            wrote = async { stdin.as_mut().expect("it is open").write(&outgoing[*written..]).await }, if writes => {
                match wrote {
                    Ok(count) => *written += count,
                    // Nobody reads any more.
                    Err(_) => *stdin = None,
                }
                if stdin.is_none() || *written == outgoing.len() {
                    outgoing.clear();
                    *written = 0;
                }
            }
            () = process.ended() => return Turn::Ended,
            () = tokio::time::sleep_until(until.into()) => return Turn::Late,
        }
        Turn::Moved
    }

    fn heard_aside(&mut self, piece: &[u8]) {
        self.stderr_bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.stderr_tail.extend_from_slice(piece);
        let too_much = self.stderr_tail.len().saturating_sub(STDERR_KEPT);
        self.stderr_tail.drain(..too_much);
    }

    /// The process has ended: takes what is left in its pipes, and looks at what it left behind.
    async fn settle(&mut self) {
        if let Some(mut stdout) = self.stdout.take() {
            while stdout.try_read_buf(self.decoder.room()).is_ok_and(|count| count > 0) {
                self.ear.take_frames(&mut self.decoder);
            }
            self.ear.take_last(&mut self.decoder);
        }
        if let Some(stderr) = self.stderr.take() {
            let mut piece = [0; STDERR_PIECE];
            let until = Instant::now() + DYING;
            while let Ok(count) = stderr.try_read(&mut piece)
                && count > 0
                && Instant::now() < until
            {
                self.heard_aside(&piece[..count]);
            }
        }
        self.stdin = None;
        self.outgoing.clear();
        self.written = 0;
        self.note_what_is_left().await;
        // Where the system has no status for it, there is nobody else to ask.
        self.ended = self.process.reap().ok().map(|ended| ended.status).or(Some(ExitStatus::default()));
        self.ear.hear_the_end();
        if let Some(status) = self.ended {
            self.ear.transcript.note(format!("(it ended: {status})"));
        }
    }

    async fn note_what_is_left(&self) {
        let until = Instant::now() + DYING;
        let mut left = self.process.relatives();
        while !left.is_empty() && Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
            left.retain(|pid| observe::lives(*pid));
        }
        for pid in left {
            let outside = observe::group(pid) != Some(self.pid);
            let kind = if outside { Oddity::LeftOutside } else { Oddity::LeftBehind };
            self.ear.note(kind, || observe::in_words(pid));
        }
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn bury(mut self) {
        if self.ended.is_none() {
            // A process whose status cannot be had is gone.
            let _gone = self.process.reap();
        }
        self.process.bury().await;
    }
}
