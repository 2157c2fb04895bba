//! Columns that line up.

/// Lays out rows in columns two spaces apart, the last one ragged.
///
/// `width` counts what a cell shows, so that colours do not shift columns.
pub(super) fn table(rows: &[Vec<Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&cell.text);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width) + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// One cell: what is written, and how wide it looks.
pub(super) struct Cell {
    text: String,
    width: usize,
}

impl Cell {
    /// A cell whose text is painted, given as it looks and as it is written.
    pub(super) fn painted(plain: &str, text: String) -> Cell {
        Cell { text, width: plain.chars().count() }
    }

    /// What is written.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        let text = text.into();
        Cell { width: text.chars().count(), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_painted() {
        let rows = vec![
            vec![Cell::from("NAME"), "STATE".into(), "WHY".into()],
            vec![Cell::from("a"), Cell::painted("ready", "\u{1b}[32mready\u{1b}[0m".to_owned()), "".into()],
            vec![Cell::from("longer"), "failed".into(), "no such file".into()],
        ];
        let text = table(&rows).replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
        assert_eq!(text, "NAME    STATE   WHY\na       ready\nlonger  failed  no such file\n");
    }
}
