//! The one description of an operation that every model reads: one line, the same bytes everywhere.

use plugd_protocol::Operation;

/// Longer descriptions are refused by some who serve models, and with them the whole list.
pub const DESCRIPTION_MAX: usize = 1_024;

/// So much of what an operation does stays, however much is said about when to use it.
const PURPOSE_MIN: usize = 200;

/// What an operation does, when to use it, when not, and what people say who want it.
///
/// It is one line of at most [`DESCRIPTION_MAX`] characters. Where all of it is longer, examples are left
/// out first, then the end of what it does is cut off: what it is not for is never the first to go.
pub fn description(operation: &Operation) -> String {
    let Sections { purpose, limits, examples } = Sections::of(operation);
    let mut fixed = characters(&limits);
    let mut told = String::new();
    for example in examples {
        let more = if told.is_empty() { format!("Examples: {example}") } else { format!("; {example}") };
        // A space before it and the full stop behind it.
        if characters(&purpose) + fixed + characters(&told) + characters(&more) + 4 <= DESCRIPTION_MAX {
            told.push_str(&more);
        }
    }
    if !told.is_empty() {
        told.push('.');
        fixed += characters(&told) + 1;
    }
    let room = DESCRIPTION_MAX.saturating_sub(fixed + 1).max(PURPOSE_MIN);
    let purpose = cut(purpose, room);
    cut(join([purpose, limits, told]), DESCRIPTION_MAX)
}

/// How many characters all of it has, nothing left out.
pub(crate) fn whole_length(operation: &Operation) -> usize {
    let Sections { purpose, limits, examples } = Sections::of(operation);
    let examples =
        if examples.is_empty() { String::new() } else { format!("Examples: {}.", examples.join("; ")) };
    characters(&join([purpose, limits, examples]))
}

struct Sections {
    purpose: String,
    /// When to use it and when not.
    limits: String,
    /// Each in quotation marks.
    examples: Vec<String>,
}

impl Sections {
    fn of(operation: &Operation) -> Sections {
        let said = |text: &Option<String>| text.as_deref().map(one_line).filter(|text| !text.is_empty());
        let purpose = said(&operation.description).or_else(|| said(&operation.title));
        let when = said(&operation.when_to_use).map(|text| format!("When to use: {}", ended(text)));
        let when_not =
            said(&operation.when_not_to_use).map(|text| format!("When not to use: {}", ended(text)));
        let examples = operation.examples.iter().map(|example| one_line(example));
        Sections {
            purpose: purpose.map(ended).unwrap_or_default(),
            limits: join([when.unwrap_or_default(), when_not.unwrap_or_default()]),
            examples: examples.filter(|text| !text.is_empty()).map(|text| format!("“{text}”")).collect(),
        }
    }
}

/// Text on one line: line breaks make models drop arguments, and what is not seen may mislead.
pub(crate) fn one_line(text: &str) -> String {
    let seen: String = text.chars().filter(|character| !is_hidden(*character)).collect();
    let words = seen.split(|character: char| character.is_whitespace() || character.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a character shows nothing and only changes how the text around it is shown or read.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with a full stop, where it does not end a sentence.
fn ended(mut text: String) -> String {
    let last =
        text.chars().rev().find(|character| !matches!(character, '"' | '”' | '\'' | '’' | ')' | '）' | '」'));
    if !last
        .is_some_and(|last| matches!(last, '.' | '!' | '?' | '…' | ':' | '。' | '！' | '？' | '；' | '：'))
    {
        text.push(if last.is_some_and(crate::lint::is_han) { '。' } else { '.' });
    }
    text
}

fn join<const N: usize>(parts: [String; N]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

/// At most so many characters, the last one a mark where something is gone.
fn cut(text: String, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text,
        Some(_) => {
            let end = text.char_indices().nth(longest.saturating_sub(1)).map_or(0, |(at, _)| at);
            format!("{}…", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(json: serde_json::Value) -> Operation {
        let mut declared = serde_json::json!({"name": "x", "input_schema": {}});
        declared.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        serde_json::from_value(declared).unwrap()
    }

    #[test]
    fn d4_d17_all_that_is_said_stands_on_one_line() {
        let declared = operation(serde_json::json!({
            "description": "Gives the status\nof a ticket.\r\n\n  Knows open ones only",
            "when_to_use": "Someone asks\nhow far it is.",
            "when_not_to_use": "用户要新建工单",
            "examples": ["where is\nTK-1", "我的单子到哪了"],
        }));
        assert_eq!(
            description(&declared),
            "Gives the status of a ticket. Knows open ones only. When to use: Someone asks how far it is. \
             When not to use: 用户要新建工单。 Examples: “where is TK-1”; “我的单子到哪了”."
        );
        assert_eq!(whole_length(&declared), description(&declared).chars().count());
        assert_eq!(description(&operation(serde_json::json!({}))), "");
        assert_eq!(description(&operation(serde_json::json!({"title": "Status"}))), "Status.");
    }

    #[test]
    fn what_is_not_seen_is_not_handed_on() {
        let declared = operation(
            serde_json::json!({"description": "Sa\u{200b}fe\u{202e}.\u{e0041} \u{1b}[2JReads\u{2028}it."}),
        );
        assert_eq!(description(&declared), "Safe. [2JReads it.");
    }

    #[test]
    fn of_too_much_the_limits_are_the_last_to_go() {
        let limits = "Never for invoices.";
        let long = |length: usize, examples: usize| {
            operation(serde_json::json!({
                "description": "字".repeat(length), "when_not_to_use": limits,
                "examples": vec!["an example that takes room"; examples],
            }))
        };
        let left_out = description(&long(900, 40));
        assert!(
            left_out.contains("“an example that takes room”; “an") && left_out.contains(limits),
            "{left_out}"
        );
        for length in [900, 985, 990, 1_024, 5_000] {
            for examples in [0, 1, 40] {
                let shown = description(&long(length, examples));
                assert!(shown.chars().count() <= DESCRIPTION_MAX, "{length}, {examples}");
                assert!(shown.contains(limits), "{length}, {examples}: {shown}");
                assert!(whole_length(&long(length, examples)) >= shown.chars().count());
            }
        }
        assert!(description(&long(5_000, 1)).contains("字… When not to use: Never for invoices."));
        let endless =
            operation(serde_json::json!({"description": "It does.", "when_to_use": "x".repeat(5_000)}));
        assert_eq!(description(&endless).chars().count(), DESCRIPTION_MAX);
    }
}
