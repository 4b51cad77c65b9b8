//! Bounds on what operations may send, whatever else changes: a bound that is raised here is raised
//! knowingly.

use adapm_transport::net::Kind;

use super::Operation;
use crate::measure::bench::Plan;

/// Messages and bytes of so many units of an operation.
struct Bound {
    operation: &'static str,
    units: u64,
    messages: u64,
    bytes: u64,
}

const BOUNDS: [Bound; 13] = [
    bound("pull-1x25", 1, 0, 0),
    bound("push-1x25", 1, 0, 0),
    bound("pull-100x100", 1, 0, 0),
    bound("push-100x100", 1, 0, 0),
    bound("intent-100x25", 1, 0, 0),
    bound("clock", 1, 0, 0),
    // Of these, 100 bytes a key are its value, and 10 a message its secret.
    bound("remote-pull-1x25", 1, 2, 130),
    bound("remote-push-1x25", 1, 2, 130),
    bound("remote-pull-100x25", 1, 2, 10_420),
    bound("remote-push-100x25", 1, 2, 10_420),
    bound("remote-pull-100x25-tcp", 1, 2, 10_420),
    // To and fro, each of a hundred keys.
    bound("relocation-100x25", 200, 4, 2 * 10_650),
    // Rounds go by time, what they carry does not.
    bound("replicas-100x25", 100, u64::MAX, 10_250),
];

#[test]
fn operations_send_no_more_than_they_must() {
    for bound in BOUNDS {
        let operation: Operation = bound.operation.parse().expect("it is counted");
        let sent = operation.perform(STEPS, &|| {}).expect("no failure");
        let units = sent.units as f64 / bound.units as f64;
        // On a busy machine an engine may count a moment late what it sent before.
        let late = if bound.messages == 0 { 0.0 } else { 1.0 };
        let [messages, bytes] =
            [bound.messages, bound.bytes].map(|most| most as f64 * (units + late));
        let name = bound.operation;
        assert!(sent.messages as f64 <= messages, "{name}: {sent:?}, at most {messages} messages");
        assert!(sent.bytes as f64 <= bytes, "{name}: {sent:?}, at most {bytes} bytes");
    }
}

#[test]
fn what_is_done_is_counted_between_two_marks() {
    let operation: Operation = "remote-pull-1x25".parse().expect("it is counted");
    let marks = std::sync::atomic::AtomicU32::new(0);
    let mark = || _ = marks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let sent = operation.perform(STEPS, &mark).expect("no failure");
    assert_eq!((marks.into_inner(), sent.units), (2, STEPS));
    assert!(sent.messages + 2 >= 2 * STEPS && sent.bytes >= 100 * (STEPS - 1), "{sent:?}");
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let all = Operation::all(&Plan::default());
    for (at, operation) in all.iter().enumerate() {
        assert_eq!(operation.to_string().parse(), Ok(*operation));
        assert!(all[..at].iter().all(|other| other.what() != operation.what()), "{operation}");
    }
    assert!("remote-pull-7x25".parse::<Operation>().is_err());
}

#[test]
fn small_sizes_are_some_of_all() {
    let mut plan = Plan::default();
    let all = Operation::all(&plan);
    plan.is_quick = true;
    let quick = Operation::all(&plan);
    assert!(quick.len() < all.len() && quick.iter().all(|operation| all.contains(operation)));
    plan.kinds = vec![Kind::Tcp];
    assert_eq!(Operation::all(&plan), quick);
}

const fn bound(operation: &'static str, units: u64, messages: u64, bytes: u64) -> Bound {
    Bound { operation, units, messages, bytes }
}

/// Enough that one message more or less than meant is none an operation.
const STEPS: u64 = 20;
