//! Promises under loom: no wake-up is lost, no part is lost, and who comes back from a wait finds the call in its record.

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

#[test]
fn after_a_wait_the_fast_path_is_open() {
    loom::model(|| {
        let mut order = InFlight::new(Arc::default());
        let call = order.next_call();
        order.mark(Key(1));
        order.track(call, vec![Key(1)]);
        let report = Report { completions: Arc::clone(order.completions()), call, with_error: false };
        let promise = Arc::new(Promise::new(1, Some(report)));
        let waiter = Waiter::new(Arc::clone(&promise), 0);
        let channel = thread::spawn(move || waiter.tell(Ok(vec![3_i64])));
        assert_eq!(promise.wait(), Ok(vec![vec![3]]));
        assert!(!order.blocks(Key(1)), "the record is written before the waiter is let go");
        channel.join().expect("no panic");
    });
}

/// Blocks a task until it is woken.
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
