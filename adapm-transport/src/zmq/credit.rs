//! How much a pipe may leave with a ZeroMQ socket that has not written it yet.
//!
//! The socket's queue tells nobody how full it is. But a message gives its bytes back when the socket has copied them into
//! its write buffer, or has dropped them with the connection: a [`Loan`] rides on the message and returns then.

use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The credit of one pipe.
#[derive(Debug, Default)]
pub(super) struct Credit {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: usize,
    bytes: usize,
    waiting: Option<Waker>,
}

/// Part of a credit in use; returns with the drop.
#[derive(Debug)]
pub(super) struct Loan {
    credit: Arc<Credit>,
    bytes: usize,
}

impl Credit {
    /// Waits until there is credit for one more message, however long. One task at a time.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.messages < MESSAGES_MAX && state.bytes < BYTES_MAX {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes credit for a message; wait until there is some before.
    pub(super) fn lend(self: &Arc<Self>, bytes: usize) -> Loan {
        let mut state = self.lock();
        state.messages += 1;
        state.bytes += bytes;
        drop(state);
        Loan { credit: Arc::clone(self), bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut state = self.credit.lock();
        state.messages -= 1;
        state.bytes -= self.bytes;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Far below the 100,000 of a socket's queue.
const MESSAGES_MAX: usize = 128;
/// Bytes from which on there is no credit; the last message may go beyond.
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_ends_by_messages_or_bytes_and_comes_back() {
        let credit = Arc::new(Credit::default());
        let mut cx = Context::from_waker(Waker::noop());
        for (bytes, loans_max) in [(0, MESSAGES_MAX), (BYTES_MAX / 2 + 1, 2), (16 * BYTES_MAX, 1)] {
            let mut loans = Vec::new();
            while credit.poll_ready(&mut cx).is_ready() {
                loans.push(credit.lend(bytes));
            }
            assert_eq!(loans.len(), loans_max);
            loans.pop();
            assert!(credit.poll_ready(&mut cx).is_ready());
        }
    }
}
