//! The figures of a small engine.

use crate::engine::{calls_across, fields_reached};
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
    let steps = ("steps.rs", "impl<S, P> Engine<S, P> { fn g(&self) { self.f(); self.g(); other.h(); } }");
    let other = ("round.rs", "impl Round { fn h(&self) { self.f(); } }");
    let found = calls_across(&engine(&[OWN, steps, other]));
    let expected = ["adapm-core/src/engine/mod.rs:2: Engine.g", "adapm-core/src/engine/steps.rs:1: Engine.f"];
    assert_eq!(found, expected);
}
