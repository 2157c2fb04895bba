//! Text of doc comments as text for people and models.

/// The text with its lines joined: where a source line ends means nothing.
///
/// Blank lines part paragraphs still, and a line that begins a list, a heading, a quotation, a table or a
/// fence stays one.
pub(crate) fn flowing(doc: &str) -> String {
    let mut text = String::new();
    for line in doc.lines().map(str::trim) {
        let parted = text.is_empty() || text.ends_with('\n');
        match (line.is_empty(), parted) {
            (true, _) => {
                if !text.is_empty() && !text.ends_with("\n\n") {
                    text.push_str(if parted { "\n" } else { "\n\n" });
                }
                continue;
            }
            (false, true) => {}
            (false, false) if begins_something(line) => text.push('\n'),
            (false, false) if text.ends_with(is_wide) && line.starts_with(is_wide) => {}
            (false, false) => text.push(' '),
        }
        text.push_str(line);
    }
    text.truncate(text.trim_end().len());
    text
}

fn begins_something(line: &str) -> bool {
    let number = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with(". ");
    is_numbered || ["- ", "* ", "+ ", "#", ">", "|", "```"].iter().any(|mark| line.starts_with(mark))
}

/// Whether a character stands without spaces, as Chinese and Japanese ones do.
fn is_wide(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{ffef}' | '\u{20000}'..)
}

#[cfg(test)]
mod tests {
    use super::flowing;

    #[test]
    fn the_lines_of_a_paragraph_are_one() {
        assert_eq!(
            flowing(" Looks up\n the weather.\n\n Twice a day:\n - once\n - again\n"),
            "Looks up the weather.\n\nTwice a day:\n- once\n- again"
        );
        assert_eq!(flowing(" 查询\n 天气。\n in 北京"), "查询天气。 in 北京");
        assert_eq!(flowing("\n\n one\n\n\n\n two\n 1. three"), "one\n\ntwo\n1. three");
        assert_eq!(flowing(" \n"), "");
    }
}
