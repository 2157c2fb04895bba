//! JSON text with some values set or removed; everything else stays as it was written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::document::unescaped;

/// What becomes of the value at a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    /// It is this JSON text; a key that an object does not have is added at its end.
    Set(String),
    /// Its key is taken out of its object.
    Remove,
}

/// The text with the edits made, each at its JSON Pointer.
///
/// Below an edit nothing else is edited, and what leads nowhere is left out.
pub(crate) fn spliced<'e>(text: &str, edits: impl IntoIterator<Item = (&'e str, &'e Edit)>) -> String {
    let mut root = Node::default();
    for (pointer, edit) in edits {
        let mut node = &mut root;
        for segment in pointer.split('/').skip(1) {
            node = node.below(unescaped(segment));
        }
        node.edit = Some(edit);
    }
    let mut out = String::with_capacity(text.len() + 64);
    root.write(text, &mut out);
    out
}

/// The text of the value at a pointer, where there is one.
pub(crate) fn text_at<'t>(text: &'t str, pointer: &str) -> Option<&'t str> {
    pointer.split('/').skip(1).try_fold(text, |text, segment| {
        let name = unescaped(segment);
        match text.as_bytes().first()? {
            b'{' => members(text).into_iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value),
            b'[' => items(text).get(name.parse::<usize>().ok()?).copied(),
            _ => None,
        }
    })
}

/// A place in the text with edits at it or below it.
#[derive(Default)]
struct Node<'e> {
    edit: Option<&'e Edit>,
    names: HashMap<Cow<'e, str>, usize>,
    /// In the order they were named first.
    below: Vec<(Cow<'e, str>, Node<'e>)>,
}

impl<'e> Node<'e> {
    fn below(&mut self, name: Cow<'e, str>) -> &mut Node<'e> {
        let next = self.below.len();
        let place = *self.names.entry(name.clone()).or_insert(next);
        if place == next {
            self.below.push((name, Node::default()));
        }
        &mut self.below[place].1
    }

    fn at(&self, name: &str) -> Option<&Node<'e>> {
        self.names.get(name).map(|place| &self.below[*place].1)
    }

    fn write(&self, text: &str, out: &mut String) {
        match (self.edit, text.as_bytes().first()) {
            (Some(Edit::Set(set)), _) => out.push_str(set),
            (None, Some(b'{')) if !self.below.is_empty() => self.write_object(text, out),
            (None, Some(b'[')) if !self.below.is_empty() => self.write_list(text, out),
            _ => out.push_str(text),
        }
    }

    fn write_object(&self, text: &str, out: &mut String) {
        let members = members(text);
        let mut separator = '{';
        let mut begin = |key: &str, out: &mut String| {
            out.push(std::mem::replace(&mut separator, ','));
            out.push_str(&Value::from(key).to_string());
            out.push(':');
        };
        for (key, value) in &members {
            match self.at(key) {
                Some(Node { edit: Some(Edit::Remove), .. }) => {}
                Some(node) => {
                    begin(key, out);
                    node.write(value, out);
                }
                None => {
                    begin(key, out);
                    out.push_str(value);
                }
            }
        }
        for (name, node) in &self.below {
            if let Some(Edit::Set(set)) = node.edit
                && !members.iter().any(|(key, _)| key == name)
            {
                begin(name, out);
                out.push_str(set);
            }
        }
        out.push_str(if separator == '{' { "{}" } else { "}" });
    }

    fn write_list(&self, text: &str, out: &mut String) {
        out.push('[');
        for (index, item) in items(text).into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match self.at(&index.to_string()) {
                Some(node) => node.write(item, out),
                None => out.push_str(item),
            }
        }
        out.push(']');
    }
}

/// An object's members in order, duplicates included.
fn members(text: &str) -> Vec<(String, &str)> {
    serde_json::from_str(text).map_or(Vec::new(), |InOrder(members)| members)
}

fn items(text: &str) -> Vec<&str> {
    let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    items.into_iter().map(RawValue::get).collect()
}

struct InOrder<'t>(Vec<(String, &'t str)>);

impl<'de> Deserialize<'de> for InOrder<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InOrder<'de>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((key, value.get()));
                }
                Ok(InOrder(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, edits: &[(&str, Option<&str>)], expected: &str) {
        let edits: Vec<(&str, Edit)> = edits
            .iter()
            .map(|(at, set)| (*at, set.map_or(Edit::Remove, |set| Edit::Set(set.to_owned()))))
            .collect();
        assert_eq!(spliced(text, edits.iter().map(|(at, edit)| (*at, edit))), expected, "{text}");
    }

    #[test]
    fn what_is_not_edited_keeps_every_digit_and_space() {
        let text = r#"{"n": "3", "big":1.10000000000000000001, "o":{ "z" : 1 , "a":[1.0, "２" ]}}"#;
        check(text, &[], text);
        check(
            text,
            &[("/n", Some("3"))],
            r#"{"n":3,"big":1.10000000000000000001,"o":{ "z" : 1 , "a":[1.0, "２" ]}}"#,
        );
        check(
            text,
            &[("/o/a/1", Some("2")), ("/n", None)],
            r#"{"big":1.10000000000000000001,"o":{"z":1,"a":[1.0,2]}}"#,
        );
    }

    #[test]
    fn keys_are_added_in_order_and_removed() {
        check("{}", &[("/b", Some("1")), ("/a/b", Some("9")), ("/a", Some("{}"))], r#"{"b":1,"a":{}}"#);
        check(r#"{"a":1}"#, &[("/a", None)], "{}");
        check(r#"{"a":1,"a":2}"#, &[("/a", Some("3"))], r#"{"a":3,"a":3}"#);
        check(r#"{"x/y":{"~":1}}"#, &[("/x~1y/~0", Some("\"é\""))], r#"{"x/y":{"~":"é"}}"#);
        check(r#"{"a":1}"#, &[("/b", None), ("/a/c", Some("1"))], r#"{"a":1}"#);
        check("\"3\"", &[("", Some("3"))], "3");
    }

    #[test]
    fn a_value_is_found_by_its_pointer() {
        let text = r#"{"a":[{"b/c": 1.50}],"a2":1,"a2":2}"#;
        assert_eq!(text_at(text, ""), Some(text));
        assert_eq!(text_at(text, "/a/0/b~1c"), Some("1.50"));
        assert_eq!(text_at(text, "/a2"), Some("2"));
        for nowhere in ["/x", "/a/1", "/a/x", "/a2/x"] {
            assert_eq!(text_at(text, nowhere), None, "{nowhere}");
        }
    }
}
