//! The public interface of each crate equals the listing in the crate's `docs/api.txt`: a change of
//! it shows as a change of that file.
//!
//! `ADAPM_BLESS=1 cargo test -p adapm-core --test api` rewrites the listings. Output of macros is
//! not seen, only the macros themselves.

mod listing;
mod source;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folders of the crates, below the workspace.
const CRATES: [&str; 6] = [
    "adapm-core",
    "adapm-core/verify",
    "adapm-store",
    "adapm-transport",
    "adapm-runtime",
    "adapm-tasks",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
        .to_owned()
}

#[test]
fn interfaces_are_as_listed() {
    let mut changed = Vec::new();
    for name in CRATES {
        let folder = root().join(name);
        let is = listing::of(&source::read(&folder.join("src")));
        assert!(is.len() > 10, "{name}: the walk has found {is:?} only");
        let is = is.join("\n") + "\n";
        let page = folder.join("docs/api.txt");
        if env::var_os("ADAPM_BLESS").is_some() {
            fs::create_dir_all(folder.join("docs")).expect("a folder for the page");
            fs::write(&page, is).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            continue;
        }
        let was = fs::read_to_string(&page).unwrap_or_default();
        changed.extend(difference(&was, &is).into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(
        changed.is_empty(),
        "the interface is not as listed; if it is meant, ADAPM_BLESS=1 writes it:\n{}",
        changed.join("\n")
    );
}

/// Returns the lines that have gone and the lines that have come.
fn difference(was: &str, is: &str) -> Vec<String> {
    let gone = was
        .lines()
        .filter(|line| !is.lines().any(|other| other == *line))
        .map(|line| format!("- {line}"));
    let come = is
        .lines()
        .filter(|line| !was.lines().any(|other| other == *line))
        .map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

#[test]
fn what_can_be_named_is_listed_and_nothing_else() {
    let text = r#"
        mod hidden {
            /// Reached by its second name alone.
            pub struct Seen<T> { pub field: u8, secret: T }
            impl<T> Seen<T> {
                pub fn new(
                    field: u8,
                    secret: T,
                ) -> Self { Self { field, secret } }
                fn own(&self) {}
            }
            impl Clone for Seen<u8> { fn clone(&self) -> Self { loop {} } }
            pub struct Unseen;
        }
        pub use hidden::Seen;
        pub(crate) fn inner() {}
        pub mod open {
            pub use std::time::Duration;
            #[derive(Debug, thiserror::Error)]
            pub enum Choice { One, Two(#[from] u8) }
            pub trait Way { const N: usize; fn go(&self) -> usize { 1 } }
            #[cfg(test)]
            pub fn only_in_tests() {}
        }
        #[macro_export]
        macro_rules! shout { () => {}; }
    "#;
    let expected = [
        "impl Clone for Seen<u8>",
        "impl From<u8> for Choice",
        "macro shout!",
        "mod open",
        "open::Choice: derives Debug, Error",
        "open::Choice: enum Choice",
        "open::Choice::One",
        "open::Choice::Two(u8)",
        "open::Duration: use std::time::Duration",
        "open::Way: trait Way",
        "open::Way: const N: usize",
        "open::Way: fn go(&self) -> usize { .. }",
        "Seen: struct Seen<T>",
        "Seen: field field: u8",
        "Seen: fn new(field: u8, secret: T) -> Self",
    ];
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(listing::of(&source::parse(text)), expected);
}
