//! Tests of `collective`: nodes without network, messages delivered in any order that keeps each
//! pair's.

use std::collections::VecDeque;

use super::*;

type Way = VecDeque<(Message, Vec<u8>)>;

/// Nodes and the messages in flight between them.
struct Cluster {
    nodes: Vec<Collectives>,
    ways: Vec<Vec<Way>>,
    random: u64,
    waiting_max: usize,
}

impl Cluster {
    fn new(nodes: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|node| Collectives::new(id(node), nodes)).collect(),
            ways: vec![vec![VecDeque::new(); nodes]; nodes],
            random: 1,
            waiting_max: 0,
        }
    }

    fn pick(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % below
    }

    /// Lets one message leave or arrive at a random node.
    fn step(&mut self) -> Result<(), Fault> {
        let (from, to) = (self.pick(self.nodes.len()), self.pick(self.nodes.len()));
        if self.pick(2) == 0 {
            if let Some((message, bytes)) = self.nodes[from].poll_send(id(to)) {
                self.ways[from][to].push_back((message, bytes.to_vec()));
            }
        } else if let Some((message, bytes)) = self.ways[from][to].pop_front() {
            self.deliver(id(from), to, message, &bytes)?;
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        from: NodeId,
        to: usize,
        message: Message,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        match message {
            Message::Begin(begin) => self.nodes[to].handle_begin(from, begin, bytes)?,
            Message::Piece { number } => self.nodes[to].handle_piece(from, number, bytes)?,
            other => panic!("{other:?} is not of a collective"),
        }
        let ahead = self.nodes[to].peers.iter().filter_map(|peer| peer.ahead.as_ref());
        self.waiting_max = self.waiting_max.max(ahead.map(|(_, bytes)| bytes.len()).sum());
        Ok(())
    }
}

fn part(node: usize, round: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 7 + node * 31 + round) as u8).collect()
}

#[test]
fn parts_arrive_whole_whatever_the_order_and_nobody_is_more_than_one_ahead() {
    let sizes = [0, 1, FIRST_BYTES - 1, FIRST_BYTES, FIRST_BYTES + 1, 3 * PIECE_BYTES + 17];
    for nodes in 1..=4 {
        let mut cluster = Cluster::new(nodes);
        let rounds = 2 * sizes.len();
        let mut entered = vec![0_usize; nodes];
        while entered.iter().any(|entered| *entered <= rounds) {
            cluster.step().expect("sound nodes");
            let node = cluster.pick(nodes);
            let round = entered[node];
            let of = |of: usize, round: usize| part(of, round, sizes[(round + of) % sizes.len()]);
            if round > 0 && round <= rounds {
                let Some(parts) = cluster.nodes[node].poll_outcome() else { continue };
                let to_all = (round - 1).is_multiple_of(3);
                let expected: Vec<_> = (0..nodes).map(|node| of(node, round - 1)).collect();
                assert_eq!(parts, if to_all || node == 0 { expected } else { Vec::new() });
            }
            if round < rounds {
                let label = format!("round {round}");
                cluster.nodes[node]
                    .begin(label, round.is_multiple_of(3), of(node, round))
                    .expect("sound");
            }
            if round <= rounds {
                entered[node] += 1;
            }
            let (least, most) = (entered.iter().min(), entered.iter().max());
            assert!(most <= least.map(|least| least + 1).as_ref(), "{entered:?}");
        }
        assert!(
            cluster.waiting_max <= nodes.saturating_sub(1) * FIRST_BYTES,
            "{}",
            cluster.waiting_max
        );
    }
}

#[test]
fn calls_in_another_order_are_found_out_on_both_sides() {
    for (label, to_all) in [("other", true), ("same", false)] {
        for n0_first in [true, false] {
            let mut cluster = Cluster::new(2);
            let begin = |cluster: &mut Cluster, node: usize| match node {
                0 => cluster.nodes[0].begin("same".to_owned(), true, vec![1]),
                _ => cluster.nodes[1].begin(label.to_owned(), to_all, vec![2]),
            };
            let order = if n0_first { [0, 1] } else { [1, 0] };
            begin(&mut cluster, order[0]).expect("nothing is known");
            let (message, bytes) =
                cluster.nodes[order[0]].poll_send(id(order[1])).expect("a begin");
            let bytes = bytes.to_vec();
            cluster.deliver(id(order[0]), order[1], message, &bytes).expect("kept");
            let fault = begin(&mut cluster, order[1]).expect_err("it differs");
            assert!(
                matches!(fault, Fault::Differs { node, .. } if node == id(order[0])),
                "{fault:?}"
            );
            let (message, bytes) =
                cluster.nodes[order[1]].poll_send(id(order[0])).expect("told all the same");
            let bytes = bytes.to_vec();
            let fault =
                cluster.deliver(id(order[1]), order[0], message, &bytes).expect_err("it differs");
            assert!(
                matches!(fault, Fault::Differs { node, .. } if node == id(order[1])),
                "{fault:?}"
            );
        }
    }
}

#[test]
fn what_no_sound_node_sends_is_blamed_on_its_sender() {
    let begin = |number, total| Begin { number, label: "x".to_owned(), to_all: true, total };
    let blamed = Err(Fault::Misbehaved { node: id(1) });
    let new = || {
        let mut node = Collectives::new(id(0), 2);
        node.begin("x".to_owned(), true, Vec::new()).expect("nothing is known");
        node
    };
    assert_eq!(new().handle_begin(id(1), begin(0, 0), &[]), blamed, "a number of the past");
    assert_eq!(new().handle_begin(id(1), begin(3, 0), &[]), blamed, "two ahead");
    assert_eq!(new().handle_begin(id(1), begin(1, 0), &[1]), blamed, "more than it has");
    assert_eq!(new().handle_begin(id(1), begin(1, 9), &[1]), blamed, "less than the first bytes");
    assert_eq!(new().handle_piece(id(1), 1, &[1]), blamed, "a piece of nothing");
    let long = Begin { label: "x".repeat(LABEL_CHARS_MAX + 1), ..begin(2, 0) };
    assert_eq!(new().handle_begin(id(1), long, &[]), blamed, "a label without end");
    let mut node = new();
    node.handle_begin(id(1), begin(1, FIRST_BYTES as u64 + 2), &[0; FIRST_BYTES]).expect("sound");
    assert_eq!(node.handle_begin(id(1), begin(1, 0), &[]), blamed, "twice");
    assert_eq!(node.handle_piece(id(1), 1, &[]), blamed, "an empty piece");
    assert_eq!(node.handle_piece(id(1), 2, &[1]), blamed, "a piece of another");
    assert_eq!(node.handle_piece(id(1), 1, &[1, 2, 3]), blamed, "beyond its end");
    assert_eq!(node.handle_piece(id(1), 1, &[1, 2]), Ok(()));
    assert!(node.needs(id(1)), "it is yet to be sent the part of this node");
    node.poll_send(id(1)).expect("a begin");
    assert!(!node.needs(id(1)));
}

#[test]
fn bytes_that_are_claimed_cost_nothing_before_they_come() {
    let mut node = Collectives::new(id(0), 2);
    node.begin("x".to_owned(), true, Vec::new()).expect("nothing is known");
    let begin = Begin { number: 1, label: "x".to_owned(), to_all: true, total: u64::MAX };
    node.handle_begin(id(1), begin, &[0; FIRST_BYTES]).expect("nobody can know better");
    assert!(node.peers[1].received.capacity() <= FIRST_BYTES);
    assert!(node.needs(id(1)) && node.poll_outcome().is_none());
}
