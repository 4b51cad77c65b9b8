//! Mistakes with entries on their way to an owner: operations, forwards, refusals, and residence
//! facts.

use adapm_core::engine::Input;
use adapm_core::id::{Counter, Key, NodeId};
use adapm_core::slot::{Location, PackedState, State};
use adapm_core::store::Store;
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Body, Operation};

use super::mistake::{Engine, Mistake};
use super::{Bug, edit};
use crate::Recorder;
use crate::flight::{self, Kind};

pub(super) fn mistake(bug: Bug) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::ApplyAtStaleOwner => Box::new(AnswerWrongly { is_pull: false, answers: Vec::new() }),
        Bug::AnswerFromReplica => Box::new(AnswerWrongly { is_pull: true, answers: Vec::new() }),
        Bug::ParkAndTurnAway => Box::new(ParkAndTurnAway::default()),
        Bug::ForgetParkedEntries => Box::new(ForgetParkedEntries),
        Bug::ForgetForwardCounter => Box::new(ForgetForwardCounter),
        Bug::IgnoreRetry => Box::new(IgnoreRetry),
        Bug::JoinPieces => Box::new(JoinPieces),
        Bug::OlderResidence => Box::new(OlderResidence),
        Bug::TrustLatestFact => Box::new(TrustLatestFact),
        _ => return None,
    })
}

/// A node that is not the owner answers nevertheless.
struct AnswerWrongly {
    /// Pulls at a replica, otherwise pushes to a key that was given away.
    is_pull: bool,
    answers: Vec<(NodeId, Message)>,
}

impl Mistake for AnswerWrongly {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(from, mut message) = input else { return vec![input] };
        let origin =
            flight::origin(from, &message).filter(|origin| *origin != engine.config().node);
        let Some(origin) = origin else { return vec![Input::Message(from, message)] };
        let packed = |key: Key| engine.store().with_slot(key, |slot| *slot.packed);
        let taken = edit::take(&mut message, engine.layout(), |kind, key, _| match kind {
            Kind::Pull | Kind::ForwardPull => self.is_pull && packed(key).state() == State::Replica,
            Kind::Push | Kind::ForwardPush => {
                !self.is_pull
                    && packed(key).state() == State::None
                    && packed(key).location().is_some()
            }
            _ => false,
        });
        for mut entry in taken {
            let (value, counter) = engine
                .store()
                .with_slot(entry.key, |slot| (slot.value.to_vec(), slot.packed.counter()));
            if self.is_pull {
                entry.counter = counter;
            }
            let read = self.is_pull.then_some(&value[..]);
            self.answers.push((origin, edit::answer_to(&entry, read)));
        }
        vec![Input::Message(from, message)]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        said.sent.append(&mut self.answers);
    }
}

/// Pushes of peers that were turned away and are executed nevertheless, once the key is here.
#[derive(Default)]
struct ParkAndTurnAway {
    /// The push of the last message for each of its keys.
    pushes: Vec<Parked>,
    parked: Vec<Parked>,
}

struct Parked {
    from: NodeId,
    origin: NodeId,
    key: Key,
    message: Message,
}

impl Mistake for ParkAndTurnAway {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        self.pushes.clear();
        if let Input::Message(from, message) = &input
            && let Some(origin) = flight::origin(*from, message)
        {
            let is_push = |kind| matches!(kind, Kind::Push | Kind::ForwardPush);
            for entry in
                edit::entries(message, engine.layout()).iter().filter(|entry| is_push(entry.kind))
            {
                let (mut message, key) = (message.clone(), entry.key);
                edit::take(&mut message, engine.layout(), |kind, other, _| {
                    !is_push(kind) || other != key
                });
                self.pushes.push(Parked { from: *from, origin, key, message });
            }
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for parked in self.pushes.drain(..) {
            let turned_away = |(to, message): &(NodeId, Message)| {
                matches!(&*message.body, Body::Retry(retry) if *to == parked.origin
                    && retry.operations.binary_search(&parked.key).is_ok())
            };
            if said.sent.iter().any(turned_away) {
                self.parked.push(parked);
            }
        }
    }

    fn follow(&mut self, engine: &Engine) -> Vec<Input<'static, i64>> {
        let is_here =
            |parked: &mut Parked| engine.inspect(parked.key).packed.state() == State::Main;
        let due = self.parked.extract_if(.., is_here);
        due.map(|parked| Input::Message(parked.from, parked.message)).collect()
    }
}

struct ForgetParkedEntries;

impl Mistake for ForgetParkedEntries {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(from, mut message) = input else { return vec![input] };
        if flight::origin(from, &message).is_some()
            && !matches!(*message.body, Body::SyncRequest(_))
        {
            edit::take(&mut message, engine.layout(), |_, key, counter| {
                let packed = engine.inspect(key).packed;
                packed.state() == State::Requested && counter > packed.counter()
            });
        }
        vec![Input::Message(from, message)]
    }
}

struct ForgetForwardCounter;

impl Mistake for ForgetForwardCounter {
    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for (_, message) in &mut said.sent {
            let Body::Forward(forward) = &mut *message.body else { continue };
            let operation = &mut forward.operation;
            let lists = [&mut operation.pulls, &mut operation.pushes, &mut operation.sets];
            for list in [&mut forward.intents, &mut forward.localizes].into_iter().chain(lists) {
                list.counters.fill(Counter(0));
            }
        }
    }
}

struct IgnoreRetry;

impl Mistake for IgnoreRetry {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let is_retry =
            matches!(&input, Input::Message(_, message) if matches!(*message.body, Body::Retry(_)));
        if is_retry { Vec::new() } else { vec![input] }
    }
}

struct JoinPieces;

impl Mistake for JoinPieces {
    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        let mut sent: Vec<(NodeId, Message)> = Vec::new();
        for (to, message) in said.sent.drain(..) {
            if let Some((before, piece)) = sent.last_mut()
                && *before == to
                && joins(piece, &message)
            {
                piece.values.push_bytes(message.values.bytes());
            } else {
                sent.push((to, message));
            }
        }
        said.sent = sent;
    }
}

/// Appends the entries of `next` to those of `piece`. Returns false if they are not pieces of one
/// operation.
fn joins(piece: &mut Message, next: &Message) -> bool {
    let (Body::Operation(operation), Body::Operation(more)) = (&mut *piece.body, &*next.body)
    else {
        return false;
    };
    let of = |operation: &Operation| {
        [&operation.pulls, &operation.pushes, &operation.sets].map(|list| !list.is_empty())
    };
    let is_one =
        of(operation) == of(more) && of(more).into_iter().filter(|some| *some).count() == 1;
    if !is_one || operation.ticket != more.ticket {
        return false;
    }
    let lists = [&mut operation.pulls, &mut operation.pushes, &mut operation.sets];
    let mut lists = lists.into_iter().zip([&more.pulls, &more.pushes, &more.sets]);
    let Some((list, more)) = lists.find(|(list, _)| !list.is_empty()) else { return false };
    let ascends = list.keys.last() < more.keys.first();
    if ascends {
        more.iter().for_each(|(key, counter)| list.push(key, counter));
    }
    ascends
}

struct OlderResidence;

impl Mistake for OlderResidence {
    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for (_, message) in &mut said.sent {
            if let Body::Residence(residence) = &mut *message.body {
                let counters = residence.at.counters.iter_mut();
                counters.for_each(|counter| counter.0 = (counter.0 - 1).max(1));
            }
        }
    }
}

struct TrustLatestFact;

impl Mistake for TrustLatestFact {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &input
            && let Body::Residence(residence) = &*message.body
        {
            for ((key, counter), &node) in residence.at.iter().zip(&residence.owners) {
                engine.store().with_slot(key, |mut slot| {
                    if slot.packed.state() == State::None {
                        *slot.packed = PackedState::EMPTY;
                        slot.learn(Location { node, counter });
                    }
                });
            }
        }
        vec![input]
    }
}
