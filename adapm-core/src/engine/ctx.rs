//! State shared by all machines of an engine: configuration, store, policy, time, outputs. Also the
//! creation of main copies, at the home of their key and with a value that follows from the key
//! alone: before the first input in dense layouts, on first access in sparse ones.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::clock::{Clock, Tick};
use crate::config::NodeConfig;
use crate::engine::effect::Effect;
use crate::engine::entry::Access;
use crate::engine::freeze::Freezes;
use crate::engine::input::OpId;
use crate::engine::outgoing::Outgoing;
use crate::engine::output::{Absent, Collective, Event, Output};
use crate::error::{InputError, OpError};
use crate::id::{Key, NodeId, Ticket, Version};
use crate::layout::{Kind, Layout};
use crate::node_set::NodeSet;
use crate::observe::Observe;
use crate::policy::{Patience, Policy};
use crate::route;
use crate::slot::{Location, PackedState, State};
use crate::stats::Stats;
use crate::store::{Look, Store};
use crate::ticket::Tickets;
use crate::time::Instant;
use crate::value::Value;
use crate::wire::Message;
use crate::wire::message::{Body, GrantKind, Grants, Owners};

/// A map from keys with the same iteration order in every run; the order must not reach an output
/// nevertheless.
pub(super) type KeyMap<T> = hashbrown::HashMap<Key, T, foldhash::fast::FixedState>;

/// A set of keys; see [`KeyMap`].
pub(super) type KeySet = hashbrown::HashSet<Key, foldhash::fast::FixedState>;

/// A map from keys in the order in which they were added.
pub(super) type KeyQueue<T> = hashlink::LinkedHashMap<Key, T, foldhash::fast::FixedState>;

/// A map from operations; see [`KeyMap`].
pub(super) type OpMap<T> = hashbrown::HashMap<OpId, T, foldhash::fast::FixedState>;

/// The types that the user of an engine chooses.
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

/// State that every machine may use and none owns.
pub(super) struct Ctx<E: Env> {
    pub(super) config: NodeConfig,
    pub(super) layout: Layout,
    pub(super) store: E::Store,
    pub(super) policy: E::Policy,
    pub(super) initial: Initial<E::Value>,
    /// The time of the last input; never goes back.
    pub(super) now: Instant,
    /// The time of the first input.
    started: Option<Instant>,
    /// The time of the first change of a copy.
    first_change: Option<Instant>,
    /// The number of the current round.
    pub(super) round: u64,
    /// The clocks of all workers at the last timeout.
    pub(super) clocks: Vec<Clock>,
    pub(super) tickets: Tickets,
    pub(super) outputs: VecDeque<Output<E::Value>>,
    /// Entries to be sent at the end of the input.
    pub(super) outgoing: Outgoing<E::Value>,
    /// Requests from machines to other machines, in order.
    pub(super) effects: VecDeque<Effect>,
    pub(super) observer: Option<Box<dyn Observe + Send>>,
    /// True if the policy has an observer.
    policy_observes: bool,
    /// True if a pull of an absent key sets up a replica.
    pub(super) keeps: bool,
    /// How long changes may wait, once the run is long enough.
    patience: Option<Patience>,
    /// True once main copies are known to exist, or need not exist.
    is_populated: bool,
    pub(super) freezes: Freezes,
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
        mut policy: E::Policy,
        initial: Initial<E::Value>,
    ) -> Self {
        Self {
            policy_observes: policy.observer().is_some(),
            keeps: policy.keep(Tick::default()).is_some(),
            patience: policy.patience().filter(|_| policy.bound().is_none()),
            is_populated: layout.kind() == Kind::Sparse,
            now: Instant::ZERO,
            started: None,
            first_change: None,
            round: 0,
            clocks: alloc::vec![Clock(0); config.workers],
            tickets: Tickets::new(config.secret),
            outputs: VecDeque::new(),
            outgoing: Outgoing::default(),
            effects: VecDeque::new(),
            observer: None,
            freezes: Freezes::new(config.workers),
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

    /// Returns all nodes, in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone + use<E> {
        (0..self.config.nodes)
            .map(|index| NodeId(u16::try_from(index).expect("node ids are 16 bits wide")))
    }

    /// Returns all other nodes, in order.
    pub(super) fn peers(&self) -> impl Iterator<Item = NodeId> + Clone + use<E> {
        let own = self.config.node;
        self.nodes().filter(move |node| *node != own)
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.first_lost.is_some() && self.lost.contains(node)
    }

    /// Takes the time of an input.
    pub(super) fn pass_to(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let started = *self.started.get_or_insert(self.now);
        let micros = self.now.nanos_since(started) / 1_000;
        self.stats.held.pass(micros - self.stats.micros);
        self.stats.micros = micros;
    }

    /// Notes that workers, here or elsewhere, change copies.
    pub(super) fn note_changes(&mut self, keys: &[Key]) {
        if !keys.is_empty() && self.first_change.is_none() {
            self.first_change = Some(self.now);
        }
    }

    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        debug_assert_ne!(to, self.config.node, "no message is sent to oneself");
        if self.is_lost(to) {
            return;
        }
        if !message.is_control() {
            self.stats.messages_sent += 1;
        }
        self.count_values(&message);
        self.outputs.push_back(Output::Transmit(to, message));
    }

    /// Counts the bytes of a message's values by what they are for: none is looked at.
    fn count_values(&mut self, message: &Message) {
        let (all, store) = (message.values.len() as u64, &self.store);
        if all == 0 {
            return;
        }
        let size = |key: &Key| (store.value_len(*key) * size_of::<E::Value>()) as u64;
        let moved_by = |grants: &Grants| {
            let owned = grants.at.keys.iter().zip(&grants.kinds);
            let owned = owned.filter(|(_, kind)| **kind == GrantKind::Owner);
            owned.map(|(key, _)| size(key)).sum::<u64>()
        };
        let sent = &mut self.stats.value_bytes;
        match &*message.body {
            Body::SyncRequest(_) => sent.deltas += all,
            Body::SyncResponse(response) => {
                let Owners { at, with_value, .. } = &response.hand_overs;
                let handed = at.keys.iter().zip(with_value).filter(|(_, with_value)| **with_value);
                let handed: u64 = handed.map(|(key, _)| size(key)).sum();
                let refreshes: u64 = response.refreshes.iter().map(size).sum();
                let moved = moved_by(&response.grants) + handed;
                sent.refreshes += refreshes;
                sent.relocations += moved;
                sent.replicas += all - refreshes - moved;
            }
            Body::Grant(grants) => {
                let moved = moved_by(grants);
                sent.relocations += moved;
                sent.replicas += all - moved;
            }
            Body::Answer(_) => sent.answers += all,
            // Of the others only operations have values, also those that are passed on.
            _ => sent.operations += all,
        }
    }

    /// Queues an operation of this node on `key`; `payload` `[value_len]` is its update or value,
    /// empty for a pull. Returns the secret of its message.
    pub(super) fn send_operation(
        &mut self,
        asked: Location,
        key: Key,
        access: Access,
        payload: &[E::Value],
    ) -> Ticket {
        self.outgoing.add_operation(&mut self.tickets, asked, key, access, payload)
    }

    /// Sends all queued entries.
    pub(super) fn flush(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let store = &self.store;
        let bytes = |key| store.value_len(key) * size_of::<E::Value>();
        let mut messages = self.outgoing.take_messages(self.config.block_bytes_max, bytes);
        for (to, message) in messages.drain(..) {
            self.send(to, message);
        }
        self.outgoing.keep_room(messages);
    }

    /// Asks another machine for something.
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

    /// Reports the missing participants of a collective call, if there are any.
    pub(super) fn tell_missing(&mut self, call: Collective, absent: Vec<Absent>) {
        if !absent.is_empty() {
            self.tell(Event::Missing { call, absent });
        }
    }

    pub(super) fn observe(&mut self, tell: impl Fn(&mut dyn Observe, Instant)) {
        if self.policy_observes
            && let Some(observer) = self.policy.observer()
        {
            tell(observer, self.now);
        }
        if let Some(observer) = &mut self.observer {
            tell(observer.as_mut(), self.now);
        }
    }

    /// Records an entry of `origin` served here after `hops` hops.
    pub(super) fn count_served(&mut self, key: Key, origin: NodeId, hops: u32) {
        self.stats.hops.record(u64::from(hops));
        self.observe(|observer, now| observer.on_served(now, key, origin, hops));
    }

    /// Returns the number of elements of all keys' values together.
    ///
    /// # Errors
    /// An unknown key, or a key of another channel.
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

    /// Returns the number of elements of the value of a key of the layout.
    pub(super) fn value_len(&self, key: Key) -> usize {
        self.store.value_len(key)
    }

    /// Returns the number of bytes of the value of a key of the layout.
    pub(super) fn value_bytes(&self, key: Key) -> usize {
        self.value_len(key) * size_of::<E::Value>()
    }

    /// Returns the key's packed state. In a sparse layout, first creates the main copy of an
    /// untouched key at its home.
    pub(super) fn packed(&self, key: Key) -> PackedState {
        let packed = self.kept(key);
        if self.is_untouched(key, packed) {
            self.create_main_copy(key);
            return PackedState::MAIN_AT_HOME;
        }
        packed
    }

    /// Returns what [`Self::packed`] would, without creating anything: for checks, which may end in
    /// a refusal.
    pub(super) fn peek(&self, key: Key) -> PackedState {
        let packed = self.kept(key);
        if self.is_untouched(key, packed) { PackedState::MAIN_AT_HOME } else { packed }
    }

    /// Returns the packed state of a key as stored.
    fn kept(&self, key: Key) -> PackedState {
        match self.store.look(key) {
            Look::Absent(packed) => packed,
            Look::Held { .. } | Look::Unknown => self.store.with_slot(key, |slot| *slot.packed),
        }
    }

    fn is_untouched(&self, key: Key, packed: PackedState) -> bool {
        let sparse = self.layout.kind() == Kind::Sparse;
        sparse && packed == PackedState::EMPTY && self.config.homes.home(key) == self.config.node
    }

    /// Creates, in dense layouts, the main copies of this channel's keys at their home, if that is
    /// this node.
    pub(super) fn populate(&self) {
        if self.layout.kind() == Kind::Sparse {
            return;
        }
        let keys = self.layout.keys();
        for key in (keys.start.0..keys.end.0).map(Key) {
            if self.is_populated_here(key) {
                self.create_main_copy(key);
            }
        }
    }

    /// Checks, until it succeeds once, that main copies of a dense layout exist, by one key that is
    /// created here.
    #[inline]
    pub(super) fn check_populated(&mut self) -> Result<(), InputError> {
        if self.is_populated { Ok(()) } else { self.look_for_main_copies() }
    }

    #[cold]
    fn look_for_main_copies(&mut self) -> Result<(), InputError> {
        let first = (0..self.layout.keys().end.0).map(Key).find(|key| self.is_populated_here(*key));
        match first.filter(|key| self.kept(*key).state() != State::Main) {
            Some(key) => Err(InputError::NotPopulated { key }),
            None => {
                self.is_populated = true;
                Ok(())
            }
        }
    }

    /// Returns true if a dense layout's main copy of `key` is created here.
    fn is_populated_here(&self, key: Key) -> bool {
        self.is_own_channel(key) && self.config.homes.home(key) == self.config.node
    }

    /// Creates the main copy of a key whose home is this node.
    pub(super) fn create_main_copy(&self, key: Key) {
        create_main_copies(&self.store, &[key], &self.initial);
    }

    pub(super) fn state(&self, key: Key) -> State {
        self.packed(key).state()
    }

    /// Returns the first hop of an entry of this node.
    pub(super) fn first_hop(&self, key: Key, packed: PackedState) -> Location {
        route::first_hop(
            packed,
            key,
            self.config.node,
            &self.config.homes,
            self.config.location_caches,
        )
    }

    /// Returns true if this node holds a replica of `key` and believes `owner` to own it.
    pub(super) fn holds_replica_of(&self, owner: NodeId, key: Key) -> bool {
        let packed = self.peek(key);
        packed.state() == State::Replica
            && route::believed(packed, key, &self.config.homes).node == owner
    }

    /// Installs a granted replica.
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
        self.stats.held.add();
        self.observe(|observer, now| observer.on_replica_installed(now, key, owner.node));
    }

    /// Takes ownership of a key in `state` from `former.node`, under the counter of `former`.
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
            self.stats.held.remove();
        }
        self.stats.relocations += 1;
        self.observe(|observer, now| observer.on_arrival(now, key, former.counter));
    }

    /// Returns how long changes may wait now; `None`: they go with the next round, which is as
    /// soon.
    pub(super) fn patience(&self) -> Option<Patience> {
        let run = self.now.nanos_since(self.first_change?);
        let patience = self.patience?.after(run);
        (patience.nanos >= self.config.round_nanos_min).then_some(patience)
    }

    /// Returns the version of the copy of `key`.
    pub(super) fn version(&self, key: Key) -> Version {
        self.store.with_slot(key, |slot| *slot.version)
    }

    /// Refreshes a replica.
    pub(super) fn refresh(&self, key: Key, version: Version, value: &[E::Value]) {
        self.store.with_slot(key, |mut slot| slot.refresh(version, value));
    }

    /// Drops a replica whose owner is lost, with its unsent delta.
    pub(super) fn abandon_replica(&mut self, key: Key) {
        self.store.with_slot(key, |mut slot| slot.abandon());
        self.store.release(key);
        self.stats.held.remove();
        self.observe(|observer, now| observer.on_replica_released(now, key));
    }

    /// Returns the replicas held here of keys that `owner` owns, in order. Visits every held copy
    /// of the store.
    pub(super) fn replicas_of(&self, owner: NodeId) -> Vec<Key> {
        let mut keys = Vec::new();
        self.store.visit(self.layout.keys(), |key, slot| {
            let believed = route::believed(*slot.packed, key, &self.config.homes).node;
            if slot.packed.state() == State::Replica
                && believed == owner
                && self.is_own_channel(key)
            {
                keys.push(key);
            }
        });
        keys
    }

    /// Returns the lost node that makes an operation on `keys` impossible; `None` if all of them
    /// are local, or no node is lost.
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

    /// Records the location of a key, if this node keeps locations.
    pub(super) fn learn(&self, key: Key, location: Location) {
        if !self.config.location_caches && self.config.homes.home(key) != self.config.node {
            return;
        }
        // Most locations in answers are known already; then the latch of an absent key is not
        // needed.
        let is_known = matches!(self.store.look(key), Look::Absent(packed) if packed.counter() >= location.counter);
        if !is_known {
            self.store.with_slot(key, |mut slot| slot.learn(location));
        }
    }
}

/// A function that writes the initial value of a key into `[value_len]` zeros: pure, the same on
/// every node.
pub type Initial<V> = Arc<dyn Fn(Key, &mut [V]) + Send + Sync>;

/// Creates the main copies of `keys` in the store of their home node, before the first input of any
/// of its channels; `initial` writes the value `[value_len]` of each. Sends no message: costs the
/// memory of the values, and a latch per key.
///
/// [`crate::engine::Engine::populate`] does this for the keys of its channel. A driver may instead
/// call this from several threads, each for its own keys; the engines see the result if their
/// threads start later.
///
/// # Panics
/// In debug builds, for a key that has a copy or a known location.
pub fn create_main_copies<S: Store>(store: &S, keys: &[Key], initial: &Initial<S::Value>) {
    store.reserve_each(keys, |key, mut slot| {
        slot.create_main_copy();
        initial(key, slot.value);
    });
}
