//! Which nodes count as lost when some cannot reach others: one verdict from what all have noticed,
//! without I/O.
//!
//! A node that hears nothing of another cannot know which of the two is cut off. So it reports the
//! pair to all before it gives anybody up. A report is passed on to the node that it is about, and
//! that node gives up the reporter in turn: it lives, and could be the one to blame the other.
//! Within a round trip all nodes that reach each other know the same pairs, and draw the same
//! conclusion, wherever they noticed it first.
//!
//! | what was noticed | reports | given up |
//! | --- | --- | --- |
//! | n0 has died | of n1 and n2, of n0 | n0, named by both |
//! | n1 and n2 cannot reach each other, n0 reaches both | of n1 of n2, of n2 of n1 | n2: the higher id |
//! | n1 cannot send to n0 | of n0 of n1, of n1 of n0 in turn | n1, which n2 has told of it |
//! | n0 answers no request, which n1 has noticed | of n1 of n0; of n0 of n1 in turn | n0: its link lives |
//! | n0 has failed, as n1 has heard on another link | of n1 of n0; of n0 of n1 in turn | n0: it has said so itself |
//! | n3 reaches nobody | of all others of n3; its own of all others | n3, which says that it has lost them all |
//!
//! The rule: the node that most others have lost is given up; of several one whose fault is
//! certain, as it is unresponsive or has said that it failed: the way between two nodes is not to
//! blame then; of several the one with the highest id. Then the same with what the rest have
//! noticed of each other, until none of them has lost another.
//!
//! Not here: how long reports are waited for; losses that leave no doubt, as of a node that has
//! ended with an error.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use adapm_core::NodeId;
use adapm_core::transport::Loss;
use serde::{Deserialize, Serialize};

/// One node has lost another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LossReport {
    /// The node that has noticed it.
    pub(super) by: NodeId,
    /// The node of which it hears nothing.
    pub(super) of: NodeId,
    /// The way between them is not to blame: it hears heartbeats of it but no answer, or has heard
    /// that it has failed.
    pub(super) is_certain: bool,
}

/// What follows from all reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// That node is lost.
    Lost(NodeId, Loss),
    /// This node is: these have lost it.
    GivenUp(Vec<NodeId>),
    /// This node has lost all others, and none of them says a word; the longest silence.
    Isolated(Loss),
}

/// The reports that one node knows of.
#[derive(Debug)]
pub(super) struct Losses {
    node: NodeId,
    nodes: usize,
    /// By whom of whom, and whether that one's fault is said to be certain; what was reported first
    /// counts.
    reports: BTreeMap<(NodeId, NodeId), bool>,
    /// Why this node has lost those that it has.
    own: BTreeMap<NodeId, Loss>,
    outgoing: VecDeque<(NodeId, LossReport)>,
}

impl Losses {
    pub(super) fn new(node: NodeId, nodes: usize) -> Self {
        let (reports, own, outgoing) = Default::default();
        Self { node, nodes, reports, own, outgoing }
    }

    /// This node has lost `of`.
    pub(super) fn notice(&mut self, of: NodeId, loss: Loss) {
        let known = self.own.entry(of).or_insert(loss);
        if *known == Loss::GaveUp {
            *known = loss;
        }
        let is_certain = matches!(loss, Loss::Unresponsive(_) | Loss::Failed);
        let report = LossReport { by: self.node, of, is_certain };
        if self.insert(report) {
            let to_all = self.others().map(|to| (to, report));
            let to_all: Vec<_> = to_all.collect();
            self.outgoing.extend(to_all);
        }
    }

    /// Node `by` has lost `of`, as it has said itself or another has passed on.
    pub(super) fn handle(&mut self, report: LossReport) {
        let LossReport { by, of, .. } = report;
        if by == self.node || !self.insert(report) {
            return;
        }
        if of == self.node {
            self.notice(by, Loss::GaveUp);
        } else {
            self.outgoing.push_back((of, report));
        }
    }

    /// The next report to send, and to whom.
    pub(super) fn poll_send(&mut self) -> Option<(NodeId, LossReport)> {
        self.outgoing.pop_front()
    }

    /// Returns true if a node was reported: a verdict is due after a while.
    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Returns true if no further report can change the verdict: all that are not given up have
    /// lost the same nodes.
    pub(super) fn is_settled(&self) -> bool {
        let given_up = self.given_up();
        let mut rest = self.others().chain([self.node]).filter(|node| !given_up.contains(node));
        self.has_reports()
            && rest.all(|by| given_up.iter().all(|&of| self.reports.contains_key(&(by, of))))
    }

    /// What follows from the reports so far; `None`: there are none.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let given_up = self.given_up();
        let first = *given_up.first()?;
        if given_up.contains(&self.node) {
            return Some(Verdict::GivenUp(self.reporters_of(self.node).collect()));
        }
        if let (2, Some((&other, Loss::GaveUp))) = (self.nodes, self.own.first_key_value()) {
            // Nobody else can have heard more, and the other one has decided.
            return Some(Verdict::GivenUp(vec![other]));
        }
        let is_alone =
            self.nodes > 2 && self.own.len() + 1 == self.nodes && given_up.len() + 1 == self.nodes;
        if is_alone && !self.own.values().any(|loss| *loss == Loss::GaveUp) {
            let longest = self.own.values().copied().max_by_key(silence);
            return longest.map(Verdict::Isolated);
        }
        let own = self.own.get(&first).copied();
        let reported = || self.reporters_of(first).next().map(Loss::Reported);
        Some(Verdict::Lost(first, own.or_else(reported)?))
    }

    /// The nodes to be given up, the one that most have lost first.
    fn given_up(&self) -> Vec<NodeId> {
        let mut reports = self.reports.clone();
        let mut given_up = Vec::new();
        loop {
            let mut counts = BTreeMap::<NodeId, (usize, bool)>::new();
            for ((_, of), is_certain) in &reports {
                let (count, certain) = counts.entry(*of).or_default();
                (*count, *certain) = (*count + 1, *certain || *is_certain);
            }
            let Some((worst, _)) = counts.into_iter().max_by_key(|(node, said)| (*said, *node))
            else {
                return given_up;
            };
            reports.retain(|(by, of), _| *by != worst && *of != worst);
            given_up.push(worst);
        }
    }

    /// Returns true if the report says something new.
    fn insert(&mut self, report: LossReport) -> bool {
        let LossReport { by, of, is_certain } = report;
        let is_new = !self.reports.contains_key(&(by, of));
        self.reports.entry((by, of)).or_insert(is_certain);
        is_new
    }

    fn reporters_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.reports.keys().filter(move |(_, of)| *of == node).map(|(by, _)| *by)
    }

    fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let own = self.node;
        let ids = (0..self.nodes)
            .map(|index| NodeId(u16::try_from(index).expect("node ids are 16 bits wide")));
        ids.filter(move |node| *node != own)
    }
}

/// How long nothing was heard, if that is why.
fn silence(loss: &Loss) -> Duration {
    match loss {
        Loss::Silent(time) => *time,
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
