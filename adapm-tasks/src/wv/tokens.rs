//! Words and ends of lines of a text, by byte search; any bytes are legal input.

/// What a text consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a [u8]),
    LineEnd,
}

/// The tokens of a text. `\r` is white space, so `\r\n` is one end of a line.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
            if byte == b'\n' {
                return Some(Token::LineEnd);
            }
        }
        let start = self.at;
        let len = self.text[start..].iter().position(u8::is_ascii_whitespace);
        self.at = len.map_or(self.text.len(), |len| start + len);
        Some(Token::Word(&self.text[start..self.at]))
    }
}

/// The words of a text, without its lines.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    Tokens::new(text).filter_map(|token| match token {
        Token::Word(word) => Some(word),
        Token::LineEnd => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_separates_and_newlines_end_lines() {
        let (a, b, end) = (Token::Word(b"a"), Token::Word(b"\xffb"), Token::LineEnd);
        let tokens = |text| Tokens::new(text).collect::<Vec<_>>();
        assert_eq!(tokens(b" a\t \x0c\xffb\r\n\na".as_slice()), [a, b, end, end, a]);
        assert_eq!(tokens(b"".as_slice()), []);
        assert_eq!(tokens(b"\r\n ".as_slice()), [end]);
        assert_eq!(words(b"a\n\n \xffb").collect::<Vec<_>>(), [b"a".as_slice(), b"\xffb"]);
    }
}
