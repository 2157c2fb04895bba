//! JSON-RPC 2.0 messages on the plugin's pipe, their payloads left unparsed.
//!
//! These are wire types of our own: ids keep their exact text and type, error objects tolerate
//! unknown members, and the answer to a call is taken apart in the same single pass that finds
//! its end. A payload is borrowed from the frame and never becomes a tree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::plain::plain;

mod front;
mod glued;

pub use front::{id_in_head, request_front};

/// A message as read from a line.
#[derive(Debug)]
pub enum Message<'a> {
    /// The other side wants an answer.
    Request {
        /// Its id, to be given back byte for byte.
        id: &'a RawValue,
        /// What is asked.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// The other side tells something.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// The other side answers a request of ours.
    Response {
        /// The id it answers; `None` where it was `null`.
        id: Option<&'a RawValue>,
        /// What it says.
        answer: Result<Answer<'a>, RpcError>,
    },
}

/// The `result` of a response.
#[derive(Debug)]
pub enum Answer<'a> {
    /// A JSON object.
    Object(AnswerObject<'a>),
    /// Any other JSON value.
    Other,
}

/// The members of a result object that have a meaning in the answer to a call.
#[derive(Debug, Default)]
pub struct AnswerObject<'a> {
    /// The call's data, unparsed.
    pub data: Option<&'a RawValue>,
    /// One line for people and models.
    pub summary: Option<Cow<'a, str>>,
    /// What a caller may want to do next, unparsed.
    pub next_actions: Option<&'a RawValue>,
}

/// Why a line is no JSON-RPC 2.0 message.
#[derive(Debug, thiserror::Error)]
pub enum NotAMessage {
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    Syntax(serde_json::Error),
    /// JSON, but something else.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
    /// An object with a member of another form.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Member(String),
    /// One, and something else on the same line.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Glued(&'static str),
}

impl NotAMessage {
    /// Whether there is a message on the line, and something else.
    pub fn is_glued(&self) -> bool {
        matches!(self, NotAMessage::Glued(_))
    }
}

impl From<serde_json::Error> for NotAMessage {
    fn from(error: serde_json::Error) -> NotAMessage {
        match error.classify() {
            Category::Data => NotAMessage::Member(plain(&error)),
            Category::Syntax | Category::Eof | Category::Io => NotAMessage::Syntax(error),
        }
    }
}

impl<'a> Message<'a> {
    /// Parses one line.
    ///
    /// # Errors
    /// [`NotAMessage`] for anything but a single JSON-RPC 2.0 object; batches are refused too.
    pub fn parse(line: &'a [u8]) -> Result<Message<'a>, NotAMessage> {
        Message::of_object(line).map_err(|error| glued::beside(line).unwrap_or(error))
    }

    /// The same, where it is not asked why it is none.
    fn of_object(line: &'a [u8]) -> Result<Message<'a>, NotAMessage> {
        if line.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(NotAMessage::Shape("expected an object"));
        }
        let envelope: Envelope<'a> = match std::str::from_utf8(line) {
            // Looked through at once, not string by string.
            Ok(text) => serde_json::from_str(text)?,
            Err(_) => serde_json::from_slice(line)?,
        };
        if envelope.jsonrpc.is_none_or(|version| version.0 != "2.0") {
            return Err(NotAMessage::Shape("expected \"jsonrpc\": \"2.0\""));
        }
        match (envelope.method.map(|method| method.0), envelope.id) {
            (Some(method), Some(id)) => {
                if !id.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
                    return Err(NotAMessage::Shape("an id is a string or a number"));
                }
                Ok(Message::Request { id, method, params: envelope.params })
            }
            (Some(method), None) => Ok(Message::Notification { method, params: envelope.params }),
            (None, Some(id)) => {
                let answer = match (envelope.result, envelope.error) {
                    (Some(answer), None) => Ok(answer),
                    (None, Some(error)) => Err(error),
                    (Some(_), Some(_)) => return Err(NotAMessage::Shape("both \"result\" and \"error\"")),
                    (None, None) => return Err(NotAMessage::Shape("no \"method\", \"result\" or \"error\"")),
                };
                let id = if id.get() == "null" { None } else { Some(id) };
                Ok(Message::Response { id, answer })
            }
            (None, None) => Err(NotAMessage::Shape("neither \"method\" nor \"id\"")),
        }
    }
}

/// The whole `result` of a response, for the few answers that are read as more than a call's.
///
/// # Errors
/// [`NotAMessage`] when the line is no response with a result.
pub fn whole_result(line: &[u8]) -> Result<&RawValue, NotAMessage> {
    #[derive(Deserialize)]
    struct ResultOnly<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        result: Option<&'a RawValue>,
    }
    let envelope: ResultOnly<'_> = serde_json::from_slice(line)?;
    envelope.result.ok_or(NotAMessage::Shape("no \"result\""))
}

/// A host id read back strictly: digits only, no sign, fraction, exponent or quotes.
pub fn host_id(id: &RawValue) -> Option<u64> {
    digits(id.get().as_bytes())
}

/// Appends a request and its newline.
///
/// # Errors
/// Only what serialising `params` gives.
pub fn write_request<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    params: &P,
) -> serde_json::Result<()> {
    write_line(out, &RequestOut { jsonrpc: "2.0", id, method, params })
}

/// Appends a notification and its newline.
///
/// # Errors
/// Only what serialising `params` gives.
pub fn write_notification<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: &P,
) -> serde_json::Result<()> {
    write_line(out, &NotificationOut { jsonrpc: "2.0", method, params })
}

/// Appends a response with a result and its newline.
///
/// # Errors
/// Only what serialising `result` gives.
pub fn write_result<R: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &RawValue,
    result: &R,
) -> serde_json::Result<()> {
    write_line(out, &ResultOut { jsonrpc: "2.0", id, result })
}

/// Appends a response with an error and its newline.
///
/// # Errors
/// Only what serialising the error's data gives.
pub fn write_error(out: &mut Vec<u8>, id: &RawValue, error: &RpcError) -> serde_json::Result<()> {
    write_line(out, &ErrorOut { jsonrpc: "2.0", id, error })
}

fn write_line<T: Serialize>(out: &mut Vec<u8>, message: &T) -> serde_json::Result<()> {
    let before = out.len();
    match serde_json::to_writer(&mut *out, message) {
        Ok(()) => {
            // Raw payloads may have been written over several lines. In JSON a line end can only
            // stand between tokens, so a space says the same and no digit is touched.
            let mut from = before;
            while let Some(offset) = memchr::memchr2(b'\n', b'\r', &out[from..]) {
                out[from + offset] = b' ';
                from += offset + 1;
            }
            out.push(b'\n');
            Ok(())
        }
        Err(error) => {
            out.truncate(before);
            Err(error)
        }
    }
}

#[derive(Serialize)]
struct RequestOut<'a, P: ?Sized> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct NotificationOut<'a, P: ?Sized> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct ResultOut<'a, R: ?Sized> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: &'a R,
}

#[derive(Serialize)]
struct ErrorOut<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: &'a RpcError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Key<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Key<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<Answer<'a>>,
    #[serde(default, deserialize_with = "error_object")]
    error: Option<RpcError>,
}

/// Reads an error object; of what is none it says what one is.
fn error_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RpcError>, D::Error> {
    // Taken as it is first: what is no JSON is said to be none.
    let Some(raw) = Option::<&'de RawValue>::deserialize(deserializer)? else { return Ok(None) };
    serde_json::from_str(raw.get()).map_err(|_| {
        let expected = "\"error\" must be an object {\"code\": a whole number, \"message\": a string}";
        serde::de::Error::custom(expected)
    })
}

/// Tells a member that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl<'de: 'a, 'a> Deserialize<'de> for Answer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Answer<'a>, D::Error> {
        deserializer.deserialize_any(AnswerVisitor(PhantomData))
    }
}

struct AnswerVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for AnswerVisitor<'a> {
    type Value = Answer<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a result")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Answer<'a>, M::Error> {
        let mut object = AnswerObject::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            match &*key {
                "data" => object.data = Some(map.next_value()?),
                "summary" => object.summary = map.next_value::<LenientText<'de>>()?.0,
                "next_actions" => object.next_actions = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Answer::Object(object))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Answer<'a>, S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Answer::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
    fn visit_str<E>(self, _: &str) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
    fn visit_unit<E>(self) -> Result<Answer<'a>, E> {
        Ok(Answer::Other)
    }
}

/// Text that is borrowed where it can be; serde copies that of an `Option<Cow<str>>`.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Text where text is given, nothing where it is `null` or of another type.
struct LenientText<'a>(Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LenientText<'a>, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(LenientText(serde_json::from_str::<Key<'de>>(raw.get()).ok().map(|key| key.0)))
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    let plain =
        !text.is_empty() && text.iter().all(u8::is_ascii_digit) && (text[0] != b'0' || text.len() == 1);
    if plain { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(line: &str) -> String {
        Message::parse(line.as_bytes()).expect_err("no message").to_string()
    }

    #[test]
    fn the_kind_follows_from_the_members() {
        let request = Message::parse(br#"{"jsonrpc":"2.0","id":"a","method":"host/call","params":{}}"#);
        assert!(matches!(request, Ok(Message::Request { .. })));
        let notification = Message::parse(br#"{"jsonrpc":"2.0","method":"log","params":{}}"#);
        assert!(matches!(notification, Ok(Message::Notification { .. })));
        let null =
            Message::parse(br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x","more":1}}"#);
        assert!(matches!(null, Ok(Message::Response { id: None, answer: Err(_) })));
    }

    #[test]
    fn everything_else_is_refused() {
        assert!(refused("Calling API").contains("expected an object"));
        assert!(refused("Response headers: {").contains("expected an object"));
        assert!(refused("{ not json").contains("not JSON"));
        assert!(refused("[]").contains("expected an object"));
        assert!(refused("{}").contains("2.0"));
        assert!(refused(r#"{"jsonrpc":"2.0","id":1}"#).contains("no \"method\""));
        assert!(
            refused(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#)
                .contains("both")
        );
        assert!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#).contains("id"));
        assert!(refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"data\":\"\u{0}").contains("not JSON"));
        let split = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"data\":\"\xE4\xB8\"}}";
        assert!(Message::parse(split).is_err());
    }

    #[test]
    fn what_is_json_is_not_said_to_be_none() {
        for wrong in ["\"text\"", "{\"message\":\"no code\"}", "{\"code\":\"1\"}"] {
            let said = refused(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{wrong}}}"#));
            assert!(said.starts_with("not a JSON-RPC 2.0 message: \"error\" must be an object {"), "{said}");
        }
        assert!(refused(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,]}"#).contains("not JSON"));
    }

    #[test]
    fn the_data_of_an_answer_is_taken_out_unparsed() {
        let line = r#"{"result":{"more":[1],"data":{"id":2512292042121000001, "x":1e400},"summary":"a \u00e9"},"jsonrpc":"2.0","id":7}"#;
        let Ok(Message::Response { id: Some(id), answer: Ok(Answer::Object(object)) }) =
            Message::parse(line.as_bytes())
        else {
            panic!("not an answer");
        };
        assert_eq!(host_id(id), Some(7));
        assert_eq!(object.data.expect("data").get(), r#"{"id":2512292042121000001, "x":1e400}"#);
        assert_eq!(object.summary.as_deref(), Some("a é"));
    }

    #[test]
    fn any_result_is_an_answer() {
        for result in ["null", "3", "-3", "0.5", "true", "\"x\"", "[1,{}]"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#);
            let parsed = Message::parse(line.as_bytes());
            assert!(matches!(parsed, Ok(Message::Response { answer: Ok(Answer::Other), .. })), "{result}");
            assert_eq!(whole_result(line.as_bytes()).ok().map(RawValue::get), Some(result));
        }
    }

    #[test]
    fn ids_are_matched_strictly() {
        let id = |text: &str| host_id(&RawValue::from_string(text.to_owned()).expect("JSON"));
        assert_eq!(id("12"), Some(12));
        for other in ["\"12\"", "12.0", "1e1", "-1", "null", "true"] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn a_payload_on_several_lines_goes_out_on_one() {
        let params =
            RawValue::from_string("{\r\n  \"n\": 18446744073709551616.10\n}".to_owned()).expect("JSON");
        let mut out = Vec::new();
        write_request(&mut out, 1, "call", &params).expect("serialises");
        let line = String::from_utf8(out).expect("UTF-8");
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with("\"n\": 18446744073709551616.10 }}\n"), "{line}");
    }
}
