//! Mistakes with events for workers: ends of operations, and peers that do not answer.

use std::collections::{BTreeMap, BTreeSet};

use adapm_core::engine::{Event, Input, Op, OpBody, OpId};
use adapm_core::error::OpError;
use adapm_core::id::{Key, NodeId};
use adapm_core::route;
use adapm_core::slot::State;
use adapm_core::time::Instant;
use adapm_core::wire::message::{Body, SyncRequest};

use super::Bug;
use super::driver::accessed;
use super::mistake::{Engine, Mistake};
use crate::Recorder;

pub(super) fn mistake(bug: Bug) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::AcknowledgeEarly => {
            Box::new(AcknowledgeEarly::of(|body| matches!(body, OpBody::Push { .. })))
        }
        Bug::AcknowledgeSetEarly => {
            Box::new(AcknowledgeEarly::of(|body| matches!(body, OpBody::Set { .. })))
        }
        Bug::FreezeAtOnce => Box::new(AcknowledgeEarly::of(|body| matches!(body, OpBody::Freeze))),
        Bug::EndTwice => Box::new(EndTwice::default()),
        Bug::ForgetForwarded => Box::new(ForgetForwarded::default()),
        Bug::NameHopAsLost => Box::new(NameHopAsLost::default()),
        Bug::BlameUnasked => Box::new(Looks { is_hasty: true, ..Looks::default() }),
        Bug::DeafToAnswers => Box::new(Looks { is_deaf: true, ..Looks::default() }),
        Bug::CountAbsence => Box::new(Looks { counts_absence: true, ..Looks::default() }),
        Bug::IgnoreIdle => Box::new(IgnoreIdle::default()),
        _ => return None,
    })
}

/// Returns the operation that an event ends.
fn ended(event: &Event<i64>) -> Option<OpId> {
    match event {
        Event::Done { op, .. } | Event::Failed { op, .. } => Some(*op),
        _ => None,
    }
}

/// Operations that are reported as done when their message leaves; without keys, at once.
struct AcknowledgeEarly {
    is_meant: fn(&OpBody<i64>) -> bool,
    /// The last operation, and its keys.
    last: Option<(OpId, Vec<Key>)>,
    told: BTreeSet<OpId>,
}

impl AcknowledgeEarly {
    fn of(is_meant: fn(&OpBody<i64>) -> bool) -> Self {
        Self { is_meant, last: None, told: BTreeSet::new() }
    }
}

impl Mistake for AcknowledgeEarly {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(op) = &input
            && (self.is_meant)(&op.body)
        {
            self.last = Some((op.id, accessed(op).to_vec()));
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        said.events.retain(|event| !ended(event).is_some_and(|op| self.told.remove(&op)));
        let Some((op, keys)) = self.last.take() else { return };
        let is_sent = said.sent.iter().any(|(_, message)| match &*message.body {
            Body::Operation(operation) => {
                let mut sent = operation.pushes.keys.iter().chain(operation.sets.keys.iter());
                sent.any(|key| keys.contains(key))
            }
            _ => false,
        });
        if (is_sent || keys.is_empty()) && !said.events.iter().any(|event| ended(event) == Some(op))
        {
            self.told.insert(op);
            said.events.push(Event::Done { op, values: Vec::new() });
        }
    }
}

/// The key of each set.
#[derive(Default)]
struct EndTwice(BTreeMap<OpId, Vec<Key>>);

impl Mistake for EndTwice {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(Op { id, body: OpBody::Set { keys, .. }, .. }) = &input {
            self.0.insert(*id, keys.clone());
        }
        vec![input]
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        let is_replica = |key: &Key| engine.inspect(*key).packed.state() == State::Replica;
        let ends = said.events.iter().filter_map(ended);
        let again: Vec<OpId> = ends
            .filter(|op| self.0.remove(op).is_some_and(|keys| keys.iter().any(is_replica)))
            .collect();
        said.events.extend(again.into_iter().map(|op| Event::Done { op, values: Vec::new() }));
    }
}

/// The keys of unfinished operations.
#[derive(Default)]
struct ForgetForwarded {
    open: BTreeMap<OpId, Vec<Key>>,
    /// Operations whose failure is not reported.
    spared: BTreeSet<OpId>,
}

impl Mistake for ForgetForwarded {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match &input {
            Input::Op(op) => {
                self.open.insert(op.id, accessed(op).to_vec());
            }
            Input::PeerLost(lost) => {
                let is_elsewhere = |key: &Key| {
                    let unanswered = engine.inspect(*key).unanswered;
                    unanswered.is_some_and(|asked| asked.node != *lost)
                };
                let spared = self.open.iter().filter(|(_, keys)| keys.iter().any(is_elsewhere));
                self.spared = spared.map(|(op, _)| *op).collect();
            }
            _ => {}
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        said.events.iter().filter_map(ended).for_each(|op| drop(self.open.remove(&op)));
        said.events.retain(|event| !ended(event).is_some_and(|op| self.spared.contains(&op)));
        self.spared.clear();
    }
}

/// The last operation, and its keys.
#[derive(Default)]
struct NameHopAsLost(Option<(OpId, Vec<Key>)>);

impl Mistake for NameHopAsLost {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(op) = &input {
            self.0 = Some((op.id, accessed(op).to_vec()));
        }
        vec![input]
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        let Some((last, keys)) = self.0.take() else { return };
        let config = engine.config();
        let packed = |key: Key| engine.inspect(key).packed;
        let Some(far) = keys.into_iter().find(|key| !packed(*key).is_local()) else { return };
        let hop =
            route::first_hop(packed(far), far, config.node, &config.homes, config.location_caches)
                .node;
        for event in &mut said.events {
            if let Event::Failed { op, error } = event
                && *op == last
                && hop != config.node
            {
                *error = OpError::lost(hop);
            }
        }
    }
}

/// A second detector of unresponsive peers, beside the engine's.
#[derive(Default)]
struct Looks {
    /// Counts peers that owe no answer, as if they had been silent all the time.
    is_hasty: bool,
    /// Ignores messages of peers.
    is_deaf: bool,
    /// Counts the checks that a pause would have contained.
    counts_absence: bool,
    /// Peers that owe the answer to a request.
    owing: BTreeSet<NodeId>,
    /// Checks in a row without a message of a peer.
    unheard: BTreeMap<NodeId, u64>,
    unresponsive: Vec<NodeId>,
}

impl Looks {
    fn hear(&mut self, node: NodeId) {
        if !self.is_deaf {
            self.unheard.insert(node, 0);
        }
    }

    fn look(&mut self, engine: &Engine, looks: u64) {
        let own = engine.config().node;
        for node in
            (0..engine.config().nodes).map(|node| NodeId(node as u16)).filter(|node| *node != own)
        {
            let unheard = self.unheard.entry(node).or_default();
            let owes = self.owing.contains(&node);
            if !owes && !self.is_hasty {
                *unheard = 0;
                continue;
            }
            let before = *unheard;
            *unheard += if owes { looks } else { LOOKS };
            if before < LOOKS && *unheard >= LOOKS {
                self.unresponsive.push(node);
            }
        }
    }
}

impl Mistake for Looks {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match &input {
            Input::Message(from, message) => {
                self.hear(*from);
                if matches!(*message.body, Body::SyncResponse(_)) {
                    self.owing.remove(from);
                }
            }
            Input::Heard(node) => self.hear(*node),
            Input::Timeout(_) => {
                if let Some(due) = engine.next_look_at().filter(|due| *due <= now) {
                    let interval = engine.config().unresponsive_nanos.unwrap_or_default() / LOOKS;
                    let missed = if self.counts_absence {
                        now.nanos_since(due) / interval.max(1)
                    } else {
                        0
                    };
                    self.look(engine, 1 + missed);
                }
            }
            _ => {}
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        let asked =
            said.sent.iter().filter(|(_, message)| matches!(*message.body, Body::SyncRequest(_)));
        self.owing.extend(asked.map(|(to, _)| *to));
        let told = |node: &NodeId| said.events.contains(&Event::Unresponsive { node: *node });
        let untold: Vec<NodeId> = self.unresponsive.drain(..).filter(|node| !told(node)).collect();
        said.events.extend(untold.into_iter().map(|node| Event::Unresponsive { node }));
    }
}

/// Peers whose last request asked for nothing.
#[derive(Default)]
struct IgnoreIdle(BTreeSet<NodeId>);

impl Mistake for IgnoreIdle {
    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for (to, message) in &said.sent {
            if let Body::SyncRequest(request) = &*message.body {
                if *request == SyncRequest::default() {
                    self.0.insert(*to);
                } else {
                    self.0.remove(to);
                }
            }
        }
        said.events.retain(
            |event| !matches!(event, Event::Unresponsive { node } if self.0.contains(node)),
        );
    }
}

/// Checks after which a peer counts as unresponsive.
const LOOKS: u64 = 6;
