//! Figures of the engine: cross-references between its files, places that hold wanted keys,
//! drivers.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan::{self, Token};
use crate::spread;
use crate::tree::File;

/// Where the engine is.
const FOLDER: &str = "adapm-core/src/engine/";
/// Most fields that other files may reach, apart from the context.
pub(crate) const FIELDS_MAX: usize = 7;
/// Most calls from one file of an object into another of its files.
pub(crate) const CALLS_MAX: usize = 45;
/// Most machines that hold wanted keys: that of intent, and that of requests in flight.
pub(crate) const PLACES_OF_WANTS_MAX: usize = 2;
/// Most files that drive an engine.
pub(crate) const DRIVERS_MAX: usize = 1;

/// Returns the fields of the engine, apart from its context, if a file beside its own implements
/// it: each of these can reach all of them.
pub(crate) fn fields_reached(files: &[File]) -> Vec<String> {
    let is_own = |file: &&File| file.path == format!("{FOLDER}mod.rs");
    let Some(own) = files.iter().find(is_own) else { return Vec::new() };
    let elsewhere = sources(files).filter(|file| !is_own(file));
    let reached = elsewhere.into_iter().any(|file| {
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        spread::blocks(&tokens)
            .iter()
            .any(|block| block.path.last().is_some_and(|name| name == "Engine"))
    });
    if !reached {
        return Vec::new();
    }
    let code = scan::blank(&own.text);
    let fields = fields(&scan::without_tests(&scan::tokens(&code)));
    let of_engine =
        fields.into_iter().filter(|field| field.structure == "Engine" && field.name != "ctx");
    of_engine.map(|field| field.name).collect()
}

/// Returns the machines that hold, by key, what this node wants: each with its collection fields
/// whose names contain intent, interest, localizes or wants.
pub(crate) fn places_of_wants(files: &[File]) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for file in sources(files) {
        let machine = file.path[FOLDER.len()..].split(['/', '.']).next().unwrap_or_default();
        let code = scan::blank(&file.text);
        for field in fields(&scan::without_tests(&scan::tokens(&code))) {
            let said = format!("{} {}", field.name, field.kind).to_lowercase();
            let is_of_wants = ["intent", "interest", "localize", "want", "wish"]
                .iter()
                .any(|word| said.contains(word));
            if is_of_wants && field.kind.contains('<') {
                let name = format!("{}.{}", field.structure, field.name);
                found.entry(machine.to_owned()).or_default().push(name);
            }
        }
    }
    found
}

/// Returns the files that drive an engine, which are those that poll its outputs, tests excluded.
pub(crate) fn drivers(files: &[File]) -> Vec<String> {
    let product = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test() && !file.path.starts_with(FOLDER));
    let polls = product.filter(|file| {
        let code = scan::blank(&file.text);
        let tokens = scan::without_tests(&scan::tokens(&code));
        tokens.windows(2).any(|two| two[0].text == "." && two[1].text == "poll_output")
    });
    polls.map(|file| file.path.clone()).collect()
}

/// Returns calls of a method of an object in another file than its own, as `path:line:
/// type.method`.
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

/// A field of a structure: the structure, its name, its type.
struct Field {
    structure: String,
    name: String,
    kind: String,
}

/// Returns the named fields of all structures.
fn fields(tokens: &[Token<'_>]) -> Vec<Field> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found: Vec<Field> = Vec::new();
    for start in (0..tokens.len()).filter(|at| text(*at) == "struct") {
        let Some(open) = (start..tokens.len()).find(|at| matches!(text(*at), "{" | ";" | "("))
        else {
            break;
        };
        let Some(close) = scan::closing(tokens, open).filter(|_| text(open) == "{") else {
            continue;
        };
        let (mut depth, mut is_type) = (0_usize, false);
        for at in open + 1..close {
            match text(at) {
                "<" | "(" | "[" => depth += 1,
                ">" | ")" | "]" => depth = depth.saturating_sub(1),
                "," if depth == 0 => is_type = false,
                ":" if depth == 0 && !is_type => {
                    let (structure, name) = (text(start + 1).to_owned(), text(at - 1).to_owned());
                    found.push(Field { structure, name, kind: String::new() });
                    is_type = true;
                    continue;
                }
                _ => {}
            }
            if is_type && let Some(field) = found.last_mut() {
                field.kind.push_str(text(at));
            }
        }
    }
    found
}

/// Returns the functions in a block.
fn methods(block: &[Token<'_>]) -> BTreeSet<String> {
    let named = block.windows(2).filter(|two| two[0].text == "fn");
    named.map(|two| two[1].text.to_owned()).collect()
}

/// Returns calls of `self.method(` in a block, with their lines.
fn own_calls(block: &[Token<'_>]) -> Vec<(usize, String)> {
    let calls = block.windows(4).filter(|four| {
        four[0].text == "self" && four[1].text == "." && matches!(four[3].text, "(" | ":")
    });
    calls.map(|four| (four[2].line, four[2].text.to_owned())).collect()
}
