//! One kind of fault after the other, and all together.

use std::time::Duration;

use adapm_transport::net::Kind;

use crate::crowd::{Outcome, run};
use crate::support::{Counts, Faults};

/// Shows the figures of a run (`cargo test -- --nocapture`).
fn show(what: &str, outcome: &Outcome) {
    println!("{what}: {outcome:?}");
}

/// Resets connections until there were `resets` of them, and a tenth as many within a packet's
/// content.
fn resets(kind: Kind, seed: u64, resets: u64) -> Outcome {
    let faults = Faults { cut_after: Some(1..200_000), chunk_max: 9_000, ..Faults::none(seed) };
    let is_enough = |counts: &Counts| counts.resets >= resets && counts.inside_body >= resets / 10;
    let outcome = run(kind, &faults, is_enough);
    show(kind.scheme(), &outcome);
    outcome
}

#[test]
fn a_thousand_resets_lose_and_double_nothing() {
    let outcome = resets(Kind::Tcp, 1, 1_000);
    assert!(outcome.counts.resets >= 1_000 && outcome.counts.inside_body >= 100, "{outcome:?}");
    // Frames in flight had to be sent again.
    assert!(outcome.repeated > 0 && outcome.resumes > 100 && outcome.frames > 1_000, "{outcome:?}");
}

#[test]
fn connections_that_end_in_order_are_resumed_too() {
    let faults = Faults { cut_after: Some(1..100_000), reset_percent: 0, ..Faults::none(2) };
    let outcome = run(Kind::Tcp, &faults, |counts| counts.ends >= 300);
    show("ends", &outcome);
    assert!(outcome.resumes > 30, "{outcome:?}");
}

#[test]
fn bytes_that_come_one_by_one_and_late_make_the_same_frames() {
    let faults = Faults { chunk_max: 13, delay_max: Duration::from_micros(200), ..Faults::none(3) };
    let outcome = run(Kind::Tcp, &faults, |counts| counts.bytes >= 2_000_000);
    show("pieces", &outcome);
    assert_eq!((outcome.resumes, outcome.repeated), (0, 0), "{outcome:?}");
}

#[test]
fn a_flipped_bit_costs_a_connection_and_nothing_else() {
    let faults = Faults { flip_every: Some(100_000), ..Faults::none(4) };
    let outcome = run(Kind::Tcp, &faults, |counts| counts.flips >= 200);
    show("flips", &outcome);
    assert!(outcome.resumes > 30, "{outcome:?}");
}

#[test]
fn all_faults_together_lose_and_double_nothing() {
    let faults = Faults {
        cut_after: Some(1..400_000),
        reset_percent: 60,
        chunk_max: 3_000,
        delay_max: Duration::from_micros(500),
        flip_every: Some(400_000),
        hold: Some(Duration::from_millis(50)),
        ..Faults::none(5)
    };
    let is_enough = |counts: &Counts| {
        counts.resets >= 200 && counts.ends >= 100 && counts.flips >= 40 && counts.holds >= 40
    };
    let outcome = run(Kind::Tcp, &faults, is_enough);
    show("all", &outcome);
    assert!(outcome.resumes > 30, "{outcome:?}");
}

/// Tampers with bytes until `times` were changed.
fn tampered(kind: Kind, seed: u64, times: u64) {
    let faults = Faults { flip_every: Some(20_000), tampers: true, ..Faults::none(seed) };
    let outcome = run(kind, &faults, |counts| counts.flips >= times);
    show(&format!("{kind}, tampered with"), &outcome);
    assert!(outcome.resumes > times / 20, "{outcome:?}");
}

#[test]
fn whoever_is_on_the_way_changes_nothing_over_tcp() {
    tampered(Kind::Tcp, 8, 400);
}

#[test]
fn whoever_is_on_the_way_changes_nothing_over_unix_sockets() {
    tampered(Kind::Unix, 9, 250);
}

#[cfg(feature = "tokio")]
#[test]
fn whoever_is_on_the_way_changes_nothing_over_tokio() {
    tampered(Kind::Tokio, 10, 250);
}

#[cfg(feature = "zmq")]
#[test]
fn whoever_is_on_the_way_changes_nothing_over_zeromq() {
    tampered(Kind::Zmq, 11, 100);
}

#[cfg(feature = "tokio")]
#[test]
fn resets_lose_and_double_nothing_over_tokio() {
    let outcome = resets(Kind::Tokio, 6, 300);
    assert!(outcome.repeated > 0 && outcome.resumes > 30, "{outcome:?}");
}

/// The content of a ZeroMQ connection does not start with our header, so the places of cuts are
/// unknown.
#[cfg(feature = "zmq")]
#[test]
fn resets_lose_and_double_nothing_over_zeromq() {
    let faults = Faults { cut_after: Some(1..200_000), ..Faults::none(7) };
    let outcome = run(Kind::Zmq, &faults, |counts| counts.resets >= 100);
    show("zmq", &outcome);
    assert!(outcome.resumes > 10, "{outcome:?}");
}
