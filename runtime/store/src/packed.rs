//! How ids, stages and words are written in few bytes, and read back exactly.

use plugd_protocol::CallId;
use plugd_protocol::control::{Stage, StageTime, UnixMillis};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::from_value;
use uuid::{Uuid, Version};

/// Of a row's number, so many low bits tell calls of one millisecond apart.
const APART_BITS: u32 = 21;

/// Times from here on (the year 2109) have no row number.
const MILLIS_END: u64 = 1 << (63 - APART_BITS);

/// An id or another text of a UUID's form: 16 bytes where it is one, else the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Id<'a> {
    Uuid([u8; 16]),
    Text(&'a str),
}

impl<'a> Id<'a> {
    pub(crate) fn of(text: &'a str) -> Id<'a> {
        let uuid = Uuid::try_parse(text).ok();
        // Only what reads back the same may be packed.
        let same = |uuid: &Uuid| *uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == *text;
        uuid.filter(same).map_or(Id::Text(text), |uuid| Id::Uuid(uuid.into_bytes()))
    }
}

impl ToSql for Id<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Id::Uuid(bytes) => ValueRef::Blob(bytes),
            Id::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// An id read back.
pub(crate) struct IdText(pub(crate) String);

impl FromSql for IdText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<IdText> {
        match value {
            ValueRef::Blob(bytes) => {
                let uuid = Uuid::from_slice(bytes).map_err(|_| FromSqlError::InvalidType)?;
                Ok(IdText(uuid.hyphenated().to_string()))
            }
            other => Ok(IdText(other.as_str()?.to_owned())),
        }
    }
}

impl From<IdText> for CallId {
    fn from(id: IdText) -> CallId {
        CallId::new(id.0)
    }
}

/// A trace id: 16 bytes where it is 32 digits, else the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trace<'a> {
    Digits([u8; 16]),
    Text(&'a str),
}

impl<'a> Trace<'a> {
    pub(crate) fn of(text: &'a str) -> Trace<'a> {
        let digits = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits => Trace::Digits(number.to_be_bytes()),
            Ok(_) | Err(_) => Trace::Text(text),
        }
    }
}

impl ToSql for Trace<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Trace::Digits(bytes) => ValueRef::Blob(bytes),
            Trace::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// A trace id read back.
pub(crate) struct TraceText(pub(crate) String);

impl FromSql for TraceText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<TraceText> {
        match value {
            ValueRef::Blob(bytes) => {
                let bytes: [u8; 16] = bytes.try_into().map_err(|_| FromSqlError::InvalidType)?;
                Ok(TraceText(format!("{:032x}", u128::from_be_bytes(bytes))))
            }
            other => Ok(TraceText(other.as_str()?.to_owned())),
        }
    }
}

/// A call's id, and the number of its row: its time, then what tells it from others of that millisecond.
///
/// The number follows from the id, so an id is found without an index of ids; and rows lie in the
/// order in which calls arrived. Two calls may have the same number, though hardly ever: the later
/// one then takes the next that is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallNumber {
    pub(crate) number: i64,
    pub(crate) id: [u8; 16],
}

impl CallNumber {
    /// Of a UUIDv7; others have none.
    pub(crate) fn of(id: &CallId) -> Option<CallNumber> {
        let uuid = Uuid::try_parse(id.as_str()).ok()?;
        let millis = u64::try_from(uuid.as_u128() >> 80).ok()?;
        if uuid.get_version() != Some(Version::SortRand) || millis >= MILLIS_END {
            return None;
        }
        // Where a counter tells ids of one millisecond apart, its lower part stands here; else it is random.
        let apart = i64::try_from((uuid.as_u128() >> 32) & ((1 << APART_BITS) - 1)).ok()?;
        Some(CallNumber { number: first_number(UnixMillis(millis)) | apart, id: uuid.into_bytes() })
    }
}

/// The least number of a row that arrived then.
pub(crate) fn first_number(at: UnixMillis) -> i64 {
    i64::try_from(at.0.min(MILLIS_END - 1)).unwrap_or(i64::MAX) << APART_BITS
}

/// When the call with this row number arrived.
pub(crate) fn millis_of(number: i64) -> i64 {
    number >> APART_BITS
}

/// A count as SQLite has numbers.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as it was.
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Writes a number in groups of seven bits, the least first.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes such a number off the front; none where there is none.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Stages and their times.
pub(crate) fn pack_stages(stages: &[StageTime]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 * stages.len());
    for stage in stages {
        bytes.push(match stage.stage {
            Stage::Resolved => 0,
            Stage::Checked => 1,
            Stage::Asked => 2,
            Stage::Confirmed => 3,
            Stage::Queued => 4,
            Stage::Started => 5,
            Stage::Answered => 6,
            Stage::Shaped => 7,
        });
        put_varint(&mut bytes, stage.at_us);
    }
    bytes
}

/// Stages read back; what is not understood is left out.
pub(crate) fn unpack_stages(mut bytes: &[u8]) -> Vec<StageTime> {
    let mut stages = Vec::new();
    while let Some((stage, rest)) = bytes.split_first() {
        bytes = rest;
        let Some(at_us) = take_varint(&mut bytes) else { break };
        let stage = match stage {
            0 => Stage::Resolved,
            1 => Stage::Checked,
            2 => Stage::Asked,
            3 => Stage::Confirmed,
            4 => Stage::Queued,
            5 => Stage::Started,
            6 => Stage::Answered,
            7 => Stage::Shaped,
            _ => continue,
        };
        stages.push(StageTime { stage, at_us });
    }
    stages
}

/// The word that stands for a variant on the wire.
pub(crate) fn word<T: serde::Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

/// The variant that a word stands for.
pub(crate) fn of_word<T: serde::de::DeserializeOwned>(word: String) -> Option<T> {
    from_value(Value::String(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_packed_only_where_they_read_back_the_same() {
        let uuid = "0193d1f0-7c2e-7aaa-8bbb-0123456789ab";
        assert!(matches!(Id::of(uuid), Id::Uuid(_)));
        for other in ["0193D1F0-7C2E-7AAA-8BBB-0123456789AB", "0193d1f07c2e7aaa8bbb0123456789ab", "s1", ""] {
            assert_eq!(Id::of(other), Id::Text(other));
        }
        assert!(matches!(Trace::of("0af7651916cd43dd8448eb211c80319c"), Trace::Digits(_)));
        assert!(matches!(Trace::of("+af7651916cd43dd8448eb211c80319c"), Trace::Text(_)));
    }

    #[test]
    fn row_numbers_are_in_the_order_of_arrival() {
        let numbers: Vec<i64> = (0..1000)
            .map(|_| CallNumber::of(&CallId::new(Uuid::now_v7().to_string())).expect("a UUIDv7").number)
            .collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), numbers.len());
        assert!(CallNumber::of(&CallId::new("c1")).is_none());
        assert!(CallNumber::of(&CallId::new(Uuid::new_v4().to_string())).is_none());
        assert_eq!(millis_of(first_number(UnixMillis(1_796_000_000_123))), 1_796_000_000_123);
    }

    #[test]
    fn numbers_and_stages_read_back() {
        for expected in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, expected);
            assert_eq!(take_varint(&mut &*bytes), Some(expected));
        }
        assert_eq!(take_varint(&mut &[0x80_u8; 12][..]), None);
        let stages = [(Stage::Resolved, 3), (Stage::Queued, 300), (Stage::Shaped, 70_000)]
            .map(|(stage, at_us)| StageTime { stage, at_us });
        assert_eq!(unpack_stages(&pack_stages(&stages)), stages);
    }
}
