//! Target `datagrams`: whatever a network does with the datagrams between two nodes, and whatever a
//! third node sends them, in its own name or in theirs, each frame between the two arrives once and
//! in order, what they keep is bounded, and a datagram that is refused changes nothing.
//!
//! The input chooses windows, then step by step what is sent, lost, repeated, reordered, cut, taken
//! or forged, and the time that passes. In the end all that is on the way arrives, and everything
//! must have come. Not here: datagrams in the name of a node by somebody who knows the lives of
//! both ends, against which nothing but encryption helps.

use std::num::NonZeroU32;
use std::time::Duration;

use adapm_core::link::{DATAGRAM_BYTES_MAX, LinkConfig, LinkError, Links, SendRefusal};
use adapm_core::transport::{Frame, Loss, Received};
use adapm_core::{Instant, NodeId};
use adapm_verify::arb::Choices;

/// Maximum number of steps in one input.
const STEPS_MAX: usize = 600;
/// Longest time of all steps: far from the time after which a silent node is lost.
const PASSED_MAX: Duration = Duration::from_millis(1_500);
/// Longest time until everything has come over a sound network.
const SETTLED_MAX: Duration = Duration::from_secs(60);
/// More datagrams than a node may write at one time.
const WRITES_MAX: usize = 20_000;
/// The third node.
const LIAR: NodeId = NodeId(2);
const FRAME_BYTES_MAX: usize = 3_008;

/// Runs the steps that `bytes` choose. Returns true if a frame has come, or a forged datagram was
/// taken.
pub fn datagrams(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut net = Net::new(config(&mut choices));
    if choices.flag() {
        net.deliver_all();
        net.deliver_all();
    }
    for _ in 0..STEPS_MAX {
        if choices.is_exhausted() || net.is_slandered {
            break;
        }
        net.step(&mut choices);
        net.write();
        net.judge_memory();
    }
    net.settle();
    net.is_deep
}

fn config(choices: &mut Choices<'_>) -> LinkConfig {
    let mut config = LinkConfig::datagrams(Duration::from_secs(10));
    config.packet_bytes = [16, 40, 300, 1_200][choices.below(4) as usize];
    config.window_packets = [2, 8, 64, 1_024][choices.below(4) as usize];
    config.window_bytes = [50, 2_000, 40_000, 1 << 20][choices.below(4) as usize];
    config
}

/// Two nodes, each at its index, and the datagrams on their way to each.
struct Net {
    config: LinkConfig,
    now: Instant,
    passed: Duration,
    ends: [Links; 2],
    flights: [Vec<Vec<u8>>; 2],
    sent: [u64; 2],
    received: [u64; 2],
    is_deep: bool,
    /// The third node has told that one of the two is lost, which is believed.
    is_slandered: bool,
}

impl Net {
    fn new(config: LinkConfig) -> Self {
        let mut net = Self {
            config,
            now: Instant::ZERO,
            passed: Duration::ZERO,
            ends: [0, 1].map(|node| Links::new(NodeId(node), 3, life(node.into()), config)),
            flights: [Vec::new(), Vec::new()],
            sent: [0; 2],
            received: [0; 2],
            is_deep: false,
            is_slandered: false,
        };
        net.write();
        net
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let end = choices.below(2) as usize;
        match choices.below(32) {
            0..6 => self.send(end, choices),
            6..18 => {
                let waiting = self.flights[end].len() as u64;
                if waiting > 0 {
                    self.pass_on(end, choices.below(waiting) as usize, choices);
                }
            }
            18..20 => {
                let wait = Duration::from_millis([0, 1, 6, 120][choices.below(4) as usize]);
                if self.passed + wait <= PASSED_MAX {
                    (self.passed, self.now) = (self.passed + wait, self.now + wait);
                }
                self.ends[end].handle_timeout(self.now);
            }
            20..24 => self.take(end, [1, usize::MAX][choices.below(2) as usize]),
            _ => self.forge(end, choices),
        }
    }

    fn send(&mut self, end: usize, choices: &mut Choices<'_>) {
        let to = if choices.below(4) == 0 { LIAR } else { NodeId(1 - end as u16) };
        let frame = numbered(end, self.sent[end]);
        let mut given = frame.clone();
        match self.ends[end].send(to, &mut given) {
            Ok(()) => self.sent[end] += u64::from(to != LIAR),
            Err(SendRefusal::Full) => assert_eq!(given, frame, "a refused frame is unchanged"),
            Err(refusal) => panic!("a frame to {to} is refused for {refusal:?}"),
        }
    }

    /// What becomes of a datagram: it arrives, as it is, cut or once more, or it does not.
    fn pass_on(&mut self, to: usize, at: usize, choices: &mut Choices<'_>) {
        let fate = choices.below(8);
        let mut bytes = self.flights[to][at].clone();
        if fate != 0 {
            self.flights[to].remove(at);
        }
        match fate {
            1 | 2 => {}
            3 => {
                bytes.truncate(choices.below(bytes.len() as u64) as usize);
                let kept = self.ends[to].kept();
                let result = self.ends[to].handle_datagram(self.now, other(to), &bytes);
                assert!(result == Err(LinkError::Malformed), "cut to {}: {result:?}", bytes.len());
                assert_eq!(self.ends[to].kept(), kept, "a datagram that is cut changes something");
            }
            _ => self.arrive(to, &bytes),
        }
    }

    fn arrive(&mut self, to: usize, bytes: &[u8]) {
        let result = self.ends[to].handle_datagram(self.now, other(to), bytes);
        assert!(result.is_ok(), "a sound datagram is refused: {result:?}");
    }

    /// Takes at most `most` reports of a node.
    fn take(&mut self, end: usize, most: usize) {
        let mut frame = Frame::default();
        for _ in 0..most {
            match self.ends[end].poll_received(self.now, &mut frame) {
                None => return,
                Some(Received::Frame(LIAR) | Received::Woken | Received::Lost(LIAR, _)) => {}
                Some(Received::Frame(_)) => {
                    let expected = numbered(1 - end, self.received[end]);
                    assert!(frame == expected, "frame {} is another one", self.received[end]);
                    self.received[end] += 1;
                    self.is_deep = true;
                }
                Some(Received::Lost(_, Loss::Reported(LIAR))) => self.is_slandered = true,
                Some(other) => panic!("a node is told {other:?}"),
            }
        }
    }

    fn forge(&mut self, to: usize, choices: &mut Choices<'_>) {
        let from = [LIAR, LIAR, LIAR, other(to), NodeId(to as u16), NodeId(9)];
        let from = from[choices.below(6) as usize];
        let bytes = if from == LIAR && choices.below(8) == 0 {
            (0..choices.below(80)).map(|_| choices.below(256) as u8).collect()
        } else {
            // Those in the name of another cannot know the life of the receiver.
            let receiver = if from == LIAR { life(to as u32).get() } else { 555 };
            forged(receiver, choices)
        };
        let links = &mut self.ends[to];
        let (kept, deadline) = (links.kept(), links.deadline());
        let received = links.way(from).received;
        match links.handle_datagram(self.now, from, &bytes) {
            Ok(()) if from == LIAR => self.is_deep = true,
            Ok(()) => assert_eq!(links.kept(), kept, "a datagram to another life is taken"),
            Err(error) => {
                let after = (links.kept(), links.way(from).received);
                assert_eq!(after, (kept, received), "a refused datagram changes something");
                // Other errors are those of a packet, with which both may have met.
                let is_packet = !matches!(error, LinkError::Malformed | LinkError::Stranger);
                assert!(is_packet || links.deadline() == deadline, "it changes what is due");
                assert!(!error.to_string().contains('\n'), "an error is one line");
            }
        }
    }

    /// Takes all datagrams that the nodes write. Those to the third node are lost.
    fn write(&mut self) {
        let mut bytes = Vec::new();
        for end in [0, 1] {
            let mut writes = 0;
            while let Some(to) = self.ends[end].poll_datagram(self.now, &mut bytes) {
                writes += 1;
                assert!(writes < WRITES_MAX, "node {end} writes without an end");
                if to != LIAR {
                    self.flights[1 - end].push(bytes.clone());
                }
            }
        }
    }

    /// Each link keeps what waits for its acknowledgement and what came early, a window of each, or
    /// one larger frame, and of what came the first that was missing as well.
    fn judge_memory(&self) {
        let LinkConfig { packet_bytes, window_packets, window_bytes, .. } = self.config;
        let frame_packets = FRAME_BYTES_MAX.div_ceil(packet_bytes);
        let packets = window_packets.max(frame_packets) + window_packets + 1;
        let bytes = window_bytes.max(FRAME_BYTES_MAX) + window_bytes + DATAGRAM_BYTES_MAX;
        for links in &self.ends {
            let kept = links.kept();
            assert!(
                kept.0 <= 2 * packets && kept.1 <= 2 * bytes,
                "{kept:?} packets and bytes are kept, with {:?}",
                self.config
            );
        }
    }

    fn deliver_all(&mut self) {
        for to in [0, 1] {
            for bytes in std::mem::take(&mut self.flights[to]) {
                self.arrive(to, &bytes);
            }
        }
        self.write();
    }

    /// Lets everything arrive that is on the way or still missing.
    fn settle(&mut self) {
        let end = self.now + SETTLED_MAX;
        loop {
            self.take(0, usize::MAX);
            self.take(1, usize::MAX);
            let is_whole = self.received == [self.sent[1], self.sent[0]];
            if is_whole || self.is_slandered {
                return;
            }
            assert!(self.now < end, "{:?} frames came of {:?}", self.received, self.sent);
            self.deliver_all();
            if self.flights.iter().all(Vec::is_empty) {
                let due = self.ends.iter().filter_map(Links::deadline).min();
                self.now = self.now.max(due.expect("links have heartbeats"));
                self.ends.iter_mut().for_each(|links| links.handle_timeout(self.now));
                self.write();
            }
            self.judge_memory();
        }
    }
}

/// Returns a datagram that a node that lies may send to the process `receiver`.
fn forged(receiver: u32, choices: &mut Choices<'_>) -> Vec<u8> {
    let version = if choices.below(16) == 0 { choices.below(256) as u8 } else { 2 };
    let flags = [0, 0x10, 0x10, choices.below(16) as u8 * 16][choices.below(4) as usize];
    let kind = [0, 1, 1, 2, 3, 4, 5, 6][choices.below(8) as usize] | flags;
    let receiver = [receiver, receiver, receiver, 0, 556][choices.below(5) as usize];
    let mut bytes = vec![version, kind];
    bytes.extend((900 + choices.below(2) as u32).to_le_bytes());
    bytes.extend(receiver.to_le_bytes());
    if kind == 0 {
        return bytes;
    }
    let number = |choices: &mut Choices<'_>| match choices.below(4) {
        0 => choices.number(),
        _ => choices.below(12),
    };
    bytes.extend(number(choices).to_le_bytes());
    bytes.extend(number(choices).to_le_bytes());
    let received = match choices.below(3) {
        0 => 0,
        1 => u128::from(choices.below(256)),
        _ => u128::from(choices.word()) << 64 | u128::from(choices.word()),
    };
    bytes.extend(received.to_le_bytes());
    let size = [0, 1, 3, choices.below(64) as u16, 3_000][choices.below(5) as usize];
    let head = choices.below(u64::from(size) + 1) as u16;
    bytes.extend(head.to_le_bytes());
    bytes.extend((size - head).to_le_bytes());
    bytes.extend((0..size).map(|at| at as u8));
    if choices.below(8) == 0 {
        bytes.truncate(choices.below(bytes.len() as u64) as usize);
    }
    bytes
}

/// The frame `number` of a node: its size and content follow from them.
fn numbered(from: usize, number: u64) -> Frame {
    let seed = number << 1 | from as u64;
    let mut frame = Frame { head: seed.to_le_bytes().to_vec(), ..Frame::default() };
    let size = if number % 16 == 15 { FRAME_BYTES_MAX - 8 } else { seed as usize * 37 % 90 };
    frame.values.push_bytes(&vec![seed as u8; size]);
    frame
}

fn other(node: usize) -> NodeId {
    NodeId(1 - node as u16)
}

fn life(node: u32) -> NonZeroU32 {
    NonZeroU32::new(70 + node).expect("it is not zero")
}
