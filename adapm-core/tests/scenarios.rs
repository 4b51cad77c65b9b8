//! Plays every story of `tests/scenarios`: its output must equal the file.
//!
//! `ADAPM_BLESS=1 cargo test -p adapm-core --test scenarios` writes the output into the files.

use std::path::PathBuf;
use std::{env, fs};

use adapm_verify::script;

/// Stories that must exist: one for each figure of a paper, and for systems without one.
const FIGURES: [&str; 15] = [
    "lapse_fig_4",
    "lapse_fig_5",
    "adapm_fig_4b",
    "adapm_fig_4c",
    "adapm_fig_4d",
    "adapm_fig_10b",
    "adapm_fig_11",
    "nups",
    "parallax",
    "ssp",
    "essp",
    "het_gmp",
    "bsp",
    "bounded_delay",
    "eventual",
];

#[test]
fn stories_go_as_told() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut stories: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of scenarios is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    stories.sort();
    for story in &stories {
        let told = fs::read_to_string(story).expect("a scenario is a text");
        let happens =
            script::play(&told).unwrap_or_else(|fault| panic!("{}: {fault}", story.display()));
        if env::var_os("ADAPM_BLESS").is_some() {
            fs::write(story, happens).expect("a scenario can be written");
        } else {
            assert_eq!(told, happens, "{}: left is told, right happens", story.display());
        }
    }
    for figure in FIGURES {
        assert!(
            stories.contains(&folder.join(format!("{figure}.txt"))),
            "{figure} has no scenario"
        );
    }
}

#[test]
fn a_story_that_goes_otherwise_is_noticed() {
    let told = "nodes 2\nkey a home n0\nshow a\n> n0 main copy r7: initial\n";
    assert_ne!(script::play(told).as_deref(), Ok(told));
}

#[test]
fn an_unreadable_line_is_named() {
    let fault =
        script::play("nodes 2\nkey a home n0\nn1 w0 fetch a\n").expect_err("fetch is no command");
    assert!(fault.starts_with("line 3: n1 w0 fetch a: expected "), "{fault}");
}
