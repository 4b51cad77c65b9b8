//! Files that implement each type: a type with `impl` blocks in many files has been cut through the
//! middle.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{self, Item, Modules};
use crate::scan::{self, Token};
use crate::tree::File;

/// Most files in which a type may be implemented, tests excluded.
pub(crate) const FILES_MAX: usize = 2;

/// Returns the files in which each type of the crate below `folder` is implemented; macros are left
/// out.
pub(crate) fn of(files: &[File], folder: &str) -> BTreeMap<Item, BTreeSet<String>> {
    let modules = Modules::of(files, folder);
    let mut found: BTreeMap<Item, BTreeSet<String>> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.path.starts_with(folder) && file.is_rust() && !file.is_test())
    {
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        for block in blocks(&tokens) {
            if let Some(item) = modules.item(&file.path, &block.path) {
                found.entry(item).or_default().insert(file.path.clone());
            }
        }
    }
    found
}

/// An `impl` block: the path of its type, and the indexes of its braces.
pub(crate) struct Block {
    pub(crate) path: Vec<String>,
    pub(crate) open: usize,
    pub(crate) close: usize,
}

/// Returns the `impl` blocks of a file, except those in macros.
pub(crate) fn blocks(tokens: &[Token<'_>]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "macro_rules"
            && let Some(open) = (at..tokens.len()).find(|at| matches!(tokens[*at].text, "{" | "("))
            && let Some(close) = scan::closing(tokens, open)
        {
            at = close;
        }
        let begins = at == 0 || matches!(tokens[at - 1].text, "}" | ";" | "]" | "{" | "unsafe");
        if tokens[at].text == "impl"
            && begins
            && let Some((path, open)) = head(tokens, at + 1)
            && let Some(close) = scan::closing(tokens, open)
        {
            found.push(Block { path, open, close });
        }
        at += 1;
    }
    found
}

/// Returns the type of the `impl` block whose head goes on at `from`, and its opening brace.
fn head(tokens: &[Token<'_>], from: usize) -> Option<(Vec<String>, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut at = if text(from) == "<" { behind_angles(tokens, from)? } else { from };
    let mut path = Vec::new();
    loop {
        match text(at) {
            "{" => return Some((path, at)),
            "where" => {
                let open = (at..tokens.len()).find(|at| text(*at) == "{")?;
                return Some((path, open));
            }
            // The name before was the trait.
            "for" if text(at + 1) != "<" => {
                path.clear();
                at += 1;
            }
            "<" => at = behind_angles(tokens, at)?,
            "(" | "[" => at = scan::closing(tokens, at)? + 1,
            "" => return None,
            "&" | "mut" | "dyn" | ":" | "+" | "!" => at += 1,
            _ => {
                let names = modules::path_at(tokens, at);
                at += names.len().max(1) * 3 - 2;
                if path.is_empty() {
                    path = names;
                }
            }
        }
    }
}

/// Returns the index after the angle bracket that closes the one at `open`; the head of an arrow
/// does not count.
fn behind_angles(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in open..tokens.len() {
        match tokens[at].text {
            "<" => depth += 1,
            ">" if !matches!(tokens[at - 1].text, "-" | "=") => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
