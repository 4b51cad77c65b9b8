//! Any [`Policy`] keeps the invariants of the protocol, and keeps its own contract: every claim is
//! a function here and a test in what [`policy_suite!`] expands to.
//!
//! A policy is taste, the mechanism is safety: the first three claims hold for any policy that
//! answers, however bad its answers are. If one of them reports a broken invariant, the fault is
//! adapm's; what they find in a policy is a panic or a call that does not end. The other claims are
//! about the policy: that it answers, and that its answers can be repeated. Nothing that the
//! mechanism can carry out is forbidden. Not here: whether a policy is fast.
//!
//! [`policy_suite!`]: crate::policy_suite!

mod trial;
mod watched;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use adapm_core::clock::Clock;
use adapm_core::config::NodeConfig;
use adapm_core::id::{ChannelId, Counter, Key, NodeId, WorkerId};
use adapm_core::node_set::NodeSet;
use adapm_core::policy::{Place, Policy, System, SystemPolicy, View};

use crate::random::{self, RandomPolicy};
use crate::rng::Rng;
use crate::setup::Setup;
use watched::{Log, Watched};

pub use trial::Trial;

/// Expands to a module of tests that run a policy through random schedules of whole clusters and
/// check its contract.
///
/// Takes the module's name and the constructor: a function of the policy's [`Place`], as
/// `adapm_runtime::Builder::policy` takes it. Clusters have up to 20 keys, 4 nodes, and 3 workers
/// a node.
///
/// ```
/// use adapm_core::policy::Adaptive;
///
/// adapm_verify::policy_suite!(adaptive, |place| Adaptive::new(place.workers));
/// # fn main() {}
/// ```
///
/// A claim about the invariants runs 200 schedules, or as many as `ADAPM_SEEDS` says; with
/// `ADAPM_SEED=7` it runs that one alone, and tells it step by step if the test's output is shown.
/// A call that does not return within half a minute, or the seconds of `ADAPM_PATIENCE`, fails the
/// claim, and with it all other claims of the suite that still run.
///
/// [`Place`]: adapm_core::policy::Place
#[macro_export]
macro_rules! policy_suite {
    ($suite:ident, $make:expr) => {
        $crate::policy_suite!(@ $suite, $make,
            alone_it_keeps_every_invariant
            beside_other_policies_it_keeps_every_invariant
            with_nodes_that_vanish_it_keeps_every_invariant
            any_clock_gets_an_answer
            equal_calls_get_equal_answers
        );
    };
    (@ $suite:ident, $make:expr, $($claim:ident)*) => {
        #[cfg(test)]
        mod $suite {
            #[allow(unused_imports, reason = "the constructor may name what is imported around it")]
            use super::*;

            $(
                #[test]
                fn $claim() {
                    let test = concat!(module_path!(), "::", stringify!($claim));
                    $crate::policy_suite::$claim(
                        &$crate::policy_suite::Trial::new(env!("CARGO_PKG_NAME"), test),
                        $make,
                    );
                }
            )*
        }
    };
}

/// What makes the policy of a place: any function of it.
pub trait Make: Fn(&Place) -> Self::Policy + Clone + Send + Sync + 'static {
    /// The policy.
    type Policy: Policy + Send + 'static;
}

impl<P, F> Make for F
where
    P: Policy + Send + 'static,
    F: Fn(&Place) -> P + Clone + Send + Sync + 'static,
{
    type Policy = P;
}

/// With the policy in every node, random schedules break no invariant, and no call panics or goes
/// on forever.
pub fn alone_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| with_policy(random::setup(seed), log, &make, |_| true));
}

/// The same where some nodes follow systems of the papers, or none at all: nodes need not agree on
/// a policy.
pub fn beside_other_policies_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| {
        let own = Rng::new(seed ^ MIXED_SALT).within(0..3);
        with_policy(random::setup(seed), log, &make, move |node| node.index() == own)
    });
}

/// The same with nodes that vanish in the middle of it.
pub fn with_nodes_that_vanish_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| with_policy(random::setup_with_losses(seed), log, &make, |_| true));
}

/// `act_before` answers for every worker and clock: standing still, leaping, and shortly before the
/// last one.
pub fn any_clock_gets_an_answer(trial: &Trial, make: impl Make) {
    trial.watch(move |log| {
        let mut policy = Watched::new(log, || make(&place()));
        for worker in 0..WORKERS {
            for clock in CLOCKS {
                policy.act_before(WorkerId(worker as u16), Clock(clock));
            }
        }
        Ok(())
    });
}

/// Two policies of one constructor that are asked the same answer the same: without it no seed
/// repeats a failure.
///
/// A policy may remember, and may draw from a seed; it may not read a clock, entropy, or the order
/// of a hash map. It is asked again for a quarter of a second, in which a clock that is read in
/// coarse steps moves.
pub fn equal_calls_get_equal_answers(trial: &Trial, make: impl Make) {
    trial.watch(move |log| {
        let asked = || answers(&mut Watched::new(log, || make(&place())));
        let (begun, first) = (Instant::now(), asked());
        loop {
            let again = asked();
            if let Some((first, again)) =
                first.iter().zip(&again).find(|(first, again)| first != again)
            {
                return Err(format!("{first}, and asked the same again: {again}"));
            }
            if begun.elapsed() >= ASKED_AGAIN {
                return Ok(());
            }
        }
    });
}

/// The cluster with the policy in the nodes that `own` names, and any other in the rest.
fn with_policy(
    mut setup: Setup,
    log: &Arc<Log>,
    make: &impl Make,
    own: impl Fn(NodeId) -> bool + Send + Sync + 'static,
) -> Setup {
    let (make, log, nodes, workers) = (make.clone(), Arc::clone(log), setup.nodes, setup.workers);
    let (channel, channels) = setup.channel;
    setup.policy = Arc::new(move |node| {
        if own(node) {
            let config = NodeConfig::new(node, nodes, workers).on_channel(channel, channels);
            let policy = Watched::new(&log, || make(&Place::from(&config)));
            return Box::new(policy) as SystemPolicy;
        }
        match System::ALL.get(node.index() * 3) {
            Some(system) => system.policy(workers),
            None => Box::new(RandomPolicy::new(u64::from(node.0))),
        }
    });
    // Whether it relocates and replicates as AdaPM does, or never replicates, is not for the suite
    // to say.
    (setup.adaptive, setup.sequential) = (false, false);
    setup
}

/// The place of a policy that is asked outside of a cluster.
fn place() -> Place {
    Place::from(&NodeConfig::new(NodeId(0), NODES, WORKERS).on_channel(ChannelId(0), 1))
}

/// What a policy answers to many calls, in words; its observer is told of events between them.
fn answers(policy: &mut impl Policy) -> Vec<String> {
    let mut rng = Rng::new(ANSWERS_SALT);
    let mut answers = Vec::new();
    let mut clocks = [0; WORKERS];
    for _ in 0..ANSWERS {
        let (key, requester) =
            (Key(rng.within(0..KEYS) as u64), NodeId(rng.within(1..NODES) as u16));
        let others = (1..NODES).map(|node| NodeId(node as u16)).filter(|node| *node != requester);
        let holders: NodeSet = others.filter(|_| rng.chance(30)).collect();
        let view =
            View::new(key, requester).with_holders(&holders).with_owner_intent(rng.chance(40));
        let time = adapm_core::Instant::from_nanos(1_000_000 * answers.len() as u64);
        if let Some(observer) = policy.observer() {
            match rng.within(0..4) {
                0 => observer.on_served(time, key, requester, rng.within(0..3) as u32),
                1 => observer.on_intent(time, key, rng.chance(50)),
                2 => observer.on_relocation(time, key, requester, Counter(1)),
                _ => observer.on_replica_set_up(time, key, requester),
            }
        }
        let placement = policy.place(&view);
        answers.push(format!("{view:?} gets {placement:?}"));
        let leaves = policy.relocates_under_intent(key);
        answers.push(format!("relocates_under_intent({key}) is {leaves}"));
        let worker = rng.within(0..WORKERS);
        clocks[worker] += rng.within(0..12) as u64;
        let clock = Clock(clocks[worker]);
        let bound = policy.act_before(WorkerId(worker as u16), clock);
        answers.push(format!("worker {worker} at {clock} gets {bound}"));
    }
    answers
}

const MIXED_SALT: u64 = 0x91c3_95a1_7000_0003;
const ANSWERS_SALT: u64 = 0xa5ce_95a1_7000_0004;
/// The clusters of [`random::setup`] are no larger.
const KEYS: usize = 20;
const NODES: usize = 4;
const WORKERS: usize = 3;
const ANSWERS: usize = 2_000;
/// Longer than the steps of any clock that is read for the sake of its speed.
const ASKED_AGAIN: Duration = Duration::from_millis(250);
/// Clocks of one worker, in the order in which it gets there.
const CLOCKS: [u64; 10] = [0, 0, 1, 2, 2, 1_000, 1_001, 1 << 40, u64::MAX - 2, u64::MAX - 1];
