//! Mutation tests of the transport suite: a transport with any plausible mistake fails the rule
//! about it, by a message that describes what it did.

mod careless;
/// The sound transport to which mistakes are added: the one to start a plug-in from.
#[allow(unreachable_pub, reason = "it is a crate of its own elsewhere")]
#[path = "../../../adapm-runtime/examples/plug-in/transport/src/lib.rs"]
mod channels;

use std::panic;
use std::thread;
use std::time::Duration;

use adapm_verify::silence::set_patience;
use adapm_verify::transport_suite as suite;

use careless::Mistake::{self, *};
use careless::network;

type Rule = fn(Option<Mistake>);

macro_rules! rules {
    ($($rule:ident)*) => {
        [$((
            stringify!($rule),
            (|mistake| {
                suite::check(stringify!($rule), move |nodes| network(nodes, mistake), suite::$rule);
            }) as Rule,
        )),*]
    };
}

/// Every rule of the suite.
const RULES: [(&str, Rule); 19] = rules! {
    frames_arrive_once_whole_and_in_order
    frames_of_any_size_arrive_whole
    a_full_way_keeps_the_frame_and_reports_room
    a_way_is_bounded_in_bytes
    a_full_way_to_one_node_leaves_the_others_open
    senders_are_served_in_turn
    a_wake_ends_the_next_wait
    a_wake_ends_a_wait_in_progress
    a_frame_ends_a_wait_in_progress
    room_ends_a_wait_in_progress
    many_wakes_may_end_in_one
    wakes_starve_no_frames_and_frames_no_wakes
    a_wake_stays_for_the_recv_after_the_frame
    a_wait_ends_in_time_out
    a_dropped_peer_is_noticed
    an_orderly_end_is_no_loss_and_frames_arrive_before
    a_failure_is_told_behind_all_frames
    a_lost_node_is_named_to_the_others
    a_waker_outlives_its_endpoint
};

/// Each mistake, the rule that must find it, and words of the message.
const EXPECTED: [(Mistake, &str, &str); 32] = [
    (LosesAFrame, "frames_arrive_once_whole_and_in_order", "was due, which was lost or overtaken"),
    (RepeatsAFrame, "frames_arrive_once_whole_and_in_order", " twice"),
    (SwapsTwoFrames, "frames_arrive_once_whole_and_in_order", "was lost or overtaken"),
    (NamesAnotherSender, "frames_arrive_once_whole_and_in_order", " as one of n"),
    (
        EndsAWaitForEver,
        "frames_arrive_once_whole_and_in_order",
        "without a limit returned `TimedOut`",
    ),
    (
        CutsLongHeads,
        "frames_of_any_size_arrive_whole",
        "came to n1 changed: n0 sent 70000 + 7 bytes",
    ),
    (AppendsToTheArgument, "frames_of_any_size_arrive_whole", "came to n1 changed: n0 sent"),
    (LeavesStaleValues, "frames_of_any_size_arrive_whole", "came to n1 changed: n0 sent"),
    (
        HasNoBound,
        "a_full_way_keeps_the_frame_and_reports_room",
        "4096 frames of 65536 bytes that nobody received",
    ),
    (BoundsFramesOnly, "a_way_is_bounded_in_bytes", "it needs a bound in bytes"),
    (
        BlocksInSend,
        "a_full_way_keeps_the_frame_and_reports_room",
        "n0 is in `send` to n1, which has not returned: it must never block",
    ),
    (
        EmptiesARefusedFrame,
        "a_full_way_keeps_the_frame_and_reports_room",
        "to n1 and changed it: it had 8 + 65536 bytes",
    ),
    (
        DeliversARefusedFrame,
        "a_full_way_keeps_the_frame_and_reports_room",
        "n1 received a frame of n0 that `send` of n0 had refused",
    ),
    (SaysNothingOfRoom, "a_full_way_keeps_the_frame_and_reports_room", "n0 was not told of room"),
    (DoesNotLookAgain, "room_ends_a_wait_in_progress", "n0 was not told of room"),
    (
        HasOneBoundForAll,
        "a_full_way_to_one_node_leaves_the_others_open",
        "the way to n2 stays full",
    ),
    (ForgetsAWakeBetweenWaits, "a_wake_ends_the_next_wait", "though a waker was called before"),
    (ClearsTheWakeLate, "a_wake_ends_a_wait_in_progress", "a waker of n1 was called, and its wait"),
    (ReadsTheNotifierLate, "a_frame_ends_a_wait_in_progress", "n0 sent a frame, and its wait"),
    (WakesForEver, "many_wakes_may_end_in_one", "tells wakes forever"),
    (ServesWakesFirst, "wakes_starve_no_frames_and_frames_no_wakes", "wakes starve frames"),
    (ServesFramesFirst, "wakes_starve_no_frames_and_frames_no_wakes", "frames starve wakes"),
    (
        SwallowsAWakeBehindAFrame,
        "a_wake_stays_for_the_recv_after_the_frame",
        "and the `recv` after the frame told",
    ),
    (WakesOutOfBoredom, "a_wait_ends_in_time_out", "nobody sent and no waker was called"),
    (SaysNothingOfALoss, "a_dropped_peer_is_noticed", "n0 was told nothing"),
    (TellsALossAgain, "a_dropped_peer_is_noticed", "`recv` of n0 told twice that n1 is lost"),
    (
        TakesAnEndForALoss,
        "an_orderly_end_is_no_loss_and_frames_arrive_before",
        "was told Lost(n0, Failed)",
    ),
    (
        DropsWhatIsQueued,
        "an_orderly_end_is_no_loss_and_frames_arrive_before",
        "frames to n1 and n2: they received [0, 0] of them",
    ),
    (FailsAsFinished, "a_failure_is_told_behind_all_frames", "received 3 of them and was not told"),
    (
        LooksAtTheEndLast,
        "a_failure_is_told_behind_all_frames",
        "told that n0 is lost, before frame",
    ),
    (ForgetsWhomItLost, "a_lost_node_is_named_to_the_others", "n2 left with `Lost(n1)`: n0 and n1"),
    (WakerNeedsItsEndpoint, "a_waker_outlives_its_endpoint", "the endpoint is there"),
];

/// Time after which a failing rule is given up: long enough for all that pass.
const PATIENCE: Duration = Duration::from_secs(3);

/// Mistakes that do harm only if two threads meet at one moment.
const RACES: [Mistake; 4] =
    [DoesNotLookAgain, ClearsTheWakeLate, ReadsTheNotifierLate, LooksAtTheEndLast];
/// Runs of a rule that may all miss a race on a busy machine.
const TRIES: usize = 5;

/// Mistakes that are tested at once.
const AT_ONCE: usize = 8;

/// The message by which a transport with the mistake fails the rule; `None` if it passes.
fn verdict(rule: &str, mistake: Option<Mistake>) -> Option<String> {
    let (_, run) = RULES.into_iter().find(|(name, _)| *name == rule).expect("the rule exists");
    let payload = panic::catch_unwind(|| run(mistake)).err()?;
    Some(payload.downcast_ref::<String>().expect("a verdict is a text").clone())
}

/// Expects the rule to fail by a message with these words; a race gets a few tries.
fn expect((mistake, rule, words): (Mistake, &str, &str), tries: usize) {
    let verdict = (0..tries).find_map(|_| verdict(rule, Some(mistake)));
    let verdict = verdict.unwrap_or_else(|| panic!("{mistake:?} passes {rule}"));
    println!("{mistake:?}: {verdict}");
    let is_named = verdict.contains(words) && verdict.contains(rule);
    assert!(is_named, "{mistake:?}: the message has no {words:?}: {verdict}");
}

/// One test, as patience is global to the process: passing rules run with the usual patience,
/// failing ones are given up sooner.
///
/// Many mistakes take until patience ends, so several run at once; races need the processors for
/// themselves.
#[test]
fn every_mistake_fails_the_rule_about_it_by_name() {
    for (rule, _) in RULES {
        assert_eq!(verdict(rule, None), None, "a sound transport fails {rule}");
    }
    set_patience(PATIENCE);
    let (races, others): (Vec<_>, Vec<_>) =
        EXPECTED.into_iter().partition(|(mistake, ..)| RACES.contains(mistake));
    for some in others.chunks(AT_ONCE) {
        thread::scope(|scope| some.iter().for_each(|row| drop(scope.spawn(|| expect(*row, 1)))));
    }
    races.into_iter().for_each(|row| expect(row, TRIES));
}
