//! Large data in pages: the items of an array where each fits, else pieces of the JSON text.

use std::borrow::Cow;

use plugd_protocol::result::PageUnit;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A part of data, and where in the whole it is.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) data: Box<RawValue>,
    pub(super) unit: PageUnit,
    pub(super) offset: u64,
    pub(super) count: u64,
    pub(super) total: u64,
    /// The array that was cut, where that is a member of the data.
    pub(super) pointer: Option<String>,
}

impl Cut {
    /// The offset of the next page.
    pub(super) fn next(&self) -> Option<u64> {
        let next = self.offset + self.count;
        (next < self.total).then_some(next)
    }
}

/// The first page of data that is longer than `limit` bytes.
///
/// Of an object most of which is one array, all is given but the items of that which do not fit.
pub(super) fn first(data: &RawValue, limit: usize) -> Cut {
    largest_array(data, limit).unwrap_or_else(|| page(data, 0, None, limit))
}

/// At most `count_max` items or characters of data from `offset` on, and no more than `limit` bytes.
pub(super) fn page(data: &RawValue, offset: u64, count_max: Option<u64>, limit: usize) -> Cut {
    match page_of_items(data, offset, count_max, limit) {
        Some(Items { data: cut, count, total }) => {
            // All of it is as it was written.
            let data = if count == total && data.get().len() <= limit { data.to_owned() } else { cut };
            Cut { data, unit: PageUnit::Items, offset, count, total, pointer: None }
        }
        None => page_of_text(data, offset, count_max, limit),
    }
}

/// Some of the items of an array.
struct Items {
    data: Box<RawValue>,
    count: u64,
    /// How many there are.
    total: u64,
}

/// Some of the items of an array each of which fits a page; only those are held.
fn page_of_items(data: &RawValue, offset: u64, count_max: Option<u64>, limit: usize) -> Option<Items> {
    if !data.get().starts_with('[') {
        return None;
    }
    let page = Page { offset, count_max: count_max.unwrap_or(u64::MAX), limit };
    serde_json::Deserializer::from_str(data.get()).deserialize_seq(page).ok()?
}

/// Which items of an array.
struct Page {
    offset: u64,
    count_max: u64,
    limit: usize,
}

impl<'de> Visitor<'de> for Page {
    /// None where an item is too long for a page.
    type Value = Option<Items>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut text = "[".to_owned();
        let (mut total, mut count, mut full, mut fits) = (0, 0, false, true);
        while let Some(item) = array.next_element::<&RawValue>()? {
            let item = item.get();
            fits &= item.len() + "[]".len() <= self.limit;
            total += 1;
            if !fits || full || total <= self.offset {
                continue;
            }
            let comma = usize::from(count > 0);
            full = count == self.count_max || text.len() + comma + item.len() + "]".len() > self.limit;
            if !full {
                text.push_str(if count > 0 { "," } else { "" });
                text.push_str(item);
                count += 1;
            }
        }
        text.push(']');
        Ok(fits.then(|| Items { data: raw(text), count, total }))
    }
}

/// A piece of the JSON text as a string; the value itself where the piece is all of it.
fn page_of_text(data: &RawValue, offset: u64, count_max: Option<u64>, limit: usize) -> Cut {
    let text = data.get();
    let total = text.chars().count() as u64;
    let count_max = count_max.unwrap_or(u64::MAX);
    let cut = |data, count| Cut { data, unit: PageUnit::Characters, offset, count, total, pointer: None };
    if offset == 0 && count_max >= total && text.len() <= limit {
        return cut(data.to_owned(), total);
    }
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let mut piece = String::new();
    let (mut count, mut length) = (0, "\"\"".len());
    for character in text.chars().skip(skipped) {
        length += written_length(character);
        if count == count_max || length > limit {
            break;
        }
        piece.push(character);
        count += 1;
    }
    cut(raw(serde_json::Value::String(piece).to_string()), count)
}

/// How many bytes a character takes in a JSON string, at most.
fn written_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        // Such as \u001b.
        character if character.is_control() => 6,
        character => character.len_utf8(),
    }
}

/// The object with its one large array cut to what fits.
fn largest_array(data: &RawValue, limit: usize) -> Option<Cut> {
    let whole = data.get();
    if !whole.starts_with('{') {
        return None;
    }
    let members = serde_json::Deserializer::from_str(whole).deserialize_map(Members).ok()?;
    let (key, array) = members.iter().max_by_key(|(_, value)| value.get().len())?;
    let rest = whole.len() - array.get().len();
    let twice = members.iter().filter(|(other, _)| other == key).count() > 1;
    if twice || rest > limit / 2 {
        return None;
    }
    let Items { data: text, count, total } = page_of_items(array, 0, None, limit - rest)?;
    // The member is a part of the whole text, at the place that its address tells.
    let start = (array.get().as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start + array.get().len();
    let data = format!("{}{}{}", whole.get(..start)?, text.get(), whole.get(end..)?);
    Some(Cut {
        data: RawValue::from_string(data).ok()?,
        unit: PageUnit::Items,
        offset: 0,
        count,
        total,
        pointer: Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
    })
}

/// The part of a value that a JSON Pointer (RFC 6901) leads to.
///
/// # Errors
/// How far it leads, and what is there.
pub(super) fn locate<'a>(data: &'a RawValue, pointer: &str) -> Result<&'a RawValue, String> {
    if pointer.is_empty() {
        return Ok(data);
    }
    let Some(segments) = pointer.strip_prefix('/') else {
        return Err(format!("{pointer:?} is no JSON Pointer: it begins with '/'"));
    };
    let mut at = data;
    let mut path = String::new();
    for segment in segments.split('/') {
        let key = segment.replace("~1", "/").replace("~0", "~");
        at = step(at, &key).ok_or_else(|| {
            let there = if path.is_empty() { "the result" } else { &path };
            format!("{pointer} leads nowhere: {there} is {}, without {key:?}", super::summary::made_of(at))
        })?;
        path.push('/');
        path.push_str(segment);
    }
    Ok(at)
}

fn step<'a>(value: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    let mut json = serde_json::Deserializer::from_str(value.get());
    match value.get().as_bytes().first()? {
        b'{' => json.deserialize_map(Member(key)).ok()?,
        b'[' => {
            let plain = key == "0" || !key.starts_with('0');
            let index = key.parse().ok().filter(|_| plain && !key.starts_with('+'))?;
            json.deserialize_seq(Item(index)).ok()?
        }
        _ => None,
    }
}

/// All members of an object.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = object.next_entry::<String, &'de RawValue>()? {
            members.push((Cow::Owned(key), value));
        }
        Ok(members)
    }
}

/// One member of an object: the last of that name, as everywhere.
struct Member<'k>(&'k str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = object.next_key_seed(Is(self.0))? {
            if is_it {
                found = Some(object.next_value()?);
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is this one; it is not kept.
struct Is<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

/// One item of an array.
struct Item(usize);

impl<'de> Visitor<'de> for Item {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        for _ in 0..self.0 {
            if array.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let item = array.next_element()?;
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(item)
    }
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("it was put together from JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    /// All pages one after the other, as a reader gets them.
    fn pages(data: &RawValue, limit: usize) -> Vec<Cut> {
        let mut pages = vec![page(data, 0, None, limit)];
        while let Some(next) = pages.last().and_then(Cut::next) {
            pages.push(page(data, next, None, limit));
            assert!(pages.len() < 10_000, "it comes to no end");
        }
        pages
    }

    /// Row O8.
    #[test]
    fn r_o8_the_pages_of_an_array_are_its_items_and_each_keeps_the_limit() {
        let items: Vec<String> = (0..1_000).map(|id| format!("{{\"id\": {id}.10}}")).collect();
        let data = json(&format!("[{}]", items.join(", ")));
        let pages = pages(&data, 256);
        assert!(pages.iter().all(|page| page.data.get().len() <= 256 && page.unit == PageUnit::Items));
        assert_eq!(pages.iter().map(|page| page.count).sum::<u64>(), 1_000);
        let joined: Vec<String> = pages
            .iter()
            .flat_map(|page| serde_json::from_str::<Vec<Box<RawValue>>>(page.data.get()).expect("an array"))
            .map(|item| item.get().to_owned())
            .collect();
        assert_eq!(joined, items, "every item as it was written");
    }

    #[test]
    fn what_is_no_list_of_small_things_comes_as_pieces_of_its_text() {
        let long = format!("\"{}\\n\\\"三\"", "三\u{7f}".repeat(1_000));
        for data in [long.clone(), format!("[{long}, 1]"), format!("{{\"a\": {long}, \"b\": [{long}]}}")] {
            let data = json(&data);
            let pages = pages(&data, 300);
            assert!(pages.iter().all(|page| page.data.get().len() <= 300), "{}", pages[0].data.get().len());
            let joined: String = pages
                .iter()
                .map(|page| serde_json::from_str::<String>(page.data.get()).expect("a string"))
                .collect();
            assert_eq!(joined, data.get());
        }
        let small = page(&json(r#"{"a":1}"#), 0, None, 300);
        assert_eq!((small.data.get(), small.next()), (r#"{"a":1}"#, None), "what fits is the value itself");
        let beyond = page(&json("[1,2]"), 7, None, 300);
        assert_eq!((beyond.data.get(), beyond.count, beyond.next()), ("[]", 0, None));
        let all = page(&json("[1,  2]"), 0, None, 300);
        assert_eq!((all.data.get(), all.count, all.next()), ("[1,  2]", 2, None));
        let part = page(&json("[1,2,3]"), 1, Some(1), 300);
        assert_eq!((part.data.get(), part.next()), ("[2]", Some(2)));
    }

    /// Row O7.
    #[test]
    fn r_o7_an_object_around_one_large_array_keeps_all_but_the_items_that_do_not_fit() {
        let items: Vec<String> = (0..1_000).map(|id| id.to_string()).collect();
        let data = json(&format!(r#"{{"total": 7.0, "or/ders": [{}], "next": null}}"#, items.join(",")));
        let cut = first(&data, 200);
        assert!(cut.data.get().len() <= 200, "{}", cut.data.get());
        assert!(cut.data.get().starts_with(r#"{"total": 7.0, "or/ders": [0,1,"#), "{}", cut.data.get());
        assert!(cut.data.get().ends_with(r#"], "next": null}"#), "{}", cut.data.get());
        assert_eq!((cut.pointer.as_deref(), cut.total), (Some("/or~1ders"), 1_000));
        let array = locate(&data, "/or~1ders").expect("it is there");
        let next = page(array, cut.next().expect("there is more"), Some(1), 200);
        assert_eq!(next.data.get(), format!("[{}]", cut.count));
        let twice = json(&format!(r#"{{"a":[{0}],"a":[{0}]}}"#, items.join(",")));
        assert_eq!(first(&twice, 200).unit, PageUnit::Characters);
    }

    #[test]
    fn a_pointer_leads_to_a_part_or_says_how_far_it_leads() {
        let data = json(r#"{"a": [1, {"b/c": 2.50}], "x": 1, "x": 3}"#);
        for (pointer, there) in [("", data.get()), ("/a/1/b~1c", "2.50"), ("/a/0", "1"), ("/x", "3")] {
            assert_eq!(locate(&data, pointer).expect(pointer).get(), there);
        }
        for (pointer, said) in [
            ("/b", "/b leads nowhere: the result is an object with 3 keys: a, x, x, without \"b\""),
            ("/a/2", "/a/2 leads nowhere: /a is 2 items: 1, {…}, without \"2\""),
            ("/a/01", "/a/01 leads nowhere: /a is 2 items: 1, {…}, without \"01\""),
            ("/x/y", "/x/y leads nowhere: /x is 3, without \"y\""),
            ("a", "\"a\" is no JSON Pointer: it begins with '/'"),
        ] {
            assert_eq!(locate(&data, pointer).expect_err(pointer), said);
        }
    }
}
