//! Duties of any program around an engine, implemented once: for threads, a simulator, tests, a
//! microcontroller.
//!
//! ```text
//!   workers ──pull, push──> store            Host: messages, ends of operations
//!      │                      ^                ^
//!      │ dirty keys           │                │
//!      └────────────> Driver [ Engine ] ───────┘
//! ```
//!
//! A [`Driver`] decides when dirty keys must reach the engine, and drains its outputs; its [`Host`]
//! supplies the dirty keys and carries out the outputs. [`order`] has the other duty: a worker must
//! not overtake its own operations.
//!
//! A checklist of what a driver leaves to its program: [drive an engine](crate::docs::driving).
//!
//! Not here: threads, time, transports; the inputs themselves ([`Input`]).

pub mod order;

use alloc::vec::Vec;

use crate::engine::{Engine, Event, Input, Output, Reason};
use crate::error::InputError;
use crate::id::{Key, NodeId};
use crate::policy::Policy;
use crate::store::Store;
use crate::time::Instant;
use crate::wire::Message;
use crate::wire::message::{Body, Mark};

/// Services that a driver needs from the program around it.
pub trait Host<V> {
    /// Appends the keys that workers of this node have made dirty
    /// ([`crate::slot::Pushed::Dirtied`]) since the last call, in any order. Must include all keys
    /// dirtied before the current input.
    fn take_dirty(&mut self, keys: &mut Vec<Key>);

    /// Sends the message, after all earlier ones to that node.
    fn transmit(&mut self, to: NodeId, message: Message);

    /// Delivers an event to a worker.
    fn tell(&mut self, event: Event<V>);
}

/// An engine with its input and output loop.
pub struct Driver<S: Store, P: Policy> {
    engine: Engine<S, P>,
    dirty: Vec<Key>,
    until: Option<Instant>,
    reason: Reason,
}

impl<S: Store, P: Policy> Driver<S, P> {
    /// Wraps an engine that has not had any input.
    pub fn new(engine: Engine<S, P>) -> Self {
        Self { engine, dirty: Vec::new(), until: None, reason: Reason::Idle }
    }

    /// Feeds one input at time `now`, and carries out the outputs through `host`.
    ///
    /// Reports dirty keys first where the input needs that: before an operation, whose worker may
    /// have pushed to the same keys; before a timeout, which may begin a round; before a
    /// marked request, whose caller waits for all earlier pushes of all workers.
    ///
    /// # Errors
    /// An invalid input, with the party to blame; nothing of it has been applied.
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

    /// Reports dirty keys only. They may make a round due: see [`Driver::until`].
    pub fn look_at_dirty_keys(&mut self, host: &mut impl Host<S::Value>) {
        if self.take_dirty(host) {
            self.drain(host);
        }
    }

    /// Returns the time to feed [`Input::Timeout`]; `None` if only other inputs matter.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Returns the reason for which the node waits.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine<S, P> {
        &self.engine
    }

    /// Reports dirty keys to the engine. Returns true if there were any.
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
            matches!(&*message.body, Body::SyncRequest(request) if request.mark != Mark::None)
        }
        Input::Intent(_) | Input::TakeBack(_) | Input::PeerLost(_) | Input::Heard(_) => false,
    }
}
