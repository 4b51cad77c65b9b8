//! The subjects of the loom suites: the parts that threads share, and a node made of them whose
//! channel thread the model plays.
//!
//! Hidden, and not part of the public interface: may change with every version.

pub use crate::mailbox::{Mailbox, Urgency};
pub use crate::node::Clocks;
pub use crate::order::{CallId, Completions, InFlight};
pub use crate::promise::{Promise, Report, Waiter};

#[cfg(adapm_loom)]
pub use node::{Command, ModelNode};

#[cfg(adapm_loom)]
mod node {
    use std::sync::Arc;

    use adapm_core::engine::{Intent, OpBody};
    use adapm_core::home::HomeMap;
    use adapm_core::policy::Supply;
    use adapm_core::store::Store;
    use adapm_core::{Key, Layout, NodeId, WorkerId};

    use crate::hot_keys::HotKeys;
    use crate::node::Clocks;
    use crate::node::{self, NodeShared, Port, WorkerShared};
    use crate::promise::Waiter;
    use crate::worker::Worker;

    /// One node of a cluster of two, with one channel and without its thread.
    pub struct ModelNode<S: Store>(Arc<NodeShared<S>>);

    /// A command for the channel thread.
    pub enum Command<V> {
        /// An operation, and its waiter.
        Op(Waiter<V>, WorkerId, OpBody<V>),
        /// A signal.
        Intent(Intent),
        /// A signal taken back.
        TakeBack(Intent),
    }

    impl<S: Store> ModelNode<S> {
        /// Creates node 0 with `workers` workers over `store`; `wake` ends the channel thread's
        /// sleep.
        #[must_use]
        pub fn new(
            layout: Layout,
            store: Arc<S>,
            workers: usize,
            wake: impl Fn() + Send + Sync + 'static,
        ) -> Self {
            Self(Arc::new(NodeShared {
                node: NodeId(0),
                nodes: 2,
                homes: HomeMap::scale(2),
                layout,
                store,
                ports: vec![Arc::new(Port::new(workers, Arc::new(wake)))],
                clocks: Arc::new(Clocks::new(workers)),
                workers: (0..workers).map(|_| WorkerShared::default()).collect(),
                first_worker: 0,
                all_workers: 2 * workers,
                sampling: None,
                supply: Supply::Intent,
                clocks_per_tick: None,
                hot_keys: HotKeys::default(),
            }))
        }

        /// Returns the handle of worker `id`, which ends when it is dropped.
        #[must_use]
        pub fn worker(&self, id: WorkerId) -> Worker<S::Value, S> {
            Worker::new(Arc::clone(&self.0), id, None)
        }

        /// Ends worker `id`, as a node that leaves does.
        pub fn end(&self, id: WorkerId) {
            self.0.end(id);
        }

        /// Returns the clocks of the workers.
        #[must_use]
        pub fn clocks(&self) -> &Clocks {
            &self.0.clocks
        }

        /// Takes the posted commands, *then* the dirtied keys.
        pub fn take(&self) -> (Vec<Command<S::Value>>, Vec<Key>) {
            let (mut commands, mut keys) = (Vec::new(), Vec::new());
            self.0.ports[0].mailbox.take(&mut commands);
            self.0.ports[0].mailbox.take_dirty(&mut keys);
            let public = |command| match command {
                node::Command::Op { waiter, worker, body } => Command::Op(waiter, worker, body),
                node::Command::Intent(intent) => Command::Intent(intent),
                node::Command::TakeBack(intent) => Command::TakeBack(intent),
            };
            (commands.into_iter().map(public).collect(), keys)
        }

        /// Prepares for a long sleep. Returns false if there is something to take.
        #[must_use]
        pub fn doze_off(&self) -> bool {
            self.0.ports[0].mailbox.doze_off()
        }

        /// Ends a long sleep.
        pub fn get_up(&self) {
            self.0.ports[0].mailbox.get_up();
        }

        /// Refuses everything from here on and drops the posted commands, like a channel thread
        /// that ends.
        pub fn close(&self) {
            self.0.ports[0].mailbox.close();
            drop(self.take());
        }
    }

    impl<S: Store> Clone for ModelNode<S> {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0))
        }
    }
}
