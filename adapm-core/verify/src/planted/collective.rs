//! Mistakes with the messages of barriers and quiesces.

use std::collections::BTreeSet;

use adapm_core::engine::Input;
use adapm_core::id::NodeId;
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Barrier, Body, Quiesce};

use super::Bug;
use super::mistake::{Engine, Mistake};
use crate::Recorder;

pub(super) fn mistake(bug: Bug) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::BarrierEarly => Box::new(BarrierEarly::default()),
        Bug::QuiesceWhileBusy => Box::new(ReportEarly { from_wave: 1, ..ReportEarly::default() }),
        Bug::SettleOnce => Box::new(ReportEarly { from_wave: 2, ..ReportEarly::default() }),
        _ => return None,
    })
}

/// The coordinator invents the last arrival.
#[derive(Default)]
struct BarrierEarly {
    number: u64,
    /// Nodes that have arrived at this barrier.
    arrived: BTreeSet<NodeId>,
    /// Nodes that have no workers left.
    ended: BTreeSet<NodeId>,
    /// Invented arrivals that have not come yet.
    made_up: BTreeSet<(NodeId, u64)>,
}

impl Mistake for BarrierEarly {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(from, message) = &input else { return vec![input] };
        match &*message.body {
            Body::Barrier(Barrier::Ended) => {
                self.ended.insert(*from);
            }
            Body::Barrier(Barrier::Arrived { number }) if engine.config().node == NodeId(0) => {
                if self.made_up.remove(&(*from, *number)) {
                    return Vec::new();
                }
                if self.number != *number {
                    (self.number, self.arrived) = (*number, BTreeSet::new());
                }
                self.arrived.insert(*from);
                let others = (1..engine.config().nodes).map(|node| NodeId(node as u16));
                let is_missing =
                    |node: &NodeId| !self.arrived.contains(node) && !self.ended.contains(node);
                let missing: Vec<NodeId> = others.filter(is_missing).collect();
                if let [last] = missing[..] {
                    self.arrived.insert(last);
                    self.made_up.insert((last, *number));
                    let arrival = Body::Barrier(Barrier::Arrived { number: *number });
                    return vec![input, Input::Message(last, Message::bare(arrival))];
                }
            }
            _ => {}
        }
        vec![input]
    }
}

/// A node reports to a wave of a quiesce as soon as it is asked.
#[derive(Default)]
struct ReportEarly {
    /// The wave of a quiesce from which on it reports early.
    from_wave: u64,
    /// Waves of this quiesce.
    waves: u64,
    /// The wave to report to.
    due: Option<u64>,
}

impl Mistake for ReportEarly {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &input {
            match *message.body {
                Body::Quiesce(Quiesce::Probe { wave, settle: true }) => {
                    self.waves += 1;
                    if self.waves >= self.from_wave {
                        self.due = Some(wave);
                        return Vec::new();
                    }
                }
                Body::Quiesce(Quiesce::Done { .. }) => self.waves = 0,
                _ => {}
            }
        }
        vec![input]
    }

    fn leave(&mut self, engine: &Engine, said: &mut Recorder<i64>) {
        if let Some(wave) = self.due.take() {
            let (sent, applied) = (engine.stats().messages_sent, engine.stats().messages_applied);
            let report = Quiesce::Report { wave, busy: false, sent, applied };
            said.sent.push((NodeId(0), Message::bare(Body::Quiesce(report))));
        }
    }
}
