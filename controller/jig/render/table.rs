//! Tables of text, with aligned columns.

use super::paint::{Paint, Style};

/// Rows of harmless texts; the last column is never padded.
#[derive(Debug)]
pub(crate) struct TextTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Option<Style>)>>,
}

impl TextTable {
    /// Begins a table with these headings.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Option<Style>)>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes the table, without a line end behind the last line.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let cells = cells.map(|(text, _)| text.chars().count());
            let head = self.head.get(column).map_or(0, |head| head.len());
            cells.chain([head]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = (&str, Option<Style>)>| {
            let mut line = String::new();
            let mut gap = 0;
            for ((text, style), width) in cells.zip(&widths) {
                // Padding before the next cell, so that no line ends in blanks.
                if !text.is_empty() {
                    line.extend(std::iter::repeat_n(' ', gap));
                    gap = 0;
                    match style {
                        Some(style) => line.push_str(&paint.paint(style, text)),
                        None => line.push_str(text),
                    }
                }
                gap += width - text.chars().count() + 2;
            }
            line
        };
        let mut head = self.head.iter().map(|head| (*head, Some(Style::Dim)));
        let mut lines = vec![line(&mut head)];
        for row in &self.rows {
            lines.push(line(&mut row.iter().map(|(text, style)| (text.as_str(), *style))));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_at_their_last_text() {
        let mut table = TextTable::new(&["a", "long", "c"]);
        table.row(["one", "2", "3"].map(|t| (t.to_owned(), None)));
        table.row(["x", "", ""].map(|t| (t.to_owned(), Some(Style::Good))));
        table.row(["x", "", "end"].map(|t| (t.to_owned(), None)));
        let text = table.text(Paint { on: false });
        assert_eq!(text, "a    long  c\none  2     3\nx\nx          end");
    }
}
