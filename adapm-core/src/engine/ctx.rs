//! What all machines of an engine share: its place, the store, the policy, the time, what leaves.
//! And how main copies come into being: at the home of their key, with a value that follows from
//! the key alone; dense ones before the first input, sparse ones when they are asked for.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::clock::Clock;
use crate::config::NodeConfig;
use crate::engine::effect::Effect;
use crate::engine::entry::Access;
use crate::engine::input::OpId;
use crate::engine::outgoing::Outgoing;
use crate::engine::output::{Absent, Collective, Event, Output};
use crate::error::OpError;
use crate::id::{Key, NodeId, Ticket, Version};
use crate::layout::{Kind, Layout};
use crate::node_set::NodeSet;
use crate::observe::Observe;
use crate::policy::Policy;
use crate::route;
use crate::slot::{Location, PackedState, State};
use crate::stats::Stats;
use crate::store::{Look, Store};
use crate::ticket::Tickets;
use crate::time::Instant;
use crate::value::Value;
use crate::wire::Message;

/// A map from keys whose iteration order is the same in every run; it must not reach an output all
/// the same.
pub(super) type KeyMap<T> = hashbrown::HashMap<Key, T, foldhash::fast::FixedState>;

/// A map from operations, as [`KeyMap`].
pub(super) type OpMap<T> = hashbrown::HashMap<OpId, T, foldhash::fast::FixedState>;

/// What the user of an engine chooses.
pub(super) trait Env {
    type Value: Value;
    type Store: Store<Value = Self::Value>;
    type Policy: Policy;
}

impl<S: Store, P: Policy> Env for (S, P) {
    type Value = S::Value;
    type Store = S;
    type Policy = P;
}

/// What every machine may use, and none of them owns.
pub(super) struct Ctx<E: Env> {
    pub(super) config: NodeConfig,
    pub(super) layout: Layout,
    pub(super) store: E::Store,
    pub(super) policy: E::Policy,
    pub(super) initial: Initial<E::Value>,
    /// The time of the last input; never goes back.
    pub(super) now: Instant,
    /// The number of the current round.
    pub(super) round: u64,
    /// The clocks of all workers at the last timeout.
    pub(super) clocks: Vec<Clock>,
    pub(super) tickets: Tickets,
    pub(super) outputs: VecDeque<Output<E::Value>>,
    /// Entries that leave at the end of the input.
    pub(super) outgoing: Outgoing<E::Value>,
    /// What machines ask of each other, in order.
    pub(super) effects: VecDeque<Effect>,
    pub(super) observer: Option<Box<dyn Observe + Send>>,
    pub(super) stats: Stats,
    /// Peers that are gone for good.
    pub(super) lost: NodeSet,
    /// The first of them: from then on nothing is asked of other nodes.
    pub(super) first_lost: Option<NodeId>,
}

impl<E: Env> Ctx<E> {
    pub(super) fn new(
        config: NodeConfig,
        layout: Layout,
        store: E::Store,
        policy: E::Policy,
        initial: Initial<E::Value>,
    ) -> Self {
        Self {
            now: Instant::ZERO,
            round: 0,
            clocks: alloc::vec![Clock(0); config.workers],
            tickets: Tickets::new(config.secret),
            outputs: VecDeque::new(),
            outgoing: Outgoing::default(),
            effects: VecDeque::new(),
            observer: None,
            stats: Stats::default(),
            lost: NodeSet::new(),
            first_lost: None,
            config,
            layout,
            store,
            policy,
            initial,
        }
    }

    /// All nodes, in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone + use<E> {
        (0..self.config.nodes)
            .map(|index| NodeId(u16::try_from(index).expect("node ids are 16 bits wide")))
    }

    /// All other nodes, in order.
    pub(super) fn peers(&self) -> impl Iterator<Item = NodeId> + Clone + use<E> {
        let own = self.config.node;
        self.nodes().filter(move |node| *node != own)
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.first_lost.is_some() && self.lost.contains(node)
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        debug_assert_ne!(to, self.config.node, "no message is sent to oneself");
        if self.is_lost(to) {
            return;
        }
        if !message.is_control() {
            self.stats.messages_sent += 1;
        }
        self.outputs.push_back(Output::Transmit(to, message));
    }

    /// RequestDrafts an operation of this node on `key`; `payload` `[value_len]` is its update or
    /// value, empty for a pull. Returns the secret of its message.
    pub(super) fn send_operation(
        &mut self,
        asked: Location,
        key: Key,
        access: Access,
        payload: &[E::Value],
    ) -> Ticket {
        self.outgoing.add_operation(&mut self.tickets, asked, key, access, payload)
    }

    /// Sends what was drafted.
    pub(super) fn flush(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let store = &self.store;
        let bytes = |key| store.value_len(key) * E::Value::WIDTH;
        let mut messages = self.outgoing.take_messages(self.config.block_bytes_max, bytes);
        for (to, message) in messages.drain(..) {
            self.send(to, message);
        }
        self.outgoing.keep_room(messages);
    }

    /// Asks something of another machine.
    pub(super) fn ask(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Ends an operation.
    pub(super) fn done(&mut self, op: OpId, values: Vec<E::Value>) {
        self.tell(Event::Done { op, values });
    }

    pub(super) fn fail(&mut self, op: OpId, error: OpError) {
        self.tell(Event::Failed { op, error });
    }

    pub(super) fn tell(&mut self, event: Event<E::Value>) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Tells for whom a collective call has waited for long, if there is anybody.
    pub(super) fn tell_missing(&mut self, call: Collective, absent: Vec<Absent>) {
        if !absent.is_empty() {
            self.tell(Event::Missing { call, absent });
        }
    }

    pub(super) fn observe(&mut self, tell: impl FnOnce(&mut dyn Observe, Instant)) {
        if let Some(observer) = &mut self.observer {
            tell(observer.as_mut(), self.now);
        }
    }

    /// Notes that an entry of `origin` was served here, after so many hops.
    pub(super) fn count_served(&mut self, key: Key, origin: NodeId, hops: u32) {
        self.stats.hops.record(u64::from(hops));
        self.observe(|observer, now| observer.on_served(now, key, origin, hops));
    }

    /// The elements of the keys' values together.
    ///
    /// # Errors
    /// A key that there is not, or that is of another channel.
    pub(super) fn check_keys(&self, keys: &[Key]) -> Result<usize, OpError> {
        let mut len = 0;
        for &key in keys {
            let Some(value_len) = self.layout.value_len(key) else {
                return Err(OpError::UnknownKey { key, end: self.layout.keys().end });
            };
            if !self.is_own_channel(key) {
                return Err(OpError::OtherChannel { key, channel: self.config.channel });
            }
            len += value_len;
        }
        Ok(len)
    }

    pub(super) fn is_own_channel(&self, key: Key) -> bool {
        self.config.channels == 1
            || Layout::channel(key, self.config.channels) == self.config.channel
    }

    /// Elements of the value of a key of the layout.
    pub(super) fn value_len(&self, key: Key) -> usize {
        self.store.value_len(key)
    }

    /// Bytes of the value of a key of the layout.
    pub(super) fn value_bytes(&self, key: Key) -> usize {
        self.value_len(key) * E::Value::WIDTH
    }

    /// The key's packed state. In a sparse layout, the main copy of a key at its home that nobody
    /// has touched is created first.
    pub(super) fn packed(&self, key: Key) -> PackedState {
        let packed = self.kept(key);
        if self.is_untouched(key, packed) {
            self.create_main_copy(key);
            return PackedState::MAIN_AT_HOME;
        }
        packed
    }

    /// The key's packed state as [`Self::packed`] would give it, without creating anything: for
    /// checks, which may end in a refusal.
    pub(super) fn peek(&self, key: Key) -> PackedState {
        let packed = self.kept(key);
        if self.is_untouched(key, packed) { PackedState::MAIN_AT_HOME } else { packed }
    }

    /// The packed state of a key as the store keeps it.
    fn kept(&self, key: Key) -> PackedState {
        match self.store.look(key) {
            Look::Absent(packed) => packed,
            Look::Held { .. } | Look::Unknown => self.store.with_slot(key, |slot| *slot.packed),
        }
    }

    fn is_untouched(&self, key: Key, packed: PackedState) -> bool {
        let sparse = self.layout.kind() == Kind::Sparse;
        sparse
            && packed == PackedState::EMPTY
            && Layout::home(key, self.config.nodes) == self.config.node
    }

    /// Creates the main copies of this channel's keys of a dense layout of which this node is the
    /// home.
    pub(super) fn populate(&self) {
        if self.layout.kind() == Kind::Sparse {
            return;
        }
        let keys = self.layout.keys();
        for key in (keys.start.0..keys.end.0).map(Key) {
            if self.is_own_channel(key) && Layout::home(key, self.config.nodes) == self.config.node
            {
                self.create_main_copy(key);
            }
        }
    }

    /// Creates the main copy of a key, of which this node is the home.
    pub(super) fn create_main_copy(&self, key: Key) {
        create_main_copies(&self.store, &[key], &self.initial);
    }

    pub(super) fn state(&self, key: Key) -> State {
        self.packed(key).state()
    }

    /// Where an entry of this node's own goes first.
    pub(super) fn first_hop(&self, key: Key, packed: PackedState) -> Location {
        route::first_hop(
            packed,
            key,
            self.config.node,
            self.config.nodes,
            self.config.location_caches,
        )
    }

    /// Returns true if a replica of `key` is here that `owner` owns.
    pub(super) fn holds_replica_of(&self, owner: NodeId, key: Key) -> bool {
        let packed = self.peek(key);
        packed.state() == State::Replica
            && route::believed(packed, key, self.config.nodes).node == owner
    }

    /// A replica was granted of a key that was asked for.
    pub(super) fn install_replica(
        &mut self,
        key: Key,
        version: Version,
        value: &[E::Value],
        owner: Location,
    ) {
        self.store.reserve(key, true);
        self.store.with_slot(key, |mut slot| slot.install(version, value, owner));
        self.stats.replicas += 1;
        self.observe(|observer, now| observer.on_replica_installed(now, key, owner.node));
    }

    /// Ownership of a key in `state` has arrived from `former.node`, under the counter of `former`.
    pub(super) fn take_ownership(
        &mut self,
        key: Key,
        state: State,
        former: Location,
        version: Version,
        value: Option<&[E::Value]>,
    ) {
        let is_replica = state == State::Replica;
        if !is_replica {
            self.store.reserve(key, false);
        }
        self.store.with_slot(key, |mut slot| slot.arrive(version, value, former));
        if is_replica {
            self.store.reserve(key, false);
        }
        self.stats.relocations += 1;
        self.observe(|observer, now| observer.on_arrival(now, key, former.counter));
    }

    /// Refreshes a replica.
    pub(super) fn refresh(&self, key: Key, version: Version, value: &[E::Value]) {
        self.store.with_slot(key, |mut slot| slot.refresh(version, value));
    }

    /// A replica is gone with its owner, and with it what it had not sent.
    pub(super) fn abandon_replica(&mut self, key: Key) {
        self.store.with_slot(key, |mut slot| slot.abandon());
        self.store.release(key);
        self.observe(|observer, now| observer.on_replica_released(now, key));
    }

    /// Returns replicas that are here of keys that `owner` owns, in order. Costs one look at every
    /// held copy of the store.
    pub(super) fn replicas_of(&self, owner: NodeId) -> Vec<Key> {
        let mut keys = Vec::new();
        self.store.visit(self.layout.keys(), |key, slot| {
            let believed = route::believed(*slot.packed, key, self.config.nodes).node;
            if slot.packed.state() == State::Replica
                && believed == owner
                && self.is_own_channel(key)
            {
                keys.push(key);
            }
        });
        keys
    }

    /// The lost node without which an operation on `keys` cannot be done; `None` if all of them are
    /// local, or none is lost.
    pub(super) fn lost_for(&self, keys: &[Key], needs_owner: bool) -> Option<NodeId> {
        let first = self.first_lost?;
        let local = |key: &&Key| match self.peek(**key).state() {
            State::Main => true,
            State::Replica => !needs_owner,
            State::None | State::Requested | State::Releasing => false,
        };
        let far = keys.iter().find(|key| !local(key))?;
        let hop = self.first_hop(*far, self.peek(*far)).node;
        Some(if self.is_lost(hop) { hop } else { first })
    }

    /// Learns where a key is, if this node keeps such facts.
    pub(super) fn learn(&self, key: Key, location: Location) {
        if !self.config.location_caches && Layout::home(key, self.config.nodes) != self.config.node
        {
            return;
        }
        // Most of what answers tell is known, and the latch of an absent key that has nothing to
        // learn is not needed.
        let is_known = matches!(self.store.look(key), Look::Absent(packed) if packed.counter() >= location.counter);
        if !is_known {
            self.store.with_slot(key, |mut slot| slot.learn(location));
        }
    }
}

/// Writes the initial value of a key, `[value_len]` zeros before: a pure function of the key, the
/// same on every node.
pub type Initial<V> = Arc<dyn Fn(Key, &mut [V]) + Send + Sync>;

/// Creates the main copies of `keys` in the store of the node that is their home, before the first
/// input of any of its channels; `initial` writes the value `[value_len]` of each. No message is
/// sent: costs the memory of the values, and a latch a key.
///
/// What [`crate::engine::Engine::populate`] does for the keys of its channel, for a driver that has
/// several threads do it: each calls this for keys of its own, and the engines see what it did if
/// their threads start later.
///
/// # Panics
/// In debug builds, for a key that has a copy or a known location.
pub fn create_main_copies<S: Store>(store: &S, keys: &[Key], initial: &Initial<S::Value>) {
    store.reserve_each(keys, |key, mut slot| {
        slot.create_main_copy();
        initial(key, slot.value);
    });
}
