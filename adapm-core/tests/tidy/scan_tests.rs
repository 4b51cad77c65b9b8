//! The scanner on sources that would mislead a simple count of braces.

use super::scan::{Function, blank, functions, test_modules, tokens};

fn names(source: &str) -> Vec<String> {
    let code = blank(source);
    tokens(&code).iter().map(|token| token.text.to_owned()).collect()
}

fn functions_of(source: &str) -> Vec<(String, usize, usize)> {
    let code = blank(source);
    let found = functions(&tokens(&code));
    found.into_iter().map(|Function { name, lines }| (name, *lines.start(), *lines.end())).collect()
}

#[test]
fn comments_leave_only_their_lines() {
    assert_eq!(names("a // unsafe {\nb /* x /* nested */ { */ c"), ["a", "b", "c"]);
    assert_eq!(blank("a /* 1\n2 */ b").lines().count(), 2);
    assert_eq!(names("/// doc {\n//! doc }\nfn"), ["fn"]);
    assert_eq!(names("a /* never closed {"), ["a"]);
}

#[test]
fn strings_hide_what_they_hold() {
    assert_eq!(names(r#"f("}", b"{", c"{") + 1"#), ["f", "(", ",", "b", ",", "c", ")", "+", "1"]);
    assert_eq!(names(r#"f("a \" { // no comment") ; g"#), ["f", "(", ")", ";", "g"]);
    assert_eq!(names("f(\"two\\\n{ lines\") g"), ["f", "(", ")", "g"]);
    assert_eq!(names("a \"never closed {"), ["a"]);
}

#[test]
fn raw_strings_end_at_their_own_hashes() {
    assert_eq!(names(r####"a r"\" b"####), ["a", "b"]);
    assert_eq!(names(r####"a r##"x "# { "## b"####), ["a", "b"]);
    assert_eq!(names(r####"a br#"{"# b cr#"}"# c"####), ["a", "b", "c"]);
    assert_eq!(names("r#type bar"), ["r", "#", "type", "bar"]);
}

#[test]
fn characters_differ_from_lifetimes() {
    assert_eq!(
        names(r"f('{', '\'', '\\', '\u{7d}', b'}') g"),
        "f ( , , , , b ) g".split(' ').collect::<Vec<_>>()
    );
    assert_eq!(
        names("fn f<'a>(x: &'a str) -> &'static str"),
        "fn f < > ( x : & str ) - > & str".split(' ').collect::<Vec<_>>()
    );
    assert_eq!(names("'outer: loop { break 'outer; }"), [":", "loop", "{", "break", ";", "}"]);
    assert_eq!(names("'\"' a '\"' b"), ["a", "b"]);
}

#[test]
fn functions_run_from_fn_to_the_closing_brace() {
    let source = "pub fn one() {\n    two(|x| { x });\n}\n\nfn two(\n    a: [u8; { 1 + 1 }],\n) -> Lanes<{ N }>\nwhere\n    A: B,\n{\n}\n";
    assert_eq!(functions_of(source), [("one".to_owned(), 1, 3), ("two".to_owned(), 5, 11)]);
}

#[test]
fn signatures_without_a_body_and_pointers_are_no_functions() {
    assert_eq!(
        functions_of("trait T { fn a(&self); fn b(x: fn(u8) -> u8) -> u8; }\nfn c() {}"),
        [("c".to_owned(), 2, 2)]
    );
    assert_eq!(functions_of("type F = fn(u8) -> u8;\nimpl X for fn() {}\n"), []);
}

#[test]
fn nested_and_macro_written_functions_are_found() {
    let source = "fn a() {\n fn b() {\n }\n}\nmacro_rules! m { ($n:ident) => { fn $n() {\n\n} } }";
    assert_eq!(
        functions_of(source),
        [("a".to_owned(), 1, 4), ("b".to_owned(), 2, 3), ("$".to_owned(), 5, 7)]
    );
}

#[test]
fn test_modules_are_found_behind_attributes() {
    let of = |source: &str| test_modules(&tokens(&blank(source)));
    assert_eq!(of("#[cfg(test)]\nmod tests {\n}\n"), [1..=3]);
    assert_eq!(of("#[cfg(all(test, not(adapm_loom)))]\nmod tests {\n}\n"), [1..=3]);
    assert_eq!(
        of(
            "\n#[cfg(all(test, feature = \"x\"))]\n#[expect(y, reason = \"]\")]\npub(crate) mod t {\n}"
        ),
        [2..=5]
    );
    assert_eq!(
        of("#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse a;\n#[cfg(not(test))]\nmod b { }"),
        []
    );
}
