//! Mistakes of a driver: with inputs and their order, with dirty keys, and with refusals.

use std::collections::BTreeMap;

use adapm_core::clock::Clock;
use adapm_core::engine::{Input, Intent, Op, OpBody, SignalId};
use adapm_core::id::{Key, NodeId, WorkerId};
use adapm_core::slot::State;
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Body, Mark, SyncResponse};

use super::Bug;
use super::mistake::{Engine, Mistake};
use crate::Recorder;

pub(super) fn mistake(bug: Bug) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::ForgetParked => Box::new(ForgetParked),
        Bug::ReverseParked => Box::new(ReverseParked::default()),
        Bug::KeepClock => Box::new(KeepClock::default()),
        Bug::IgnoreSyncMark => Box::new(IgnoreSyncMark(false)),
        Bug::HandDirtyAgain => Box::new(HandDirtyAgain(Vec::new())),
        Bug::RenewAtOnce => Box::new(RenewAtOnce),
        Bug::AskWhileFrozen => Box::new(AskWhileFrozen),
        Bug::CountRefused => Box::new(CountRefused(None)),
        Bug::AnswerRefused => Box::new(AnswerRefused),
        Bug::HotKeyDropped => Box::new(HotKeyDropped),
        Bug::ColdKeyReplicated => Box::new(ColdKeyReplicated),
        Bug::WriteToLost => Box::new(WriteToLost::default()),
        Bug::TellOneLoss => Box::new(TellOneLoss(None)),
        Bug::BlameLateAnswer => Box::new(BlameLateAnswer),
        _ => return None,
    })
}

/// Returns the keys that an operation accesses.
pub(super) fn accessed(op: &Op<i64>) -> &[Key] {
    match &op.body {
        OpBody::Pull { keys } | OpBody::Push { keys, .. } | OpBody::Set { keys, .. } => keys,
        _ => &[],
    }
}

/// Renewals that are begun without their keys.
struct RenewAtOnce;

impl Mistake for RenewAtOnce {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(Op { body: OpBody::Renew { keys }, .. }) = &mut input {
            keys.clear();
        }
        vec![input]
    }
}

/// Nodes that freeze and thaw at once.
struct AskWhileFrozen;

impl Mistake for AskWhileFrozen {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Op(Op { body, .. }) = &mut input
            && *body == OpBody::Freeze
        {
            *body = OpBody::Thaw;
        }
        vec![input]
    }
}

fn is_parked(engine: &Engine, op: &Op<i64>) -> bool {
    accessed(op).iter().any(|key| engine.inspect(*key).packed.state() == State::Requested)
}

struct ForgetParked;

impl Mistake for ForgetParked {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let is_lost = matches!(&input, Input::Op(op) if is_parked(engine, op));
        if is_lost { Vec::new() } else { vec![input] }
    }
}

/// Operations wait in front of the engine instead of in it, and are fed in the wrong order.
#[derive(Default)]
struct ReverseParked {
    waiting: Vec<Op<i64>>,
    has_lost: bool,
}

impl Mistake for ReverseParked {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match input {
            Input::Op(op) if !self.has_lost && is_parked(engine, &op) => {
                self.waiting.push(op);
                Vec::new()
            }
            input => {
                self.has_lost |= matches!(input, Input::PeerLost(_));
                vec![input]
            }
        }
    }

    fn follow(&mut self, engine: &Engine) -> Vec<Input<'static, i64>> {
        let has_lost = self.has_lost;
        let is_due = |op: &mut Op<i64>| has_lost || !is_parked(engine, op);
        let due: Vec<Op<i64>> = self.waiting.extract_if(.., is_due).collect();
        due.into_iter().rev().map(Input::Op).collect()
    }
}

/// The clocks that workers had before they ended.
#[derive(Default)]
struct KeepClock(Vec<Clock>);

impl Mistake for KeepClock {
    fn clocks(&mut self, clocks: &mut Vec<Clock>) {
        self.0.resize(clocks.len(), Clock(0));
        for (clock, before) in clocks.iter_mut().zip(&mut self.0) {
            if *clock == Clock::INFINITY {
                *clock = *before;
            }
            *before = *clock;
        }
    }
}

struct HotKeyDropped;

impl Mistake for HotKeyDropped {
    fn clocks(&mut self, clocks: &mut Vec<Clock>) {
        if clocks.contains(&Clock::INFINITY) {
            clocks[0] = Clock::INFINITY;
        }
    }
}

struct ColdKeyReplicated;

impl Mistake for ColdKeyReplicated {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Op(Op { body: OpBody::Localize { keys }, .. }) = &input else {
            return vec![input];
        };
        let (id, clocks) = (SignalId::default(), Clock(0)..Clock::INFINITY);
        let intent = Intent { worker: WorkerId(0), id, keys: keys.clone(), clocks };
        vec![Input::Intent(intent), input]
    }
}

/// True while the input is a request with a mark.
struct IgnoreSyncMark(bool);

impl Mistake for IgnoreSyncMark {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        self.0 = matches!(&input, Input::Message(_, message)
            if matches!(&*message.body, Body::SyncRequest(request) if request.mark != Mark::None));
        vec![input]
    }

    fn dirty(&mut self, keys: &mut Vec<Key>, take: &mut dyn FnMut(&mut Vec<Key>)) {
        if !self.0 {
            take(keys);
        }
    }
}

/// All dirty keys so far.
struct HandDirtyAgain(Vec<Key>);

impl Mistake for HandDirtyAgain {
    fn dirty(&mut self, keys: &mut Vec<Key>, take: &mut dyn FnMut(&mut Vec<Key>)) {
        take(&mut self.0);
        keys.extend_from_slice(&self.0);
    }
}

/// The sender of the refused message.
struct CountRefused(Option<NodeId>);

impl Mistake for CountRefused {
    fn refused(&mut self, from: NodeId, _is_request: bool, _said: &mut Recorder<i64>) {
        self.0 = Some(from);
    }

    /// Returns an empty message, which is counted.
    fn follow(&mut self, _engine: &Engine) -> Vec<Input<'static, i64>> {
        let counted = self.0.take().map(|from| Input::Message(from, Message::bare(Body::News)));
        counted.into_iter().collect()
    }
}

struct AnswerRefused;

impl Mistake for AnswerRefused {
    fn refused(&mut self, from: NodeId, is_request: bool, said: &mut Recorder<i64>) {
        if is_request {
            said.sent.push((from, Message::bare(Body::SyncResponse(SyncResponse::default()))));
        }
    }
}

/// The last message to each peer, and the peer that was just lost.
#[derive(Default)]
struct WriteToLost {
    last: BTreeMap<NodeId, Message>,
    lost: Option<NodeId>,
}

impl Mistake for WriteToLost {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        self.lost = if let Input::PeerLost(node) = input { Some(node) } else { None };
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        if let Some(lost) = self.lost
            && let Some(message) = self.last.remove(&lost)
        {
            said.sent.push((lost, message));
        }
        self.last.extend(said.sent.iter().cloned());
    }
}

/// The first lost peer.
struct TellOneLoss(Option<NodeId>);

impl Mistake for TellOneLoss {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match input {
            Input::PeerLost(node) if *self.0.get_or_insert(node) != node => Vec::new(),
            input => vec![input],
        }
    }
}

struct BlameLateAnswer;

impl Mistake for BlameLateAnswer {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &mut input
            && let Body::Answer(answer) = &*message.body
        {
            let mut keys = answer.pulls.keys.iter().chain(answer.done.keys.iter());
            if keys.any(|key| engine.inspect(*key).unanswered.is_none()) {
                // No answer has more values than keys: so the engine itself names the sender.
                message.values.push(&[0_i64]);
            }
        }
        vec![input]
    }
}
