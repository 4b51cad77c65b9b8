//! Intents that a loader thread signals, under loom: none is lost, none is posted after the
//! worker's end, and a sleeping channel thread is woken for them.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-runtime
//! --test 'loom_*'`

#![cfg(adapm_loom)]

#[path = "support/bed.rs"]
mod bed;

use std::sync::Arc;

use adapm_core::engine::OpBody;
use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, WorkerId};
use adapm_runtime::LayoutStore;
use adapm_runtime::model::{Command, Mailbox, ModelNode, Urgency};
use loom::sync::Mutex;
use loom::thread;

use bed::Bed;

const W0: WorkerId = WorkerId(0);

type Node = ModelNode<LayoutStore<i64>>;

fn node() -> (Node, Arc<Bed>) {
    let layout = Layout::dense(&[(4, 1)]).expect("a legal layout");
    let store = Arc::new(LayoutStore::new(&layout));
    let bed = Arc::new(Bed::default());
    let wake = Arc::clone(&bed);
    (ModelNode::new(layout, store, 1, move || wake.wake()), bed)
}

/// Returns the kind of a command as a letter: intent, localize, end, ...
fn letter(command: &Command<i64>) -> char {
    match command {
        Command::Intent(_) => 'i',
        Command::TakeBack(_) => 't',
        Command::Op(_, _, OpBody::Localize { .. }) => 'l',
        Command::Op(_, _, OpBody::End) => 'e',
        Command::Op(..) => '?',
    }
}

#[test]
fn an_intent_is_taken_whatever_the_clock_does_meanwhile() {
    loom::model(|| {
        let (node, _) = node();
        let mut worker = node.worker(W0);
        let mut handle = worker.intent_handle();
        let loader = thread::spawn(move || {
            handle.intent(&[Key(1)], Clock(1)..Clock(2)).expect("the worker lives");
            handle.intent(&[Key(2)], Clock(2)..Clock(3)).expect("the worker lives");
        });
        worker.advance_clock();
        worker.advance_clock();
        let (mut taken, _) = node.take();
        loader.join().expect("the loader is done");
        taken.extend(node.take().0);
        let windows: Vec<u64> = taken
            .iter()
            .map(|command| match command {
                Command::Intent(intent) => intent.clocks.start.0,
                Command::Op(..) | Command::TakeBack(_) => panic!("nothing else was posted"),
            })
            .collect();
        // The first intent may be posted after its window and is then dropped; the window of the
        // second has not ended.
        assert!([&[1, 2][..], &[2]].contains(&&*windows), "{windows:?}");
    });
}

/// The loader localizes and signals while the worker's thread ends the worker.
fn loader_outlives_its_worker() {
    loom::model(|| {
        let (node, _) = node();
        let worker = node.worker(W0);
        let mut handle = worker.intent_handle();
        let loader = thread::spawn(move || {
            let localized = handle.localize_async(&[Key(1)]).map(drop);
            let signaled = handle.intent(&[Key(2)], Clock(0)..Clock(5));
            assert!([Ok(()), Err(OpError::Ended)].contains(&localized));
            assert!(signaled == Ok(()) || signaled == Err(OpError::Ended));
            usize::from(localized.is_ok())
        });
        drop(worker);
        let mut story: String = node.take().0.iter().map(letter).collect();
        let localized = loader.join().expect("the loader is done");
        story.extend(node.take().0.iter().map(letter));
        assert!(story.ends_with('e'), "{story}: something of the worker has followed its end");
        assert_eq!(story.matches('e').count(), 1, "{story}");
        assert_eq!(story.matches('l').count(), localized, "{story}: what was promised was posted");
    });
}

#[test]
fn nothing_of_a_worker_follows_its_end() {
    loader_outlives_its_worker();
}

/// Like the above with a mutex and a mailbox only: a poster checks if the worker has ended. With
/// `holds` it also holds the mutex until it has posted, so that the worker cannot end before.
fn posts_if_alive(holds: bool) {
    loom::model(move || {
        let shared = Arc::new((Mutex::new(false), Mailbox::new(1)));
        let loader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let ended = shared.0.lock().expect("no panic");
                if !*ended {
                    let ended = Some(ended).filter(|_| holds);
                    shared.1.post('i', Urgency::NextRound).expect("the mailbox is open");
                    drop(ended);
                }
            })
        };
        let mut ended = shared.0.lock().expect("no panic");
        *ended = true;
        shared.1.post('e', Urgency::AtOnce).expect("the mailbox is open");
        drop(ended);
        loader.join().expect("the loader is done");
        let mut story = Vec::new();
        shared.1.take(&mut story);
        assert_eq!(
            story.last(),
            Some(&'e'),
            "{story:?}: something of the worker has followed its end"
        );
    });
}

#[test]
fn what_is_posted_while_the_worker_cannot_end_comes_before_its_end() {
    posts_if_alive(true);
}

#[test]
#[should_panic(expected = "followed its end")]
fn planted_a_look_at_the_end_before_posting_is_found() {
    posts_if_alive(false);
}

#[test]
fn a_worker_that_two_threads_end_ends_once() {
    loom::model(|| {
        let (node, _) = node();
        let worker = node.worker(W0);
        let leaving = {
            let node = node.clone();
            thread::spawn(move || node.end(W0))
        };
        drop(worker);
        leaving.join().expect("the node has left");
        assert_eq!(node.take().0.iter().map(letter).collect::<String>(), "e");
    });
}

/// An intent wakes the channel thread even though no thread waits for its effect.
#[test]
fn an_intent_wakes_who_sleeps_for_long() {
    loom::model(|| {
        let (node, bed) = node();
        let worker = node.worker(W0);
        let mut handle = worker.intent_handle();
        let loader = thread::spawn(move || {
            handle.intent(&[Key(1)], Clock(0)..Clock(1)).expect("the worker lives");
        });
        let mut taken = Vec::new();
        while taken.is_empty() {
            if node.doze_off() {
                bed.rest();
            }
            node.get_up();
            taken = node.take().0;
        }
        loader.join().expect("the loader is done");
    });
}

#[test]
fn a_loader_that_waits_is_told_when_the_channel_thread_ends() {
    loom::model(|| {
        let (node, _) = node();
        let worker = node.worker(W0);
        let mut handle = worker.intent_handle();
        let loader = thread::spawn(move || {
            let outcome = handle.localize(&[Key(1)]);
            assert_eq!(outcome, Err(OpError::Ended), "nobody serves");
        });
        node.close();
        loader.join().expect("the loader is done");
    });
}
