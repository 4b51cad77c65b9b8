//! The control thread of a process: owns the control endpoint, joins, carries collectives, stop and
//! close reason.
//!
//! ```text
//!   calls of any thread ──requests──> shared ──> control thread ──frames──> control threads of the others
//!                       <──results───        <──               <──
//! ```
//!
//! It alone touches the endpoint, so that links stay alive however busy the rest of the process is.
//!
//! Not here: how the nodes find each other (`meeting`).

mod meeting;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError};

use crate::error::PeerLoss;
use crate::group::collective::{Collectives, Fault, ROOT};
use crate::group::error::GroupError;
use crate::group::losses::{LossReport, Losses, Verdict};
use crate::group::mesh::Mesh;
use crate::group::message::{MemberInfo, Message};
use crate::group::shared::Shared;

pub(super) struct Control<T: Mesh> {
    node: NodeId,
    pub(super) mesh: T,
    shared: Arc<Shared>,
    collectives: Collectives,
    /// The nodes that have started, by node.
    infos: Vec<Option<MemberInfo>>,
    peers: Vec<Peer>,
    pub(super) frame: Frame,
    /// True once all links are up.
    joined: bool,
    stop: Option<u8>,
    losses: Losses,
    /// A loss learnt by an endpoint for parameters, which counts if the control endpoint learns
    /// nothing.
    hearsay: Option<PeerLoss>,
    /// The failure by a node without which the collective under way can end: a node that has taken
    /// part in all of it may leave because of what it learnt there, which is what this node is to
    /// name. It counts once no part has come for a while, as who knew of it first takes part in
    /// nothing more.
    postponed: Option<(GroupError, Instant)>,
    /// The time of the verdict on lost nodes, once one was reported.
    decide_at: Option<Instant>,
    /// Time for which reports of others are awaited.
    decision_time: Duration,
    close_reason: Option<(CloseReason, Instant)>,
}

/// The queue to one peer.
#[derive(Default)]
struct Peer {
    /// Messages of few kinds, each at most once except for tables.
    queue: VecDeque<Message>,
    /// The next message, encoded already when the way was full.
    frame: Option<Frame>,
    gone: bool,
    /// It has announced that it takes part in nothing more.
    has_left: bool,
}

impl<T: Mesh> Control<T> {
    /// Creates node `node` of `nodes`, which awaits reports of losses for `decision_time`.
    pub(super) fn new(
        node: NodeId,
        nodes: usize,
        mesh: T,
        shared: Arc<Shared>,
        decision_time: Duration,
    ) -> Self {
        let mut infos = vec![None; nodes];
        infos[node.index()] = mesh.info().map(MemberInfo::own);
        let mut control = Self {
            node,
            mesh,
            shared,
            collectives: Collectives::new(node, nodes),
            infos,
            peers: (0..nodes).map(|_| Peer::default()).collect(),
            frame: Frame::default(),
            joined: false,
            stop: None,
            losses: Losses::new(node, nodes),
            hearsay: None,
            postponed: None,
            decide_at: None,
            decision_time,
            close_reason: None,
        };
        if node != ROOT
            && let Some(info) = control.infos[node.index()].clone()
        {
            control.peers[ROOT.index()].queue.push_back(Message::Here(info));
        }
        control
    }

    /// Serves until this node leaves.
    pub(super) fn run(mut self) {
        let served = self.serve();
        let close_reason = match &served {
            Ok(close_reason) => *close_reason,
            Err(error) => self.own_close_reason(error),
        };
        if let Err(error) = served {
            self.shared.fail(error);
        }
        // Without a link no peer gets a close reason: dropping the endpoint is then enough.
        if self.joined || (0..self.peers.len()).any(|index| self.mesh.is_up(id(index))) {
            self.mesh.leave(close_reason);
        }
        // `Drop` reports the end of the thread, also after a panic.
    }

    fn serve(&mut self) -> Result<CloseReason, GroupError> {
        loop {
            self.take_requests()?;
            self.decide(Instant::now());
            self.progress_join();
            self.send()?;
            if let Some((close_reason, deadline)) = self.close_reason
                && (self.is_flushed() || Instant::now() >= deadline)
            {
                return Ok(close_reason);
            }
            let mut wait = self.patience();
            for _ in 0..FRAMES_AT_ONCE {
                match self.receive(wait)? {
                    Received::Frame(from) => self.handle_frame(from)?,
                    Received::Lost(node, loss) => self.lose(node, loss),
                    Received::Woken | Received::TimedOut => break,
                }
                wait = Some(Duration::ZERO);
            }
        }
    }

    /// Returns how long to wait for a frame: short while there are changes that no frame announces.
    fn patience(&self) -> Option<Duration> {
        let watched = !self.shared.lock().flags.is_empty();
        let timed = watched || self.decide_at.is_some() || self.postponed.is_some();
        match (self.joined && self.close_reason.is_none(), timed) {
            (false, _) => Some(JOIN_LOOK),
            (true, true) => Some(FLAG_LOOK),
            (true, false) => None,
        }
    }

    pub(super) fn take_requests(&mut self) -> Result<(), GroupError> {
        let mut state = self.shared.lock();
        if state.flags.iter().any(|flag| flag.load(Ordering::Acquire)) {
            state.stop(STOP_BY_FLAG);
        }
        let news = if state.stop == self.stop { None } else { state.stop };
        let request = state.request.take();
        let give_up = state.give_up.take();
        let meet = state.meet.take();
        let reported = std::mem::take(&mut state.reported);
        state.is_deciding |= !reported.is_empty();
        drop(state);
        reported.into_iter().for_each(|loss| self.handle_reported(loss));
        if let Some(code) = news {
            self.stop = news;
            self.shared.tell(|_| ());
            self.broadcast(&Message::Stop { code });
        }
        if let Some(addresses) = meet {
            self.mesh.seek(ROOT, &addresses);
        }
        if let Some((missing, waited)) = give_up
            && self.node == ROOT
        {
            let waited_millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            self.broadcast(&Message::GiveUp { missing, waited_millis });
        }
        if let Some(request) = request {
            let begun = self.collectives.begin(request.label, request.to_all, request.bytes);
            self.judge(begun)?;
            self.check_needed();
            self.publish_outcome();
        }
        self.begin_leave();
        Ok(())
    }

    /// Sends a goodbye if that was requested, and nothing is being decided. A node that lacks
    /// another names it instead: else who hears of its end first would take that for the cause.
    fn begin_leave(&mut self) {
        let state = self.shared.lock();
        let Some(close_reason) =
            state.leave.filter(|_| self.close_reason.is_none() && !state.is_deciding())
        else {
            return;
        };
        let failure = state.failure.clone();
        drop(state);
        let lacks = failure.as_ref().and_then(GroupError::lacks);
        let close_reason = lacks.map_or(close_reason, CloseReason::Lost);
        match (close_reason, failure) {
            (CloseReason::Finished, _) => self.broadcast(&Message::Left),
            // A link says nothing more of a node that has left, so its reason does not tell.
            (_, Some(GroupError::Left { node })) => self.broadcast(&Message::Lacks(node)),
            _ => {}
        }
        self.close_reason = Some((close_reason, Instant::now() + FLUSH_TIME));
    }

    /// Queues a message for every peer; those not yet there get it when they come.
    fn broadcast(&mut self, message: &Message) {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            if index != self.node.index() && !peer.gone {
                peer.queue.push_back(message.clone());
            }
        }
    }

    /// Sends the queued messages, as far as there is room.
    pub(super) fn send(&mut self) -> Result<(), GroupError> {
        for index in 0..self.peers.len() {
            let to = id(index);
            while to != self.node && !self.peers[index].gone {
                let mut frame = match self.peers[index].frame.take() {
                    Some(frame) => frame,
                    None if self.write_next(to) => std::mem::take(&mut self.frame),
                    None => break,
                };
                match self.mesh.send(to, &mut frame) {
                    Ok(()) => self.frame = frame,
                    Err(SendError::Full) => {
                        self.peers[index].frame = Some(frame);
                        break;
                    }
                    Err(SendError::Transport(error)) => {
                        return Err(self.mesh.failure(error));
                    }
                }
            }
        }
        self.publish_outcome();
        Ok(())
    }

    /// Encodes the next message to `to` into `self.frame`. Returns false if there is none.
    fn write_next(&mut self, to: NodeId) -> bool {
        let reachable = self.is_reachable(to);
        let queue = &mut self.peers[to.index()].queue;
        if let Some(message) = if reachable { queue.pop_front() } else { None } {
            message.encode(&[], &mut self.frame);
            return true;
        }
        match self.collectives.poll_send(to) {
            Some((message, bytes)) => {
                message.encode(bytes, &mut self.frame);
                true
            }
            None => false,
        }
    }

    /// Returns the maximum number of messages queued for one peer.
    #[cfg(feature = "testing")]
    pub(super) fn waiting_max(&self) -> usize {
        self.peers
            .iter()
            .map(|peer| peer.queue.len() + usize::from(peer.frame.is_some()))
            .max()
            .unwrap_or(0)
    }

    fn is_flushed(&self) -> bool {
        let mut peers = (0..).map(id).zip(&self.peers).filter(|(node, _)| *node != self.node);
        peers.all(|(node, peer)| {
            let nothing = peer.queue.is_empty() && peer.frame.is_none();
            nothing || peer.gone || !self.is_reachable(node)
        })
    }

    fn is_reachable(&self, node: NodeId) -> bool {
        self.joined || self.mesh.is_up(node)
    }

    fn receive(&mut self, wait: Option<Duration>) -> Result<Received, GroupError> {
        let received = self.mesh.recv(wait, &mut self.frame);
        received.map_err(|error| self.mesh.failure(error))
    }

    pub(super) fn handle_frame(&mut self, from: NodeId) -> Result<(), GroupError> {
        let Ok(message) = Message::decode(&self.frame, self.peers.len()) else {
            self.lose(from, Loss::Misbehaved);
            return Ok(());
        };
        if matches!(message, Message::Begin(_) | Message::Piece { .. }) {
            self.note_part();
        }
        let bytes = self.frame.values.bytes();
        let judged = match message {
            Message::Here(info) => {
                self.handle_here(from, info);
                Ok(())
            }
            Message::Table(infos) => {
                self.handle_table(from, infos);
                Ok(())
            }
            Message::GiveUp { missing, waited_millis } => {
                if from != ROOT || self.joined || missing.len() > self.peers.len() {
                    self.lose(from, Loss::Misbehaved);
                    return Ok(());
                }
                return Err(self.missing(missing, Duration::from_millis(waited_millis)));
            }
            Message::Begin(begin) => self.collectives.handle_begin(from, begin, bytes),
            Message::Piece { number } => self.collectives.handle_piece(from, number, bytes),
            Message::Stop { code } => {
                // It has notified all nodes: there is nothing to pass on.
                self.stop = self.shared.tell(|state| {
                    state.stop(code);
                    state.stop
                });
                Ok(())
            }
            Message::Left => {
                let peer = &mut self.peers[from.index()];
                (peer.gone, peer.has_left) = (true, true);
                self.check_needed();
                Ok(())
            }
            Message::Lost(report) => {
                let is_node = |node: NodeId| node.index() < self.peers.len();
                let is_known = report.by == from || report.of == self.node;
                if !is_known || !is_node(report.by) || !is_node(report.of) || report.by == report.of
                {
                    self.lose(from, Loss::Misbehaved);
                    return Ok(());
                }
                self.losses.handle(report);
                self.await_decision();
                Ok(())
            }
            Message::Lacks(node) => {
                if node == from || node.index() >= self.peers.len() {
                    self.lose(from, Loss::Misbehaved);
                    return Ok(());
                }
                // Who has left hears it, too, while its goodbye is on its way.
                if node != self.node {
                    self.postpone(GroupError::Left { node });
                }
                Ok(())
            }
        };
        self.judge(judged)?;
        self.publish_outcome();
        Ok(())
    }

    /// Handles the outcome of a message: a node that broke the rules is lost, a different order of
    /// calls ends the group.
    fn judge(&mut self, judged: Result<(), Fault>) -> Result<(), GroupError> {
        match judged {
            Ok(()) => Ok(()),
            Err(Fault::Misbehaved { node }) => {
                self.lose(node, Loss::Misbehaved);
                Ok(())
            }
            Err(Fault::Differs { node, ours, theirs }) => {
                // The others find out by themselves, once they learn of this node's call.
                self.send()?;
                Err(GroupError::Differs { node, ours, theirs })
            }
        }
    }

    /// Publishes the outcome of a collective that is over, and then a loss that was not to get in
    /// its way.
    fn publish_outcome(&mut self) {
        if let Some(outcome) = self.collectives.poll_outcome() {
            self.shared.tell(|state| state.outcome = Some(outcome));
        }
        if let Some((error, until)) = &self.postponed
            && (!self.can_end_collective() || Instant::now() >= *until)
        {
            self.shared.fail(error.clone());
        }
    }

    /// Fails the group, once the collective under way is over or cannot end any more.
    fn postpone(&mut self, error: GroupError) {
        self.postponed.get_or_insert((error, Instant::now() + PARTS_TIME));
        self.publish_outcome();
    }

    /// Notes that a part of a collective has come: others may.
    fn note_part(&mut self) {
        if let Some((_, until)) = &mut self.postponed {
            *until = Instant::now() + PARTS_TIME;
        }
    }

    /// Lets the time pass for which parts of a collective are awaited after a loss.
    #[cfg(feature = "testing")]
    pub(super) fn await_no_parts(&mut self) {
        if let Some((_, until)) = &mut self.postponed {
            *until = Instant::now();
        }
        self.publish_outcome();
    }

    /// Returns true if a collective is under way that needs none of the nodes that have gone.
    fn can_end_collective(&self) -> bool {
        let lost = self.postponed.as_ref().and_then(|(error, _)| error.lost());
        let is_lost = |node| lost.is_some_and(|lost| lost.node == node);
        let mut gone =
            (0..).map(id).zip(&self.peers).filter(|(node, peer)| peer.gone || is_lost(*node));
        self.collectives.is_under_way()
            && gone.all(|(node, _)| !self.collectives.needs(node))
            && self.shared.lock().leave.is_none()
    }

    /// Fails if the current collective needs a node that has left.
    fn check_needed(&mut self) {
        let left = (0..self.peers.len())
            .find(|index| self.peers[*index].has_left && self.collectives.needs(id(*index)));
        if let Some(index) = left {
            self.shared.fail(GroupError::Left { node: id(index) });
        }
    }

    /// Handles a loss by the control endpoint, which will receive nothing of that node again.
    pub(super) fn lose(&mut self, node: NodeId, loss: Loss) {
        self.peers[node.index()].gone = true;
        match loss {
            Loss::Silent(_) | Loss::Stuck(_) | Loss::Unresponsive(_) => {
                self.losses.notice(node, loss)
            }
            Loss::Reported(by) => {
                self.losses.handle(LossReport { by, of: node, is_certain: false })
            }
            Loss::GaveUp => {
                self.losses.handle(LossReport { by: node, of: self.node, is_certain: false });
            }
            // It has ended because of the pending verdict.
            Loss::Failed if self.losses.has_reports() => {}
            Loss::Failed | Loss::Restarted | Loss::Misbehaved => self.fail(node, loss),
        }
        self.await_decision();
    }

    /// Handles a loss by an endpoint for parameters. Reports of others arrive here too, with a
    /// better reason.
    fn handle_reported(&mut self, peer: PeerLoss) {
        match peer.loss {
            Loss::Silent(_) | Loss::Stuck(_) | Loss::Unresponsive(_) => {
                self.losses.notice(peer.node, peer.loss);
            }
            Loss::Reported(_) | Loss::GaveUp | Loss::Failed => {
                self.hearsay.get_or_insert(peer);
            }
            Loss::Restarted | Loss::Misbehaved => self.fail(peer.node, peer.loss),
        }
        self.await_decision();
    }

    /// Starts the wait for reports, if there is one.
    fn await_decision(&mut self) {
        if self.decide_at.is_none() && (self.losses.has_reports() || self.hearsay.is_some()) {
            self.decide_at = Some(Instant::now() + self.decision_time);
            self.shared.tell(|state| state.is_deciding = true);
        }
        while let Some((to, report)) = self.losses.poll_send() {
            if !self.peers[to.index()].gone {
                self.peers[to.index()].queue.push_back(Message::Lost(report));
            }
        }
    }

    /// Decides which node is lost, once all nodes that reach each other have had the time to
    /// report.
    pub(super) fn decide(&mut self, now: Instant) {
        let is_due = self.decide_at.is_some_and(|at| at <= now || self.losses.is_settled());
        if !is_due || !self.shared.lock().is_deciding() {
            return;
        }
        match (self.losses.verdict(), self.hearsay) {
            (Some(Verdict::Lost(node, loss)), _) => self.fail(node, loss),
            (Some(Verdict::GivenUp(by)), _) => self.shared.fail(GroupError::GivenUp { by }),
            (Some(Verdict::Isolated(loss)), _) => {
                self.shared.fail(GroupError::Isolated { nodes: self.peers.len(), loss });
            }
            (None, Some(PeerLoss { node, loss: Loss::GaveUp, .. })) => {
                self.shared.fail(GroupError::GivenUp { by: vec![node] });
            }
            (None, Some(loss)) => {
                if loss.loss == Loss::Failed {
                    // Nodes that have not learnt it themselves would take this node's end for the
                    // first loss.
                    self.losses.notice(loss.node, loss.loss);
                    self.await_decision();
                }
                self.fail(loss.node, loss.loss);
            }
            (None, None) => {}
        }
    }

    /// Fails the group by the loss of that node, in due time.
    fn fail(&mut self, node: NodeId, loss: Loss) {
        let info = self.infos[node.index()].as_ref().map(|info| info.address);
        let address = info.or_else(|| self.mesh.address(node));
        self.postpone(GroupError::PeerLost(PeerLoss { node, address, loss }));
    }

    /// Returns the close reason for the others when this node ends by an error.
    fn own_close_reason(&self, error: &GroupError) -> CloseReason {
        let first = self.shared.lock().failure.clone();
        first.as_ref().unwrap_or(error).lacks().map_or(CloseReason::Failed, CloseReason::Lost)
    }
}

impl<T: Mesh> Drop for Control<T> {
    /// Ends all waits on the thread, however it ends.
    fn drop(&mut self) {
        self.shared.tell(|state| state.ended = true);
    }
}

fn id(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("node ids are 16 bits wide"))
}

/// The code of a stop requested by a flag.
pub(super) const STOP_BY_FLAG: u8 = 0;

/// Interval at which links are checked while joining.
const JOIN_LOOK: Duration = Duration::from_millis(10);

/// Interval at which flags are checked.
const FLAG_LOOK: Duration = Duration::from_millis(50);

/// Longest wait for a further part of a collective that others may have sent before they knew of a
/// loss.
const PARTS_TIME: Duration = Duration::from_secs(2);

/// Longest wait of a leaving node for room for its last messages.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// Frames handled before requests are looked at.
const FRAMES_AT_ONCE: usize = 64;
