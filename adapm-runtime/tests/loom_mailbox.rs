//! The queues to a channel thread under loom: nothing is lost, nothing overtakes, and a thread that
//! sleeps is woken.

#![cfg(adapm_loom)]

#[path = "support/wrong.rs"]
mod wrong;

use std::sync::Arc;

use adapm_core::Key;
use adapm_runtime::model::{Mailbox, Urgency};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use wrong::{Mistake, Ways, WrongMailbox};

/// The wait of a transport: `wake` ends the current or the next `sleep`.
#[derive(Default)]
struct Bed {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Bed {
    fn wake(&self) {
        *self.woken.lock().expect("no panic") = true;
        self.changed.notify_one();
    }

    fn rest(&self) {
        let mut woken = self.woken.lock().expect("no panic");
        while !*woken {
            woken = self.changed.wait(woken).expect("no panic");
        }
        *woken = false;
    }
}

/// State shared by a worker and a channel thread.
struct Shared {
    ways: Box<dyn Ways<u32>>,
    bed: Bed,
}

/// The shipped mailbox, or a wrong copy of it.
#[derive(Clone, Copy)]
enum Which {
    Shipped,
    Copy(Option<Mistake>),
}

impl Shared {
    fn new(which: Which) -> Arc<Self> {
        let ways: Box<dyn Ways<u32>> = match which {
            Which::Shipped => Box::new(Mailbox::new(1)),
            Which::Copy(mistake) => Box::new(WrongMailbox::new(mistake)),
        };
        Arc::new(Self { ways, bed: Bed::default() })
    }

    fn post(&self, item: u32, urgency: Urgency) {
        if self.ways.post(item, urgency) {
            self.bed.wake();
        }
    }

    fn dirty(&self, key: Key) {
        if self.ways.append_dirty(key) {
            self.bed.wake();
        }
    }

    fn take(&self) -> (Vec<u32>, Vec<Key>) {
        self.ways.take()
    }
}

#[test]
fn operations_of_two_workers_wake_a_short_sleeper_and_keep_their_orders() {
    two_workers_and_a_short_sleeper(Which::Shipped);
}

#[test]
#[should_panic(expected = "deadlock")]
fn planted_a_taken_mailbox_that_stays_urgent_is_found() {
    two_workers_and_a_short_sleeper(Which::Copy(Some(Mistake::StayUrgent)));
}

fn two_workers_and_a_short_sleeper(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let workers = [[10, 11], [20, 21]].map(|items| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                items.into_iter().for_each(|item| shared.post(item, Urgency::AtOnce))
            })
        });
        let mut got = Vec::new();
        while got.len() < 4 {
            let (mut items, _) = shared.take();
            if items.is_empty() {
                shared.bed.rest();
            }
            got.append(&mut items);
        }
        for first in [10, 20] {
            let own: Vec<u32> =
                got.iter().copied().filter(|item| item / 10 == first / 10).collect();
            assert_eq!(own, [first, first + 1]);
        }
        for worker in workers {
            worker.join().expect("no panic");
        }
    });
}

#[test]
fn what_is_not_urgent_wakes_a_long_sleeper() {
    not_urgent_for_a_long_sleeper(Which::Shipped);
}

#[test]
#[should_panic(expected = "deadlock")]
fn planted_a_sleeper_that_looked_before_it_said_so_is_found() {
    not_urgent_for_a_long_sleeper(Which::Copy(Some(Mistake::LookBeforeDozing)));
}

fn not_urgent_for_a_long_sleeper(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.dirty(Key(1));
                shared.post(7, Urgency::NextRound);
            })
        };
        let mut got = (Vec::new(), Vec::new());
        while got.0.is_empty() || got.1.is_empty() {
            if shared.ways.doze_off() {
                shared.bed.rest();
            }
            shared.ways.get_up();
            let (items, keys) = shared.take();
            got.0.extend(items);
            got.1.extend(keys);
        }
        assert_eq!(got, (vec![7], vec![Key(1)]));
        worker.join().expect("no panic");
    });
}

/// Appends one dirtied key, and nothing after it that would wake the thread as well.
fn a_dirtied_key_for_a_long_sleeper(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.dirty(Key(1)))
        };
        let mut keys = Vec::new();
        while keys.is_empty() {
            if shared.ways.doze_off() {
                shared.bed.rest();
            }
            shared.ways.get_up();
            keys = shared.take().1;
        }
        worker.join().expect("no panic");
    });
}

#[test]
fn a_single_dirtied_key_wakes_a_long_sleeper() {
    a_dirtied_key_for_a_long_sleeper(Which::Shipped);
}

#[test]
#[should_panic(expected = "deadlock")]
fn planted_a_worker_that_looked_before_it_left_its_work_is_found() {
    a_dirtied_key_for_a_long_sleeper(Which::Copy(Some(Mistake::LookBeforePosting)));
}

fn an_operation_behind_a_dirtied_key(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.dirty(Key(1));
                shared.post(7, Urgency::AtOnce);
            })
        };
        let (items, keys) = shared.take();
        assert!(items.is_empty() || !keys.is_empty(), "an operation has overtaken a dirtied key");
        worker.join().expect("no panic");
    });
}

#[test]
fn what_was_dirtied_before_an_operation_is_taken_with_it() {
    an_operation_behind_a_dirtied_key(Which::Shipped);
}

#[test]
#[should_panic(expected = "has overtaken a dirtied key")]
fn planted_dirty_queues_drained_before_the_mailbox_are_found() {
    an_operation_behind_a_dirtied_key(Which::Copy(Some(Mistake::DirtyFirst)));
}

/// The models that find a mistake in the copy pass with a correct copy.
#[test]
fn a_copy_without_a_mistake_passes() {
    let models = [
        two_workers_and_a_short_sleeper,
        not_urgent_for_a_long_sleeper,
        a_dirtied_key_for_a_long_sleeper,
        an_operation_behind_a_dirtied_key,
        fills_the_mailbox,
        signals_fill_the_mailbox,
    ];
    models.into_iter().for_each(|model| model(Which::Copy(None)));
}

/// Posts one command more than there is room for.
fn fills_the_mailbox(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                (0..=Mailbox::<u32>::CAPACITY as u32)
                    .for_each(|item| shared.post(item, Urgency::AtOnce));
            })
        };
        let mut got = Vec::new();
        while got.len() <= Mailbox::<u32>::CAPACITY {
            shared.bed.rest();
            got.append(&mut shared.take().0);
        }
        assert_eq!(got, Vec::from_iter(0..=Mailbox::<u32>::CAPACITY as u32));
        worker.join().expect("no panic");
    });
}

#[test]
fn who_waits_for_room_is_told_of_it() {
    fills_the_mailbox(Which::Shipped);
}

#[test]
#[should_panic(expected = "deadlock")]
fn planted_room_of_which_nobody_is_told_is_found() {
    fills_the_mailbox(Which::Copy(Some(Mistake::ForgetRoom)));
}

/// Posts one signal more than there is room for, for a thread that does not doze: it sleeps until a
/// round ends.
fn signals_fill_the_mailbox(which: Which) {
    loom::model(move || {
        let shared = Shared::new(which);
        let last = Mailbox::<u32>::CAPACITY as u32;
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || (0..=last).for_each(|item| shared.post(item, Urgency::NextRound)))
        };
        shared.bed.rest();
        let mut got = shared.take().0;
        worker.join().expect("no panic");
        got.append(&mut shared.take().0);
        assert_eq!(got, Vec::from_iter(0..=last));
    });
}

#[test]
fn who_fills_the_mailbox_wakes_whoever_sleeps_till_the_next_round() {
    signals_fill_the_mailbox(Which::Shipped);
}

#[test]
#[should_panic(expected = "deadlock")]
fn planted_a_full_mailbox_that_wakes_nobody_is_found() {
    signals_fill_the_mailbox(Which::Copy(Some(Mistake::SleepWhileFull)));
}

#[test]
fn who_waits_for_room_in_vain_gets_its_command_back() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new(0));
        let worker = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                let posted = (0..=Mailbox::<usize>::CAPACITY)
                    .map(|item| mailbox.post(item, Urgency::NextRound));
                posted.filter(Result::is_ok).count()
            })
        };
        mailbox.close();
        let posted = worker.join().expect("no panic");
        let mut items = Vec::new();
        mailbox.take(&mut items);
        assert_eq!(items, Vec::from_iter(0..posted), "what was not returned is there");
        assert!(posted <= Mailbox::<usize>::CAPACITY, "nobody made room");
    });
}

#[test]
fn a_closed_mailbox_returns_what_is_posted() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new(0));
        let channel = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                mailbox.close();
                let mut items = Vec::new();
                mailbox.take(&mut items);
                items
            })
        };
        let posted = mailbox.post(1, Urgency::AtOnce).is_ok();
        let taken = channel.join().expect("no panic");
        assert_eq!(taken, if posted { vec![1] } else { vec![] }, "an item is taken or returned");
    });
}
