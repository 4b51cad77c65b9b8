//! The sleep of a channel thread that a loom model plays.

use loom::sync::{Condvar, Mutex};

/// A sleep: `wake` ends the current or the next.
#[derive(Default)]
pub(crate) struct Bed(Mutex<bool>, Condvar);

impl Bed {
    pub(crate) fn wake(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_one();
    }

    pub(crate) fn rest(&self) {
        let mut woken = self.0.lock().expect("no panic");
        while !*woken {
            woken = self.1.wait(woken).expect("no panic");
        }
        *woken = false;
    }
}
