//! Proof that a green run means something: a store with any plausible mistake fails the store
//! suite, in each claim about the mistake, and where one thread suffices, the fuzz form as well.

mod careless;

use std::panic::{self, AssertUnwindSafe};

use adapm_core::Layout;
use adapm_verify::store_suite::{self as suite, store_fuzz};

use careless::{Careless, Mistake};

type Claim = fn(&dyn Fn(&Layout) -> Careless);

macro_rules! claims {
    ($($claim:ident)*) => {
        [$((stringify!($claim), (|make| suite::$claim(&|layout: &Layout| make(layout))) as Claim)),*]
    };
}

/// Every claim of the suite.
const CLAIMS: [(&str, Claim); 17] = claims! {
    absent_keys_hold_nothing_but_a_word
    reserved_keys_are_zero_and_keep_their_word
    reserve_keeps_what_is_held
    reserve_adds_and_frees_the_delta_alone
    release_keeps_the_word_alone
    reserve_each_reserves_and_shows_keys_in_order
    keys_have_their_lengths_and_share_no_element
    visit_goes_through_held_keys_in_order
    prefetch_changes_nothing
    random_operations_agree_with_the_reference
    slots_work_as_main_copy_and_replica
    pushes_add_as_those_of_slots
    latches_exclude_and_sums_are_exact
    copies_come_and_go_under_a_working_thread
    threads_reserve_and_release_different_keys
    nobody_enters_a_slot_in_use
    reserve_and_release_lose_nothing_written_meanwhile
};

/// Each mistake, a claim that must notice it, and true if the fuzz form must.
const EXPECTED: [(Mistake, &str, bool); 24] = [
    (Mistake::VersionOfAnAbsentKeyStays, "absent_keys_hold_nothing_but_a_word", false),
    (Mistake::WordLosesItsTopBit, "absent_keys_hold_nothing_but_a_word", true),
    (Mistake::ReserveClearsTheWord, "reserved_keys_are_zero_and_keep_their_word", true),
    (Mistake::ReserveStartsAnew, "reserve_keeps_what_is_held", true),
    (Mistake::ReserveForgetsTheDelta, "reserve_keeps_what_is_held", true),
    (Mistake::DeltaIsNeverFreed, "reserve_adds_and_frees_the_delta_alone", true),
    (Mistake::ReleaseClearsTheWord, "release_keeps_the_word_alone", true),
    (Mistake::ReleasedElementsComeBack, "release_keeps_the_word_alone", true),
    (Mistake::ReserveEachStartsAnew, "reserve_each_reserves_and_shows_keys_in_order", false),
    (Mistake::ReserveEachGoesBackwards, "reserve_each_reserves_and_shows_keys_in_order", false),
    (Mistake::NeighboursShareElements, "keys_have_their_lengths_and_share_no_element", true),
    (Mistake::VisitGoesBackwards, "visit_goes_through_held_keys_in_order", true),
    (Mistake::VisitShowsAbsentKeys, "visit_goes_through_held_keys_in_order", true),
    (Mistake::VisitIncludesTheEnd, "visit_goes_through_held_keys_in_order", true),
    (Mistake::VisitShowsCopies, "visit_goes_through_held_keys_in_order", false),
    (Mistake::PrefetchWantsAKey, "prefetch_changes_nothing", false),
    (Mistake::LookOverlooksTheDelta, "reserve_adds_and_frees_the_delta_alone", true),
    (Mistake::LookForgetsTheWord, "absent_keys_hold_nothing_but_a_word", true),
    (Mistake::HeldOverlooksReplicas, "reserve_adds_and_frees_the_delta_alone", true),
    (Mistake::PushOverlooksTheDelta, "pushes_add_as_those_of_slots", true),
    (Mistake::AccessWithoutLatch, "nobody_enters_a_slot_in_use", false),
    (Mistake::PushWithoutLatch, "latches_exclude_and_sums_are_exact", false),
    (Mistake::VisitWithoutLatch, "nobody_enters_a_slot_in_use", false),
    (Mistake::ReleaseWithoutLatch, "reserve_and_release_lose_nothing_written_meanwhile", false),
];

/// Returns true if a store with this mistake fails the claim.
fn fails(claim: Claim, mistake: Option<Mistake>) -> bool {
    panic::catch_unwind(AssertUnwindSafe(|| claim(&|layout| Careless::new(layout, mistake))))
        .is_err()
}

#[test]
fn a_careful_store_passes() {
    for (name, claim) in CLAIMS {
        assert!(!fails(claim, None), "a careful store fails {name}");
    }
}

#[test]
fn every_mistake_fails_the_claim_about_it() {
    for (mistake, name, _) in EXPECTED {
        let (_, claim) =
            CLAIMS.into_iter().find(|(claim, _)| *claim == name).expect("the claim exists");
        assert!(fails(claim, Some(mistake)), "{mistake:?} passes {name}");
    }
}

#[test]
fn the_fuzz_form_finds_and_shortens_what_one_thread_can_see() {
    for (mistake, _, expected) in EXPECTED {
        let run = || {
            suite::generated_inputs_find_nothing("make", |layout| {
                Careless::new(layout, Some(mistake))
            })
        };
        let found = panic::catch_unwind(run);
        assert_eq!(found.is_err(), expected, "{mistake:?}");
        let Err(payload) = found else { continue };
        let text = payload.downcast_ref::<String>().expect("a finding is a text");
        println!("{mistake:?}: {text}");
        // The line to paste, pasted.
        let (_, literal) = text.split_once("store_fuzz(&[").expect("it says how to run it again");
        let (literal, _) = literal.split_once(']').expect("the bytes end");
        let bytes: Vec<u8> = literal.split(", ").filter_map(|byte| byte.parse().ok()).collect();
        assert!(bytes.len() <= 80, "{mistake:?}: {} bytes are not short", bytes.len());
        let again = || store_fuzz(&bytes, |layout| Careless::new(layout, Some(mistake)));
        assert!(panic::catch_unwind(again).is_err(), "{mistake:?}: {bytes:?} passes");
    }
}

adapm_verify::store_fuzz!(a_careful_store_passes_the_fuzz_form, |layout| Careless::new(
    layout, None
));
