//! Partitions of small clusters: all nodes come to one verdict, and each node that is given up
//! knows it.

use std::collections::BTreeSet;

use super::*;

const SILENT: Loss = Loss::Silent(Duration::from_secs(3));

/// Nodes and the ways between them.
struct Cluster {
    nodes: Vec<Losses>,
    /// `is_cut[from][to]`
    is_cut: Vec<Vec<bool>>,
}

fn node(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("a small cluster"))
}

impl Cluster {
    fn new(nodes: usize, cuts: &[(usize, usize)]) -> Self {
        let mut is_cut = vec![vec![false; nodes]; nodes];
        cuts.iter().for_each(|&(from, to)| is_cut[from][to] = true);
        Self { nodes: (0..nodes).map(|index| Losses::new(node(index), nodes)).collect(), is_cut }
    }

    fn is_lost(&self, a: usize, b: usize) -> bool {
        self.is_cut[a][b] || self.is_cut[b][a]
    }

    /// Node `by` loses `of` by silence.
    fn notice(&mut self, by: usize, of: usize) {
        self.nodes[by].notice(node(of), SILENT);
    }

    /// Makes each node notice those that it is cut from, in an order given by `rotate`; reports
    /// travel where a way is open.
    fn partition(&mut self, rotate: usize) {
        let len = self.nodes.len();
        let pairs =
            (0..len * len).map(|at| (at + rotate) % (len * len)).map(|at| (at / len, at % len));
        for (by, of) in pairs {
            if by != of && self.is_lost(by, of) {
                self.notice(by, of);
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        let mut at = 0;
        while at < self.nodes.len() {
            match self.nodes[at].poll_send() {
                Some((to, report)) => {
                    // Both have closed a link that is cut one way.
                    if !self.is_lost(at, to.index()) {
                        self.nodes[to.index()].handle(report);
                        at = 0;
                    }
                }
                None => at += 1,
            }
        }
    }

    fn verdicts(&self) -> Vec<Verdict> {
        self.nodes.iter().map(|node| node.verdict().expect("something was noticed")).collect()
    }
}

fn lost(index: usize, loss: Loss) -> Verdict {
    Verdict::Lost(node(index), loss)
}

fn given_up(by: &[usize]) -> Verdict {
    Verdict::GivenUp(by.iter().copied().map(node).collect())
}

#[test]
fn of_two_that_cannot_reach_each_other_the_higher_id_is_given_up() {
    for rotate in 0..9 {
        let mut cluster = Cluster::new(3, &[(1, 2), (2, 1)]);
        cluster.partition(rotate);
        let expected = [lost(2, Loss::Reported(node(1))), lost(2, SILENT), given_up(&[1])];
        assert_eq!(cluster.verdicts(), expected, "rotated by {rotate}");
        assert!(!cluster.nodes[0].is_settled(), "n0 could still lose n1");
    }
}

#[test]
fn a_node_that_cannot_send_to_another_is_told_by_the_third() {
    for rotate in 0..9 {
        let mut cluster = Cluster::new(3, &[(1, 0)]);
        cluster.partition(rotate);
        let expected = [lost(1, SILENT), given_up(&[0]), lost(1, Loss::Reported(node(0)))];
        assert_eq!(cluster.verdicts(), expected, "rotated by {rotate}");
    }
}

#[test]
fn the_verdict_is_the_same_whoever_notices_first_and_whoever_never_does() {
    // The side that receives nothing notices; the other one receives its report, and draws the same
    // conclusion.
    for by in [0, 1] {
        let mut cluster = Cluster::new(3, &[(1, 0)]);
        cluster.notice(by, 1 - by);
        cluster.settle();
        let verdicts = cluster.verdicts();
        assert_eq!(verdicts[1], given_up(&[0]), "n{by} has noticed");
        assert!(matches!(verdicts[0], Verdict::Lost(NodeId(1), _)), "{verdicts:?}");
        assert!(matches!(verdicts[2], Verdict::Lost(NodeId(1), _)), "{verdicts:?}");
    }
}

#[test]
fn a_dead_node_is_named_by_all_and_settles_the_matter_without_a_wait() {
    for dead in 0..4 {
        let mut cluster = Cluster::new(4, &[]);
        (0..4).for_each(|other| cluster.is_cut[dead][other] = true);
        for by in (0..4).filter(|by| *by != dead) {
            assert!(!cluster.nodes[by].is_settled());
            cluster.notice(by, dead);
            cluster.settle();
        }
        for by in (0..4).filter(|by| *by != dead) {
            assert_eq!(cluster.nodes[by].verdict(), Some(lost(dead, SILENT)));
            assert!(cluster.nodes[by].is_settled(), "n{by} has heard all there is");
        }
    }
}

#[test]
fn a_node_that_reaches_nobody_says_so_and_the_others_name_it() {
    let mut cluster = Cluster::new(3, &[(0, 1), (0, 2), (1, 0), (2, 0)]);
    cluster.partition(0);
    assert_eq!(cluster.verdicts(), [Verdict::Isolated(SILENT), lost(0, SILENT), lost(0, SILENT)]);
    assert!(cluster.nodes.iter().all(Losses::is_settled));
}

#[test]
fn of_two_nodes_each_names_the_other_unless_it_was_told() {
    let mut cluster = Cluster::new(2, &[(0, 1), (1, 0)]);
    cluster.partition(0);
    assert_eq!(cluster.verdicts(), [lost(1, SILENT), lost(0, SILENT)]);
    let mut told = Losses::new(node(0), 2);
    told.handle(LossReport { by: node(1), of: node(0), is_certain: false });
    assert_eq!(told.verdict(), Some(given_up(&[1])));
}

#[test]
fn a_node_whose_fault_is_certain_is_named_by_all_however_few_have_noticed() {
    let certain = [Loss::Unresponsive(Duration::from_secs(18)), Loss::Failed];
    for (nodes, loss) in [2, 3, 4].into_iter().flat_map(|nodes| certain.map(|loss| (nodes, loss))) {
        for mute in 0..nodes {
            for by in (0..nodes).filter(|by| *by != mute) {
                let mut cluster = Cluster::new(nodes, &[]);
                cluster.nodes[by].notice(node(mute), loss);
                cluster.settle();
                let told = |index: usize| match index {
                    index if index == mute => given_up(&[by]),
                    index if index == by => lost(mute, loss),
                    _ => lost(mute, Loss::Reported(node(by))),
                };
                let expected: Vec<_> = (0..nodes).map(told).collect();
                assert_eq!(cluster.verdicts(), expected, "n{by} of n{mute}");
            }
        }
    }
}

/// A node that gets answers from none is itself at fault.
#[test]
fn a_node_that_calls_all_others_unresponsive_is_given_up() {
    for deaf in 0..3 {
        let mut cluster = Cluster::new(3, &[]);
        for other in (0..3).filter(|other| *other != deaf) {
            cluster.nodes[deaf].notice(node(other), Loss::Unresponsive(Duration::from_secs(18)));
        }
        cluster.settle();
        for (index, verdict) in cluster.verdicts().into_iter().enumerate() {
            let is_named = matches!(verdict, Verdict::Lost(lost, _) if lost == node(deaf));
            let knows = matches!(verdict, Verdict::GivenUp(_)) && index == deaf;
            assert!(is_named || knows, "n{index}: {verdict:?}");
        }
    }
}

#[test]
fn every_partition_of_three_or_four_nodes_has_survivors_that_agree() {
    for nodes in [3, 4] {
        let pairs: Vec<_> = (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        for mask in 1..1_usize << pairs.len() {
            let cuts: Vec<_> =
                (0..pairs.len()).filter(|bit| mask >> bit & 1 == 1).map(|bit| pairs[bit]).collect();
            let mut cluster = Cluster::new(nodes, &cuts);
            cluster.partition(mask % (nodes * nodes));
            let is_whole = (0..nodes).all(|a| {
                let reached =
                    |b: usize| (0..nodes).any(|c| !cluster.is_lost(a, c) && !cluster.is_lost(c, b));
                (0..nodes).all(|b| a == b || reached(b))
            });
            if !is_whole {
                continue;
            }
            // All know all pairs where each reaches each other at most over a third.
            let first = |index: usize| match &cluster.nodes[index].verdict() {
                Some(Verdict::Lost(node, _)) => Some(*node),
                _ => None,
            };
            let named: BTreeSet<_> = (0..nodes).filter_map(first).collect();
            for name in &named {
                let own = cluster.nodes[name.index()].verdict();
                assert!(matches!(own, Some(Verdict::GivenUp(_))), "{name} of {cuts:?}: {own:?}");
            }
            assert_eq!(named.len(), 1, "one is named first, cuts {cuts:?}");
        }
    }
}
