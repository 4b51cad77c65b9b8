//! Faults, and their times.

use core::time::Duration;

use adapm_core::{Instant, NodeId};

use crate::rng::Rng;
use crate::sim::coverage::FaultKind;

/// A fault. All but the last two heal by themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The pipe between two nodes breaks: data in flight is lost, all or the end of it, and a new
    /// pipe is dialed.
    Reset(NodeId, NodeId),
    /// Nothing gets through from one node to another for a while; then it arrives late.
    OneWay(NodeId, NodeId, Duration),
    /// Nothing gets through between these nodes and the others for a while.
    Partition(Vec<NodeId>, Duration),
    /// A node is paused for a while, its workers with it: it reads, writes and sends nothing.
    Pause(NodeId, Duration),
    /// The link between two nodes carries bytes so slowly for a while that a packet of the largest
    /// size takes this long.
    SlowLink(NodeId, NodeId, Duration, Duration),
    /// Packets from one node to another above this size do not get through for a while, nor does
    /// anything after them on the same pipe: the next pipe works until the next large packet.
    Hole(NodeId, NodeId, usize, Duration),
    /// A node is this many times slower for a while.
    Slow(NodeId, u32, Duration),
    /// The next packet from one node to another arrives twice.
    Repeat(NodeId, NodeId),
    /// The second node gets a message, as if from the first, that no sound node sends.
    Lie(NodeId, NodeId),
    /// A node is gone for good.
    Vanish(NodeId),
    /// A node stops working for good, while its links live, with heartbeats and acknowledgements.
    Mute(NodeId),
}

impl Fault {
    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Reset(..) => FaultKind::Reset,
            Self::OneWay(..) => FaultKind::OneWay,
            Self::Partition(..) => FaultKind::Partition,
            Self::Pause(..) => FaultKind::Pause,
            Self::SlowLink(..) => FaultKind::SlowLink,
            Self::Hole(..) => FaultKind::Hole,
            Self::Slow(..) => FaultKind::Slow,
            Self::Repeat(..) => FaultKind::Repeat,
            Self::Lie(..) => FaultKind::Lie,
            Self::Vanish(..) => FaultKind::Vanish,
            Self::Mute(..) => FaultKind::Mute,
        }
    }

    /// Returns the nodes that it strikes.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeId> {
        match self {
            Self::Reset(a, b)
            | Self::OneWay(a, b, _)
            | Self::Repeat(a, b)
            | Self::SlowLink(a, b, ..)
            | Self::Hole(a, b, ..) => vec![*a, *b],
            Self::Partition(side, _) => side.clone(),
            Self::Pause(node, _)
            | Self::Slow(node, ..)
            | Self::Vanish(node)
            | Self::Mute(node)
            | Self::Lie(_, node) => vec![*node],
        }
    }
}

/// The time at which a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this time.
    At(Instant),
    /// After this many steps of the workers.
    Steps(u64),
}

/// Faults in the order in which they strike; those by time and those by steps each in their own
/// order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Plan(pub Vec<(When, Fault)>);

impl Plan {
    /// Creates `count` faults, evenly spread over these steps of the workers of `nodes` nodes, none
    /// longer than `longest`.
    #[must_use]
    pub fn random(
        rng: &mut Rng,
        nodes: usize,
        count: u64,
        steps: core::ops::Range<u64>,
        longest: Duration,
    ) -> Self {
        let mut moments: Vec<u64> = (0..count).map(|_| rng.number(steps.clone())).collect();
        moments.sort_unstable();
        let fault = |step| (When::Steps(step), random_fault(rng, nodes, longest));
        Self(moments.into_iter().map(fault).collect())
    }

    /// Creates links that are slow from the start: a packet takes up to a sixteenth of `dead_after`
    /// on all links of one node, for three times that long. At some of these steps of the workers
    /// one of them is cut, twice, and a node is paused for up to a quarter of it.
    #[must_use]
    pub fn slow_links(
        rng: &mut Rng,
        nodes: usize,
        dead_after: Duration,
        steps: core::ops::Range<u64>,
    ) -> Self {
        let (a, b) = two_nodes(rng, nodes);
        let packet_time = dead_after / rng.choose(&[16, 20, 40]);
        let slow = (0..nodes as u16).map(NodeId).filter(|node| *node != a);
        let slow = slow.map(|node| Fault::SlowLink(a, node, packet_time, 3 * dead_after));
        let mut plan: Vec<(When, Fault)> =
            slow.map(|fault| (When::At(Instant::ZERO), fault)).collect();
        let dead_nanos = dead_after.as_nanos() as u64;
        let lasts = Duration::from_nanos(rng.number(dead_nanos / 20..dead_nanos / 4));
        let stopped = rng.choose(&[a, b]);
        let mut faults = vec![Fault::Pause(stopped, lasts), Fault::Reset(a, b), Fault::Reset(a, b)];
        let mut moments: Vec<u64> = faults.iter().map(|_| rng.number(steps.clone())).collect();
        moments.sort_unstable();
        for moment in moments {
            let fault = faults.swap_remove(rng.within(0..faults.len()));
            plan.push((When::Steps(moment), fault));
        }
        Self(plan)
    }

    /// Creates a link that carries only small packets, or carries bytes so slowly that no packet
    /// ever completes, for good.
    #[must_use]
    pub fn dead_link(
        rng: &mut Rng,
        nodes: usize,
        dead_after: Duration,
        steps: core::ops::Range<u64>,
    ) -> Self {
        let (a, b) = two_nodes(rng, nodes);
        let fault = if rng.chance(50) {
            Fault::Hole(a, b, 40, FOR_GOOD)
        } else {
            Fault::SlowLink(a, b, 40 * dead_after, FOR_GOOD)
        };
        Self(vec![(When::Steps(rng.number(steps)), fault)])
    }

    /// Adds one fault.
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

    /// Returns the number of faults that do not strike this node.
    #[must_use]
    pub fn count_elsewhere(&self, node: NodeId) -> usize {
        self.0.iter().filter(|(_, fault)| !fault.nodes().contains(&node)).count()
    }

    /// Converts the plan to times: each fault strikes as many nanoseconds after `start` as it had
    /// steps.
    #[must_use]
    pub fn after(self, start: Instant) -> Self {
        let timed = |(when, fault)| match when {
            When::Steps(nanos) => (When::At(start.plus_nanos(nanos)), fault),
            When::At(_) => (when, fault),
        };
        Self(self.0.into_iter().map(timed).collect())
    }
}

fn two_nodes(rng: &mut Rng, nodes: usize) -> (NodeId, NodeId) {
    let a = NodeId(rng.number(0..nodes as u64) as u16);
    let b = NodeId(((u64::from(a.0) + rng.number(1..nodes as u64)) % nodes as u64) as u16);
    (a, b)
}

fn random_fault(rng: &mut Rng, nodes: usize, longest: Duration) -> Fault {
    let (a, b) = two_nodes(rng, nodes);
    // Short ones strike within a round, long ones are longer than any round.
    let longest = longest.as_nanos() as u64;
    let longest = rng.choose(&[longest / 100, longest / 10, longest]);
    let lasts = Duration::from_nanos(rng.number(longest / 10..longest + 1));
    match rng.number(0..100) {
        0..22 => Fault::Reset(a, b),
        // Slower for longer than any other fault, but not so slow that data in flight takes
        // forever.
        22..28 => Fault::SlowLink(a, b, lasts / 64, 4 * lasts),
        // Swallowed packets are noticed late.
        28..32 => Fault::Hole(a, b, rng.choose(&[30, 60, 200]), lasts / 4),
        32..42 => Fault::OneWay(a, b, lasts),
        42..54 => {
            let alone = rng.chance(70) || nodes < 4;
            Fault::Partition(if alone { vec![a] } else { vec![a, b] }, lasts)
        }
        54..66 => Fault::Pause(a, lasts),
        66..78 => Fault::Slow(a, rng.choose(&[3, 10, 100]), lasts),
        78..88 => Fault::Repeat(a, b),
        _ => Fault::Lie(a, b),
    }
}

/// Longer than any run.
const FOR_GOOD: Duration = Duration::from_secs(3_600);
