//! The policy suite on all systems, and on adverse policies: unreasonable ones pass, since safety
//! is up to the mechanism; policies that panic, never return or are not reproducible are named with
//! the call, the seed and the command.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use adapm_core::policy::{Placement, Policy, System, View};
use adapm_core::{Clock, NodeId, WorkerId};
use adapm_verify::policy_suite;
use adapm_verify::policy_suite::{self as suite, Trial};
use adapm_verify::random::RandomPolicy;

policy_suite!(adapm, |_, workers| System::Adapm.policy(workers));
policy_suite!(adapm_no_relocation, |_, workers| System::AdapmNoRelocation.policy(workers));
policy_suite!(adapm_no_replication, |_, workers| System::AdapmNoReplication.policy(workers));
policy_suite!(adapm_poisson, |_, workers| System::AdapmPoisson.policy(workers));
policy_suite!(adapm_immediate, |_, workers| System::AdapmImmediate.policy(workers));
policy_suite!(classic, |_, workers| System::Classic.policy(workers));
policy_suite!(full, |_, workers| System::Full.policy(workers));
policy_suite!(lapse, |_, workers| System::Lapse.policy(workers));

/// A policy that answers `answer` of the call's number, and may do worse.
#[derive(Clone)]
struct Wicked {
    calls: u64,
    answer: fn(u64) -> Placement,
    bound: fn(u64, Clock) -> Clock,
    under_intent: bool,
}

impl Policy for Wicked {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        self.calls += 1;
        (self.answer)(self.calls)
    }

    fn act_before(&mut self, _worker: WorkerId, clock: Clock) -> Clock {
        self.calls += 1;
        (self.bound)(self.calls, clock)
    }

    fn relocates_under_intent(&self) -> bool {
        self.under_intent
    }
}

fn keeps_all<P: Policy + Send + 'static>(
    make: impl Fn(NodeId, usize) -> P + Clone + Send + Sync + 'static,
) {
    let trial = Trial::new("adapm-core", "policies::keeps_all").with_seeds(30);
    suite::alone_it_keeps_every_invariant(&trial, make.clone());
    suite::beside_other_policies_it_keeps_every_invariant(&trial, make.clone());
    suite::with_nodes_that_vanish_it_keeps_every_invariant(&trial, make);
}

#[test]
fn whoever_moves_each_key_to_whoever_asks_breaks_no_invariant() {
    for under_intent in [false, true] {
        let bound = |_, _| Clock::INFINITY;
        keeps_all(move |_, _| Wicked {
            calls: 0,
            answer: |_| Placement::Relocate,
            bound,
            under_intent,
        });
    }
}

#[test]
fn whoever_changes_its_mind_with_every_call_breaks_no_invariant() {
    let answer =
        |calls| [Placement::Replicate, Placement::Relocate, Placement::Keep][calls as usize % 3];
    // Acts on all intents, on none, and on those that are over.
    let bound = |calls, clock: Clock| match calls % 4 {
        0 => Clock(0),
        1 => Clock::INFINITY,
        2 => Clock(clock.0 / 2),
        _ => clock,
    };
    for under_intent in [false, true] {
        keeps_all(move |_, _| Wicked { calls: 0, answer, bound, under_intent });
    }
}

#[test]
fn whoever_answers_at_random_breaks_no_invariant() {
    keeps_all(|node, _| RandomPolicy::new(u64::from(node.0)));
}

/// Returns the suite's text on a policy that fails a claim.
fn fault(claim: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(claim)).expect_err("the suite must notice");
    payload.downcast_ref::<String>().expect("a fault is a text").clone()
}

fn trial(test: &str) -> Trial {
    Trial::new("my-policy", test)
}

#[test]
fn a_policy_that_panics_is_named_with_call_seed_and_command() {
    let answer = |calls| if calls < 8 { Placement::Replicate } else { panic!("no more") };
    let make =
        move |_, _| Wicked { calls: 0, answer, bound: |_, _| Clock::INFINITY, under_intent: false };
    let text = fault(|| suite::alone_it_keeps_every_invariant(&trial("suite::mine::alone"), make));
    assert!(text.contains("the policy panicked in place(k"), "{text}");
    assert!(text.contains("owner_has_intent: ") && text.contains(": no more"), "{text}");
    let (_, rest) = text.split_once("seed ").expect("it names the seed");
    let (seed, _) = rest.split_once(':').expect("it names the seed");
    let again =
        format!("ADAPM_SEED={seed} cargo test -p my-policy mine::alone -- --exact --nocapture");
    assert!(text.contains(&again), "{text}");
}

#[test]
fn a_bound_that_overflows_is_named() {
    let bound = |_, clock: Clock| Clock(clock.0.checked_add(10).expect("the clock overflows"));
    let make =
        move |_, _| Wicked { calls: 0, answer: |_| Placement::Keep, bound, under_intent: false };
    let text = fault(|| suite::any_clock_gets_an_answer(&trial("suite::mine::clock"), make));
    assert!(text.contains("panicked in act_before(w0, @18446744073709551613)"), "{text}");
}

/// A policy that waits in `place` until it is told to stop.
struct Endless(Arc<AtomicBool>);

impl Policy for Endless {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        while !self.0.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }
}

#[test]
fn a_call_that_never_ends_is_named() {
    let stop = Arc::new(AtomicBool::new(false));
    let (make_stop, trial) = (Arc::clone(&stop), trial("suite::mine::end").with_patience(PATIENCE));
    let text = fault(|| {
        suite::alone_it_keeps_every_invariant(&trial, move |_, _| Endless(Arc::clone(&make_stop)));
    });
    stop.store(true, Ordering::SeqCst);
    assert!(text.contains("the policy has not returned from place(k"), "{text}");
}

/// Long enough for any call that returns.
const PATIENCE: Duration = Duration::from_secs(1);

#[test]
fn a_policy_that_cannot_be_repeated_is_named() {
    static SHARED: AtomicU64 = AtomicU64::new(0);
    let answer = |_| {
        [Placement::Keep, Placement::Relocate]
            [SHARED.fetch_add(1, Ordering::SeqCst) as usize / 7 % 2]
    };
    let make =
        move |_, _| Wicked { calls: 0, answer, bound: |_, clock| clock, under_intent: false };
    let text = fault(|| suite::equal_calls_get_equal_answers(&trial("suite::mine::equal"), make));
    assert!(text.contains("and asked the same again: View"), "{text}");
}

#[test]
fn a_policy_that_relocates_under_intent_and_replicates_is_named() {
    let make = |node: NodeId, _| {
        (0..)
            .map(|seed| RandomPolicy::new(seed ^ u64::from(node.0)))
            .find(Policy::relocates_under_intent)
            .expect("half of the seeds do")
    };
    let text = fault(|| {
        suite::relocation_under_intent_is_without_replicas(&trial("suite::mine::turns"), make)
    });
    assert!(text.contains("relocates_under_intent() is true, and yet View"), "{text}");
}
