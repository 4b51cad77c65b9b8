//! Mistakes with ticks.

use std::collections::BTreeMap;

use adapm_core::clock::Tick;
use adapm_core::engine::{Input, Op, OpBody};
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Barrier, Body, Keys, Mark};

use super::Bug;
use super::mistake::{Engine, Mistake};
use crate::Recorder;

pub(super) fn mistake(bug: Bug, lags: Vec<u32>) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::TellUnsettled => Box::new(TellUnsettled::default()),
        Bug::TickBeforeDirty => Box::new(TickBeforeDirty(false)),
        Bug::LeastOfSome => Box::new(LeastOfSome::default()),
        Bug::CountWaiting => Box::new(CountWaiting::default()),
        Bug::FilterUnderMark => Box::new(FilterUnderMark),
        Bug::LagOwn => Box::new(LagOwn { lags, changes: BTreeMap::new() }),
        _ => return None,
    })
}

/// Returns the tick that an input raises, with its worker.
fn raised(input: &Input<'_, i64>) -> Option<(WorkerId, Tick)> {
    match input {
        Input::Op(Op { worker, body: OpBody::Tick { tick, .. }, .. }) => Some((*worker, *tick)),
        Input::Op(Op { worker, body: OpBody::End, .. }) => Some((*worker, Tick::INFINITY)),
        _ => None,
    }
}

fn clock(message: &Message) -> Option<Tick> {
    match *message.body {
        Body::Barrier(Barrier::Clock { tick }) => Some(tick),
        _ => None,
    }
}

fn least(message: &Message) -> Option<Tick> {
    match *message.body {
        Body::Barrier(Barrier::Least { tick }) => Some(tick),
        _ => None,
    }
}

/// A node tells its tick as soon as its workers have reached it.
#[derive(Default)]
struct TellUnsettled {
    workers: BTreeMap<WorkerId, Tick>,
    told: Tick,
    /// The tick up to which the engine has settled, and a least tick that is above it.
    settled: Tick,
    early: Option<(NodeId, Message)>,
}

impl Mistake for TellUnsettled {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        self.workers.extend(raised(&input));
        match input {
            Input::Message(from, message)
                if least(&message).is_some_and(|tick| tick > self.settled) =>
            {
                self.early = Some((from, message));
                Vec::new()
            }
            input => vec![input],
        }
    }

    fn follow(&mut self, _engine: &Engine) -> Vec<Input<'static, i64>> {
        let settled = self.settled;
        let due = |early: &mut (NodeId, Message)| least(&early.1) <= Some(settled);
        let early = self.early.take_if(due);
        early.into_iter().map(|(from, message)| Input::Message(from, message)).collect()
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        let settled = said.sent.iter().filter_map(|(_, message)| clock(message)).max();
        self.settled = self.settled.max(settled.unwrap_or_default());
        said.sent.retain(|(_, message)| clock(message).is_none());
        let own = self.workers.values().copied().min().unwrap_or_default();
        let all = self.workers.len() == engine.config().workers;
        if engine.config().node != NodeId(0) && all && own > self.told {
            self.told = own;
            let told = Body::Barrier(Barrier::Clock { tick: own });
            said.sent.push((NodeId(0), Message::bare(told)));
        }
    }
}

/// True while the input is a tick.
struct TickBeforeDirty(bool);

impl Mistake for TickBeforeDirty {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        self.0 = raised(&input).is_some();
        vec![input]
    }

    fn dirty(&mut self, keys: &mut Vec<Key>, take: &mut dyn FnMut(&mut Vec<Key>)) {
        if !self.0 {
            take(keys);
        }
    }
}

/// Node 0 tells the least tick of those other nodes that have told it one.
#[derive(Default)]
struct LeastOfSome {
    nodes: BTreeMap<NodeId, Tick>,
    told: BTreeMap<NodeId, Tick>,
}

impl Mistake for LeastOfSome {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(from, message) = &input {
            self.nodes.extend(clock(message).map(|tick| (*from, tick)));
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        said.sent.retain(|(_, message)| least(message).is_none());
        let Some(tick) = self.nodes.values().copied().min() else { return };
        for node in self.nodes.keys() {
            if self.told.get(node).is_none_or(|told| *told < tick) && tick > Tick::default() {
                self.told.insert(*node, tick);
                let told = Body::Barrier(Barrier::Least { tick });
                said.sent.push((*node, Message::bare(told)));
            }
        }
    }
}

/// The last tick of each worker at which it waited.
#[derive(Default)]
struct CountWaiting(BTreeMap<WorkerId, Tick>);

impl Mistake for CountWaiting {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(Op { worker, body: OpBody::Tick { tick, waits }, .. }) = &mut input {
            let last = self.0.entry(*worker).or_default();
            if *waits {
                *last = *tick;
            } else {
                *tick = *last;
            }
        }
        vec![input]
    }
}

/// Marks of a `wait_sync` are taken for those of a tick.
struct FilterUnderMark;

impl Mistake for FilterUnderMark {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &mut input
            && let Body::SyncRequest(request) = &mut *message.body
        {
            request.mark = request.mark.min(Mark::Check);
        }
        vec![input]
    }
}

/// An owner counts the changes of a holder itself, and makes a refresh due that renews the replica.
struct LagOwn {
    /// By key.
    lags: Vec<u32>,
    /// Own changes of each holder since it was last renewed.
    changes: BTreeMap<(NodeId, Key), u32>,
}

impl Mistake for LagOwn {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(from, message) = &mut input
            && let Body::SyncRequest(request) = &mut *message.body
        {
            let mut renews: Vec<Key> = request.renews.iter().copied().collect();
            for key in request.deltas.iter() {
                let (lag, changes) =
                    (self.lags[key.0 as usize], self.changes.entry((*from, *key)).or_default());
                *changes += 1;
                if lag > 0 && *changes > lag {
                    *changes = 0;
                    renews.push(*key);
                }
            }
            renews.retain(|key| request.releases.binary_search(key).is_err());
            renews.sort_unstable();
            renews.dedup();
            request.renews = Keys(renews);
        }
        vec![input]
    }
}
