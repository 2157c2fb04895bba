//! What a plugin's lines mean, told apart as plugd does; what is odd about them is noted.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use plugd_protocol::message::{Message, NotAMessage, host_id, id_in_head, whole_result, write_error};
use plugd_protocol::plugin::{
    HostAskParams, HostCallParams, LogParams, PartialParams, ProgressParams, method,
};
use plugd_protocol::{CallId, Decoder, Frame, RpcError, plain};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::broken::{self, Broken};
use crate::oddity::{Heard, Oddities, Oddity};
use crate::told;
use crate::transcript::{Transcript, clipped};

/// A host takes so many `host/call`s of a plugin at once.
const HOST_CALLS_MAX: usize = 64;

/// What comes within this time counts as at once.
const AT_ONCE: Duration = Duration::from_millis(100);

/// So much of what is no message is kept: more than any answer that was meant to be one takes.
const STRAY_KEPT: usize = 64 * 1024;

/// What the launcher says before the plugin's program runs: it goes on, or cannot.
const LAUNCHER_NOTE: &str = "launcher/note";
const LAUNCHER_FAILED: &str = "launcher/failed";

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Result(Box<RawValue>),
    Error(RpcError),
    /// It has the request's id, and is no answer.
    Broken(Broken),
}

/// A request that was made.
#[derive(Debug)]
pub(crate) struct Asked {
    method: String,
    call_id: Option<String>,
    sent: Instant,
    /// How many answers to nothing had come before it was sent.
    misaddressed: u64,
    /// What came, and after how long.
    pub(crate) answer: Option<(Answer, Duration)>,
}

/// Everything that was heard of one process.
#[derive(Debug)]
pub(crate) struct Ear {
    asked: BTreeMap<u64, Asked>,
    pub(crate) transcript: Transcript,
    oddities: Oddities,
    /// The plugins that it requires.
    requires: Vec<String>,
    /// Lines that were messages, and lines that were not.
    pub(crate) messages: u64,
    pub(crate) strays: u64,
    /// The first of those that were not, with their line ends.
    stray_text: Vec<u8>,
    /// The first plugin that it called since somebody last looked: there is none but itself.
    lacked: Option<String>,
    /// Whether it asked a person since then.
    asked_a_person: bool,
    /// Answers with an id of no request that waits.
    misaddressed: u64,
    /// How often it sent each notification of the protocol.
    pub(crate) told: BTreeMap<String, u64>,
    /// What the launcher said in the plugin's stead, unparsed.
    pub(crate) not_launched: Option<String>,
    /// When it last made requests of its own.
    requests: VecDeque<Instant>,
    /// Answers to these, to be written.
    pub(crate) replies: Vec<u8>,
}

impl Ear {
    pub(crate) fn new(oddities: Oddities, requires: Vec<String>) -> Ear {
        Ear {
            asked: BTreeMap::new(),
            transcript: Transcript::default(),
            oddities,
            requires,
            messages: 0,
            strays: 0,
            stray_text: Vec::new(),
            misaddressed: 0,
            lacked: None,
            asked_a_person: false,
            told: BTreeMap::new(),
            not_launched: None,
            requests: VecDeque::new(),
            replies: Vec::new(),
        }
    }

    /// Expects an answer to a request of that id from now on.
    pub(crate) fn asked(&mut self, id: u64, method: &str, call_id: Option<String>) {
        let method = method.to_owned();
        let misaddressed = self.misaddressed;
        let asked = Asked { method, call_id, sent: Instant::now(), misaddressed, answer: None };
        self.asked.insert(id, asked);
    }

    /// What came of a request.
    pub(crate) fn answer(&self, id: u64) -> Option<&(Answer, Duration)> {
        self.asked.get(&id)?.answer.as_ref()
    }

    /// Notes something odd that is not about a line.
    pub(crate) fn note(&self, kind: Oddity, shown: impl FnOnce() -> String) {
        self.oddities.note(kind, shown);
    }

    /// Takes every frame that is complete.
    pub(crate) fn take_frames(&mut self, decoder: &mut Decoder) {
        while let Some(frame) = decoder.next_frame() {
            self.take_frame(frame);
        }
    }

    /// Takes a last line that came without its line end.
    pub(crate) fn take_last(&mut self, decoder: &mut Decoder) {
        if let Some(frame) = decoder.finish() {
            self.take_frame(frame);
        }
    }

    fn take_frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => {
                self.transcript.came(line);
                self.take_line(line);
            }
            Frame::TooLong { head } => {
                self.transcript.came(head);
                self.oddities.hear(Heard::Line);
                self.oddities.note(Oddity::TooLong, || format!("← {}", clipped(head)));
                if let Some(asked) = id_in_head(head).and_then(|id| self.asked.get_mut(&id)) {
                    asked.close(Answer::Broken(Broken::too_long()));
                }
            }
        }
    }

    fn take_line(&mut self, line: &[u8]) {
        match Message::parse(line) {
            Ok(message) => {
                self.messages += 1;
                if self.messages > 1
                    && let Some(params) = self.not_launched.take()
                {
                    // It was started after all: it has spoken in the launcher's name.
                    self.oddities.note(Oddity::UnknownMethod, || format!("← {LAUNCHER_FAILED} {params}"));
                }
                match message {
                    Message::Response { id, answer } => {
                        let answer = answer.map(|_| ());
                        self.take_answer(line, id, answer);
                    }
                    Message::Notification { method, params } => self.take_notification(line, &method, params),
                    Message::Request { id, method, params } => self.take_request(line, id, &method, params),
                }
            }
            Err(error) => self.take_what_is_none(line, &error),
        }
    }

    fn take_what_is_none(&mut self, line: &[u8], error: &NotAMessage) {
        self.oddities.hear(Heard::Line);
        let open = id_in_head(line).and_then(|id| self.asked.get_mut(&id));
        match open.filter(|asked| asked.answer.is_none()) {
            Some(asked) => {
                let broken = Broken::of(line, error);
                let fix = Some(broken.fix);
                asked.close(Answer::Broken(broken));
                let shown = || format!("← {}  ({error})", clipped(line));
                self.oddities.note_with(Oddity::BrokenAnswer, fix, shown);
                self.oddities.hear(Heard::Answer);
            }
            None => {
                self.strays += 1;
                if self.stray_text.len() < STRAY_KEPT {
                    self.stray_text.extend_from_slice(&line[..line.len().min(STRAY_KEPT)]);
                    self.stray_text.push(b'\n');
                }
                let shown = || format!("← {}", clipped(line));
                self.oddities.note_with(Oddity::Stray, broken::fix_of_a_piece(line), shown);
            }
        }
    }

    fn take_answer(&mut self, line: &[u8], id: Option<&RawValue>, answer: Result<(), RpcError>) {
        self.oddities.hear(Heard::Line);
        self.oddities.hear(Heard::Answer);
        let shown = || format!("← {}", clipped(line));
        let given = id.map_or("null", RawValue::get);
        let Some(asked) = id.and_then(host_id).and_then(|id| self.asked.get_mut(&id)) else {
            let meant =
                self.asked.iter().find(|(asked, waits)| waits.answer.is_none() && resembles(given, **asked));
            self.misaddressed += 1;
            return match meant {
                Some((meant, _)) => {
                    self.oddities.note(Oddity::IdChanged, || format!("{}  (asked with id {meant})", shown()));
                }
                None => self.oddities.note(Oddity::Unmatched, shown),
            };
        };
        if asked.answer.is_some() {
            self.misaddressed += 1;
            return self.oddities.note(Oddity::Twice, || format!("{}  (answered before)", shown()));
        }
        asked.close(match answer {
            Err(error) => {
                self.oddities.hear(Heard::Error);
                if let Some(wrong) = told::wrong_form(&error) {
                    self.oddities.note(Oddity::ErrorForm, || format!("{}  ({wrong})", shown()));
                }
                if let Some(tells) = told::too_much(&error) {
                    self.oddities.note(Oddity::ErrorTells, || format!("{}  ({tells})", shown()));
                }
                Answer::Error(error)
            }
            Ok(()) => match whole_result(line) {
                Ok(result) => Answer::Result(result.to_owned()),
                Err(error) => Answer::Broken(Broken::of(line, error)),
            },
        });
    }

    fn take_notification(&mut self, line: &[u8], name: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        match name {
            LAUNCHER_NOTE if self.messages == 1 => return self.messages = 0,
            LAUNCHER_FAILED if self.messages == 1 => return self.not_launched = Some(params.to_owned()),
            _ => {}
        }
        self.oddities.hear(Heard::Line);
        self.oddities.hear(Heard::Telling);
        let read = match name {
            method::LOG => serde_json::from_str::<LogParams<'_>>(params).map(|log| log.call_id),
            method::PROGRESS => serde_json::from_str::<ProgressParams<'_>>(params).map(|told| told.call_id),
            method::PARTIAL => {
                serde_json::from_str::<PartialParams<'_>>(params).map(|partial| Some(partial.call_id))
            }
            method::MANIFEST_CHANGED => Ok(None),
            _ => return self.oddities.note(Oddity::UnknownMethod, || format!("← {}", clipped(line))),
        };
        *self.told.entry(name.to_owned()).or_default() += 1;
        match read {
            Ok(call_id) => self.belongs(line, call_id),
            Err(error) => self
                .oddities
                .note(Oddity::UnreadableParams, || format!("← {}  ({})", clipped(line), plain(&error))),
        }
    }

    /// Looks whether what is told belongs to a call that the plugin has or had.
    fn belongs(&self, line: &[u8], call_id: Option<CallId>) {
        let Some(call_id) = call_id else { return };
        if !self.asked.values().any(|asked| asked.call_id.as_deref() == Some(call_id.as_str())) {
            self.oddities.note(Oddity::ForeignCall, || format!("← {}", clipped(line)));
        }
    }

    fn take_request(&mut self, line: &[u8], id: &RawValue, name: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        self.oddities.hear(Heard::Line);
        self.oddities.hear(Heard::Telling);
        let error = match name {
            method::HOST_CALL => match serde_json::from_str::<HostCallParams<'_>>(params) {
                Ok(call) => {
                    self.belongs(line, call.call_id);
                    self.oddities.hear(Heard::HostCall);
                    let plugin = call.operation.split('.').next().unwrap_or_default();
                    if self.lacked.is_none() {
                        self.lacked = Some(plugin.to_owned());
                    }
                    if !self.requires.iter().any(|required| required == plugin) {
                        self.oddities.note(Oddity::Undeclared, || format!("← {}", clipped(line)));
                    }
                    no_other_plugin(&call.operation)
                }
                Err(error) => self.unreadable(line, &error),
            },
            method::HOST_ASK => match serde_json::from_str::<HostAskParams>(params) {
                Ok(ask) => {
                    self.belongs(line, ask.call_id);
                    self.asked_a_person = true;
                    let data = to_raw_value(&json!({"name": "nobody_to_ask", "retryable": false})).ok();
                    RpcError { data, ..RpcError::new(4, "there is nobody to ask: this is plugd check") }
                }
                Err(error) => self.unreadable(line, &error),
            },
            _ => {
                self.oddities.note(Oddity::UnknownMethod, || format!("← {}", clipped(line)));
                RpcError::new(-32601, "no such method")
            }
        };
        self.crowds(line);
        // It is serialised from parts that were JSON, or text.
        let _written = write_error(&mut self.replies, id, &error);
    }

    fn unreadable(&self, line: &[u8], error: &serde_json::Error) -> RpcError {
        let why = plain(error);
        self.oddities.note(Oddity::UnreadableParams, || format!("← {}  ({why})", clipped(line)));
        RpcError::new(-32602, why)
    }

    /// Looks whether more requests come at once than a host takes.
    fn crowds(&mut self, line: &[u8]) {
        let now = Instant::now();
        if self.requests.len() > HOST_CALLS_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(now);
        let oldest =
            self.requests.front().map_or(Duration::ZERO, |first| now.saturating_duration_since(*first));
        if self.requests.len() > HOST_CALLS_MAX && oldest < AT_ONCE {
            self.oddities.note(Oddity::Crowd, || format!("← {}", clipped(line)));
        }
    }
}

impl Asked {
    fn close(&mut self, answer: Answer) {
        self.answer = Some((answer, self.sent.elapsed()));
    }

    /// What was asked.
    pub(crate) fn method(&self) -> &str {
        &self.method
    }
}

impl Ear {
    /// What came on stdout that is no message, from the first on.
    pub(crate) fn stray_text(&self) -> String {
        String::from_utf8_lossy(&self.stray_text).into_owned()
    }

    /// Notes that its process has ended, where it was the plugin's.
    pub(crate) fn hear_the_end(&self) {
        if self.not_launched.is_none() {
            self.oddities.hear(Heard::End);
        }
    }

    /// Whether an answer with another id came since a request was made.
    pub(crate) fn answered_another(&self, id: u64) -> bool {
        self.asked.get(&id).is_some_and(|asked| self.misaddressed > asked.misaddressed)
    }

    /// What it asked for since this was last called and a lone plugin cannot have, in words.
    pub(crate) fn take_lacked(&mut self) -> Option<String> {
        let plugin = self.lacked.take().map(|plugin| format!("it needs {plugin}, which is not here"));
        let person = std::mem::take(&mut self.asked_a_person);
        plugin.or_else(|| person.then(|| "it asks a person, and there is nobody to ask".to_owned()))
    }

    /// A request that was made.
    pub(crate) fn request(&self, id: u64) -> Option<&Asked> {
        self.asked.get(&id)
    }
}

/// What a host says to a `host/call` where there is no other plugin.
fn no_other_plugin(operation: &str) -> RpcError {
    let inner = json!({
        "code": 1002, "name": "unknown_plugin", "message": "there is no other plugin: this is plugd check",
        "retryable": false, "outcome": "not_run",
    });
    let cause = json!({"operation": operation, "call_id": "plugd-check", "error": inner});
    let data = to_raw_value(&json!({"name": "unknown_plugin", "retryable": false, "cause": cause})).ok();
    RpcError { data, ..RpcError::new(3, "there is no other plugin: this is plugd check") }
}

/// Whether an id that is not the one asked with was meant to be that one.
fn resembles(given: &str, asked: u64) -> bool {
    let whole = given.trim_matches('"').split('.').next().unwrap_or_default();
    // A number that lost its last digits in a double.
    let as_double =
        given.parse::<f64>().is_ok_and(|given| (given - as_f64(asked)).abs() <= given.abs() * 1e-9);
    whole.parse() == Ok(asked) || as_double
}

#[expect(clippy::cast_precision_loss, reason = "it is compared with what lost its digits the same way")]
fn as_f64(id: u64) -> f64 {
    id as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[Oddity]) {
        let oddities = Oddities::default();
        let mut ear = Ear::new(oddities.clone(), vec!["other".to_owned()]);
        ear.asked(3, "call", Some("c-3".to_owned()));
        let mut decoder = Decoder::new(1024);
        decoder.push(line.as_bytes());
        decoder.push(b"\n");
        ear.take_frames(&mut decoder);
        let all = [
            Oddity::Stray,
            Oddity::BrokenAnswer,
            Oddity::TooLong,
            Oddity::Unmatched,
            Oddity::Twice,
            Oddity::IdChanged,
            Oddity::UnknownMethod,
            Oddity::UnreadableParams,
            Oddity::ForeignCall,
            Oddity::Undeclared,
        ];
        let found: Vec<Oddity> = all.into_iter().filter(|kind| oddities.of(*kind).is_some()).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn each_line_is_what_plugd_takes_it_for() {
        check(r#"{"jsonrpc":"2.0","id":3,"result":{"data":1}}"#, &[]);
        check("Loading…", &[Oddity::Stray]);
        check(r#"{"jsonrpc":"2.0","id":3,"error":"text"}"#, &[Oddity::BrokenAnswer]);
        check(r#"42% {"jsonrpc":"2.0","id":3,"result":{"data":1}}"#, &[Oddity::BrokenAnswer]);
        check(&"y".repeat(2000), &[Oddity::TooLong]);
        check(r#"{"jsonrpc":"2.0","id":9,"result":{"data":1}}"#, &[Oddity::Unmatched]);
        check(r#"{"jsonrpc":"2.0","id":null,"result":{"data":1}}"#, &[Oddity::Unmatched]);
        check(r#"{"jsonrpc":"2.0","id":"3","result":{"data":1}}"#, &[Oddity::IdChanged]);
        check(r#"{"jsonrpc":"2.0","id":3.0,"result":{"data":1}}"#, &[Oddity::IdChanged]);
        let twice = r#"{"jsonrpc":"2.0","id":3,"result":{"data":1}}"#;
        check(&format!("{twice}\n{twice}"), &[Oddity::Twice]);
        check(r#"{"jsonrpc":"2.0","method":"progress","params":{"call_id":"c-3","done":1}}"#, &[]);
        check(r#"{"jsonrpc":"2.0","method":"progress","params":{"call_id":"x"}}"#, &[Oddity::ForeignCall]);
        check(r#"{"jsonrpc":"2.0","method":"progress","params":"half"}"#, &[Oddity::UnreadableParams]);
        check(r#"{"jsonrpc":"2.0","method":"tell","params":{}}"#, &[Oddity::UnknownMethod]);
        check(r#"{"jsonrpc":"2.0","id":"h","method":"host/call","params":{"operation":"other.x"}}"#, &[]);
        let own = r#"{"jsonrpc":"2.0","id":"h","method":"host/call","params":{"operation":"me.x"}}"#;
        check(own, &[Oddity::Undeclared]);
    }

    #[test]
    fn an_id_that_lost_digits_is_known_again() {
        assert!(resembles("9007199254740992", 9_007_199_254_740_993));
        assert!(resembles("1.8446744073709552e+19", u64::MAX));
        assert!(!resembles("4", 3) && !resembles("null", 3) && !resembles("\"a\"", 3));
    }
}
