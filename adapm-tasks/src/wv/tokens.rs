//! Words and ends of lines of a text, by byte search; any bytes are legal input.

use crate::data::DataError;

/// What a text consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a [u8]),
    LineEnd,
}

/// Bytes that come in pieces of whole words.
pub(crate) trait Source {
    /// The running piece.
    fn piece(&self) -> &[u8];

    /// Reads the next piece. Returns false at the end.
    fn advance(&mut self) -> Result<bool, DataError>;
}

/// The tokens of a text. `\r` is white space, so `\r\n` is one end of a line.
#[derive(Debug)]
pub(crate) struct Tokens<S> {
    source: S,
    at: usize,
}

impl<S: Source> Tokens<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, at: 0 }
    }

    /// The next token; `None` at the end.
    ///
    /// # Errors
    ///
    /// What the source says.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Token<'_>>, DataError> {
        loop {
            let Some(&byte) = self.source.piece().get(self.at) else {
                if !self.source.advance()? {
                    return Ok(None);
                }
                self.at = 0;
                continue;
            };
            if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
            if byte == b'\n' {
                return Ok(Some(Token::LineEnd));
            }
        }
        let (start, piece) = (self.at, self.source.piece());
        let len = piece[start..].iter().position(u8::is_ascii_whitespace);
        self.at = len.map_or(piece.len(), |len| start + len);
        Ok(Some(Token::Word(&piece[start..self.at])))
    }
}

/// The words of a text, without its lines.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wv::text::Text;

    #[test]
    fn white_space_separates_and_newlines_end_lines() {
        let (a, b, end) = ("a", "\u{fffd}b", "END");
        let tokens = |bytes: &[u8]| {
            let text = Text::of_bytes(bytes);
            let mut tokens = text.share(0, 1).unwrap().tokens();
            let mut found = Vec::new();
            while let Some(token) = tokens.next().unwrap() {
                found.push(match token {
                    Token::Word(word) => String::from_utf8_lossy(word).into_owned(),
                    Token::LineEnd => end.to_owned(),
                });
            }
            found
        };
        assert_eq!(tokens(b" a\t \x0c\xffb\r\n\na"), [a, b, end, end, a]);
        assert_eq!(tokens(b""), [""; 0]);
        assert_eq!(tokens(b"\r\n "), [end]);
        assert_eq!(words(b"a\n\n \xffb").collect::<Vec<_>>(), [b"a".as_slice(), b"\xffb"]);
    }
}
