//! Promises under loom: no wake-up is lost, no part is lost, and a caller that returns from a wait
//! finds the call in its record.

#![cfg(adapm_loom)]

use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_runtime::model::{InFlight, Promise, Report, Waiter};
use loom::sync::{Condvar, Mutex};
use loom::thread;

#[test]
fn a_waiter_gets_the_parts_of_two_channels() {
    loom::model(|| {
        let promise = Arc::new(Promise::new(2, None));
        let channels = [0, 1].map(|part| {
            let waiter = Waiter::new(Arc::clone(&promise), part);
            thread::spawn(move || waiter.tell(Ok(vec![part as i64])))
        });
        assert_eq!(promise.wait(), Ok(vec![vec![0], vec![1]]));
        for channel in channels {
            channel.join().expect("no panic");
        }
    });
}

#[test]
fn a_part_that_is_dropped_ends_the_wait() {
    loom::model(|| {
        let promise = Arc::new(Promise::<i64>::new(2, None));
        let waiters = [0, 1].map(|part| Waiter::new(Arc::clone(&promise), part));
        let channel = thread::spawn(move || {
            let [told, dropped] = waiters;
            told.tell(Ok(vec![5]));
            drop(dropped);
        });
        assert_eq!(promise.wait(), Err(OpError::Ended));
        channel.join().expect("no panic");
    });
}

/// Puts a call on one key in flight, and returns its report.
fn begin(order: &mut InFlight) -> Report {
    let call = order.next_call();
    order.mark(Key(1));
    order.track(call, vec![Key(1)]);
    Report { completions: Arc::clone(order.completions()), call, with_error: true }
}

/// Checks what a worker finds after a wait; the record is written by the promise, or else by the
/// channel thread after it.
fn waits_and_looks(promise_reports: bool) {
    loom::model(move || {
        let mut order = InFlight::new(Arc::default());
        let report = begin(&mut order);
        let promise = Arc::new(Promise::new(1, promise_reports.then(|| report.clone())));
        let waiter = Waiter::new(Arc::clone(&promise), 0);
        let channel = thread::spawn(move || {
            waiter.tell(Ok(vec![3_i64]));
            if !promise_reports {
                report.completions.finish(report.call, None);
            }
        });
        assert_eq!(promise.wait(), Ok(vec![vec![3]]));
        assert!(!order.blocks(Key(1)), "the record is written before the waiter is let go");
        channel.join().expect("no panic");
    });
}

#[test]
fn after_a_wait_the_fast_path_is_open() {
    waits_and_looks(true);
}

#[test]
#[should_panic(expected = "before the waiter is let go")]
fn planted_a_record_told_after_the_waiter_is_found() {
    waits_and_looks(false);
}

#[test]
fn a_ticket_dropped_while_its_call_ends_still_ends_the_call() {
    for outcome in [Ok(vec![3_i64]), Err(OpError::Ended)] {
        loom::model(move || {
            let mut order = InFlight::new(Arc::default());
            let promise = Arc::new(Promise::new(1, Some(begin(&mut order))));
            let waiter = Waiter::new(Arc::clone(&promise), 0);
            let expected = outcome.clone().err();
            let channel = {
                let outcome = outcome.clone();
                thread::spawn(move || waiter.tell(outcome))
            };
            drop(promise);
            order.wait_until_at_most(0);
            assert!(!order.blocks(Key(1)), "nothing is in flight");
            assert_eq!(order.take_error(), expected, "whoever dropped the ticket hears of it here");
            channel.join().expect("no panic");
        });
    }
}

#[test]
fn a_promise_dropped_by_all_waiters_at_once_ends() {
    loom::model(|| {
        let promise = Arc::new(Promise::<i64>::new(2, None));
        let channels = [0, 1].map(|part| {
            let waiter = Waiter::new(Arc::clone(&promise), part);
            thread::spawn(move || drop(waiter))
        });
        assert_eq!(promise.wait(), Err(OpError::Ended));
        channels.into_iter().for_each(|channel| channel.join().expect("no panic"));
    });
}

/// A parker that blocks a task until it is woken.
struct Parker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().expect("no panic") = true;
        self.changed.notify_one();
    }
}

#[test]
fn a_pending_task_is_woken() {
    loom::model(|| {
        let promise = Arc::new(Promise::new(1, None));
        let waiter = Waiter::new(Arc::clone(&promise), 0);
        let channel = thread::spawn(move || waiter.tell(Ok(vec![8_i64])));
        let parker = Arc::new(Parker { woken: Mutex::new(false), changed: Condvar::new() });
        let waker = Waker::from(Arc::clone(&parker));
        if let Poll::Ready(outcome) = promise.poll(&waker) {
            assert_eq!(outcome, Ok(vec![vec![8]]));
        } else {
            let mut woken = parker.woken.lock().expect("no panic");
            while !*woken {
                woken = parker.changed.wait(woken).expect("no panic");
            }
            drop(woken);
            assert_eq!(promise.poll(&waker), Poll::Ready(Ok(vec![vec![8]])));
        }
        channel.join().expect("no panic");
    });
}
