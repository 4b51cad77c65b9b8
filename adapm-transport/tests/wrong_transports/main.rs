//! Mutation tests of the transport suite: a transport with any plausible mistake fails the rule
//! about it.

mod careless;

use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

use adapm_verify::silence::set_patience;
use adapm_verify::transport_suite as suite;

use careless::{Mistake, network};

type Rule = fn(Option<Mistake>);

macro_rules! rules {
    ($($rule:ident)*) => {
        [$((stringify!($rule), (|mistake| suite::$rule(|nodes| network(nodes, mistake))) as Rule)),*]
    };
}

/// Every rule of the suite.
const RULES: [(&str, Rule); 15] = rules! {
    frames_arrive_once_whole_and_in_order
    frames_of_any_size_arrive_whole
    a_full_way_keeps_the_frame_and_reports_room
    a_full_way_to_one_node_leaves_the_others_open
    senders_are_served_in_turn
    a_wake_ends_the_next_wait
    a_wake_ends_a_wait_in_progress
    a_frame_ends_a_wait_in_progress
    room_ends_a_wait_in_progress
    many_wakes_may_end_in_one
    wakes_starve_no_frames_and_frames_no_wakes
    a_wait_ends_in_time_out
    a_dropped_peer_is_noticed
    an_orderly_end_is_no_loss_and_frames_arrive_before
    a_waker_outlives_its_endpoint
};

/// Each mistake, and the rule that must find it.
const EXPECTED: [(Mistake, &str); 20] = [
    (Mistake::LosesAFrame, "frames_arrive_once_whole_and_in_order"),
    (Mistake::RepeatsAFrame, "frames_arrive_once_whole_and_in_order"),
    (Mistake::SwapsTwoFrames, "frames_arrive_once_whole_and_in_order"),
    (Mistake::NamesAnotherSender, "frames_arrive_once_whole_and_in_order"),
    (Mistake::EndsAWaitForEver, "frames_arrive_once_whole_and_in_order"),
    (Mistake::CutsLongHeads, "frames_of_any_size_arrive_whole"),
    (Mistake::AppendsToTheArgument, "frames_of_any_size_arrive_whole"),
    (Mistake::LeavesStaleValues, "frames_of_any_size_arrive_whole"),
    (Mistake::HasNoBound, "a_full_way_keeps_the_frame_and_reports_room"),
    (Mistake::EmptiesARefusedFrame, "a_full_way_keeps_the_frame_and_reports_room"),
    (Mistake::SaysNothingOfRoom, "a_full_way_keeps_the_frame_and_reports_room"),
    (Mistake::HasOneBoundForAll, "a_full_way_to_one_node_leaves_the_others_open"),
    (Mistake::ForgetsAWakeBetweenWaits, "a_wake_ends_the_next_wait"),
    (Mistake::WakesForEver, "many_wakes_may_end_in_one"),
    (Mistake::ServesWakesFirst, "wakes_starve_no_frames_and_frames_no_wakes"),
    (Mistake::ServesFramesFirst, "wakes_starve_no_frames_and_frames_no_wakes"),
    (Mistake::WakesOutOfBoredom, "a_wait_ends_in_time_out"),
    (Mistake::SaysNothingOfALoss, "a_dropped_peer_is_noticed"),
    (Mistake::TakesAnEndForALoss, "an_orderly_end_is_no_loss_and_frames_arrive_before"),
    (Mistake::WakerNeedsItsEndpoint, "a_waker_outlives_its_endpoint"),
];

/// Time after which a failing rule is given up: long enough for all that pass.
const PATIENCE: Duration = Duration::from_secs(2);

/// Mistakes that are tested at once.
const AT_ONCE: usize = 5;

fn fails(rule: &str, mistake: Option<Mistake>) -> bool {
    let (_, run) = RULES.into_iter().find(|(name, _)| *name == rule).expect("the rule exists");
    panic::catch_unwind(AssertUnwindSafe(|| run(mistake))).is_err()
}

/// One test, as patience is global to the process: passing rules run with the usual patience,
/// failing ones are given up sooner.
///
/// Most mistakes take until patience ends, so several run at once.
#[test]
fn every_mistake_fails_the_rule_about_it() {
    for (rule, _) in RULES {
        assert!(!fails(rule, None), "a sound transport fails {rule}");
    }
    set_patience(PATIENCE);
    for some in EXPECTED.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for &(mistake, rule) in some {
                scope.spawn(move || {
                    assert!(fails(rule, Some(mistake)), "{mistake:?} passes {rule}")
                });
            }
        });
    }
}
