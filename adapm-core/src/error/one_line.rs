//! Texts of others in errors: a person reads them in a terminal, where a line end or an escape sequence would be obeyed.

use core::fmt::{self, Display, Write};

/// Shows `T` in one line: control characters as their escapes, everything else as it is.
///
/// ```
/// use adapm_core::error::OneLine;
/// assert_eq!(OneLine("a\nb\u{1b}[2J").to_string(), "a\\nb\\u{1b}[2J");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OneLine<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.write_char(c))
    }

    fn write_char(&mut self, c: char) -> fmt::Result {
        if c.is_control() { write!(self.0, "{}", c.escape_default()) } else { self.0.write_char(c) }
    }
}
