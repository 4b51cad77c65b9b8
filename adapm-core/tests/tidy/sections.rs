//! Every section of the papers that the protocol rests on leads, by a plain text search, to its
//! code and to a test.
//!
//! Only the citations in files are checked here; their truth is up to the reader.

use crate::scan;
use crate::tree::File;

/// The sections, as they are cited.
pub(crate) const SECTIONS: [&str; 19] = [
    "AdaPM §3",
    "AdaPM §4.1",
    "AdaPM §4.2.1",
    "AdaPM §4.2.2",
    "AdaPM Alg. 1",
    "AdaPM §B.1.1",
    "AdaPM §B.1.2",
    "AdaPM §B.2.1",
    "AdaPM §B.2.2",
    "AdaPM §B.2.3",
    "AdaPM §B.2.4",
    "Lapse §3.2",
    "Lapse §3.3",
    "Lapse §3.4",
    "Lapse §3.5",
    "NuPS §3",
    "AdaPM §A.3",
    "HET-GMP §5.2",
    "HET-GMP §5.3",
];

/// The files that cite a section.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cited {
    pub(crate) code: Vec<String>,
    pub(crate) tests: Vec<String>,
}

/// Returns the files that cite `section`, classified by line: an inline test module is a test.
pub(crate) fn cited(section: &str, files: &[File]) -> Cited {
    let mut found = Cited::default();
    for file in files {
        // Neither this list nor test infrastructure nor a fuzz target is code or a test of a
        // section.
        let apart = file.path.starts_with("fuzz/")
            || file.path.contains("/tests/tidy/")
            || file.path.starts_with("adapm-core/verify/src/");
        if apart || !mentions(&file.text, section) {
            continue;
        }
        if file.is_test() {
            found.tests.push(file.path.clone());
        } else if file.is_rust() && file.path.contains("/src/") {
            let (code, tests) = cited_lines(&file.text, section);
            found.code.extend(code.then(|| file.path.clone()));
            found.tests.extend(tests.then(|| file.path.clone()));
        }
    }
    found
}

/// Returns true if code cites `section`, then true if an inline test module does.
fn cited_lines(text: &str, section: &str) -> (bool, bool) {
    let code = scan::blank(text);
    let modules = scan::test_modules(&scan::tokens(&code));
    let mut found = (false, false);
    for (index, line) in text.lines().enumerate() {
        if mentions(line, section) {
            let in_test = modules.iter().any(|module| module.contains(&(index + 1)));
            found.0 |= !in_test;
            found.1 |= in_test;
        }
    }
    found
}

/// Returns true if the section is mentioned: `§4.2` is neither `§4.2.1` nor `§4.21`; the dot that
/// ends a sentence is not part of it.
fn mentions(text: &str, section: &str) -> bool {
    text.match_indices(section).any(|(start, _)| {
        let mut rest = text[start + section.len()..].chars();
        match rest.next() {
            Some('.') => !rest.next().is_some_and(|c| c.is_ascii_digit()),
            Some(c) => !c.is_ascii_digit(),
            None => true,
        }
    })
}
