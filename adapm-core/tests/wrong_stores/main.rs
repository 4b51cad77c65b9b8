//! Proof that a green run means something: a store with any plausible mistake fails the store
//! suite, in each claim about the mistake, and where one thread suffices, the fuzz form as well.

mod careless;

use std::panic::{self, AssertUnwindSafe};

use adapm_core::slot::{Pushed, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_verify::store_suite;
use adapm_verify::store_suite::{self as suite, Form, store_fuzz};

use careless::{Careless, Mistake};

type Claim = fn(&dyn Fn(&Layout) -> Careless);

macro_rules! claims {
    ($($claim:ident)*) => {
        [$((stringify!($claim), (|make| suite::$claim(&Form::new(|layout: &Layout| make(layout)))) as Claim)),*]
    };
}

/// Every claim of the suite.
const CLAIMS: [(&str, Claim); 20] = claims! {
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
    all_keys_may_be_replicas_at_once
    a_panic_in_a_slot_lets_the_latch_go
    latches_exclude_and_sums_are_exact
    copies_come_and_go_under_a_working_thread
    threads_reserve_and_release_different_keys
    nobody_enters_a_slot_in_use
    reserve_and_release_lose_nothing_written_meanwhile
    visits_show_no_key_that_has_left
};

/// Each mistake, a claim that must notice it, and true if the fuzz form must.
const EXPECTED: [(Mistake, &str, bool); 27] = [
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
    (Mistake::VisitLooksUnderAnotherLatch, "visits_show_no_key_that_has_left", false),
    (Mistake::RoomForHalfOfTheDeltas, "all_keys_may_be_replicas_at_once", true),
    (Mistake::PanicKeepsTheLatch, "a_panic_in_a_slot_lets_the_latch_go", false),
    (Mistake::ReleaseWithoutLatch, "reserve_and_release_lose_nothing_written_meanwhile", false),
];

/// Returns the text with which a store with this mistake fails the claim; `None` if it passes.
fn fault(claim: Claim, mistake: Option<Mistake>) -> Option<String> {
    let run = || claim(&|layout| Careless::new(layout, mistake));
    let payload = panic::catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = payload.downcast_ref::<String>().cloned();
    // Another thread of the claim has panicked, with the reason.
    Some(text.unwrap_or_default())
}

#[test]
fn a_careful_store_passes() {
    for (name, claim) in CLAIMS {
        assert_eq!(fault(claim, None), None, "a careful store fails {name}");
    }
}

#[test]
fn every_mistake_fails_the_claim_about_it() {
    for (mistake, name, _) in EXPECTED {
        let (_, claim) =
            CLAIMS.into_iter().find(|(claim, _)| *claim == name).expect("the claim exists");
        let text = fault(claim, Some(mistake));
        let text = text.unwrap_or_else(|| panic!("{mistake:?} passes {name}"));
        println!("{mistake:?}: {text}");
        // Both values, named.
        assert!(!text.contains("left:") && !text.contains("right:"), "{mistake:?}: {text}");
    }
}

#[test]
fn a_report_says_what_the_store_has_and_what_it_must_be() {
    for (mistake, claim, expected) in [
        (
            Mistake::ReserveStartsAnew,
            "random_operations_agree_with_the_reference",
            "the store has value[0] = 0.0, it must be ",
        ),
        (
            Mistake::VisitGoesBackwards,
            "random_operations_agree_with_the_reference",
            "it must show [",
        ),
        (
            Mistake::PushWithoutLatch,
            "latches_exclude_and_sums_are_exact",
            ", to which two threads have pushed 10000 times each: the store has ",
        ),
        (
            Mistake::VisitLooksUnderAnotherLatch,
            "visits_show_no_key_that_has_left",
            "with 0 elements, it must have 131: looked for under one latch",
        ),
        (
            Mistake::RoomForHalfOfTheDeltas,
            "all_keys_may_be_replicas_at_once",
            "the store has a delta of 0 elements, it must have ",
        ),
    ] {
        let (_, run) = CLAIMS.into_iter().find(|(name, _)| *name == claim).expect("it exists");
        let text = fault(run, Some(mistake)).expect("the claim is about this mistake");
        assert!(text.contains(expected), "{mistake:?}: {text}");
    }
}

/// A store that keeps elements in fewer bits: rounds all writes to 8 bits of mantissa.
struct Lossy(Careless);

impl Lossy {
    fn round(slot: &mut Slot<'_, f32>) {
        for element in slot.value.iter_mut().chain(slot.delta.iter_mut()) {
            *element = f32::from_bits((element.to_bits() + 0x8000) & 0xffff_0000);
        }
    }
}

impl Store for Lossy {
    type Value = f32;

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, f32>) -> R) -> R {
        self.0.with_slot(key, |slot| {
            let Slot { packed, version, value, delta } = slot;
            let result = f(Slot { packed, version, value, delta });
            Self::round(&mut Slot { packed, version, value, delta });
            result
        })
    }

    fn push(&self, key: Key, update: &[f32]) -> Pushed {
        self.with_slot(key, |mut slot| slot.push(update))
    }

    adapm_core::delegate_store!(self.0, all but with_slot, push);
}

store_suite!(lossy a_lossy_store_passes, |layout| Lossy(Careless::new(layout, None)));

#[test]
fn a_lossy_store_is_found_by_the_suite_for_others() {
    let form = Form::new(|layout: &Layout| Lossy(Careless::new(layout, None)));
    let run = || suite::random_operations_agree_with_the_reference(&form);
    let payload = panic::catch_unwind(AssertUnwindSafe(run)).expect_err("it rounds");
    let text = payload.downcast_ref::<String>().expect("a report is a text");
    assert!(text.contains("the store has value["), "{text}");
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
        assert!(bytes.len() <= 128, "{mistake:?}: {} bytes are not short", bytes.len());
        let again = || store_fuzz(&bytes, |layout| Careless::new(layout, Some(mistake)));
        assert!(panic::catch_unwind(again).is_err(), "{mistake:?}: {bytes:?} passes");
    }
}

adapm_verify::store_fuzz!(a_careful_store_passes_the_fuzz_form, |layout| Careless::new(
    layout, None
));
