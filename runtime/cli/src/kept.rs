//! Results that plugd keeps, read page by page.

use plugd_protocol::CallId;
use plugd_protocol::control::{ResultParams, ResultReport};
use plugd_protocol::result::PageUnit;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::runtime::Runtime;

/// What a reference to a kept result begins with where a file could stand, too.
const PREFIX: &str = "call:";

/// A part of the result of an earlier call: `ID`, or `ID/pointer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) call_id: CallId,
    /// A JSON Pointer; none is the whole.
    pub(crate) pointer: Option<String>,
}

impl Reference {
    /// Reads `call:ID/pointer`, as it stands after an `@`; `None` where it is the name of a file.
    pub(crate) fn after_at(text: &str) -> Option<Reference> {
        text.strip_prefix(PREFIX).map(Reference::read)
    }

    /// Reads `ID` or `ID/pointer`.
    pub(crate) fn read(text: &str) -> Reference {
        let (call_id, pointer) = match text.find('/') {
            Some(at) => (&text[..at], Some(text[at..].to_owned())),
            None => (text, None),
        };
        Reference { call_id: CallId::new(call_id), pointer }
    }

    /// All of it, at once where that is possible.
    fn params(&self, caller: Option<&str>) -> ResultParams {
        ResultParams {
            caller: caller.map(str::to_owned),
            reference: self.call_id.clone(),
            pointer: self.pointer.clone(),
            offset: None,
            limit: None,
            whole: true,
        }
    }
}

/// The pages of one kept result, first to last: one, unless it is larger than any answer.
pub(crate) struct Pages<'a> {
    runtime: &'a Runtime,
    params: ResultParams,
    first: bool,
    over: bool,
}

/// A page as a piece of JSON text: all pieces after one another are the value.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) report: ResultReport,
    pub(crate) text: String,
}

impl<'a> Pages<'a> {
    /// As `caller`, a profile, where there is one.
    pub(crate) fn of(runtime: &'a Runtime, reference: &Reference, caller: Option<&str>) -> Pages<'a> {
        Pages { runtime, params: reference.params(caller), first: true, over: false }
    }

    /// The next page; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, Failure> {
        if self.over {
            return Ok(None);
        }
        let report = self.runtime.result(&self.params).await?;
        self.over = report.page.next.is_none();
        self.params.offset = report.page.next;
        let text = piece(&report, self.first, self.over)?;
        self.first = false;
        Ok(Some(Piece { report, text }))
    }
}

/// The whole value as one report.
///
/// # Errors
/// What the runtime says: nothing is kept, or not that part of it, or `caller` may not have it.
pub(crate) async fn whole(
    runtime: &Runtime,
    reference: &Reference,
    caller: Option<&str>,
) -> Result<ResultReport, Failure> {
    let mut pages = Pages::of(runtime, reference, caller);
    let mut text = String::new();
    let mut last = None;
    while let Some(piece) = pages.next().await? {
        text.push_str(&piece.text);
        last = Some(piece.report);
    }
    let mut report = last.ok_or_else(|| Failure::internal("a kept result has no page"))?;
    report.data = RawValue::from_string(text)
        .map_err(|error| Failure::internal(format!("the pages of a kept result do not fit: {error}")))?;
    (report.page.offset, report.page.count) = (0, report.page.total);
    Ok(report)
}

/// What a page adds to the text of the whole.
fn piece(report: &ResultReport, first: bool, last: bool) -> Result<String, Failure> {
    let data = report.data.get().trim();
    match report.page.unit {
        PageUnit::Items => {
            let items = data.strip_prefix('[').and_then(|data| data.strip_suffix(']')).unwrap_or(data).trim();
            let (open, close) = (if first { "[" } else { "" }, if last { "]" } else { "" });
            let between = if first || items.is_empty() { "" } else { "," };
            Ok(format!("{open}{between}{items}{close}"))
        }
        // The value itself where one page has it all, pieces of its text otherwise.
        PageUnit::Characters if first && last => Ok(data.to_owned()),
        PageUnit::Characters => serde_json::from_str(data)
            .map_err(|error| Failure::internal(format!("a page of a kept result is no text: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::result::Page;

    fn report(unit: PageUnit, data: &str) -> ResultReport {
        let page = Page {
            reference: CallId::new("c"),
            pointer: None,
            unit,
            offset: 0,
            count: 0,
            total: 0,
            next: None,
            bytes: 0,
        };
        let data = RawValue::from_string(data.to_owned()).unwrap();
        ResultReport { call_id: CallId::new("c"), operation: "a.b".to_owned(), data, page }
    }

    #[track_caller]
    fn check(unit: PageUnit, pages: &[&str], whole: &str) {
        let last = pages.len() - 1;
        let pieces = pages.iter().enumerate();
        let text: String = pieces
            .map(|(index, data)| piece(&report(unit, data), index == 0, index == last).unwrap())
            .collect();
        assert_eq!(text, whole);
    }

    #[test]
    fn pages_put_together_are_the_value() {
        check(PageUnit::Items, &["[1.10, {\"a\":2}]", "[ 3 ]"], "[1.10, {\"a\":2},3]");
        check(PageUnit::Items, &["[]"], "[]");
        check(PageUnit::Items, &["[1]", "[]"], "[1]");
        check(PageUnit::Characters, &["\"three\""], "\"three\"");
        check(PageUnit::Characters, &["{\"a\":1}"], "{\"a\":1}");
        check(PageUnit::Characters, &[r#""{\"a\":\"三""#, r#""四\"}""#], "{\"a\":\"三四\"}");
    }

    #[test]
    fn a_reference_names_a_call_and_a_part_of_its_data() {
        let part = Reference { call_id: CallId::new("0193-x"), pointer: Some("/orders/0/id".to_owned()) };
        assert_eq!(Reference::after_at("call:0193-x/orders/0/id"), Some(part));
        assert_eq!(Reference::read("0193-x").pointer, None);
        assert_eq!(Reference::after_at("callers.json"), None);
    }
}
