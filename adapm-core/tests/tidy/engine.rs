//! Figures of the engine: how far its files reach into each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan::{self, Token};
use crate::spread;
use crate::tree::File;

/// Where the engine is.
const FOLDER: &str = "adapm-core/src/engine/";
/// Fields that other files may reach, its context aside.
pub(crate) const FIELDS_MAX: usize = 7;
/// Calls from one file of an object into another of its files.
pub(crate) const CALLS_MAX: usize = 45;

/// The fields of the engine, its context aside, if a file beside its own implements it: each of these can reach all of them.
pub(crate) fn fields_reached(files: &[File]) -> Vec<String> {
    let is_own = |file: &&File| file.path == format!("{FOLDER}mod.rs");
    let Some(own) = files.iter().find(is_own) else { return Vec::new() };
    let elsewhere = sources(files).filter(|file| !is_own(file));
    let reached = elsewhere.into_iter().any(|file| {
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        spread::blocks(&tokens).iter().any(|block| block.path.last().is_some_and(|name| name == "Engine"))
    });
    if !reached {
        return Vec::new();
    }
    let code = scan::blank(&own.text);
    let tokens = scan::without_tests(&scan::tokens(&code));
    fields(&tokens, "Engine").into_iter().filter(|field| field != "ctx").collect()
}

/// Calls of a method of an object in another file than its own, as `path:line: type.method`.
pub(crate) fn calls_across(files: &[File]) -> Vec<String> {
    let mut blocks = Vec::new();
    for file in sources(files) {
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        for block in spread::blocks(&tokens) {
            let Some(name) = block.path.last() else { continue };
            let inside = &tokens[block.open..=block.close];
            let (methods, calls) = (methods(inside), own_calls(inside));
            blocks.push((name.clone(), file.path.clone(), methods, calls));
        }
    }
    let mut defined: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (name, file, methods, _) in &blocks {
        for method in methods {
            defined.entry((name.clone(), method.clone())).or_default().insert(file.clone());
        }
    }
    let mut found = Vec::new();
    for (name, file, _, calls) in blocks {
        for (line, method) in calls {
            let key = (name.clone(), method);
            if defined.get(&key).is_some_and(|files| !files.contains(&file)) {
                found.push(format!("{file}:{line}: {}.{}", key.0, key.1));
            }
        }
    }
    found
}

fn sources(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.path.starts_with(FOLDER) && file.is_rust() && !file.is_test())
}

/// The names of the fields of the structure `name`.
fn fields(tokens: &[Token<'_>], name: &str) -> Vec<String> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let Some(at) = (0..tokens.len()).find(|at| text(*at) == "struct" && text(at + 1) == name) else {
        return Vec::new();
    };
    let Some(open) = (at..tokens.len()).find(|at| text(*at) == "{") else { return Vec::new() };
    let Some(close) = scan::closing(tokens, open) else { return Vec::new() };
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for at in open + 1..close {
        match text(at) {
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth = depth.saturating_sub(1),
            ":" if depth == 0 && text(at + 1) != ":" && text(at - 1) != ":" => {
                found.push(text(at - 1).to_owned());
            }
            _ => {}
        }
    }
    found
}

/// The functions in a block.
fn methods(block: &[Token<'_>]) -> BTreeSet<String> {
    let named = block.windows(2).filter(|two| two[0].text == "fn");
    named.map(|two| two[1].text.to_owned()).collect()
}

/// Calls of `self.method(` in a block, with their lines.
fn own_calls(block: &[Token<'_>]) -> Vec<(usize, String)> {
    let calls = block
        .windows(4)
        .filter(|four| four[0].text == "self" && four[1].text == "." && matches!(four[3].text, "(" | ":"));
    calls.map(|four| (four[2].line, four[2].text.to_owned())).collect()
}
