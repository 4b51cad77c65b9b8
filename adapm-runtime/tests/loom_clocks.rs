//! Clocks under loom: an engine that sees a clock sees what the worker did before, and never sees
//! the clock fall.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-runtime
//! --test 'loom_*'`

#![cfg(adapm_loom)]

#[path = "support/wrong.rs"]
mod wrong;

use std::sync::Arc;

use adapm_core::engine::OpBody;
use adapm_core::{Clock, Key, Layout, WorkerId};
use adapm_runtime::LayoutStore;
use adapm_runtime::model::{Clocks, Command, ModelNode};
use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;

use wrong::{OneClock, WrongClock};

const W0: WorkerId = WorkerId(0);
const W1: WorkerId = WorkerId(1);

/// Work done before the clock was raised, without a latch: loom reports reads that come too early.
#[derive(Default)]
struct Work([UnsafeCell<u64>; 2]);

fn clock_seen_means_work_seen<C: OneClock>(new: fn() -> C) {
    loom::model(move || {
        let (clocks, work) = (Arc::new(new()), Arc::new(Work::default()));
        let worker = {
            let (clocks, work) = (Arc::clone(&clocks), Arc::clone(&work));
            thread::spawn(move || {
                for step in 0..2 {
                    work.0[step].with_mut(|_| ());
                    clocks.set(Clock(step as u64 + 1));
                }
            })
        };
        for _ in 0..2 {
            let seen = clocks.get().0 as usize;
            work.0[..seen].iter().for_each(|work| work.with(|_| ()));
        }
        worker.join().expect("the worker is done");
    });
}

#[test]
fn who_sees_a_clock_sees_what_was_done_before() {
    clock_seen_means_work_seen(|| Clocks::new(1));
    // The model that finds the mistake in the copy passes with a correct copy.
    clock_seen_means_work_seen(|| WrongClock::new(Release, Acquire));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn planted_a_clock_that_does_not_release_is_found() {
    clock_seen_means_work_seen(|| WrongClock::new(Relaxed, Acquire));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn planted_a_look_that_does_not_acquire_is_found() {
    clock_seen_means_work_seen(|| WrongClock::new(Release, Relaxed));
}

#[test]
fn clocks_read_together_never_fall() {
    loom::model(|| {
        let clocks = Arc::new(Clocks::new(2));
        let workers = [(W0, Clock(1)), (W1, Clock::INFINITY)].map(|(worker, last)| {
            let clocks = Arc::clone(&clocks);
            thread::spawn(move || clocks.set(worker, last))
        });
        let (mut before, mut after) = (Vec::new(), Vec::new());
        clocks.read(&mut before);
        clocks.read(&mut after);
        assert!(before[0] <= after[0] && before[1] <= after[1], "{before:?} before {after:?}");
        for worker in workers {
            worker.join().expect("the worker is done");
        }
        assert_eq!([clocks.clock(W0), clocks.clock(W1)], [Clock(1), Clock::INFINITY]);
    });
}

#[test]
fn who_hears_of_a_workers_end_reads_that_its_intents_expire() {
    loom::model(|| {
        let layout = Layout::dense(&[(2, 1)]).expect("a legal layout");
        let node =
            ModelNode::new(layout.clone(), Arc::new(LayoutStore::<i64>::new(&layout)), 1, || ());
        let worker = {
            let mut worker = node.worker(W0);
            thread::spawn(move || {
                worker.intent(&[Key(1)], Clock(0)..Clock(9)).expect("the worker lives");
                worker.advance_clock();
                // The worker ends when it is dropped.
            })
        };
        let (commands, _) = node.take();
        let ended = |command: &Command<_>| matches!(command, Command::Op(_, W0, OpBody::End));
        if commands.iter().any(ended) {
            let mut clocks = Vec::new();
            node.clocks().read(&mut clocks);
            assert_eq!(clocks, [Clock::INFINITY], "the intent would be kept forever");
        }
        worker.join().expect("the worker is done");
        assert_eq!(node.clocks().clock(W0), Clock::INFINITY, "the end comes after every advance");
    });
}
