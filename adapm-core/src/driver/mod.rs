//! What every program around an engine has to do, once: threads, a simulator, a test, a
//! microcontroller.
//!
//! ```text
//!   workers ──pull, push──> store            Host: messages, ends of operations
//!      │                      ^                ^
//!      │ dirty keys           │                │
//!      └────────────> Driver [ Engine ] ───────┘
//! ```
//!
//! A [`Driver`] knows when the keys that workers have made dirty must reach the engine, and drains
//! it; its [`Host`] says where they are, and carries out what the engine says. [`order`] has the
//! other duty: a worker must not overtake itself.
//!
//! Not here: threads, time, transports; which inputs there are ([`Input`]).

pub mod order;

use alloc::vec::Vec;

use crate::engine::{Engine, Event, Input, Output, Reason};
use crate::error::InputError;
use crate::id::{Key, NodeId};
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::Body;

/// What a driver needs of the program around it.
pub trait Host<V> {
    /// Appends the keys that workers of this node have made dirty
    /// ([`crate::slot::Pushed::Dirtied`]) since the last call, in any order. Everything that a
    /// worker dirtied before what is fed now must be among them.
    fn take_dirty(&mut self, keys: &mut Vec<Key>);

    /// Sends the message, after all earlier ones to that node.
    fn transmit(&mut self, to: NodeId, message: Message);

    /// Tells a worker.
    fn tell(&mut self, event: Event<V>);
}

/// An engine, fed and drained.
pub struct Driver<S: Store, P: Policy> {
    engine: Engine<S, P>,
    dirty: Vec<Key>,
    until: Option<Instant>,
    reason: Reason,
}

impl<S: Store, P: Policy> Driver<S, P> {
    /// A driver of an engine that has been fed nothing.
    pub fn new(engine: Engine<S, P>) -> Self {
        Self { engine, dirty: Vec::new(), until: None, reason: Reason::Idle }
    }

    /// Feeds one input at time `now`, and carries out by `host` what the engine says.
    ///
    /// The engine learns of dirty keys first, where an input needs that: before an operation, whose
    /// worker may have pushed to the same keys; before a timeout, with which a round may begin;
    /// before a request of a `wait_sync`, whose caller waits for every push that any worker had
    /// made.
    ///
    /// # Errors
    /// Who is to blame for an input that cannot be; nothing of it has been applied.
    pub fn feed(
        &mut self,
        now: Instant,
        input: Input<'_, S::Value>,
        host: &mut impl Host<S::Value>,
    ) -> Result<(), InputError> {
        if needs_dirty_keys(&input) {
            self.take_dirty(host);
        }
        let verdict = self.engine.handle_input(now, input);
        self.drain(host);
        verdict
    }

    /// Looks at the dirty keys alone: what is dirty may make a round due, of which
    /// [`Driver::until`] tells.
    pub fn look_at_dirty_keys(&mut self, host: &mut impl Host<S::Value>) {
        if self.take_dirty(host) {
            self.drain(host);
        }
    }

    /// When to feed [`Input::Timeout`]; `None`: only other inputs matter.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// What the node waits for.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine<S, P> {
        &self.engine
    }

    /// Returns true if there were dirty keys.
    fn take_dirty(&mut self, host: &mut impl Host<S::Value>) -> bool {
        host.take_dirty(&mut self.dirty);
        let any = !self.dirty.is_empty();
        self.engine.note_dirty(&self.dirty);
        self.dirty.clear();
        any
    }

    fn drain(&mut self, host: &mut impl Host<S::Value>) {
        loop {
            match self.engine.poll_output() {
                Output::Transmit(to, message) => host.transmit(to, message),
                Output::Event(event) => host.tell(event),
                Output::Wait { until, reason } => {
                    (self.until, self.reason) = (until, reason);
                    return;
                }
            }
        }
    }
}

fn needs_dirty_keys<V>(input: &Input<'_, V>) -> bool {
    match input {
        Input::Op(_) | Input::Timeout(_) => true,
        Input::Message(_, message) => {
            matches!(&*message.body, Body::SyncRequest(request) if request.sync)
        }
        Input::Intent(_) | Input::TakeBack(_) | Input::PeerLost(_) | Input::Heard(_) => false,
    }
}
