//! The policy suite on all systems, and on adverse policies: unreasonable ones pass, since safety
//! is up to the mechanism; policies that panic, never return or are not reproducible are named with
//! the call, the seed and the command.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use adapm_core::observe::Observe;
use adapm_core::policy::{Place, Placement, Policy, System, View};
use adapm_core::{Clock, Instant, Key, NodeId, WorkerId};
use adapm_verify::policy_suite;
use adapm_verify::policy_suite::{self as suite, Trial};
use adapm_verify::random::RandomPolicy;

policy_suite!(adapm, |place| System::Adapm.policy(place.workers));
policy_suite!(adapm_no_relocation, |place| System::AdapmNoRelocation.policy(place.workers));
policy_suite!(adapm_no_replication, |place| System::AdapmNoReplication.policy(place.workers));
policy_suite!(adapm_poisson, |place| System::AdapmPoisson.policy(place.workers));
policy_suite!(adapm_immediate, |place| System::AdapmImmediate.policy(place.workers));
policy_suite!(classic, |place| System::Classic.policy(place.workers));
policy_suite!(full, |place| System::Full.policy(place.workers));
policy_suite!(lapse, |place| System::Lapse.policy(place.workers));
policy_suite!(nups, |place| System::Nups.policy(place.workers));
policy_suite!(parallax, |place| System::Parallax.policy(place.workers));
policy_suite!(ssp, |place| System::Ssp { staleness: 1 }.policy(place.workers));
policy_suite!(essp, |place| System::Essp { staleness: 1 }.policy(place.workers));
policy_suite!(het_gmp, |place| System::HetGmp { staleness: 1 }.policy(place.workers));

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

    fn relocates_under_intent(&self, _key: Key) -> bool {
        self.under_intent
    }
}

fn keeps_all<P: Policy + Send + 'static>(
    make: impl Fn(&Place) -> P + Clone + Send + Sync + 'static,
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
        keeps_all(move |_: &Place| Wicked {
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
        keeps_all(move |_: &Place| Wicked { calls: 0, answer, bound, under_intent });
    }
}

#[test]
fn whoever_answers_at_random_breaks_no_invariant() {
    keeps_all(|place: &Place| RandomPolicy::new(u64::from(place.node.0)));
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
    let make = move |_: &Place| Wicked {
        calls: 0,
        answer,
        bound: |_, _| Clock::INFINITY,
        under_intent: false,
    };
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
    let make = move |_: &Place| Wicked {
        calls: 0,
        answer: |_| Placement::Keep,
        bound,
        under_intent: false,
    };
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
fn a_call_that_never_ends_is_named_and_ends_the_other_claims() {
    let stop = Arc::new(AtomicBool::new(false));
    let make = {
        let stop = Arc::clone(&stop);
        move |_: &Place| Endless(Arc::clone(&stop))
    };
    let begins = |name, patience| trial(name).with_patience(patience);
    let (first, beside, later) = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let trial = begins("suite::endless::beside", PATIENCE * 300);
            fault(|| suite::with_nodes_that_vanish_it_keeps_every_invariant(&trial, make.clone()))
        });
        let trial = begins("suite::endless::alone", PATIENCE);
        let first = fault(|| suite::alone_it_keeps_every_invariant(&trial, make.clone()));
        let later = begins("suite::endless::equal", PATIENCE * 300);
        let later = fault(|| suite::equal_calls_get_equal_answers(&later, make.clone()));
        (first, beside.join().expect("it fails as it must"), later)
    });
    stop.store(true, Ordering::SeqCst);
    assert!(first.contains("the policy has not returned from place(k"), "{first}");
    assert!(first.contains("cargo test -p my-policy endless::alone"), "{first}");
    assert!(beside.contains("as another claim has found: "), "{beside}");
    assert!(beside.contains(&first) && later.contains(&first), "{beside}\n{later}");
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
        move |_: &Place| Wicked { calls: 0, answer, bound: |_, clock| clock, under_intent: false };
    let text = fault(|| suite::equal_calls_get_equal_answers(&trial("suite::mine::equal"), make));
    assert!(text.contains("and asked the same again: View"), "{text}");
}

#[test]
fn a_clock_that_is_read_in_coarse_steps_is_named() {
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    // Steps of 50 ms.
    let answer = |_| {
        let steps = BEGUN.get_or_init(std::time::Instant::now).elapsed().as_millis() / 50;
        [Placement::Keep, Placement::Relocate][steps as usize % 2]
    };
    let make =
        move |_: &Place| Wicked { calls: 0, answer, bound: |_, clock| clock, under_intent: false };
    let text = fault(|| suite::equal_calls_get_equal_answers(&trial("suite::mine::clock"), make));
    assert!(text.contains("and asked the same again: View"), "{text}");
}

/// Replicates keys that were served to other nodes more often than `HOT` times, and relocates the
/// rest, under intent too: a key's technique changes.
#[derive(Clone, Default)]
struct Counting {
    served: BTreeMap<Key, u32>,
    /// Number of the event that it panics at.
    panics_at: Option<u32>,
}

const HOT: u32 = 3;

impl Counting {
    fn is_hot(&self, key: Key) -> bool {
        self.served.get(&key).is_some_and(|served| *served > HOT)
    }
}

impl Policy for Counting {
    fn place(&mut self, view: &View<'_>) -> Placement {
        if self.is_hot(view.key) { Placement::Replicate } else { Placement::Relocate }
    }

    fn act_before(&mut self, _worker: WorkerId, clock: Clock) -> Clock {
        clock + 10
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        !self.is_hot(key)
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        Some(self)
    }
}

impl Observe for Counting {
    fn on_served(&mut self, _now: Instant, key: Key, _origin: NodeId, _hops: u32) {
        let served = self.served.entry(key).or_default();
        *served += 1;
        assert!(Some(*served) != self.panics_at, "one too many");
    }
}

policy_suite!(counting, |_place| Counting::default());

#[test]
fn a_policy_whose_observer_panics_is_named_with_the_event() {
    let make = |_: &Place| Counting { panics_at: Some(5), ..Counting::default() };
    let text = fault(|| suite::alone_it_keeps_every_invariant(&trial("suite::mine::tell"), make));
    assert!(text.contains("the policy panicked in on_served of its observer, about k"), "{text}");
}
