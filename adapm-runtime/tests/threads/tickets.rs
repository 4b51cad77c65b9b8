//! Tickets of calls of every kind, waited for in every way, with keys on any number of channels.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use adapm_core::error::OpError;
use adapm_core::{Key, NodeId};
use adapm_runtime::{Done, Pull, System};

use crate::executor::block_on;
use crate::{IntWorker, Size, cluster, keys_at};

const KEYS: u64 = 64;

/// A way to wait for both kinds of tickets.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    pull: fn(Pull<i64>) -> Result<Vec<i64>, OpError>,
    done: fn(Done) -> Result<(), OpError>,
}

const WAYS: [Way; 3] = [
    Way { name: "wait", pull: Pull::wait, done: |done| done.wait() },
    Way {
        name: "wait_timeout",
        pull: |mut pull| until_there(|| pull.wait_timeout(LIMIT)),
        done: |done| until_there(|| done.wait_timeout(LIMIT)),
    },
    Way { name: "await", pull: |pull| block_on(pull).0, done: |done| block_on(done).0 },
];

const LIMIT: Duration = Duration::from_micros(50);

/// Polls until there is a result, like a thread that has other work in between.
fn until_there<R>(mut ask: impl FnMut() -> Option<R>) -> R {
    loop {
        if let Some(outcome) = ask() {
            return outcome;
        }
    }
}

/// Does every call with keys of both nodes, and ends each in that way.
fn call_and_wait(worker: &mut IntWorker, way: Way) {
    let name = way.name;
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    let sets: Vec<i64> = (0..2 * KEYS as i64).collect();
    let sums: Vec<i64> = sets.iter().map(|value| 11 * value).collect();
    let updates: Vec<i64> = sets.iter().map(|value| 10 * value).collect();
    let ticket = worker.set_async(&keys, &sets).expect("known keys");
    assert_eq!((way.done)(ticket), Ok(()), "set, {name}");
    let ticket = worker.push_async(&keys, &updates).expect("known keys");
    assert_eq!((way.done)(ticket), Ok(()), "push, {name}");
    let ticket = worker.pull_async(&keys).expect("known keys");
    assert_eq!((way.pull)(ticket), Ok(sums), "pull, {name}");
    let ticket = worker.localize_async(&keys).expect("known keys");
    assert_eq!((way.done)(ticket), Ok(()), "localize, {name}");
    // Moves them back for the next way.
    let ticket = worker.push_async(&keys, &[0; 2 * KEYS as usize]).expect("known keys");
    assert_eq!((way.done)(ticket), Ok(()), "push of what is here, {name}");
}

#[test]
fn every_ticket_ends_in_every_way_over_any_number_of_channels() {
    for system in [System::Adapm, System::Lapse, System::Nups] {
        for way in WAYS.into_iter().cycle().take(4 * WAYS.len()) {
            let outcome = cluster(system, Size(2, 1), KEYS, 2).run(|mut worker| {
                if worker.node() == NodeId(0) {
                    call_and_wait(&mut worker, way);
                }
            });
            assert_eq!(outcome, Ok(vec![(); 2]), "{system}, {}", way.name);
        }
    }
}

#[test]
fn a_pull_yields_its_values_once_and_others_tell_their_end_again() {
    let cluster = cluster(System::Lapse, Size(2, 1), KEYS, 1);
    let outcome = cluster.run(|mut worker| {
        let ([own], [other]) = (keys_at(worker.node().0, 2), keys_at(1 - worker.node().0, 2));
        for keys in [vec![own], vec![own, other]] {
            let mut pull = worker.pull_async(&keys).expect("known keys");
            assert_eq!(block_on(&mut pull).0, Ok(vec![0; keys.len()]));
            assert!(pull.is_done());
            let again = catch_unwind(AssertUnwindSafe(|| pull.wait_timeout(Duration::ZERO)));
            let payload = again.expect_err("there are no second values");
            let text = payload.downcast_ref::<&str>().copied().expect("a text");
            assert_eq!(text, "a pull was asked after it was ready: it yields its values once");
        }
        for mut done in [
            worker.push_async(&[own], &[0]).expect("a known key"),
            worker.push_async(&[other], &[0]).expect("a known key"),
            worker.localize_async(&[own, other]).expect("known keys"),
        ] {
            assert_eq!((block_on(&mut done).0, done.wait()), (Ok(()), Ok(())));
            assert_eq!((done.wait_timeout(Duration::ZERO), done.is_done()), (Some(Ok(())), true));
        }
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
}
