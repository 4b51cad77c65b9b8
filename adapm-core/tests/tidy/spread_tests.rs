//! Types cut into pieces, and near misses.

use crate::spread;
use crate::tree::File;

fn files(texts: &[(&str, &str)]) -> Vec<File> {
    texts
        .iter()
        .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect()
}

/// Returns the number of files that implement the type `name`.
fn places(texts: &[(&str, &str)], name: &str) -> usize {
    let mut files = files(texts);
    files.extend(
        self::files(&[("a/src/lib.rs", "")]).into_iter().filter(|_| texts[0].0 != "a/src/lib.rs"),
    );
    let found = spread::of(&files, "a/src/");
    found.into_iter().find(|(item, _)| item.name == name).map_or(0, |(_, places)| places.len())
}

#[test]
fn blocks_are_counted_by_the_file_that_defines_the_type() {
    let own = ("a/src/net.rs", "pub struct Net<T>(T); impl<T: Fn(u8) -> u8> Net<T> { fn f() {} }");
    let child = ("a/src/net/send.rs", "use super::Net; impl<T> Send for Net<T> where T: Copy { }");
    let far =
        ("a/src/far.rs", "use crate::{other, net::Net as Network}; impl<'a> Network<&'a str> { }");
    let other =
        ("a/src/other.rs", "struct Net; impl Net { } impl Trait<super::net::Net> for Net { }");
    assert_eq!(places(&[own, child, far, other], "Net"), 3);
    assert_eq!(places(&[own, child, other], "Net"), 2);
}

#[test]
fn tests_macros_and_types_of_others_do_not_count() {
    let own = ("a/src/net.rs", "pub struct Net; impl Net {} fn f(x: impl Copy) -> impl Copy { x }");
    let test = ("a/src/b.rs", "use crate::net::Net; #[cfg(test)] mod tests { impl Net { } }");
    let tests = ("a/src/net/tests.rs", "use super::Net; impl Net { }");
    let made = ("a/src/c.rs", "use crate::net::Net; macro_rules! m { () => { impl Net { } } }");
    let foreign = ("a/src/d.rs", "use b::Net; impl Net { }");
    assert_eq!(places(&[own, test, tests, made, foreign], "Net"), 1);
}

#[test]
fn names_that_are_handed_on_lead_to_their_type() {
    let root = ("a/src/lib.rs", "mod net; pub use net::Net;");
    let own = ("a/src/net/mod.rs", "pub struct Net;");
    let one = ("a/src/one.rs", "use crate::Net; impl Net {}");
    let two = ("a/src/two.rs", "use crate::net::*; impl Net {}");
    let three = ("a/src/three.rs", "impl crate::Net {}");
    assert_eq!(places(&[root, own, one, two, three], "Net"), 3);
}
