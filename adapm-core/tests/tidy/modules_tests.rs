//! Circles of files, and near misses.

use crate::modules::Modules;
use crate::tree::File;

fn circles(texts: &[(&str, &str)]) -> Vec<Vec<String>> {
    let root = ("a/src/lib.rs", "mod one; mod two;");
    let files: Vec<File> = [root]
        .iter()
        .chain(texts)
        .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect();
    Modules::of(&files, "a/src/").circles()
}

#[test]
fn files_that_name_each_other_are_a_circle() {
    let one = ("a/src/one.rs", "use crate::two::{self, Two}; pub struct One(Two);");
    let two = ("a/src/two/mod.rs", "use super::three::f as g; pub struct Two;");
    let three = ("a/src/three.rs", "pub fn f() -> u8 { crate::one::One::new() }");
    assert_eq!(
        circles(&[one, two, three]),
        [["a/src/one.rs", "a/src/three.rs", "a/src/two/mod.rs"]]
    );
    let apart = ("a/src/three.rs", "pub fn f() -> u8 { crate::four::Four::new() }");
    assert!(circles(&[one, two, apart]).is_empty());
}

#[test]
fn a_parent_that_hands_names_on_depends_on_nothing() {
    let parent = ("a/src/net/mod.rs", "mod send; pub use send::Sender; pub const PACE: u8 = 1;");
    let child = ("a/src/net/send.rs", "use super::PACE; pub struct Sender([u8; PACE]);");
    let user = ("a/src/user.rs", "use crate::net::{Sender, PACE};");
    assert!(circles(&[parent, child, user]).is_empty());
    let using =
        ("a/src/net/mod.rs", "mod send; pub const PACE: u8 = 1; fn f() { send::Sender::new() }");
    assert_eq!(circles(&[using, child]), [["a/src/net/mod.rs", "a/src/net/send.rs"]]);
}

#[test]
fn tests_and_other_crates_make_no_circle() {
    let one = ("a/src/one.rs", "use crate::two::Two; pub struct One; pub mod inner {}");
    let two = (
        "a/src/two.rs",
        "pub struct Two; #[cfg(test)] use crate::one::One; #[cfg(test)] mod tests { use crate::one::One; }",
    );
    assert!(circles(&[one, two]).is_empty());
    let foreign = ("a/src/two.rs", "use b::one::One; pub struct Two(std::one::One);");
    assert!(circles(&[one, foreign]).is_empty());
}
