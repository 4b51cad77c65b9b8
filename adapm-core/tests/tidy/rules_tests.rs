//! Every rule on a file that breaks it and on its nearest neighbour that does not: a rule that
//! finds nothing is useless.

use crate::rules::check;
use crate::tree::File;

fn broken(path: &str, text: &str) -> Vec<String> {
    check(&File { path: path.to_owned(), text: text.to_owned() })
}

#[track_caller]
fn assert_one(path: &str, text: &str, line: usize, what: &str) {
    let found = broken(path, text);
    assert_eq!(found.len(), 1, "{found:?}");
    let start = format!("{path}:{line}: ");
    assert!(found[0].starts_with(&start) && found[0].contains(what), "{found:?}");
}

#[track_caller]
fn assert_none(path: &str, text: &str) {
    assert_eq!(broken(path, text), Vec::<String>::new());
}

#[test]
fn a_file_opens_with_its_subject() {
    assert_one("adapm-core/src/a.rs", "// x\nfn f() {}\n", 1, "//!");
    assert_none("adapm-core/src/a.rs", "//! x\nfn f() {}\n");
    assert_none("README.md", "# adapm\n");
}

#[test]
fn a_file_has_600_lines() {
    assert_none("fuzz/src/a.rs", &format!("//! x\n{}", "\n".repeat(599)));
    assert_one("fuzz/src/a.rs", &format!("//! x\n{}", "\n".repeat(600)), 601, "601 lines");
    assert_one("fuzz/tests/a.rs", &format!("//! x\n{}", "\n".repeat(600)), 601, "601 lines");
}

#[test]
fn a_function_has_70_lines() {
    let function = |lines: usize| format!("//! x\nfn long() {{{}}}\n", "\n".repeat(lines - 1));
    assert_none("adapm-store/src/a.rs", &function(70));
    assert_one("adapm-store/src/a.rs", &function(71), 2, "`fn long` has 71 lines");
}

#[test]
fn inline_tests_have_200_lines() {
    let module =
        |lines: usize| format!("//! x\n#[cfg(test)]\nmod tests {{{}}}\n", "\n".repeat(lines - 2));
    assert_none("adapm-store/src/a.rs", &module(200));
    assert_one("adapm-store/src/a.rs", &module(201), 2, "201 lines of inline tests");
}

#[test]
fn unsafe_stays_in_its_files() {
    let text = "//! x\n#![deny(unsafe_code)]\n// unsafe\nfn f() { unsafe { g() } }\n";
    assert_one("adapm-store/src/dense.rs", text, 4, "`unsafe`");
    assert_none("adapm-store/src/arena.rs", text);
}

#[test]
fn unfinished_work_is_found() {
    assert_one(
        "adapm-core/tests/a.rs",
        concat!("//! x\n#[test]\n#[igno", "re]\nfn f() {}\n"),
        3,
        "ignored",
    );
    assert_one("adapm-core/src/a.rs", concat!("//! x\nfn f() { to", "do!() }\n"), 2, "`todo!`");
    assert_one("adapm-core/src/a.rs", concat!("//! x\nfn f() { db", "g!(1); }\n"), 2, "`dbg!`");
    assert_one(
        "adapm-core/src/a.rs",
        concat!("//! x\n/// ```", "ignore\n/// ```\nfn f() {}\n"),
        2,
        "not compiled",
    );
    assert_none("adapm-core/src/a.rs", concat!("//! x\n// to", "do!()\nfn todo() { ignore() }\n"));
}

#[test]
fn no_shipped_thread_is_started_by_a_call_that_panics() {
    for start in ["std::thread::spawn(f)", "scope.spawn(f)"] {
        let text = format!("//! x\nfn f() {{ {start} }}\n");
        assert_one("adapm-tasks/src/a.rs", &text, 2, "can panic");
        assert_none("adapm-tasks/tests/a.rs", &text);
        assert_none("adapm-core/verify/src/suite.rs", &text);
        let inline = format!("//! x\n#[cfg(test)]\nmod tests {{\n    fn f() {{ {start} }}\n}}\n");
        assert_none("adapm-tasks/src/a.rs", &inline);
    }
    assert_none(
        "adapm-tasks/src/a.rs",
        "//! x\nfn f() { threads::spawn(a, f); command.spawn() }\n",
    );
}

#[test]
fn files_of_users_are_opened_in_one_place() {
    for call in [
        "File::create(path)",
        "std::fs::write(path, bytes)",
        "OpenOptions::new()",
        "fs::read(path)",
    ] {
        let text = format!("//! x\nfn f() {{ {call} }}\n");
        assert_one("adapm-tasks/src/cli/train.rs", &text, 2, "beside");
        assert_none("adapm-tasks/src/files/output.rs", &text);
        assert_none("adapm-tasks/tests/cli/files.rs", &text);
        assert_none("adapm-transport/src/a.rs", &text);
    }
    assert_none(
        "adapm-tasks/src/a.rs",
        "//! x\nfn f() { files::read(p); fs::read_to_string(STATUS) }\n",
    );
}

#[test]
fn tests_do_not_sleep() {
    let text = concat!("//! x\nfn f() { std::thread::", "sleep(d) }\n");
    assert_one("adapm-runtime/tests/a.rs", text, 2, "sleeps");
    assert_one("adapm-runtime/src/worker/tests.rs", text, 2, "sleeps");
    assert_none("adapm-runtime/src/channel.rs", text);
    let inline = "//! x\n#[cfg(test)]\nmod tests {\n    fn f() { sleep(d) }\n}\n";
    assert_one("adapm-runtime/src/channel.rs", inline, 4, "sleeps");
}

#[test]
fn comments_are_as_wide_as_code() {
    let wide = "a ".repeat(60);
    assert_one(
        "adapm-core/src/a.rs",
        &format!(
            "//! x
    /// {wide}
"
        ),
        2,
        "columns",
    );
    assert_one(
        "adapm-core/src/a.rs",
        &format!(
            "//! x
//! ```
//! ```
// {wide}
"
        ),
        4,
        "columns",
    );
    assert_none(
        "adapm-core/src/a.rs",
        &format!(
            "//! x
//! | {wide} |
//! ```
//! {wide}
//! ```
"
        ),
    );
    assert_none(
        "adapm-core/src/a.rs",
        &format!(
            "//! {}
",
            "§".repeat(96)
        ),
    );
}

#[test]
fn paths_of_one_machine_are_found() {
    assert_one("README.md", concat!("see\n`/wo", "rk/x`\n"), 2, "one machine");
    assert_one("adapm-tasks/src/a.rs", concat!("//! ../sha", "red/data\n"), 1, "one machine");
    assert_none(".ci/run", concat!("../sha", "red/data\n"));
    assert_none("README.md", concat!("a/wo", "rk/x and net/ho", "me/\n"));
}
