//! What a text is like: how many sentences, whether it praises, whether a name says anything.

/// Words that, alone, name no deed and no object.
const VAGUE_ALONE: &[&str] = &[
    "act",
    "action",
    "api",
    "call",
    "command",
    "common",
    "data",
    "do",
    "exec",
    "execute",
    "func",
    "function",
    "general",
    "get",
    "go",
    "handle",
    "handler",
    "helper",
    "info",
    "invoke",
    "item",
    "job",
    "main",
    "make",
    "manage",
    "method",
    "misc",
    "object",
    "op",
    "operate",
    "operation",
    "perform",
    "process",
    "request",
    "run",
    "set",
    "stuff",
    "task",
    "test",
    "thing",
    "tool",
    "use",
    "util",
    "utils",
    "work",
];

/// Words that say nothing beside others that say nothing.
const VAGUE_TOGETHER: &[&str] = &[
    "act",
    "action",
    "all",
    "any",
    "anything",
    "api",
    "common",
    "data",
    "do",
    "everything",
    "exec",
    "execute",
    "func",
    "function",
    "general",
    "get",
    "handle",
    "handler",
    "helper",
    "info",
    "information",
    "invoke",
    "it",
    "make",
    "manage",
    "method",
    "misc",
    "operate",
    "operation",
    "perform",
    "process",
    "request",
    "run",
    "set",
    "some",
    "something",
    "stuff",
    "that",
    "thing",
    "things",
    "this",
    "tool",
    "use",
    "util",
    "utils",
    "work",
];

/// Words that make praise of the word behind them.
const INTENSIFIERS: &[&str] = &[
    "extremely",
    "highly",
    "incredibly",
    "insanely",
    "really",
    "remarkably",
    "super",
    "truly",
    "ultra",
    "very",
];

/// What is praise behind one of these; each also as a beginning, such as `reliabl` of `reliably`.
const QUALITIES: &[&str] = &[
    "accurate",
    "advanced",
    "capable",
    "comprehensive",
    "convenient",
    "easy",
    "effective",
    "efficient",
    "fast",
    "flexible",
    "good",
    "great",
    "handy",
    "helpful",
    "intelligent",
    "nice",
    "powerful",
    "professional",
    "reliable",
    "robust",
    "smart",
    "stable",
    "useful",
    "versatile",
];

/// What is praise wherever it stands.
const PRAISE: &[&str] = &[
    "amazing",
    "amazingly",
    "awesome",
    "best-in-class",
    "blazing",
    "blazingly",
    "breathtaking",
    "cutting-edge",
    "effortless",
    "effortlessly",
    "excellent",
    "fantastic",
    "flawless",
    "flawlessly",
    "game-changing",
    "highly recommended",
    "incredible",
    "industry-leading",
    "lightning-fast",
    "magical",
    "market-leading",
    "must-have",
    "next-generation",
    "of all time",
    "outstanding",
    "perfect for",
    "perfectly suited",
    "powerful",
    "phenomenal",
    "recommended for everyone",
    "revolutionary",
    "seamless",
    "seamlessly",
    "second to none",
    "state-of-the-art",
    "strongly recommended",
    "strongly recommend",
    "superb",
    "top-notch",
    "ultimate",
    "unbeatable",
    "unmatched",
    "unparalleled",
    "unrivaled",
    "unrivalled",
    "user-friendly",
    "wonderful",
    "world-class",
];

const PRAISE_CHINESE: &[&str] = &[
    "非常强大",
    "十分强大",
    "极其强大",
    "功能强大",
    "超级强大",
    "强大的",
    "非常稳定",
    "十分稳定",
    "极其稳定",
    "超级稳定",
    "非常好用",
    "超好用",
    "最好用",
    "好用的",
    "非常快",
    "极速",
    "飞快",
    "闪电般",
    "非常准确",
    "极其准确",
    "非常可靠",
    "十分可靠",
    "非常方便",
    "十分方便",
    "极其方便",
    "非常智能",
    "非常实用",
    "非常高效",
    "强烈推荐",
    "强烈建议使用",
    "力荐",
    "必备神器",
    "神器",
    "业界领先",
    "行业领先",
    "全球领先",
    "国际领先",
    "遥遥领先",
    "世界级",
    "一流的",
    "顶级的",
    "顶尖",
    "卓越",
    "无与伦比",
    "无可比拟",
    "独一无二",
    "完美",
    "革命性",
    "颠覆性",
    "最强",
    "最佳选择",
    "不二之选",
    "优秀的",
    "出色的",
    "杰出的",
    "令人惊叹",
    "轻松搞定",
];

/// Ends of words that are no ends of sentences.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs.", "cf.", "approx.", "resp.", "incl."];

/// More of a text is not quoted.
const CLIP_CHARS: usize = 60;

/// Whether a character is Chinese, as far as words go.
pub(crate) fn is_han(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// How many sentences a text has; one without a full stop counts.
///
/// In Chinese `。！？；` end one, and a line break does in any language.
pub(super) fn sentences(text: &str) -> usize {
    let chinese = text.chars().any(is_han);
    let mut count = 0;
    for line in text.lines() {
        let mut said = false;
        let mut characters = line.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let ends = match character {
                '。' | '！' | '？' | '；' => true,
                ';' => chinese,
                '.' | '!' | '?' => {
                    let closes = next
                        .is_none_or(|next| next.is_whitespace() || matches!(next, '"' | ')' | '”' | '\''));
                    (closes || next.is_some_and(is_han)) && !(character == '.' && abbreviates(line, at))
                }
                _ => {
                    said |= character.is_alphanumeric();
                    false
                }
            };
            if ends && said {
                count += 1;
                said = false;
            }
        }
        count += usize::from(said);
    }
    count
}

/// Whether the full stop there is part of a word.
fn abbreviates(line: &str, at: usize) -> bool {
    let word = line[..=at].rsplit([' ', '(', '（']).next().unwrap_or_default().to_lowercase();
    let goes_on =
        line[at..].chars().find(|character| character.is_alphanumeric()).is_some_and(char::is_lowercase);
    ABBREVIATIONS.contains(&word.as_str()) || (word == "etc." && goes_on)
}

/// The words with which a text praises what it describes.
pub(super) fn praises(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    let mut note = |word: &str| {
        // `very powerful` says it all: `powerful` need not be named again.
        if !found.iter().any(|known| known.contains(word)) {
            found.push(word.to_owned());
        }
    };
    let words: Vec<&str> =
        lower.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for pair in words.windows(2) {
        if INTENSIFIERS.contains(&pair[0]) && QUALITIES.iter().any(|quality| is_form_of(pair[1], quality)) {
            note(&pair.join(" "));
        }
    }
    PRAISE.iter().filter(|phrase| contains_phrase(&lower, phrase)).for_each(|phrase| note(phrase));
    PRAISE_CHINESE.iter().filter(|phrase| lower.contains(**phrase)).for_each(|phrase| note(phrase));
    found
}

fn is_form_of(word: &str, quality: &str) -> bool {
    word == quality
        || (word.ends_with("ly") && word.starts_with(quality.trim_end_matches('e').trim_end_matches('y')))
}

/// Whether a phrase stands there as words of its own; a `-` may be written as a space.
fn contains_phrase(lower: &str, phrase: &str) -> bool {
    let spaced = phrase.replace('-', " ");
    contains_word(lower, phrase) || (spaced != phrase && contains_word(lower, &spaced))
}

/// Whether a word stands in a text, no letter, digit or `_` beside it.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    let part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back().is_some_and(part);
            let after = text[at + word.len()..].chars().next().is_some_and(part);
            !before && !after
        })
}

/// Whether an operation's name says nothing about what it does.
pub(super) fn is_vague(name: &str) -> bool {
    let parts = name.split('_').map(|part| part.trim_matches(|character: char| character.is_ascii_digit()));
    let words: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => true,
        [word] => word.len() == 1 || VAGUE_ALONE.contains(word),
        words => words.iter().all(|word| word.len() == 1 || VAGUE_TOGETHER.contains(word)),
    }
}

/// The beginning of a text, on one line.
pub(super) fn clipped(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CLIP_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d8_sentences_are_counted_in_both_languages() {
        for (text, expected) in [
            ("", 0),
            (" \n.", 0),
            ("Send an email", 1),
            ("Send an email.", 1),
            ("查询工单状态", 1),
            ("查询工单状态。", 1),
            ("查询工单状态，包括当前节点", 1),
            ("查询工单状态。返回当前节点", 2),
            ("查询工单状态；返回当前节点。", 2),
            ("Gives the status of a ticket. It knows open ones only.", 2),
            ("Converts units, e.g. miles to km, at 1.609344 each.", 1),
            ("Is it open? Says yes or no!", 2),
            ("Reads a file.Writes nothing", 1),
            ("Sends a mail\nTo one person only", 2),
            ("Reads v1.2; writes nothing", 1),
            ("Says \"done.\" Then it leaves.", 2),
            ("Reads. 然后返回。", 2),
            ("Reads logs, traces, etc. It writes nothing.", 2),
            ("Reads logs, traces, etc. of a service", 1),
        ] {
            assert_eq!(sentences(text), expected, "{text:?}");
        }
    }

    #[test]
    fn d6_praise_is_found_and_facts_are_not() {
        for (text, expected) in [
            (
                "very powerful, very stable, strongly recommended",
                &["very powerful", "very stable", "strongly recommended"][..],
            ),
            ("A World-Class, state of the art search.", &["state-of-the-art", "world-class"]),
            ("Works extremely reliably", &["extremely reliably"]),
            ("这个工具功能强大，非常稳定，强烈推荐", &["非常稳定", "功能强大", "强烈推荐"]),
            ("The most powerful tool", &["powerful"]),
        ] {
            let mut found = praises(text);
            let mut expected: Vec<&str> = expected.to_vec();
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{text:?}");
        }
        for fact in [
            "Gives the best matches first, the latest stable release included.",
            "When the user mentions a ticket number, be sure to use this.",
            "Finds the fastest route. Very large files are read in parts.",
            "Checks whether a number is a perfect square.",
            "查询最新的稳定版本，只在用户明确要求时使用。务必先确认工单编号。",
            "Sends a recommendation to the reviewer of a paper.",
        ] {
            assert_eq!(praises(fact), Vec::<String>::new(), "{fact}");
        }
    }

    #[test]
    fn d9_vague_names_are_told_from_plain_ones() {
        for vague in [
            "process",
            "handle",
            "do",
            "do_it",
            "process_data",
            "handle_request",
            "get_info",
            "run",
            "x",
            "tool1",
            "f2",
            "get_1",
            "execute",
        ] {
            assert!(is_vague(vague), "{vague}");
        }
        for plain in [
            "query_order_status",
            "search",
            "list_tasks",
            "echo",
            "get_weather",
            "run_query",
            "now",
            "make_call",
            "summary",
            "set_alarm",
        ] {
            assert!(!is_vague(plain), "{plain}");
        }
    }
}
