//! A [`Host`] that records the outputs of an engine, for tests.

use adapm_core::driver::Host;
use adapm_core::engine::Event;
use adapm_core::wire::Message;
use adapm_core::{Key, NodeId};

/// The environment of one engine: the dirty keys of its workers, and its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorder<V> {
    /// Keys that workers have changed since the engine last took them.
    pub dirty: Vec<Key>,
    /// Messages that the engine has sent, in order, each with its receiver.
    pub sent: Vec<(NodeId, Message)>,
    /// Events of the engine for workers, in order.
    pub events: Vec<Event<V>>,
}

impl<V> Default for Recorder<V> {
    fn default() -> Self {
        Self { dirty: Vec::new(), sent: Vec::new(), events: Vec::new() }
    }
}

impl<V> Recorder<V> {
    /// Returns true if there were no outputs.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.sent.is_empty() && self.events.is_empty()
    }
}

impl<V> Host<V> for Recorder<V> {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        keys.append(&mut self.dirty);
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.sent.push((to, message));
    }

    fn tell(&mut self, event: Event<V>) {
        self.events.push(event);
    }
}
