//! A scanner that knows just enough Rust for counting lines: it distinguishes code, comments,
//! strings and characters, and finds the ends of functions and inline test modules. It parses no
//! expressions and expands no macros.

use std::ops::RangeInclusive;

/// One identifier, number or punctuation character of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// A function with a body, from the line of its `fn` to the line of its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) lines: RangeInclusive<usize>,
}

/// Replaces comments, strings, characters and lifetimes by blanks; lines keep their numbers.
pub(crate) fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at),
            '\'' => end_of_quote(&chars, at),
            c if is_word(c) => {
                let end = end_of_word(&chars, at);
                if let Some(raw) = end_of_raw_string(&chars, at, end) {
                    raw
                } else {
                    out.extend(&chars[at..end]);
                    at = end;
                    continue;
                }
            }
            c => {
                out.push(c);
                at += 1;
                continue;
            }
        };
        out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// Returns the tokens of code that [`blank`] has processed.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, mut rest) in code.lines().enumerate() {
        while let Some(first) = rest.chars().next() {
            let end = match first {
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(Token { text: &rest[..end], line: index + 1 });
            }
            rest = &rest[end..];
        }
    }
    tokens
}

/// Returns every function with a body, including nested ones and those in macros.
pub(crate) fn functions(tokens: &[Token<'_>]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(at + 1) else { break };
        if token.text != "fn" || !(is_name(name.text) || name.text == "$") {
            continue;
        }
        let Some(open) = body_of(tokens, at + 2) else { continue };
        let Some(close) = closing(tokens, open) else { continue };
        found.push(Function { name: name.text.to_owned(), lines: token.line..=tokens[close].line });
    }
    found
}

/// Returns the lines of inline modules with a `cfg` for `test`, from the attribute to the closing
/// brace.
pub(crate) fn test_modules(tokens: &[Token<'_>]) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let Some(mut next) = after_test_attribute(tokens, at) else { continue };
        while text(tokens, next) == "#" {
            let Some(close) = closing(tokens, next + 1) else { break };
            next = close + 1;
        }
        if text(tokens, next) == "pub" {
            next += 1;
            if text(tokens, next) == "(" {
                next = closing(tokens, next).map_or(next, |close| close + 1);
            }
        }
        if text(tokens, next) == "mod"
            && text(tokens, next + 2) == "{"
            && let Some(close) = closing(tokens, next + 2)
        {
            found.push(tokens[at].line..=tokens[close].line);
        }
    }
    found
}

/// Returns the tokens without items under a `cfg` for `test`: modules, functions, imports.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match after_test_attribute(tokens, at) {
            Some(item) => at = behind_item(tokens, item),
            None => {
                kept.push(tokens[at]);
                at += 1;
            }
        }
    }
    kept
}

/// Returns the index after the item, field or statement that begins at `at`, with its attributes.
fn behind_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" | "," => return at + 1,
            "{" => return closing(tokens, at).map_or(tokens.len(), |close| close + 1),
            "(" | "[" => at = closing(tokens, at).map_or(tokens.len(), |close| close + 1),
            "}" => return at,
            _ => at += 1,
        }
    }
    at
}

/// Returns the index of the bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the opening brace of the body of a function whose signature goes on at `from`; `None` if
/// it ends without one.
fn body_of(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match tokens.get(at)?.text {
            "(" | "[" => at = closing(tokens, at)?,
            // A braced constant among generic arguments: `Lanes<{ N * 2 }>`.
            "{" if text(tokens, at - 1) == "<" => at = closing(tokens, at)?,
            "{" => return Some(at),
            ";" | ")" | "]" | "}" => return None,
            _ => {}
        }
        at += 1;
    }
}

/// Returns the index after `#[cfg(...)]` at `at`, if that is for `test`.
fn after_test_attribute(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    if text(tokens, at) != "#" || text(tokens, at + 1) != "[" || text(tokens, at + 2) != "cfg" {
        return None;
    }
    let close = closing(tokens, at + 1)?;
    let inside = &tokens[at + 2..close];
    // `not(adapm_loom)` beside it does not matter, `not(test)` does.
    let is_denied = |at: usize| at >= 2 && inside[at - 2].text == "not";
    let asks = inside.iter().enumerate().any(|(at, token)| token.text == "test" && !is_denied(at));
    asks.then_some(close + 1)
}

fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

fn end_of_word(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|&at| !is_word(chars[at])).unwrap_or(chars.len())
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|&at| chars[at] == '\n').unwrap_or(chars.len())
}

/// Returns the end of a block comment; these nest.
fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Returns the end of a character literal or, if it is none, of a lifetime or label.
fn end_of_quote(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        (Some('\\'), _) => {
            let escaped = (from + 3).min(chars.len());
            (escaped..chars.len()).find(|&at| chars[at] == '\'').map_or(chars.len(), |at| at + 1)
        }
        (Some(_), Some('\'')) => from + 3,
        _ => end_of_word(chars, from + 1),
    }
}

/// Returns the end of a raw string whose prefix is the word `from..end`; `None` if no raw string
/// starts here.
fn end_of_raw_string(chars: &[char], from: usize, end: usize) -> Option<usize> {
    let prefix: String = chars[from..end].iter().collect();
    if !matches!(prefix.as_str(), "r" | "br" | "cr") {
        return None;
    }
    let hashes = chars[end..].iter().take_while(|&&c| c == '#').count();
    if chars.get(end + hashes) != Some(&'"') {
        return None;
    }
    let body = end + hashes + 1;
    let closes = |at: usize| {
        chars[at] == '"'
            && chars[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    Some((body..chars.len()).find(|&at| closes(at)).map_or(chars.len(), |at| at + 1 + hashes))
}
