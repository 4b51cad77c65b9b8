//! The verdict on which nodes count as lost when some cannot reach others, drawn from the reports
//! of all, without I/O.
//!
//! A node that receives nothing of another cannot know which of the two is cut off. So it reports
//! the pair to all before it gives any node up. A report is passed on to the node that it is about,
//! which gives up the reporter in turn: it lives, and could blame the other just as well. Within a
//! round trip all nodes that reach each other know the same pairs, and draw the same conclusion,
//! wherever the loss was noticed first.
//!
//! | observation | reports | given up |
//! | --- | --- | --- |
//! | n0 has died | of n1 and n2, of n0 | n0, named by both |
//! | n1 and n2 cannot reach each other, n0 reaches both | of n1 of n2, of n2 of n1 | n2: the higher id |
//! | n1 cannot send to n0 | of n0 of n1, of n1 of n0 in turn | n1, which n2 has notified |
//! | n0 answers no request, as n1 has noticed | of n1 of n0; of n0 of n1 in turn | n0: its link lives |
//! | n0 has failed, as n1 has learnt on another link | of n1 of n0; of n0 of n1 in turn | n0: it has reported that itself |
//! | n3 reaches no other node | of all others of n3; its own of all others | n3, which reports that it has lost them all |
//!
//! The rule: the node lost by the most others is given up; among several, one whose fault is
//! certain (unresponsive, or failed by its own report: then the way between two nodes is not to
//! blame); among several, the one with the highest id. Then the same with the remaining reports,
//! until none of the rest has lost another.
//!
//! Not here: how long reports are waited for; losses beyond doubt, such as a node that ended with
//! an error.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use adapm_core::NodeId;
use adapm_core::transport::Loss;
use serde::{Deserialize, Serialize};

/// The report that one node has lost another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LossReport {
    /// The node that has noticed the loss.
    pub(super) by: NodeId,
    /// The node that it has lost.
    pub(super) of: NodeId,
    /// The way between them is not to blame: heartbeats arrive but no answer, or the node has
    /// reported its failure.
    pub(super) is_certain: bool,
}

/// The conclusion from all reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// That node is lost.
    Lost(NodeId, Loss),
    /// This node is lost to these.
    GivenUp(Vec<NodeId>),
    /// This node has lost all others, and none of them has reported anything; the longest silence.
    Isolated(Loss),
}

/// The reports that one node knows of.
#[derive(Debug)]
pub(super) struct Losses {
    node: NodeId,
    nodes: usize,
    /// By (reporter, lost node), with a flag if the fault is certain; the first report counts.
    reports: BTreeMap<(NodeId, NodeId), bool>,
    /// The reasons of this node's own losses.
    own: BTreeMap<NodeId, Loss>,
    outgoing: VecDeque<(NodeId, LossReport)>,
}

impl Losses {
    pub(super) fn new(node: NodeId, nodes: usize) -> Self {
        let (reports, own, outgoing) = Default::default();
        Self { node, nodes, reports, own, outgoing }
    }

    /// Records that this node has lost `of`.
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

    /// Handles a report, of the reporter itself or passed on by another.
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

    /// Returns the next report to send, and its receiver.
    pub(super) fn poll_send(&mut self) -> Option<(NodeId, LossReport)> {
        self.outgoing.pop_front()
    }

    /// Returns true if a node was reported: a verdict is due after a while.
    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Returns true if no further report can change the verdict: all nodes that are not given up
    /// have lost the same nodes.
    pub(super) fn is_settled(&self) -> bool {
        let given_up = self.given_up();
        let mut rest = self.others().chain([self.node]).filter(|node| !given_up.contains(node));
        self.has_reports()
            && rest.all(|by| given_up.iter().all(|&of| self.reports.contains_key(&(by, of))))
    }

    /// Returns the conclusion from the reports so far; `None` if there are none.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let given_up = self.given_up();
        let first = *given_up.first()?;
        if given_up.contains(&self.node) {
            return Some(Verdict::GivenUp(self.reporters_of(self.node).collect()));
        }
        if let (2, Some((&other, Loss::GaveUp))) = (self.nodes, self.own.first_key_value()) {
            // No other node can know more, and the other one has decided.
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

    /// Returns the nodes to be given up, the one lost by most first.
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

    /// Records a report. Returns true if it is new.
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

/// Returns the duration of a silence; 0 for other losses.
fn silence(loss: &Loss) -> Duration {
    match loss {
        Loss::Silent(time) => *time,
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
