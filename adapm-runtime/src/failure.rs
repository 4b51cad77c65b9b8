//! The failure of a cluster: its first error, which ends all channel threads, and the peers that
//! were lost.
//!
//! A lost peer does not end the threads at once: they notify their engines
//! ([`adapm_core::engine::Input::PeerLost`]), which fail operations that can no longer be done, so
//! that workers learn which node is missing. The threads end when the workers have.
//!
//! The work of a cluster is complete here when the last operation of every channel thread, its
//! leave, has ended well: the workers of all nodes have ended, and everything they sent is in the
//! main copies. A loss noticed before a leave has ended fails that leave, and so the cluster; a
//! later loss is not an error.

use std::sync::OnceLock;

use adapm_transport::error::PeerLoss;

use crate::error::RunError;
use crate::link::WakeFn;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};

/// Failure state shared by all channel threads of the process.
#[derive(Default)]
pub(crate) struct Failure {
    raised: AtomicBool,
    first: Mutex<Option<RunError>>,
    /// Lost peers in the order in which they were noticed, each once; `lost_count` is their number.
    lost: Mutex<Vec<PeerLoss>>,
    lost_count: AtomicU64,
    wakes: OnceLock<Vec<WakeFn>>,
    on_loss: OnceLock<LossFn>,
    is_complete: AtomicBool,
}

/// A callback for each loss, called with the first lost peer.
pub(crate) type LossFn = Box<dyn Fn(PeerLoss) + Send + Sync>;

impl Failure {
    /// Sets the functions that wake the threads.
    pub(crate) fn wakes(&self, wakes: Vec<WakeFn>) {
        assert!(self.wakes.set(wakes).is_ok(), "the threads of a cluster are named once");
    }

    /// Sets the callback for losses; the first call counts.
    pub(crate) fn on_loss(&self, on_loss: LossFn) {
        let _ = self.on_loss.set(on_loss);
    }

    /// Records `error` if it is the first, and ends all channel threads.
    pub(crate) fn raise(&self, error: RunError) {
        lock(&self.first).get_or_insert(error);
        self.end();
    }

    /// Records `error` unless an earlier one may have caused it, and ends all channel threads.
    pub(crate) fn blame(&self, error: RunError) {
        let mut first = lock(&self.first);
        if first.is_none() {
            *first = Some(error);
            drop(first);
            self.end();
        }
    }

    /// Records `error` in any case, and ends all channel threads. For root causes: `error` also
    /// replaces a loss, which it may have caused, as peers that learn of it leave.
    pub(crate) fn explain(&self, error: RunError) {
        *lock(&self.first) = Some(error);
        self.end();
    }

    /// Ends all channel threads.
    pub(crate) fn end(&self) {
        self.raised.store(true, Ordering::Release);
        self.wake();
    }

    /// Records a lost peer, unless it is known or its loss follows from an error of this process,
    /// and wakes all channel threads, which notify their engines.
    pub(crate) fn lose(&self, peer: PeerLoss) {
        let PeerLoss { node, address, loss } = peer;
        let mut lost = lock(&self.lost);
        // Nodes of this process leave because of the error that ends the threads. Other processes
        // receive the loss in any case.
        let is_consequence = self.is_raised() && self.on_loss.get().is_none();
        if is_consequence || self.is_complete() || lost.iter().any(|known| known.node == node) {
            return;
        }
        lock(&self.first).get_or_insert(RunError::PeerLost { node, address, loss });
        lost.push(peer);
        self.lost_count.store(lost.len() as u64, Ordering::Release);
        // Threads get past this point in any order, but a survivor that ends because of a loss must
        // not be blamed for it.
        let first = lost[0];
        drop(lost);
        self.wake();
        if let Some(on_loss) = self.on_loss.get() {
            on_loss(first);
        }
    }

    /// Records that the work of the cluster is complete, unless the channel threads were ended
    /// before: lost peers, known or yet to be noticed, then no longer make it fail.
    pub(crate) fn complete(&self) {
        let _lost = lock(&self.lost);
        let mut first = lock(&self.first);
        if !self.is_raised() && matches!(&*first, None | Some(RunError::PeerLost { .. })) {
            *first = None;
            self.is_complete.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Returns the lost peer with that index, if there is one.
    pub(crate) fn lost(&self, index: usize) -> Option<PeerLoss> {
        if self.lost_count.load(Ordering::Acquire) <= index as u64 {
            return None;
        }
        lock(&self.lost).get(index).copied()
    }

    /// Returns the first error, if any.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        lock(&self.first).clone().map_or(Ok(()), Err)
    }

    fn wake(&self) {
        for wake in self.wakes.get().into_iter().flatten() {
            wake();
        }
    }
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use std::sync::{Arc, Mutex};

    use adapm_core::NodeId;
    use adapm_core::transport::Loss;

    use super::*;

    const LOST: PeerLoss = PeerLoss { node: NodeId(1), address: None, loss: Loss::Failed };

    #[test]
    fn a_loss_is_no_error_once_the_work_is_complete() {
        let before = Failure::default();
        before.lose(LOST);
        assert!(matches!(before.check(), Err(RunError::PeerLost { node: NodeId(1), .. })));
        before.complete();
        assert_eq!((before.check(), before.is_complete()), (Ok(()), true));
        let after = Failure::default();
        after.complete();
        after.on_loss(Box::new(|peer| panic!("told of {peer:?}")));
        after.lose(LOST);
        assert_eq!((after.check(), after.lost(0)), (Ok(()), None));
    }

    #[test]
    fn what_ends_the_threads_is_an_error_whatever_is_complete() {
        let error =
            RunError::ChannelPanicked { node: NodeId(0), channel: adapm_core::ChannelId(0) };
        let raised = Failure::default();
        raised.raise(error.clone());
        raised.complete();
        assert_eq!((raised.check(), raised.is_complete()), (Err(error.clone()), false));
        let lost = Failure::default();
        lost.lose(LOST);
        lost.raise(error);
        lost.complete();
        assert!(matches!(lost.check(), Err(RunError::PeerLost { node: NodeId(1), .. })));
        let ended = Failure::default();
        ended.end();
        ended.complete();
        assert!(!ended.is_complete(), "a cluster that could not be built has completed nothing");
    }

    #[test]
    fn a_peer_that_leaves_because_of_an_error_does_not_hide_it() {
        let error =
            RunError::Process { node: NodeId(1), message: "cannot start a thread".to_owned() };
        for is_lost_first in [true, false] {
            let failure = Failure::default();
            let mut steps: [&dyn Fn(); 2] =
                [&|| failure.explain(error.clone()), &|| failure.lose(LOST)];
            if is_lost_first {
                steps.reverse();
            }
            steps.iter().for_each(|step| step());
            assert_eq!((failure.check(), failure.is_raised()), (Err(error.clone()), true));
        }
    }

    #[test]
    fn nodes_that_end_because_of_an_error_are_not_lost() {
        let error =
            RunError::ChannelPanicked { node: NodeId(0), channel: adapm_core::ChannelId(0) };
        for reports in [false, true] {
            let failure = Failure::default();
            if reports {
                failure.on_loss(Box::new(|_| {}));
            }
            failure.raise(error.clone());
            failure.lose(LOST);
            assert_eq!(failure.check(), Err(error.clone()));
            assert_eq!(failure.lost(0), reports.then_some(LOST));
        }
    }

    #[test]
    fn a_loss_that_overtakes_the_first_is_reported_as_the_first() {
        let peer = |node| PeerLoss { node: NodeId(node), address: None, loss: Loss::Failed };
        let (failure, told) = (Arc::new(Failure::default()), Arc::new(Mutex::new(Vec::new())));
        let (for_report, reported) = (Arc::downgrade(&failure), Arc::clone(&told));
        failure.on_loss(Box::new(move |PeerLoss { node, .. }| {
            // Simulates another thread that gets here with the next loss before this one goes on.
            for_report.upgrade().expect("it is in use").lose(peer(0));
            reported.lock().expect("no panic").push(node);
        }));
        failure.lose(peer(2));
        assert_eq!(*told.lock().expect("no panic"), [NodeId(2), NodeId(2)]);
        let names_2 = matches!(failure.check(), Err(RunError::PeerLost { node: NodeId(2), .. }));
        assert!(names_2, "{:?}", failure.check());
    }
}
