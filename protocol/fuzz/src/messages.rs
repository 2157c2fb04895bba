//! Messages: what is one is taken for one, and comes back from writing as it was read.

use std::fmt;

use plugd_protocol::message::{
    Answer, Message, host_id, id_in_head, whole_result, write_error, write_notification, write_request,
    write_result,
};
use plugd_protocol::{Decoder, Frame};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order, none lost where one comes twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

/// The kinds of message.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
    Result,
    Error,
}

/// Checks a line.
pub fn message(line: &[u8]) {
    let parsed = Message::parse(line);
    let _never_panics = whole_result(line).is_ok();
    let head = id_in_head(line);
    match &parsed {
        Err(error) => {
            let wanted = by_the_book(line);
            assert!(wanted.is_none(), "a {wanted:?} was taken for stray output: {error}");
        }
        Ok(message) => {
            if let Some(wanted) = by_the_book(line) {
                assert_eq!(kind_of(message), wanted);
            }
            if let (Some(found), Message::Response { id, .. }) = (head, message) {
                assert_eq!(
                    id.and_then(host_id),
                    Some(found),
                    "the id in the head is another than the message's"
                );
            }
            comes_back(line, message);
        }
    }
}

fn kind_of(message: &Message<'_>) -> Kind {
    match message {
        Message::Request { .. } => Kind::Request,
        Message::Notification { .. } => Kind::Notification,
        Message::Response { answer: Ok(_), .. } => Kind::Result,
        Message::Response { answer: Err(_), .. } => Kind::Error,
    }
}

/// What a line is beyond doubt by the specification, found without the parser under test.
fn by_the_book(line: &[u8]) -> Option<Kind> {
    let Members(members) = serde_json::from_slice(line).ok()?;
    let mut known: [Option<&RawValue>; 6] = [None; 6];
    let names = ["jsonrpc", "id", "method", "params", "result", "error"];
    for (name, value) in &members {
        if let Some(at) = names.iter().position(|known| known == &name.as_str())
            && known[at].replace(*value).is_some()
        {
            return None;
        }
    }
    let [version, id, method, params, result, error] = known;
    if text(version?)? != "2.0" || params.is_some_and(|params| !params.get().starts_with('{')) {
        return None;
    }
    let own_id =
        id.is_some_and(|id| id.get().starts_with(|first: char| first == '"' || first.is_ascii_digit()));
    match (id, method, result, error) {
        (Some(_), Some(method), None, None) if own_id => text(method).map(|_| Kind::Request),
        (None, Some(method), None, None) => text(method).map(|_| Kind::Notification),
        (Some(_), None, Some(result), None) => readable_result(result).then_some(Kind::Result),
        (Some(_), None, None, Some(error)) => readable_error(error).then_some(Kind::Error),
        _ => None,
    }
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// An object with whatever in it; anything else as far as its value can be told.
fn readable_result(result: &RawValue) -> bool {
    match result.get().starts_with('{') {
        true => serde_json::from_str::<Members<'_>>(result.get()).is_ok(),
        false => serde_json::from_str::<serde_json::Value>(result.get()).is_ok(),
    }
}

fn readable_error(error: &RawValue) -> bool {
    let Ok(Members(members)) = serde_json::from_str(error.get()) else { return false };
    let all = |name: &str| -> Vec<&RawValue> {
        members.iter().filter(|(member, _)| member == name).map(|(_, value)| *value).collect()
    };
    let code = matches!(all("code")[..], [code] if serde_json::from_str::<i64>(code.get()).is_ok());
    let message = matches!(all("message")[..], [message] if text(message).is_some());
    code && message && all("data").len() <= 1
}

/// Writes a message anew: it must be one line, and say the same.
fn comes_back(line: &[u8], message: &Message<'_>) {
    let mut out = Vec::new();
    let written = match message {
        Message::Request { id, method, params } => match host_id(id) {
            Some(id) => write_request(&mut out, id, method, params),
            // An id of the other side's is never written in a request.
            None => return,
        },
        Message::Notification { method, params } => write_notification(&mut out, method, params),
        Message::Response { id: Some(id), answer: Ok(_) } => match whole_result(line) {
            Ok(result) => write_result(&mut out, id, result),
            Err(error) => {
                // What is no text may stand where nobody looks, and cannot be passed on.
                assert!(std::str::from_utf8(line).is_err(), "an answer without a result: {error}");
                return;
            }
        },
        Message::Response { id: Some(id), answer: Err(error) } => write_error(&mut out, id, error),
        Message::Response { id: None, .. } => return,
    };
    written.expect("what was read can be written");
    let mut decoder = Decoder::new(out.len());
    decoder.push(&out);
    let Some(Frame::Line(again)) = decoder.next_frame() else { panic!("it is no line: {out:?}") };
    let again = again.to_vec();
    assert_eq!(decoder.next_frame(), None, "it is more than one line: {out:?}");
    let read = Message::parse(&again).expect("what was written can be read");
    assert_eq!(said(message), said(&read));
}

/// All that a message says, its line ends read as the spaces they are written as.
fn said(message: &Message<'_>) -> String {
    let raw = |raw: &Option<&RawValue>| raw.map(|raw| flat(raw.get()));
    match message {
        Message::Request { id, method, params } => format!("{} {method} {:?}", id.get(), raw(params)),
        Message::Notification { method, params } => format!("{method} {:?}", raw(params)),
        Message::Response { id, answer: Ok(answer) } => {
            let answer = match answer {
                Answer::Other => "other".to_owned(),
                Answer::Object(object) => {
                    format!("{:?} {:?} {:?}", raw(&object.data), object.summary, raw(&object.next_actions))
                }
            };
            format!("{:?} {answer}", raw(id))
        }
        Message::Response { id, answer: Err(error) } => {
            let data = error.data.as_ref().map(|data| flat(data.get()));
            format!("{:?} {} {:?} {data:?}", raw(id), error.code, error.message)
        }
    }
}

fn flat(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
