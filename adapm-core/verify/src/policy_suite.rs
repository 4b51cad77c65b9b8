//! Suite for any [`Policy`]: it keeps the invariants of the protocol, and its own contract. Every
//! claim is a function here and a test in the expansion of [`policy_suite!`].
//!
//! Policies are choices, safety is up to the mechanism: the first three claims hold for any policy
//! that answers, however bad its answers are. If one of them reports a broken invariant, the fault
//! is adapm's; the faults of a policy that they find are panics and calls that do not return. The
//! other claims are about the policy: it answers, and its answers can be repeated. Any answer that
//! the mechanism can carry out is allowed. Not here: the speed of a policy.
//!
//! [`policy_suite!`]: crate::policy_suite!

mod trial;
mod watched;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use adapm_core::clock::{Clock, Tick};
use adapm_core::config::NodeConfig;
use adapm_core::id::{ChannelId, Counter, Key, NodeId, WorkerId};
use adapm_core::node_set::NodeSet;
use adapm_core::policy::{Place, Policy, SystemPolicy, View};

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
/// A claim about the invariants runs 200 schedules, or `ADAPM_SEEDS`; with `ADAPM_SEED=7` it runs
/// only that one, and prints it step by step if the test's output is shown.
///
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

/// A constructor of policies: any function of the place.
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

/// Checks that with the policy in every node, random schedules break no invariant, and every call
/// returns without a panic.
pub fn alone_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| with_policy(random::setup(seed), log, &make, |_| true));
}

/// Checks the same with other systems, or random answers, at some nodes: nodes need not agree on a
/// policy.
pub fn beside_other_policies_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| {
        let own = Rng::new(seed ^ MIXED_SALT).within(0..3);
        with_policy(random::setup(seed), log, &make, move |node| node.index() == own)
    });
}

/// Checks the same with nodes that vanish.
pub fn with_nodes_that_vanish_it_keeps_every_invariant(trial: &Trial, make: impl Make) {
    trial.run(move |seed, log| with_policy(random::setup_with_losses(seed), log, &make, |_| true));
}

/// Checks that `act_before` answers for every worker and clock: standing still, leaping, and
/// shortly before the last one.
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

/// Checks that two policies of one constructor answer equal calls equally: otherwise no seed
/// repeats a failure.
///
/// A policy may have state, and may draw from a seed; it may not read a clock, entropy, or the
/// order of a hash map. The calls are repeated for a quarter of a second, in which even a coarse
/// clock moves.
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

/// Returns the cluster with the policy in the nodes for which `own` is true, and any other in the
/// rest.
fn with_policy(
    mut setup: Setup,
    log: &Arc<Log>,
    make: &impl Make,
    own: impl Fn(NodeId) -> bool + Send + Sync + 'static,
) -> Setup {
    let (make, log, nodes, workers) = (make.clone(), Arc::clone(log), setup.nodes, setup.workers);
    let (channel, channels) = setup.channel;
    let any = make(&place());
    setup.lag = setup.keys().map(|key| any.lag(key)).max().unwrap_or(0);
    setup.keeps = any.keep(Tick::default()).is_some();
    setup.bound = any.bound();
    // A bound, and the way in which copies become fresh under it, are the same on all nodes.
    let is_bounded = setup.bound.is_some();
    setup.policy = Arc::new(move |node| {
        if is_bounded || own(node) {
            let config = NodeConfig::new(node, nodes, workers).on_channel(channel, channels);
            let policy = Watched::new(&log, || make(&Place::from(&config)));
            return Box::new(policy) as SystemPolicy;
        }
        match random::unbounded().nth(node.index() * 3) {
            Some(system) => system.policy(workers),
            None => Box::new(RandomPolicy::new(u64::from(node.0))),
        }
    });
    // The suite does not demand that the policy relocates and replicates as AdaPM does, or never
    // replicates, or replicates hot keys.
    (setup.adaptive, setup.sequential, setup.hot) = (false, false, None);
    setup
}

/// Returns the place of a policy outside of a cluster.
fn place() -> Place {
    Place::from(&NodeConfig::new(NodeId(0), NODES, WORKERS).on_channel(ChannelId(0), 1))
}

/// Returns a policy's answers to many calls, in words; its observer receives events between them.
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
/// Bounds of the clusters of [`random::setup`].
const KEYS: usize = 20;
const NODES: usize = 4;
const WORKERS: usize = 3;
const ANSWERS: usize = 2_000;
/// A time longer than the steps of any coarse clock.
const ASKED_AGAIN: Duration = Duration::from_millis(250);
/// Clocks of one worker, in order.
const CLOCKS: [u64; 10] = [0, 0, 1, 2, 2, 1_000, 1_001, 1 << 40, u64::MAX - 2, u64::MAX - 1];
