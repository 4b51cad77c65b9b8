//! Mistakes with the messages of rounds: requests, responses, grants.

use std::collections::{BTreeMap, BTreeSet};

use adapm_core::engine::Input;
use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Body, Forward, GrantKind, Grants, Keys, Mark, Operation, SyncRequest, SyncResponse,
};

use super::mistake::{Engine, Mistake};
use super::policy::Unnoted;
use super::{Bug, edit};
use crate::Recorder;
use crate::flight::{self, Kind};

pub(super) fn mistake(bug: Bug, unnoted: Unnoted) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::DropDeltaOnRelease => Box::new(DropDeltaOnRelease),
        Bug::ForgetHolder => Box::new(ForgetHolder(unnoted)),
        Bug::SkipStale => Box::new(SkipStale::default()),
        Bug::SkipSetter => Box::new(SkipSetter::default()),
        Bug::SkipDirtyRefresh => Box::new(Unheard(is_refresh_of_dirty)),
        Bug::HandOverUnread => Box::new(HandOverUnread),
        Bug::KeepReleased => Box::new(Unheard(|_, _, kind, _| kind == Kind::Release)),
        Bug::DropSet => Box::new(Unheard(|_, _, kind, _| kind == Kind::SetEntry)),
        Bug::DropRenew => Box::new(DropRenew),
        Bug::SkipForeignDelta => Box::new(Unheard(is_foreign_delta)),
        Bug::RelocateUnderHolders => Box::new(Forgotten::of(RELOCATE_UNDER_HOLDERS)),
        Bug::HideHolders => Box::new(Forgotten::of(HIDE_HOLDERS)),
        Bug::ReleaseForAll => Box::new(Forgotten::of(RELEASE_FOR_ALL)),
        Bug::MarkPastDue => Box::new(Marks { is_early: true, ..Marks::default() }),
        Bug::WaitForLaterChanges => Box::new(Marks::default()),
        Bug::DeafAfterLoss => Box::new(DeafAfterLoss(false)),
        _ => return None,
    })
}

/// Returns the responses of the engine, with their receivers.
fn responses(said: &mut Recorder<i64>) -> impl Iterator<Item = (NodeId, &mut Message)> {
    let sent = said.sent.iter_mut().map(|(to, message)| (*to, message));
    sent.filter(|(_, message)| matches!(*message.body, Body::SyncResponse(_)))
}

struct DropDeltaOnRelease;

impl Mistake for DropDeltaOnRelease {
    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        for (_, message) in &mut said.sent {
            let Body::SyncRequest(request) = &*message.body else { continue };
            let releases = request.releases.clone();
            edit::take(message, engine.layout(), |kind, key, _| {
                kind == Kind::Delta && releases.binary_search(&key).is_ok()
            });
        }
    }
}

/// The policy wanted to replicate, but the mistake let the engine keep the key, and turns its
/// refusal into a replica.
struct ForgetHolder(Unnoted);

impl Mistake for ForgetHolder {
    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        for (to, message) in &mut said.sent {
            let entries = edit::entries(message, engine.layout());
            let (Body::Grant(grants) | Body::SyncResponse(SyncResponse { grants, .. })) =
                &mut *message.body
            else {
                continue;
            };
            let mut granted = BTreeMap::new();
            let Grants { at, kinds, versions, .. } = grants;
            for ((&key, kind), version) in at.keys.iter().zip(kinds).zip(versions) {
                if *kind == GrantKind::Remote && self.0.take(key, *to) {
                    let (value, is_now) =
                        engine.store().with_slot(key, |slot| (slot.value.to_vec(), *slot.version));
                    (*kind, *version) = (GrantKind::Replica, is_now);
                    granted.insert(key, value);
                }
            }
            message.values =
                edit::block(entries.iter().map(|entry| match granted.get(&entry.key) {
                    Some(value) if entry.kind == Kind::GrantRemote => value,
                    _ => &entry.value[..],
                }));
        }
    }
}

/// Entries that do not reach the engine.
struct Unheard(fn(&Engine, NodeId, Kind, Key) -> bool);

impl Mistake for Unheard {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(from, mut message) = input else { return vec![input] };
        edit::take(&mut message, engine.layout(), |kind, key, _| (self.0)(engine, from, kind, key));
        vec![Input::Message(from, message)]
    }
}

fn is_foreign_delta(engine: &Engine, from: NodeId, kind: Kind, key: Key) -> bool {
    kind == Kind::Delta && !engine.inspect(key).holders.contains(&from)
}

fn is_refresh_of_dirty(engine: &Engine, _: NodeId, kind: Kind, key: Key) -> bool {
    let packed = engine.store().with_slot(key, |slot| *slot.packed);
    kind == Kind::Refresh && packed.state() == State::Replica && packed.is_dirty()
}

/// The last changer of each key, if it was a holder with a delta.
#[derive(Default)]
struct SkipStale(BTreeMap<Key, NodeId>);

impl Mistake for SkipStale {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match &input {
            Input::Message(from, message) => match &*message.body {
                Body::SyncRequest(request) => {
                    self.0.extend(request.deltas.iter().map(|key| (*key, *from)));
                    self.0.retain(|key, _| request.sets.binary_search(key).is_err());
                }
                Body::Operation(operation) | Body::Forward(Forward { operation, .. }) => {
                    let Operation { pushes, sets, .. } = operation;
                    let lists = [&pushes.keys, &sets.keys];
                    self.0
                        .retain(|key, _| lists.iter().all(|keys| keys.binary_search(key).is_err()));
                }
                _ => {}
            },
            Input::Op(_) => self.0.clear(),
            _ => {}
        }
        vec![input]
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        for (to, message) in responses(said) {
            edit::take(message, engine.layout(), |kind, key, _| {
                kind == Kind::Refresh && self.0.get(&key).is_some_and(|by| *by != to)
            });
        }
    }
}

/// Keys that each peer has set with the request that is answered next.
#[derive(Default)]
struct SkipSetter(BTreeMap<NodeId, Keys>);

impl Mistake for SkipSetter {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(from, message) = &input
            && let Body::SyncRequest(request) = &*message.body
        {
            self.0.insert(*from, request.sets.clone());
        }
        vec![input]
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        for (to, message) in responses(said) {
            let Some(sets) = self.0.remove(&to) else { continue };
            edit::take(message, engine.layout(), |kind, key, _| {
                kind == Kind::Refresh && sets.binary_search(&key).is_ok()
            });
        }
    }
}

struct DropRenew;

impl Mistake for DropRenew {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &mut input
            && let Body::SyncRequest(request) = &mut *message.body
        {
            request.renews = Keys::default();
        }
        vec![input]
    }
}

struct HandOverUnread;

impl Mistake for HandOverUnread {
    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        for (_, message) in responses(said) {
            let entries = edit::entries(message, engine.layout());
            let Body::SyncResponse(response) = &mut *message.body else { continue };
            response.hand_overs.with_value.fill(false);
            let values = entries.iter().filter(|entry| entry.kind != Kind::HandOver);
            message.values = edit::block(values.map(|entry| &entry.value[..]));
        }
    }
}

/// Holders that are forgotten right before a request: the engine reads a release that they have not
/// sent. `picks` selects them, for a key owned here and an entry of a node.
struct Forgotten {
    picks: Picks,
    /// Nodes that get no response, as they have not asked.
    unasked: BTreeSet<NodeId>,
}

type Picks = fn(&Engine, NodeId, Kind, Key) -> bool;

/// The entries before which the other holders of their key are forgotten.
const RELOCATE_UNDER_HOLDERS: Picks =
    |_, _, kind, _| matches!(kind, Kind::Localize | Kind::ForwardLocalize);
const HIDE_HOLDERS: Picks = |engine, origin, kind, key| {
    let view = engine.inspect(key);
    matches!(kind, Kind::Intent | Kind::ForwardIntent)
        && view.intent_count == 0
        && !view.holders.contains(&origin)
};
const RELEASE_FOR_ALL: Picks = |_, _, kind, _| kind == Kind::Release;

impl Forgotten {
    fn of(picks: Picks) -> Self {
        Self { picks, unasked: BTreeSet::new() }
    }
}

impl Mistake for Forgotten {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(from, message) = &input else { return vec![input] };
        let Some(origin) = flight::origin(*from, message) else { return vec![input] };
        let mut forgotten = BTreeMap::<NodeId, BTreeSet<Key>>::new();
        for entry in edit::entries(message, engine.layout()) {
            let view = engine.inspect(entry.key);
            if view.packed.state() != State::Main
                || !(self.picks)(engine, origin, entry.kind, entry.key)
            {
                continue;
            }
            for holder in view.holders.into_iter().filter(|holder| *holder != origin) {
                forgotten.entry(holder).or_default().insert(entry.key);
            }
        }
        self.unasked.extend(forgotten.keys());
        let releases = forgotten.into_iter().map(|(holder, keys)| {
            let releases = Keys(keys.into_iter().collect());
            let request = SyncRequest { releases, ..SyncRequest::default() };
            Input::Message(holder, Message::bare(Body::SyncRequest(request)))
        });
        releases.chain([input.clone()]).collect()
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        said.sent.retain(|(to, message)| {
            let answers = matches!(*message.body, Body::SyncResponse(_));
            !(answers && self.unasked.remove(to))
        });
    }
}

/// The marks of peers, as known to them and to the engine.
#[derive(Default)]
struct Marks {
    /// Answers marks at once; otherwise only when nothing is due.
    is_early: bool,
    /// Peers that wait for the answer to a mark.
    asked: BTreeSet<NodeId>,
    /// Peers whose mark the engine has not answered.
    known: BTreeSet<NodeId>,
}

impl Mistake for Marks {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(from, message) = &mut input
            && let Body::SyncRequest(request) = &mut *message.body
            && request.mark != Mark::None
        {
            self.asked.insert(*from);
            if !self.known.insert(*from) {
                request.mark = Mark::None;
            }
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for (to, message) in responses(said) {
            let Body::SyncResponse(response) = &mut *message.body else { continue };
            if response.synced {
                self.known.remove(&to);
            }
            let is_told = self.is_early || !(response.more || self.known.contains(&to));
            response.synced = is_told && self.asked.remove(&to);
        }
    }
}

/// True after the loss of a peer.
struct DeafAfterLoss(bool);

impl Mistake for DeafAfterLoss {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match &input {
            Input::PeerLost(_) => self.0 = true,
            Input::Message(_, message)
                if self.0 && matches!(*message.body, Body::SyncResponse(_)) =>
            {
                return Vec::new();
            }
            _ => {}
        }
        vec![input]
    }
}
