//! What goes wrong, and when.

use core::time::Duration;

use adapm_core::{Instant, NodeId};

use crate::sim::coverage::FaultKind;
use crate::sim::dice::Dice;

/// Something that goes wrong. All but the last heal by themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The pipe between two nodes breaks: what is on its way is lost, all or the end of it, and a new one is dialed.
    Reset(NodeId, NodeId),
    /// Nothing gets through from one node to another for a while; then it arrives late.
    OneWay(NodeId, NodeId, Duration),
    /// Nothing gets through between these nodes and the others for a while.
    Partition(Vec<NodeId>, Duration),
    /// A node stands still for a while, its workers with it: it reads, writes and sends nothing.
    Pause(NodeId, Duration),
    /// A node takes so many times longer for everything for a while.
    Slow(NodeId, u32, Duration),
    /// The next packet from one node to another arrives twice.
    Repeat(NodeId, NodeId),
    /// The second node gets a message, as if from the first, that no sound node sends.
    Lie(NodeId, NodeId),
    /// A node is gone for good.
    Vanish(NodeId),
}

impl Fault {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Reset(..) => FaultKind::Reset,
            Self::OneWay(..) => FaultKind::OneWay,
            Self::Partition(..) => FaultKind::Partition,
            Self::Pause(..) => FaultKind::Pause,
            Self::Slow(..) => FaultKind::Slow,
            Self::Repeat(..) => FaultKind::Repeat,
            Self::Lie(..) => FaultKind::Lie,
            Self::Vanish(..) => FaultKind::Vanish,
        }
    }

    /// The nodes that it strikes.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeId> {
        match self {
            Self::Reset(a, b) | Self::OneWay(a, b, _) | Self::Repeat(a, b) => vec![*a, *b],
            Self::Partition(side, _) => side.clone(),
            Self::Pause(node, _) | Self::Slow(node, ..) | Self::Vanish(node) | Self::Lie(_, node) => {
                vec![*node]
            }
        }
    }
}

/// When a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this time.
    At(Instant),
    /// When the workers have taken so many steps.
    Steps(u64),
}

/// Faults in the order in which they strike; those by time and those by steps each in their own order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Plan(pub Vec<(When, Fault)>);

impl Plan {
    /// `count` faults, evenly over these steps of the workers of `nodes` nodes, none longer than `longest`.
    #[must_use]
    pub fn random(
        dice: &mut Dice,
        nodes: usize,
        count: u64,
        steps: core::ops::Range<u64>,
        longest: Duration,
    ) -> Self {
        let mut moments: Vec<u64> = (0..count).map(|_| dice.within(steps.clone())).collect();
        moments.sort_unstable();
        let fault = |step| (When::Steps(step), random_fault(dice, nodes, longest));
        Self(moments.into_iter().map(fault).collect())
    }

    /// The same with one more fault.
    #[must_use]
    pub fn and(mut self, fault: (When, Fault)) -> Self {
        self.0.push(fault);
        let steps = |when: &When| match when {
            When::At(_) => 0,
            When::Steps(steps) => *steps,
        };
        self.0.sort_by_key(|(when, _)| steps(when));
        self
    }

    /// How many faults do not strike this node.
    #[must_use]
    pub fn others_than(&self, node: NodeId) -> usize {
        self.0.iter().filter(|(_, fault)| !fault.nodes().contains(&node)).count()
    }

    /// The same faults, each so many nanoseconds after `start` as it was to strike after steps.
    #[must_use]
    pub fn after(self, start: Instant) -> Self {
        let timed = |(when, fault)| match when {
            When::Steps(nanos) => (When::At(start.plus_nanos(nanos)), fault),
            When::At(_) => (when, fault),
        };
        Self(self.0.into_iter().map(timed).collect())
    }
}

fn random_fault(dice: &mut Dice, nodes: usize, longest: Duration) -> Fault {
    let a = NodeId(dice.within(0..nodes as u64) as u16);
    let b = NodeId(((u64::from(a.0) + dice.within(1..nodes as u64)) % nodes as u64) as u16);
    // Short ones strike inside of a round, long ones are longer than any round.
    let longest = longest.as_nanos() as u64;
    let longest = dice.choose(&[longest / 100, longest / 10, longest]);
    let lasts = Duration::from_nanos(dice.within(longest / 10..longest + 1));
    match dice.within(0..100) {
        0..30 => Fault::Reset(a, b),
        30..42 => Fault::OneWay(a, b, lasts),
        42..54 => {
            let alone = dice.chance(70) || nodes < 4;
            Fault::Partition(if alone { vec![a] } else { vec![a, b] }, lasts)
        }
        54..66 => Fault::Pause(a, lasts),
        66..78 => Fault::Slow(a, dice.choose(&[3, 10, 100]), lasts),
        78..88 => Fault::Repeat(a, b),
        _ => Fault::Lie(a, b),
    }
}
