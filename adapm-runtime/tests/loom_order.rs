//! The order rule under loom: the fast path for a key opens only after the operation in flight on
//! it is done *and visible*.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-runtime
//! --test 'loom_*'`

#![cfg(adapm_loom)]

#[path = "support/wrong.rs"]
mod wrong;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_runtime::model::InFlight;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use wrong::{Order, WrongOrder};

const KEY: Key = Key(7);

/// A value without a latch: loom reports an access that is not ordered after the last change.
struct Bare {
    access: UnsafeCell<()>,
    value: AtomicU64,
}

impl Bare {
    fn new() -> Arc<Self> {
        Arc::new(Self { access: UnsafeCell::new(()), value: AtomicU64::new(0) })
    }

    fn add(&self, update: u64) {
        self.access.with_mut(|_| self.value.store(self.value.load(Relaxed) + update, Relaxed));
    }

    fn read(&self) -> u64 {
        self.access.with(|_| self.value.load(Relaxed))
    }
}

#[test]
fn an_open_fast_path_sees_the_operation() {
    let (open, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&open), Arc::clone(&closed));
    loom::model(move || {
        let mut order = InFlight::new(Arc::default());
        let value = Bare::new();
        let call = order.begin(KEY);
        let channel = {
            let (completions, value) = (Arc::clone(order.completions()), Arc::clone(&value));
            thread::spawn(move || {
                value.add(1);
                completions.finish(call, None);
            })
        };
        if order.blocks(KEY) {
            counts.1.fetch_add(1, Relaxed);
        } else {
            assert_eq!(value.read(), 1, "the worker's own push was overtaken");
            counts.0.fetch_add(1, Relaxed);
        }
        channel.join().expect("no panic");
    });
    assert!(open.load(Relaxed) > 0 && closed.load(Relaxed) > 0, "both outcomes occur");
}

#[test]
fn the_fast_path_stays_closed_until_the_last_of_two_operations() {
    two_operations(|| InFlight::new(Arc::default()), done_then_reported);
}

/// The models that find the mistake in the copy pass with a correct copy.
#[test]
fn a_copy_without_a_mistake_passes() {
    two_operations(|| WrongOrder::new(false), done_then_reported);
}

#[test]
#[should_panic(expected = "nothing is in flight")]
fn planted_a_worker_that_forgets_calls_it_has_not_taken_is_found() {
    two_operations(|| WrongOrder::new(true), done_then_reported);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn planted_an_operation_reported_before_it_is_done_is_found() {
    two_operations(
        || InFlight::new(Arc::default()),
        |value, report| {
            report();
            value.add(1);
        },
    );
}

fn done_then_reported(value: &Bare, report: &dyn Fn()) {
    value.add(1);
    report();
}

/// Puts two operations in flight on one key; `serve` does one and reports it.
fn two_operations<O: Order>(new: fn() -> O, serve: fn(&Bare, &dyn Fn())) {
    loom::model(move || {
        let mut order = new();
        let value = Bare::new();
        let calls = [order.begin(KEY), order.begin(KEY)];
        let channel = {
            let (finish, value) = (order.finisher(), Arc::clone(&value));
            thread::spawn(move || {
                calls.into_iter().for_each(|call| serve(&value, &|| finish(call)));
            })
        };
        for _ in 0..2 {
            if !order.blocks(KEY) {
                assert_eq!(value.read(), 2, "one of two pushes was overtaken");
            }
        }
        channel.join().expect("no panic");
        assert!(!order.blocks(KEY), "nothing is in flight");
    });
}

#[test]
fn waiting_for_all_calls_ends_and_sees_them() {
    loom::model(|| {
        let mut order = InFlight::new(Arc::default());
        let value = Bare::new();
        let calls = [order.begin(KEY), order.begin(KEY)];
        let channel = {
            let (completions, value) = (Arc::clone(order.completions()), Arc::clone(&value));
            thread::spawn(move || {
                value.add(1);
                completions.finish(calls[0], None);
                value.add(1);
                completions.finish(calls[1], Some(OpError::Ended));
            })
        };
        order.wait_until_at_most(0);
        assert_eq!(value.read(), 2);
        assert_eq!(order.take_error(), Some(OpError::Ended));
        channel.join().expect("no panic");
    });
}
