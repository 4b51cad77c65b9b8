//! The streams of results: tables to stdout, or, with `--json`, JSON lines to stdout and tables to
//! stderr. Among several processes only node 0 prints results.

use std::io::{self, Write};

use console::{Style, StyledObject};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::terminal::Stream;

/// The two streams of a verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    silent: bool,
}

impl Output {
    /// JSON lines, or tables only.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, silent: false }
    }

    /// Prints nothing: another process prints the same results.
    pub(crate) fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Columns that text for people may have.
    pub(crate) fn width(self) -> usize {
        if self.json { Stream::Stderr.width() } else { Stream::Stdout.width() }
    }

    /// Returns true if another process prints the results.
    pub(crate) fn is_silent(self) -> bool {
        self.silent
    }

    /// Prints text for people.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        if self.silent {
            return Ok(());
        }
        if self.json {
            // A reader of the JSON may have closed stderr.
            let _ = io::stderr().write_all(text.as_bytes());
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
    }

    /// Prints a sentence, broken between words.
    pub(crate) fn sentence(self, text: &str) -> Result<(), Failure> {
        self.text(&format!("  {}\n", format::wrapped(text, self.width() - 2).replace('\n', "\n  ")))
    }

    /// Prints one object on one line, if programs listen. What is no number becomes `null`.
    pub(crate) fn object(self, object: &impl Serialize) -> Result<(), Failure> {
        if !self.json || self.silent {
            return Ok(());
        }
        let mut line = serde_json::to_vec(object).map_err(|error| Failure::Stdout(error.into()))?;
        line.push(b'\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(Failure::Stdout)
    }

    /// Returns a heading.
    pub(crate) fn bold<T>(self, text: T) -> StyledObject<T> {
        self.styled(Style::new().bold(), text)
    }

    /// Returns an aside.
    pub(crate) fn dim<T>(self, text: T) -> StyledObject<T> {
        self.styled(Style::new().dim(), text)
    }

    fn styled<T>(self, style: Style, text: T) -> StyledObject<T> {
        // Colours appear only if the stream at hand is a terminal that has them and NO_COLOR is not
        // set.
        (if self.json { style.for_stderr() } else { style.for_stdout() }).apply_to(text)
    }
}
