//! Nodes whose links run over datagrams that get lost, repeated, reordered and cut, in virtual
//! time: hardship by a seed, then goodbyes, and what must hold.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use adapm_core::id::NodeId;
use adapm_core::link::{DATAGRAM_HEADER_BYTES, LinkConfig, Links, SendRefusal};
use adapm_core::time::Instant;
use adapm_core::transport::{CloseReason, Frame, Loss, Received};

use crate::decorators::{FaultCounts, FaultRates, Faulty};
use crate::link::{Broken, claim};
use crate::planted::DatagramBug;
use crate::rng::Rng;

/// Number of nodes of a mesh.
pub const NODES: usize = 3;

/// Counts of events in the runs so far: meshes that have become tame prove nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Frames delivered.
    pub delivered: u64,
    /// Frames refused for lack of room.
    pub refused: u64,
    /// Faults of the network.
    pub network: FaultCounts,
    /// Datagrams of earlier lives.
    pub stale: u64,
    /// Nodes that vanished.
    pub vanished: u64,
    /// Reports of a loss.
    pub lost: u64,
    /// Nodes that left with an error.
    pub failed: u64,
    /// Most packets and bytes that one node kept.
    pub kept: (usize, usize),
}

impl MeshCounts {
    /// Adds the counts of other runs.
    pub fn merge(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.refused += other.refused;
        self.network.datagrams += other.network.datagrams;
        self.network.lost += other.network.lost;
        self.network.repeated += other.network.repeated;
        self.network.reordered += other.network.reordered;
        self.network.cut += other.network.cut;
        self.stale += other.stale;
        self.vanished += other.vanished;
        self.lost += other.lost;
        self.failed += other.failed;
        self.kept = (self.kept.0.max(other.kept.0), self.kept.1.max(other.kept.1));
    }
}

/// Runs the mesh of `seed`: every node sends to every other, one of them may vanish, the others
/// leave. Every frame arrives once, whole and in order; all nodes that vanish or fail are lost, and
/// no others; what is kept stays bounded; all links come to an end.
///
/// # Errors
/// If a claim breaks.
pub fn run(seed: u64, bug: Option<DatagramBug>) -> Result<MeshCounts, Broken> {
    let mut mesh = Mesh::new(seed, bug);
    mesh.recall_earlier_lives();
    while mesh.is_busy() {
        mesh.step()?;
    }
    mesh.judge_arrivals()?;
    mesh.close_all()?;
    while !mesh.are_closed()? {
        mesh.step()?;
    }
    mesh.judge_losses()?;
    mesh.counts.network = mesh.faults.counts();
    Ok(mesh.counts)
}

/// A datagram on its way: from, to and bytes.
type Flight = (usize, usize, Vec<u8>);

struct Mesh {
    now: Instant,
    config: LinkConfig,
    rng: Rng,
    nodes: Vec<Member>,
    faults: Faulty<(usize, usize)>,
    /// By the time of arrival, and a number.
    flights: BTreeMap<(Instant, u64), Flight>,
    numbers: u64,
    steps: u64,
    /// Node and time.
    vanishes: Option<(usize, Instant)>,
    reason: CloseReason,
    bug: Option<DatagramBug>,
    counts: MeshCounts,
}

struct Member {
    links: Links,
    life: NonZeroU32,
    closing: Option<Instant>,
    has_closed: bool,
    is_gone: bool,
    /// Number of frames sent to each node, to be sent, and received from it.
    sent: [u64; NODES],
    goal: u64,
    received: [u64; NODES],
    lost: [Option<Loss>; NODES],
    is_refused: [bool; NODES],
    /// Numbered packets that were written once (for planted mistakes), and frames to repeat.
    written: Vec<(usize, Vec<u8>)>,
    again: VecDeque<NodeId>,
}

impl Mesh {
    fn new(seed: u64, bug: Option<DatagramBug>) -> Self {
        let mut rng = Rng::new(seed);
        let mut config = LinkConfig::datagrams(Duration::from_secs(2));
        config.packet_bytes = rng.choose(&[16, 40, 300, 1_200]);
        config.window_packets = rng.choose(&[2, 8, 64, 1_024]);
        config.window_bytes = rng.choose(&[50, 2_000, 40_000]);
        let rates = FaultRates { lost: 5, repeated: 5, reordered: 5, cut: 2 };
        let goal = rng.number(1..40);
        let mut given = config;
        if bug == Some(DatagramBug::IgnoreBounds) {
            (given.window_packets, given.window_bytes) = (1 << 20, 1 << 30);
        }
        let nodes = (0..NODES).map(|node| Member::new(node, life(&mut rng), given, goal)).collect();
        let vanishes = rng
            .chance(25)
            .then(|| (rng.within(0..NODES), Instant::from_micros(rng.number(0..40_000))));
        let reason =
            rng.choose(&[CloseReason::Finished, CloseReason::Finished, CloseReason::Failed]);
        Self {
            now: Instant::ZERO,
            config,
            faults: Faulty::new(rates, rng.bits()),
            rng,
            nodes,
            flights: BTreeMap::new(),
            numbers: 0,
            steps: 0,
            vanishes,
            reason,
            bug,
            counts: MeshCounts::default(),
        }
    }

    /// Puts datagrams on the way that processes before these have sent to each other, with the same
    /// numbers and addresses.
    fn recall_earlier_lives(&mut self) {
        let mut before: Vec<Member> =
            (0..NODES).map(|node| Member::new(node, life(&mut self.rng), self.config, 0)).collect();
        let mut bytes = Vec::new();
        for round in 0..4 {
            for from in 0..NODES {
                let to = (from + 1 + round % 2) % NODES;
                let mut frame = Frame { head: vec![0xee; 40], ..Frame::default() };
                let _ = before[from].links.send(NodeId(to as u16), &mut frame);
                while let Some(to) = before[from].links.poll_datagram(self.now, &mut bytes) {
                    let at = self.now.plus_nanos(self.rng.number(0..60_000_000));
                    self.counts.stale += 1;
                    self.fly(at, (from, to.index(), bytes.clone()));
                    let own = NodeId(from as u16);
                    let peer = &mut before[to.index()].links;
                    peer.handle_datagram(self.now, own, &bytes).expect("earlier lives are sound");
                }
            }
        }
    }

    fn fly(&mut self, at: Instant, flight: Flight) {
        self.numbers += 1;
        self.flights.insert((at, self.numbers), flight);
    }

    /// Goes on to the next arrival or deadline.
    fn step(&mut self) -> Result<(), Broken> {
        self.steps += 1;
        claim!(Once, self.steps < STEPS_MAX, "it comes to no end: {}", self.state());
        let arrival = self.flights.first_key_value().map(|((at, _), _)| *at);
        let members = self.nodes.iter().filter(|member| !member.is_gone);
        let due = members.filter_map(|member| member.links.deadline()).min();
        let Some(next) = arrival.into_iter().chain(due).min() else {
            let are_closing = self.nodes.iter().any(|member| member.is_gone || member.has_closed);
            claim!(Quiet, are_closing, "nothing is due: {}", self.state());
            return Ok(());
        };
        self.now = self.now.max(next);
        if let Some((node, at)) = self.vanishes
            && at <= self.now
            && !self.nodes[node].is_gone
        {
            self.nodes[node].is_gone = true;
            self.counts.vanished += 1;
        }
        while let Some(entry) = self.flights.first_entry()
            && entry.key().0 <= self.now
        {
            let (from, to, bytes) = entry.remove();
            self.arrive(from, to, bytes)?;
        }
        for node in 0..NODES {
            self.serve(node)?;
        }
        Ok(())
    }

    fn arrive(&mut self, from: usize, to: usize, mut bytes: Vec<u8>) -> Result<(), Broken> {
        if self.bug == Some(DatagramBug::TrustAnyLife) && bytes.len() >= DATAGRAM_HEADER_BYTES {
            bytes[2..6].copy_from_slice(&self.nodes[from].life.get().to_le_bytes());
            bytes[6..10].copy_from_slice(&self.nodes[to].life.get().to_le_bytes());
        }
        let bytes = &bytes[..];
        let member = &mut self.nodes[to];
        if member.is_gone {
            return Ok(());
        }
        let result = member.links.handle_datagram(self.now, NodeId(from as u16), bytes);
        let is_cut = matches!(result, Err(adapm_core::link::LinkError::Malformed));
        claim!(
            Refusal,
            result.is_ok() || is_cut,
            "node {to} refuses a datagram of {} bytes of {from}: {result:?}",
            bytes.len()
        );
        Ok(())
    }

    /// Lets one node send, receive and write.
    fn serve(&mut self, node: usize) -> Result<(), Broken> {
        if self.nodes[node].is_gone {
            return Ok(());
        }
        self.nodes[node].links.handle_timeout(self.now);
        self.send(node)?;
        self.receive(node)?;
        let kept = self.nodes[node].links.kept();
        self.counts.kept = (self.counts.kept.0.max(kept.0), self.counts.kept.1.max(kept.1));
        let LinkConfig { packet_bytes, window_packets, window_bytes, .. } = self.config;
        // Each way of each link: a window, or one frame that is larger, and a goodbye.
        let packets = window_packets.max(FRAME_BYTES_MAX.div_ceil(packet_bytes)) + 1;
        let bytes = window_bytes.max(FRAME_BYTES_MAX) + packet_bytes;
        let ways = 2 * (NODES - 1);
        claim!(
            Memory,
            kept.0 <= ways * packets && kept.1 <= ways * bytes,
            "node {node} keeps {kept:?} packets and bytes, with {:?}",
            self.config
        );
        self.write(node)
    }

    fn send(&mut self, node: usize) -> Result<(), Broken> {
        let member = &mut self.nodes[node];
        for to in (0..NODES).filter(|to| *to != node) {
            if member.sent[to] >= member.goal || member.is_refused[to] || !self.rng.chance(60) {
                continue;
            }
            let mut frame = numbered_frame(node, to, member.sent[to]);
            match member.links.send(NodeId(to as u16), &mut frame) {
                Ok(()) => member.sent[to] += 1,
                Err(SendRefusal::Full) => {
                    claim!(
                        Refusal,
                        frame == numbered_frame(node, to, member.sent[to]),
                        "node {node} refuses a frame and changes it"
                    );
                    member.is_refused[to] = true;
                    self.counts.refused += 1;
                }
                Err(refusal) => claim!(Refusal, false, "node {node} refuses for {refusal:?}"),
            }
        }
        Ok(())
    }

    fn receive(&mut self, node: usize) -> Result<(), Broken> {
        let mut frame = Frame::default();
        loop {
            let member = &mut self.nodes[node];
            let received = member.again.pop_front().map(Received::Frame);
            let (is_again, member_has_closed) = (received.is_some(), member.has_closed);
            let received = received.or_else(|| member.links.poll_received(self.now, &mut frame));
            match received {
                None => return Ok(()),
                Some(Received::Woken) => member.is_refused = [false; NODES],
                Some(Received::TimedOut) => claim!(Quiet, false, "nobody has waited"),
                Some(Received::Lost(lost, loss)) => {
                    let of = &self.nodes[lost.index()];
                    if member_has_closed && of.has_closed && matches!(loss, Loss::Silent(_)) {
                        // Both have what they need of each other, and wait for others.
                        continue;
                    }
                    let has_failed = of.has_closed && self.reason != CloseReason::Finished;
                    let has_ended = of.is_gone || has_failed;
                    claim!(FailureDetector, has_ended, "node {node} has lost {lost}: {loss}");
                    let member = &mut self.nodes[node];
                    claim!(
                        Once,
                        member.lost[lost.index()].replace(loss).is_none(),
                        "node {node} has lost {lost} twice"
                    );
                    self.counts.lost += 1;
                }
                Some(Received::Frame(from)) => {
                    let from = from.index();
                    let number = member.received[from];
                    claim!(
                        Once,
                        !is_again && frame == numbered_frame(from, node, number),
                        "frame {number} of node {from} to {node} is not the one sent"
                    );
                    member.received[from] += 1;
                    self.counts.delivered += 1;
                    if self.bug == Some(DatagramBug::DeliverTwice) && number % 16 == 15 {
                        member.again.push_back(NodeId(from as u16));
                    }
                }
            }
        }
    }

    fn write(&mut self, node: usize) -> Result<(), Broken> {
        let mut bytes = Vec::new();
        let mut written = 0;
        while let Some(to) = self.nodes[node].links.poll_datagram(self.now, &mut bytes) {
            written += 1;
            claim!(Quiet, written < WRITES_MAX, "node {node} writes without an end");
            claim!(
                Memory,
                bytes.len() <= DATAGRAM_HEADER_BYTES + self.config.packet_bytes.max(16),
                "a datagram of {} bytes",
                bytes.len()
            );
            if self.spoil(node, to.index(), &mut bytes) {
                continue;
            }
            for ((from, to), bytes) in self.faults.pass((node, to.index()), bytes.clone()) {
                let at = self.now.plus_nanos(self.rng.number(100_000..2_000_000));
                self.fly(at, (from, to, bytes));
            }
        }
        Ok(())
    }

    /// Changes a datagram as the planted mistake does. Returns true if it is not sent.
    fn spoil(&mut self, node: usize, to: usize, bytes: &mut [u8]) -> bool {
        let Some(bug) = self.bug.filter(|_| bytes.len() >= DATAGRAM_HEADER_BYTES) else {
            return false;
        };
        let kind = bytes[1] & 0xf;
        match bug {
            DatagramBug::RepeatNothing if (DATA..=BYE).contains(&kind) => {
                let number = (to, bytes[10..18].to_vec());
                let written = &mut self.nodes[node].written;
                let is_again = written.contains(&number);
                written.push(number);
                is_again
            }
            DatagramBug::CountAhead => {
                let ack: [u8; 8] = bytes[18..26].try_into().expect("eight bytes");
                bytes[18..26].copy_from_slice(&(u64::from_le_bytes(ack) + 1).to_le_bytes());
                false
            }
            DatagramBug::ForgetGoodbye => kind == BYE,
            _ => false,
        }
    }

    /// Returns true if frames have to be sent or to arrive, or a loss to be reported.
    fn is_busy(&self) -> bool {
        let living = || self.nodes.iter().enumerate().filter(|(_, member)| !member.is_gone);
        let will_vanish = self.vanishes.is_some_and(|(node, _)| !self.nodes[node].is_gone);
        will_vanish
            || living().any(|(at, member)| {
                (0..NODES).filter(|to| *to != at).any(|to| {
                    let peer = &self.nodes[to];
                    if peer.is_gone {
                        // One that was never met cannot be missed.
                        return member.lost[to].is_none() && member.received[to] > 0;
                    }
                    member.sent[to] < member.goal || peer.received[at] < member.sent[to]
                })
            })
    }

    fn judge_arrivals(&self) -> Result<(), Broken> {
        for (at, member) in self.nodes.iter().enumerate().filter(|(_, member)| !member.is_gone) {
            for from in (0..NODES).filter(|from| *from != at && !self.nodes[*from].is_gone) {
                let (sent, received) = (self.nodes[from].sent[at], member.received[from]);
                claim!(
                    Once,
                    sent == received,
                    "{received} of {sent} frames of {from} came to {at}"
                );
                let lost = member.lost[from];
                claim!(FailureDetector, lost.is_none(), "node {at} has lost {from}: {lost:?}");
            }
        }
        Ok(())
    }

    /// Lets the nodes leave, one after the other.
    fn close_all(&mut self) -> Result<(), Broken> {
        for node in 0..NODES {
            if self.nodes[node].is_gone {
                continue;
            }
            self.counts.failed += u64::from(self.reason != CloseReason::Finished);
            let (now, reason) = (self.now, self.reason);
            (self.nodes[node].closing, self.nodes[node].has_closed) = (Some(now), true);
            self.nodes[node].links.close(now, reason);
            self.write(node)?;
            for _ in 0..self.rng.number(0..20) {
                self.step()?;
            }
        }
        Ok(())
    }

    /// Returns true if all links have come to their end, which takes no node its whole patience.
    fn are_closed(&mut self) -> Result<bool, Broken> {
        let LinkConfig { dead_after, .. } = self.config;
        let may_wait = self.counts.vanished > 0 || self.reason != CloseReason::Finished;
        let mut are_closed = true;
        for (at, member) in self.nodes.iter_mut().enumerate().filter(|(_, member)| !member.is_gone)
        {
            let is_closed = member.links.is_closed(self.now);
            are_closed &= is_closed;
            let Some(since) = member.closing.filter(|_| !may_wait) else { continue };
            claim!(
                CloseReason,
                is_closed || self.now < since + dead_after * 3 / 4,
                "node {at} has closed at {since:?}, and at {:?} peers have not heard it",
                self.now
            );
            if is_closed {
                member.closing = None;
            }
        }
        Ok(are_closed)
    }

    /// Exactly the nodes that vanished or failed are lost. Goodbyes have arrived: no node had to be
    /// given up for silence.
    fn judge_losses(&self) -> Result<(), Broken> {
        for (at, member) in self.nodes.iter().enumerate().filter(|(_, member)| !member.is_gone) {
            for to in (0..NODES).filter(|to| *to != at) {
                let loss = member.lost[to];
                if self.nodes[to].is_gone {
                    let is_due = member.received[to] > 0;
                    claim!(FailureDetector, loss.is_some() || !is_due, "{at} does not miss {to}");
                    let is_sound = matches!(loss, None | Some(Loss::Silent(_) | Loss::Stuck(_)));
                    claim!(
                        FailureDetector,
                        is_sound,
                        "{at} has lost {to}, which vanished: {loss:?}"
                    );
                    continue;
                }
                let is_sound = match self.reason {
                    CloseReason::Finished => loss.is_none(),
                    _ => matches!(loss, None | Some(Loss::Failed)),
                };
                claim!(CloseReason, is_sound, "node {at} has lost {to}, which left: {loss:?}");
            }
            let closing = self.nodes[at].links.is_closed(self.now);
            claim!(CloseReason, closing, "node {at} does not come to an end");
        }
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let [one, other] = [&self.nodes[a], &self.nodes[b]];
            let have_met = one.received[b] > 0 && !one.is_gone && !other.is_gone;
            let is_told = one.lost[b].is_some() || other.lost[a].is_some();
            claim!(
                CloseReason,
                self.reason == CloseReason::Finished || !have_met || is_told,
                "neither of {a} and {b} has heard that the other failed"
            );
        }
        Ok(())
    }

    fn state(&self) -> String {
        let members = self.nodes.iter().map(|member| {
            format!("{:?} of {} sent, {:?} received", member.sent, member.goal, member.received)
        });
        format!("at {:?}: {}", self.now, members.collect::<Vec<_>>().join("; "))
    }
}

impl Member {
    fn new(node: usize, life: NonZeroU32, config: LinkConfig, goal: u64) -> Self {
        Self {
            links: Links::new(NodeId(node as u16), NODES as u16, life, config),
            life,
            closing: None,
            has_closed: false,
            is_gone: false,
            sent: [0; NODES],
            goal,
            received: [0; NODES],
            lost: [None; NODES],
            is_refused: [false; NODES],
            written: Vec::new(),
            again: VecDeque::new(),
        }
    }
}

fn life(rng: &mut Rng) -> NonZeroU32 {
    NonZeroU32::new(rng.bits() as u32 | 1).expect("it is odd")
}

/// The frame `number` from one node to another: its sizes and content follow from them.
fn numbered_frame(from: usize, to: usize, number: u64) -> Frame {
    let seed = number << 8 | (from << 4 | to) as u64;
    let mut rng = Rng::new(seed);
    let mut frame = Frame { head: seed.to_le_bytes().to_vec(), ..Frame::default() };
    frame.head.resize(8 + rng.within(0..40), rng.bits() as u8);
    let values = if rng.chance(10) { VALUE_BYTES_MAX } else { 120 };
    let values: Vec<u8> = (0..rng.within(0..values)).map(|at| (at as u8) ^ (seed as u8)).collect();
    frame.values.push_bytes(&values);
    frame
}

/// Kinds of datagrams: those with a number are from the first to the second.
const DATA: u8 = 1;
const BYE: u8 = 3;
const VALUE_BYTES_MAX: usize = 4_000;
/// Largest frame of a mesh.
const FRAME_BYTES_MAX: usize = VALUE_BYTES_MAX + 48;
/// More steps than any mesh takes.
const STEPS_MAX: u64 = 200_000;
/// More datagrams than a node may write at one time.
const WRITES_MAX: u64 = 10_000;
