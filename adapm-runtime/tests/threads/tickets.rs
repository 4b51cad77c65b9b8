//! Tickets of calls of every kind, waited for in every way, whatever number of channels their keys span.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use adapm_core::error::OpError;
use adapm_core::{Key, NodeId};
use adapm_runtime::{System, Ticket};

use crate::{IntWorker, Size, cluster, keys_at};

const KEYS: u64 = 64;

type Wait = fn(&mut IntWorker, Ticket<i64>) -> Result<Vec<i64>, OpError>;

const WAYS: [(&str, Wait); 3] = [
    ("Ticket::wait", |_, ticket| ticket.wait()),
    ("Worker::wait", |worker, ticket| worker.wait(ticket)),
    (".await", |_, ticket| block_on(ticket)),
];

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Does every call with keys of both nodes, and ends each in that way.
fn call_and_wait(worker: &mut IntWorker, way: &str, wait: Wait) {
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    let sets: Vec<i64> = (0..2 * KEYS as i64).collect();
    let sums: Vec<i64> = sets.iter().map(|value| 11 * value).collect();
    let updates: Vec<i64> = sets.iter().map(|value| 10 * value).collect();
    let ticket = worker.set_async(&keys, &sets).expect("known keys");
    assert_eq!(wait(worker, ticket), Ok(vec![]), "set, {way}");
    let ticket = worker.push_async(&keys, &updates).expect("known keys");
    assert_eq!(wait(worker, ticket), Ok(vec![]), "push, {way}");
    let ticket = worker.pull_async(&keys).expect("known keys");
    assert_eq!(wait(worker, ticket), Ok(sums), "pull, {way}");
    let ticket = worker.localize_async(&keys).expect("known keys");
    assert_eq!(wait(worker, ticket), Ok(vec![]), "localize, {way}");
    // Back to where they were, for the next way.
    let ticket = worker.push_async(&keys, &[0; 2 * KEYS as usize]).expect("known keys");
    assert_eq!(wait(worker, ticket), Ok(vec![]), "push of what is here, {way}");
}

#[test]
fn every_ticket_ends_in_every_way_over_any_number_of_channels() {
    for system in [System::Classic, System::Adapm, System::Lapse] {
        for (way, wait) in WAYS.into_iter().cycle().take(4 * WAYS.len()) {
            let outcome = cluster(system, Size(2, 1), KEYS, 2).run(|mut worker| {
                if worker.node() == NodeId(0) {
                    call_and_wait(&mut worker, way, wait);
                }
            });
            assert_eq!(outcome, Ok(vec![(); 2]), "{system}, {way}");
        }
    }
}

#[test]
fn a_ticket_that_was_ready_is_not_polled_again() {
    let cluster = cluster(System::Classic, Size(2, 1), KEYS, 1);
    let outcome = cluster.run(|mut worker| {
        let ([own], [other]) = (keys_at(worker.node().0, 2), keys_at(1 - worker.node().0, 2));
        let tickets = [
            worker.pull_async(&[own]).expect("a known key"),
            worker.pull_async(&[own, other]).expect("known keys"),
            worker.push_async(&[other], &[0]).expect("a known key"),
            worker.localize_async(&[own, other]).expect("known keys"),
        ];
        for mut ticket in tickets {
            block_on(&mut ticket).expect("no failure");
            let again = catch_unwind(AssertUnwindSafe(|| block_on(&mut ticket)));
            let payload = again.expect_err("there is no second outcome");
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied()).expect("a text");
            assert_eq!(text, "a ticket was polled after it was ready: it yields its outcome once");
        }
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
}
