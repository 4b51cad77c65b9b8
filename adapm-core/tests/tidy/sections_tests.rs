//! The search for citations on texts that nearly cite.

use crate::sections::{Cited, cited};
use crate::tree::File;

fn found(path: &str, text: &str) -> Cited {
    cited("AdaPM §4.1", &[File { path: path.to_owned(), text: text.to_owned() }])
}

fn code(path: &str) -> Cited {
    Cited { code: vec![path.to_owned()], tests: Vec::new() }
}

fn test(path: &str) -> Cited {
    Cited { code: Vec::new(), tests: vec![path.to_owned()] }
}

#[test]
fn a_section_is_cited_by_its_whole_name() {
    let path = "adapm-core/src/a.rs";
    for text in ["//! AdaPM §4.1", "//! (AdaPM §4.1, §4.2)", "//! see AdaPM §4.1.\n"] {
        assert_eq!(found(path, text), code(path), "{text}");
    }
    for text in ["//! AdaPM §4.1.2", "//! AdaPM §4.12", "//! AdaPM §4, §4.1", "//! Lapse §4.1"]
    {
        assert_eq!(found(path, text), Cited::default(), "{text}");
    }
}

#[test]
fn code_and_tests_are_told_apart() {
    assert_eq!(
        found("adapm-core/tests/paper/a.rs", "//! AdaPM §4.1"),
        test("adapm-core/tests/paper/a.rs")
    );
    assert_eq!(
        found("adapm-core/tests/scenarios/a.txt", "# AdaPM §4.1"),
        test("adapm-core/tests/scenarios/a.txt")
    );
    assert_eq!(
        found("adapm-core/src/a/tests.rs", "//! AdaPM §4.1"),
        test("adapm-core/src/a/tests.rs")
    );
    let path = "adapm-core/src/a.rs";
    assert_eq!(found(path, "//! x\n#[cfg(test)]\nmod tests {\n    // AdaPM §4.1\n}\n"), test(path));
    let both = "//! AdaPM §4.1\n#[cfg(test)]\nmod tests {\n    // AdaPM §4.1\n}\n";
    assert_eq!(
        found(path, both),
        Cited { code: vec![path.to_owned()], tests: vec![path.to_owned()] }
    );
}

#[test]
fn pages_and_the_list_itself_do_not_count() {
    for path in ["adapm-core/docs/a.md", "adapm-core/tests/tidy/a.rs", "adapm-core/verify/src/a.rs"]
    {
        assert_eq!(found(path, "//! AdaPM §4.1"), Cited::default(), "{path}");
    }
}
