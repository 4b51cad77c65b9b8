//! Columns of text, as wide as what they hold, laid out anew if the terminal is narrower.
//!
//! | what does not fit | becomes |
//! | --- | --- |
//! | a text in a cell | several lines, broken between words |
//! | a table of numbers | several tables below each other, each with the first columns |

use console::{measure_text_width, strip_ansi_codes};

use crate::cli::format;
use crate::cli::terminal::Stream;

/// The alignment of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells; a row may have fewer cells than the widest.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Align>,
    /// Columns that say what a row is.
    names: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with these columns; cells beyond them lean left.
    pub(crate) fn new(columns: &[Align]) -> Self {
        Self { columns: columns.to_vec(), names: 1, rows: Vec::new() }
    }

    /// Returns the same, in which so many columns say what a row is.
    pub(crate) fn named_by(self, names: usize) -> Self {
        Self { names, ..self }
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

    /// Returns the lines as wide as stdout, where tables go.
    pub(crate) fn render(&self) -> String {
        self.within(Stream::Stdout.width())
    }

    /// Returns the lines, indented by two, each ended by a line feed, without spaces at the end; at
    /// most `width` columns wide, as far as words and numbers are.
    pub(crate) fn within(&self, width: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural: Vec<usize> = (0..columns).map(|column| self.natural(column)).collect();
        let widths = self.narrowed(natural, width);
        let needed =
            self.rows.iter().map(|row| self.length(row, &widths, LAST_MIN)).max().unwrap_or(0);
        if needed > width && columns > self.names + 1 && self.fits_in_part(&widths, width) {
            return self
                .parts(&widths, width)
                .iter()
                .map(|part| part.within(width))
                .collect::<Vec<_>>()
                .join("\n");
        }
        self.rows.iter().map(|row| self.lines(row, &widths, width)).collect()
    }

    /// Returns the widest cell that something follows, or that leans right: a last cell may be as
    /// long as it likes.
    fn natural(&self, column: usize) -> usize {
        let last_counts = self.align(column) == Align::Right;
        let rows = self.rows.iter().filter(|row| last_counts || row.len() > column + 1);
        rows.filter_map(|row| row.get(column))
            .map(|cell| measure_text_width(cell))
            .max()
            .unwrap_or(0)
    }

    /// Widths with which everything fits, if that can be had by breaking texts that something
    /// follows.
    fn narrowed(&self, mut widths: Vec<usize>, width: usize) -> Vec<usize> {
        loop {
            let too_long =
                self.rows.iter().filter(|row| self.length(row, &widths, usize::MAX) > width);
            let Some(behind) = too_long.map(Vec::len).max() else { return widths };
            let can =
                |column: &usize| self.align(*column) == Align::Left && widths[*column] > TEXT_MIN;
            let widest = (0..behind - 1).filter(can).max_by_key(|column| widths[*column]);
            let Some(widest) = widest else { return widths };
            widths[widest] -= 1;
        }
    }

    /// Returns the length of a row whose last cell, if it is a text, counts for at most `most`.
    fn length(&self, row: &[String], widths: &[usize], most: usize) -> usize {
        let Some((last, before)) = row.split_last() else { return 0 };
        let column = before.len();
        let own = match self.align(column) {
            Align::Left => measure_text_width(last).min(most),
            Align::Right => widths[column],
        };
        start(widths, column) + own
    }

    /// Returns true if each column fits beside the names.
    fn fits_in_part(&self, widths: &[usize], width: usize) -> bool {
        let names = start(widths, self.names);
        widths.iter().skip(self.names).all(|own| names + own <= width)
    }

    /// Tables of as many of the columns as fit, each with the names.
    fn parts(&self, widths: &[usize], width: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut first = self.names;
        while first < widths.len() {
            let mut next = first;
            let mut taken = start(widths, self.names);
            while next < widths.len() && (next == first || taken + widths[next] <= width) {
                taken += widths[next] + GAP;
                next += 1;
            }
            let columns = || (0..self.names).chain(first..next);
            let mut part =
                Self::new(&columns().map(|column| self.align(column)).collect::<Vec<_>>());
            part.names = self.names;
            for row in self.rows.iter().filter(|row| first == self.names || row.len() > first) {
                part.row(columns().map(|column| row.get(column).cloned().unwrap_or_default()));
            }
            parts.push(part);
            first = next;
        }
        parts
    }

    /// Returns a row, in as many lines as its longest cell needs.
    fn lines(&self, row: &[String], widths: &[usize], width: usize) -> String {
        let mut cells: Vec<std::vec::IntoIter<String>> = Vec::new();
        for (column, cell) in row.iter().enumerate() {
            let is_last = column + 1 == row.len();
            let room = match self.align(column) {
                Align::Left if is_last => width.saturating_sub(start(widths, column)).max(LAST_MIN),
                _ => widths[column],
            };
            cells.push(broken(cell, room).into_iter());
        }
        let mut text = String::new();
        let count = cells.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        for _ in 0..count.max(1) {
            let mut line = String::from(" ");
            for (column, cell) in cells.iter_mut().enumerate() {
                let cell = cell.next().unwrap_or_default();
                let padding = " ".repeat(widths[column].saturating_sub(measure_text_width(&cell)));
                line.push_str(if column == 0 { " " } else { "   " });
                match self.align(column) {
                    Align::Left => line.extend([cell.as_str(), &padding]),
                    Align::Right => line.extend([padding.as_str(), &cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn align(&self, column: usize) -> Align {
        self.columns.get(column).copied().unwrap_or(Align::Left)
    }
}

/// Returns the position at which a column starts.
fn start(widths: &[usize], column: usize) -> usize {
    INDENT + widths.iter().take(column).map(|width| width + GAP).sum::<usize>()
}

/// Returns the lines of a cell, each in the cell's style.
fn broken(cell: &str, width: usize) -> Vec<String> {
    if measure_text_width(cell) <= width {
        return vec![cell.to_owned()];
    }
    let lines = format::lines(&strip_ansi_codes(cell), width);
    let mut text = cell;
    while let Some(end) = text.strip_prefix('\u{1b}').and_then(|code| code.find('m')) {
        text = &text[end + 2..];
    }
    match cell.split_at(cell.len() - text.len()) {
        ("", _) => lines,
        (style, _) => lines.iter().map(|line| format!("{style}{line}\u{1b}[0m")).collect(),
    }
}

const INDENT: usize = 2;
const GAP: usize = 3;
/// A column of texts is not made narrower.
const TEXT_MIN: usize = 36;
/// Nor is what is left for a last cell.
const LAST_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_width_and_colour() {
        let mut table = Table::new(&[Align::Left, Align::Right]);
        table.row(["local", "1"]);
        table.row(["w", "1,234", "a note"]);
        table.row(["\u{1b}[1mé\u{1b}[0m", "5"]);
        let expected =
            "  local       1\n  w       1,234   a note\n  \u{1b}[1mé\u{1b}[0m           5\n";
        assert_eq!(table.within(80), expected);
        assert_eq!(Table::new(&[]).within(80), "");
    }

    #[test]
    fn a_last_cell_pushes_nothing_aside() {
        let mut table = Table::new(&[]);
        table.row(["a", "a long remark", ""]);
        table.row(["b", "x", "y"]);
        assert_eq!(table.within(80), "  a   a long remark\n  b   x   y\n");
    }

    #[test]
    fn a_text_that_is_too_long_is_broken_between_words_in_its_style() {
        let mut table = Table::new(&[]);
        table.row(["name", "one two three four"]);
        table.row(["a", "\u{1b}[2mone two three four\u{1b}[0m"]);
        let dim = |text: &str| format!("\u{1b}[2m{text}\u{1b}[0m");
        let expected = format!(
            "  name   one two three\n         four\n  a      {}\n         {}\n",
            dim("one two three"),
            dim("four")
        );
        assert_eq!(table.within(25), expected);
    }

    #[test]
    fn a_plan_keeps_its_flags_beside_its_choices() {
        let mut table = Table::new(&[]);
        let choice = "softmax loss, AdaGrad, learning rate 0.1, N3 0.005, on one node";
        table.row(["training", choice, "--loss --learning-rate"]);
        let text = table.within(80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "  training   softmax loss, AdaGrad, learning rate 0.1,    --loss --learning-rate"
        );
        assert_eq!(lines[1], "             N3 0.005, on one node");
        assert!(table.within(120).lines().count() == 1);
        // What nothing follows may go on below the flags.
        table.row(["", "272,115 train, 17,535 valid, 20,466 test triples; 14,541 entities"]);
        let text = table.within(80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "             272,115 train, 17,535 valid, 20,466 test triples; 14,541 entities"
        );
    }

    #[test]
    fn a_table_of_numbers_becomes_several_with_the_names_of_rows() {
        let columns = [vec![Align::Left], vec![Align::Right; 4]].concat();
        let mut table = Table::new(&columns);
        table.row(["", "one", "two", "three", "four"]);
        table.row(["row", "1234567890", "1234567890", "1234567890", "4"]);
        table.row(["title"]);
        let expected = "             one          two\n  row   1234567890   1234567890\n  title\n\n\
                        \x20            three   four\n  row   1234567890      4\n";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = table.within(40);
        assert_eq!(squeezed(&text), squeezed(expected), "{text}");
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    }
}
