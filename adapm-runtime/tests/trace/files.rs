//! Invalid trace files, or files of different runs: refused with the line.

use adapm_core::home::HomeMap;
use adapm_core::{Instant, Key, NodeId};
use adapm_runtime::trace::{MergeError, Trace, TraceError, TraceFault, TraceHead, Tracer};
use proptest::prelude::*;

use crate::Page;

const HEAD: &str = "adapm trace 2\nnodes 2\nsystem adapm\norigin 10\nkey k7 seven\n";

fn fault(text: &str) -> Option<(u64, TraceFault)> {
    match Trace::read(text.as_bytes()) {
        Ok(_) => None,
        Err(TraceError::Line { line, fault }) => Some((line, fault)),
        Err(error) => panic!("memory can be read: {error}"),
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    use TraceFault::{
        Backwards, BehindTheEnd, Head, Impossible, NoText, NotATrace, TooManyNodes, Unknown,
        UnknownKey, UnknownNode,
    };
    let tails = [
        ("", None),
        ("# a remark\n", None),
        ("5 k7 n1 main-arrived\n4 k7 n0 intent-active\n9 end\n", None),
        ("5 k7 n1 main-arrived\n4 k7 n1 intent-act", None),
        ("nodes 2\n", Some((6, Head))),
        ("5 mark x\nkey k8 y\n", Some((7, Head))),
        ("colour red\n", Some((6, Unknown))),
        ("5 k7 n1\n", Some((6, Unknown))),
        ("5 k7 n1 main-arrived n0\n", Some((6, Unknown))),
        ("5 k7 n1 main-left\n", Some((6, Unknown))),
        ("5 k7 n1 main-left n+1\n", Some((6, Unknown))),
        ("+5 k7 n1 main-arrived\n", Some((6, Unknown))),
        ("\n", Some((6, Unknown))),
        ("5 k8 n1 main-arrived\n", Some((6, UnknownKey(Key(8))))),
        ("5 k7 n2 main-arrived\n", Some((6, UnknownNode(NodeId(2))))),
        ("5 k7 n1 replica-set-up n2\n", Some((6, UnknownNode(NodeId(2))))),
        ("5 k7 n1 main-arrived\n5 k7 n1 main-arrived\n", Some((7, Impossible))),
        ("5 k7 n1 replica-dropped\n", Some((6, Impossible))),
        ("5 k7 n1 intent-expired\n", Some((6, Impossible))),
        ("5 k7 n1 intent-active\n4 k7 n1 intent-expired\n", Some((7, Backwards))),
        ("5 end\n6 end\n", Some((7, BehindTheEnd))),
    ];
    for (tail, expected) in tails {
        assert_eq!(fault(&format!("{HEAD}{tail}")), expected, "{tail:?}");
    }
    assert_eq!(fault(""), Some((1, NotATrace)));
    assert_eq!(fault("adapm trace 3\n"), Some((1, NotATrace)));
    assert_eq!(fault("adapm trace 2\nnodes 2\n"), Some((3, Head)));
    assert_eq!(fault("adapm trace 2\nnodes 0\n"), Some((2, TooManyNodes)));
    assert_eq!(fault("adapm trace 2\nnodes 99999999\n"), Some((2, TooManyNodes)));
    assert_eq!(fault(&format!("{HEAD}{}", "x".repeat(5_000))), Some((6, NoText)));
    let bytes = [HEAD.as_bytes(), b"\xff\xfe\n"].concat();
    assert!(matches!(
        Trace::read(bytes.as_slice()),
        Err(TraceError::Line { line: 6, fault: NoText })
    ));
}

#[test]
fn what_was_cut_off_is_as_if_it_had_not_happened() {
    let text = format!("{HEAD}5 k7 n1 main-arrived\n8 k7 n1 intent-active\n9 k7 n1 inten");
    let trace = Trace::read(text.as_bytes()).expect("the rest is sound");
    assert!(!trace.is_complete());
    assert_eq!((trace.events().len(), trace.end().nanos()), (2, 8));
}

#[test]
fn names_of_any_length_are_written_so_that_they_can_be_read() {
    let long = "\u{1f98a}".repeat(5_000);
    let page = Page::default();
    let tracer = Tracer::new(page.clone(), [(Key(u64::MAX), long.clone())]);
    tracer.begin(&TraceHead {
        homes: HomeMap::scale(65_536),
        part: None,
        run: 0,
        system: long.clone(),
        origin: u64::MAX,
    });
    tracer.mark_at(Instant::from_nanos(u64::MAX), &long);
    tracer.finish().expect("memory takes everything");
    let trace = page.read();
    let told = [&trace.keys()[0].1, &trace.marks()[0].text, trace.system()]
        .map(|text| text.chars().count());
    assert_eq!(told, [1_000; 3], "the beginning of each is there");
}

#[test]
fn parts_meet_by_their_run_whatever_their_clocks_say() {
    let part = |node: u16, run: u64, origin: u64, tail: &str| {
        let text = format!(
            "adapm trace 2\nnodes 2\npart n{node}\nrun {run:016x}\nsystem adapm\norigin {origin}\nkey k7 seven\n{tail}"
        );
        Trace::read(text.as_bytes()).expect("a sound part")
    };
    let first =
        || part(0, 7, 90_000_000_000, "0 k7 n0 main-arrived\n400 k7 n0 main-left n1\n600 end\n");
    // The clock of n1 is far behind.
    let second = || part(1, 7, 1_200, "100 k7 n1 intent-active\n450 k7 n1 main-arrived\n700 end\n");
    let merged = Trace::merge(vec![second(), first()]).expect("parts of one run");
    let events: Vec<String> = merged.events().iter().map(ToString::to_string).collect();
    let expected = [
        "0 k7 n0 main-arrived",
        "100 k7 n1 intent-active",
        "400 k7 n0 main-left n1",
        "450 k7 n1 main-arrived",
    ];
    assert_eq!(events, expected);
    assert_eq!((merged.parts(), merged.end().nanos()), ([NodeId(0), NodeId(1)].as_slice(), 700));
    assert_eq!(
        (merged.run(), merged.origin()),
        (Some(7), 90_000_000_000),
        "the origin is that of n0"
    );
    assert!(merged.is_complete());

    let whole = || Trace::read(HEAD.as_bytes()).expect("sound");
    assert_eq!(Trace::merge(vec![whole()]).as_ref(), Ok(&whole()));
    assert_eq!(Trace::merge(vec![first(), whole()]), Err(MergeError::Whole(1)));
    assert_eq!(Trace::merge(vec![first(), first()]), Err(MergeError::Twice(NodeId(0))));
    // Written at the same time, as far as clocks tell.
    let other = part(1, 8, 90_000_000_000, "5 end\n");
    assert_eq!(Trace::merge(vec![first(), other]), Err(MergeError::OtherRun(NodeId(1))));
    assert_eq!(Trace::merge(Vec::new()), Err(MergeError::Nothing));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(lines in prop::collection::vec(line(), 0..40)) {
        let text = HEAD.to_owned() + &lines.join("\n");
        if let Ok(trace) = Trace::read(text.as_bytes()) {
            for spans in trace.spans(Key(7)) {
                for span in spans.main.iter().chain(&spans.replica).chain(&spans.intent) {
                    prop_assert!(span.start <= span.end && span.end <= trace.end());
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Trace::read(bytes.as_slice());
        let _ = Trace::read([HEAD.as_bytes(), &bytes].concat().as_slice());
    }
}

/// Generates mostly plausible lines.
fn line() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "main-arrived",
        "main-left n0",
        "replica-set-up n1",
        "replica-dropped",
        "intent-active",
        "intent-expired",
        "mark",
        "end",
        "key k7",
        "",
    ]);
    (0_u64..50, 0_u16..3, word).prop_map(|(at, node, word)| format!("{at} k7 n{node} {word}"))
}
