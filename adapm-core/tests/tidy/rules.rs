//! The rules for one file. Each returns breaches as `path:line: what`, so that a reader can go
//! there.

use crate::scan::{self, Token};
use crate::tree::File;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const TEST_MODULE_LINES_MAX: usize = 200;

/// Most columns of a line of prose in a comment; the formatter keeps code to the same.
const COMMENT_COLUMNS_MAX: usize = 100;

/// The only files that may contain `unsafe`.
const UNSAFE_ALLOWED: [&str; 8] = [
    "adapm-runtime/examples/bare-metal/firmware/src/board.rs",
    "adapm-store/src/arena.rs",
    "adapm-store/src/chunk.rs",
    "adapm-store/src/pages.rs",
    "adapm-store/src/wide.rs",
    "adapm-tasks/src/data/spill.rs",
    "adapm-tasks/src/dense/gemm.rs",
    "adapm-tasks/src/simd.rs",
];

/// The only file that may name folders beside a clone.
const PATHS_ALLOWED: &str = ".ci/run";

/// Paths of one machine. Written in two parts, otherwise this file would break its own rule.
const MACHINE_PATHS: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/fa", "rm/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("../sha", "red"),
];

/// Returns all breaches of a file.
pub(crate) fn check(file: &File) -> Vec<String> {
    let mut broken = machine_paths(file);
    if file.is_rust() {
        let code = scan::blank(&file.text);
        let tokens = scan::tokens(&code);
        broken.extend(opening(file));
        broken.extend(sizes(file, &tokens));
        broken.extend(unsafe_code(file, &tokens));
        broken.extend(leftovers(file, &tokens));
        broken.extend(sleeping_tests(file, &tokens));
        broken.extend(panicking_starts(file, &tokens));
        broken.extend(opened_files(file, &tokens));
        broken.extend(wide_comments(file));
    }
    broken
}

fn opening(file: &File) -> Option<String> {
    (!file.text.starts_with("//!"))
        .then(|| at(file, 1, "does not open with `//!`: say what it is, and what not"))
}

fn sizes(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        broken.push(at(file, lines, &format!("{lines} lines, {FILE_LINES_MAX} at most")));
    }
    for function in scan::functions(tokens) {
        let lines = function.lines.clone().count();
        if lines > FUNCTION_LINES_MAX {
            let what =
                format!("`fn {}` has {lines} lines, {FUNCTION_LINES_MAX} at most", function.name);
            broken.push(at(file, *function.lines.start(), &what));
        }
    }
    for module in scan::test_modules(tokens) {
        let lines = module.clone().count();
        if lines > TEST_MODULE_LINES_MAX {
            let what = format!(
                "{lines} lines of inline tests, {TEST_MODULE_LINES_MAX} at most: give them a file"
            );
            broken.push(at(file, *module.start(), &what));
        }
    }
    broken
}

/// Finds comments that the formatter does not wrap. Rows of tables, link targets and code blocks
/// may be wider.
fn wide_comments(file: &File) -> Vec<String> {
    let mut broken = Vec::new();
    let mut in_block = false;
    for (index, line) in file.text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            in_block = false;
            continue;
        };
        let prose = comment.trim_start_matches(['/', '!']).trim_start();
        if prose.starts_with("```") {
            in_block = !in_block;
        }
        let is_prose = !in_block && !prose.starts_with('|') && !prose.starts_with('[');
        let columns = line.chars().count();
        if is_prose && columns > COMMENT_COLUMNS_MAX {
            let what = format!("a comment of {columns} columns, {COMMENT_COLUMNS_MAX} at most");
            broken.push(at(file, index + 1, &what));
        }
    }
    broken
}

fn unsafe_code(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    if UNSAFE_ALLOWED.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = tokens.iter().filter(|token| token.text == "unsafe");
    found
        .map(|token| at(file, token.line, "`unsafe` outside of the files that may have it"))
        .collect()
}

/// Finds ignored tests, examples that are not compiled, and macros of unfinished work.
fn leftovers(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    for three in tokens.windows(3) {
        let [first, second, third] = three else { continue };
        match (first.text, second.text, third.text) {
            ("#", "[", "ignore") => broken.push(at(file, first.line, "an ignored test")),
            ("todo" | "dbg" | "unimplemented", "!", "(") => {
                broken.push(at(file, first.line, &format!("`{}!`", first.text)));
            }
            _ => {}
        }
    }
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if doc.is_some_and(|doc| doc.trim_start().starts_with(concat!("```", "ignore"))) {
            broken.push(at(file, index + 1, "an example that is not compiled"));
        }
    }
    broken
}

fn sleeping_tests(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    let modules = scan::test_modules(tokens);
    let in_test =
        |line: usize| file.is_test() || modules.iter().any(|module| module.contains(&line));
    let found = tokens.iter().filter(|token| token.text == "sleep" && in_test(token.line));
    found.map(|token| at(file, token.line, "a test that sleeps: use virtual time")).collect()
}

/// Finds threads in shipped code that are started by a call that panics where the system refuses
/// one. Not a Clippy lint, which would forbid it in tests, too.
fn panicking_starts(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    let beside = ["/verify/", "/examples/"].iter().any(|folder| file.path.contains(folder));
    let is_shipped = file.path.contains("/src/") && !beside && !file.is_test();
    let modules = scan::test_modules(tokens);
    let in_test = |line: usize| modules.iter().any(|module| module.contains(&line));
    let starts = |tokens: &[Token<'_>]| {
        let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
        matches!(texts[..], ["thread", ":", ":", "spawn"] | ["scope", ".", "spawn", "("])
    };
    let found =
        tokens.windows(4).filter(|four| is_shipped && starts(four) && !in_test(four[0].line));
    found
        .map(|four| {
            at(file, four[0].line, "a start that can panic: use `adapm_transport::threads`")
        })
        .collect()
}

/// Finds users' files that are opened outside the file layer, which compares files written with
/// files read.
fn opened_files(file: &File, tokens: &[Token<'_>]) -> Vec<String> {
    let is_layer = file.path.starts_with("adapm-tasks/src/files/");
    let is_shipped = file.path.starts_with("adapm-tasks/src/") && !is_layer && !file.is_test();
    let modules = scan::test_modules(tokens);
    let in_test = |line: usize| modules.iter().any(|module| module.contains(&line));
    let opens = |tokens: &[Token<'_>]| {
        let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
        matches!(
            texts[..],
            ["File", ":", ":", "open" | "create" | "create_new"]
                | ["fs", ":", ":", "read" | "write" | "copy" | "rename"]
                | ["OpenOptions", ":", ":", _]
        )
    };
    let found =
        tokens.windows(4).filter(|four| is_shipped && opens(four) && !in_test(four[0].line));
    found.map(|four| at(file, four[0].line, "a file opened beside `adapm_tasks::files`")).collect()
}

fn machine_paths(file: &File) -> Vec<String> {
    if file.path == PATHS_ALLOWED {
        return Vec::new();
    }
    let mut broken = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS {
            if line.match_indices(path).any(|(start, _)| starts_a_path(line, start)) {
                broken.push(at(file, index + 1, &format!("`{path}` exists on one machine only")));
            }
        }
    }
    broken
}

/// Returns true if a path can start there: `a/b/` does not contain the path `/b/`.
fn starts_a_path(line: &str, start: usize) -> bool {
    !line[..start].ends_with(|c: char| c.is_alphanumeric() || "_.-/*".contains(c))
}

fn at(file: &File, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", file.path)
}
