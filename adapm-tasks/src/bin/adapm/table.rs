//! Columns of text, as wide as what they hold.

use console::measure_text_width;

/// Which side of a column its cells lean on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells; a row may have fewer cells than the widest.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; cells beyond them lean left.
    pub(crate) fn new(columns: &[Align]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row at the bottom. Cells may hold colours.
    pub(crate) fn row<I, T>(&mut self, cells: I)
    where
        I: IntoIterator<Item = T>,
        T: Into<String>,
    {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        while row.pop_if(|cell| cell.is_empty()).is_some() {}
        self.rows.push(row);
    }

    /// The lines, indented by two, each ended by a line feed, without spaces at the end.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column].saturating_sub(measure_text_width(cell)));
                line.push_str(if column == 0 { " " } else { "   " });
                match self.align(column) {
                    Align::Left => line.extend([cell.as_str(), &padding]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The widest cell that something follows, or that leans right: a last cell may be as long as it likes.
    fn width(&self, column: usize) -> usize {
        let last_counts = self.align(column) == Align::Right;
        let rows = self.rows.iter().filter(|row| last_counts || row.len() > column + 1);
        rows.filter_map(|row| row.get(column)).map(|cell| measure_text_width(cell)).max().unwrap_or(0)
    }

    fn align(&self, column: usize) -> Align {
        self.columns.get(column).copied().unwrap_or(Align::Left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_width_and_colour() {
        let mut table = Table::new(&[Align::Left, Align::Right]);
        table.row(["local", "1"]);
        table.row(["w", "1,234", "a note"]);
        table.row(["\u{1b}[1mé\u{1b}[0m", "5"]);
        let expected = "  local       1\n  w       1,234   a note\n  \u{1b}[1mé\u{1b}[0m           5\n";
        assert_eq!(table.render(), expected);
        assert_eq!(Table::new(&[]).render(), "");
    }

    #[test]
    fn a_last_cell_pushes_nothing_aside() {
        let mut table = Table::new(&[]);
        table.row(["a", "a long remark", ""]);
        table.row(["b", "x", "y"]);
        assert_eq!(table.render(), "  a   a long remark\n  b   x   y\n");
    }
}
