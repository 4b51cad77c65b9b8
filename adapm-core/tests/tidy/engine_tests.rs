//! The figures of a small engine.

use crate::engine::{calls_across, drivers, fields_reached, places_of_wants};
use crate::tree::File;

fn engine(texts: &[(&str, &str)]) -> Vec<File> {
    let file = |(path, text): &(&str, &str)| File {
        path: format!("adapm-core/src/engine/{path}"),
        text: (*text).to_owned(),
    };
    texts.iter().map(file).collect()
}

const OWN: (&str, &str) = (
    "mod.rs",
    "pub struct Engine<S, P> { ctx: Ctx<S, P>, intents: Map<u8, (u8, u8)>, late: alloc::vec::Vec<u8> }
     impl<S, P> Engine<S, P> { fn f(&self) { self.g(); self.h() } fn h(&self) {} }",
);

#[test]
fn fields_count_if_another_file_implements_the_engine() {
    assert!(fields_reached(&engine(&[OWN])).is_empty());
    let steps = ("steps.rs", "use super::Engine; impl<S, P> Engine<S, P> { fn g(&self) {} }");
    assert_eq!(fields_reached(&engine(&[OWN, steps])), ["intents", "late"]);
}

#[test]
fn calls_count_if_they_lead_into_another_file() {
    let steps =
        ("steps.rs", "impl<S, P> Engine<S, P> { fn g(&self) { self.f(); self.g(); other.h(); } }");
    let other = ("round.rs", "impl Round { fn h(&self) { self.f(); } }");
    let found = calls_across(&engine(&[OWN, steps, other]));
    let expected =
        ["adapm-core/src/engine/mod.rs:2: Engine.g", "adapm-core/src/engine/steps.rs:1: Engine.f"];
    assert_eq!(found, expected);
}

#[test]
fn a_machine_holds_wants_if_a_collection_of_it_speaks_of_them() {
    let intent = (
        "intent/mod.rs",
        "struct A { all: KeyMap<Interest>, localize: bool } struct B; struct C(Vec<Want>);",
    );
    let round =
        ("round.rs", "struct D<T: Any> { n: usize, wanted: Vec<(Key, [T; 2])>, late: Vec<Key> }");
    let found = places_of_wants(&engine(&[intent, round, ("x.rs", "struct E { intents: usize }")]));
    assert_eq!(format!("{found:?}"), r#"{"intent": ["A.all"], "round": ["D.wanted"]}"#);
}

#[test]
fn whoever_polls_outputs_outside_the_engine_drives_one() {
    let polls = "fn f(e: &mut Engine) { while let Some(o) = e.poll_output() {} }";
    let file = |path: &str| File { path: path.to_owned(), text: polls.to_owned() };
    let paths = [
        "adapm-core/src/engine/mod.rs",
        "adapm-core/tests/a.rs",
        "adapm-core/src/driver.rs",
        "b/examples/c.rs",
    ];
    assert_eq!(drivers(&paths.map(file)), ["adapm-core/src/driver.rs", "b/examples/c.rs"]);
}
