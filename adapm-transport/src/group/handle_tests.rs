//! Tests of the control thread over the in-process network: collectives, stop, loss and close
//! reason.

use core::time::Duration;
use std::sync::Barrier;
use std::sync::atomic::Ordering;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Loss, Received, SendError, Transport, Wake};

use super::*;
use crate::inproc::{self, InProc, InProcWaker};

/// An in-process endpoint that reports a node lost on demand.
struct Doomed {
    inner: InProc,
    lost: Arc<Mutex<Option<NodeId>>>,
    told: bool,
}

impl Transport for Doomed {
    type Error = crate::Error;
    type Waker = InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        match self.inner.send(to, frame) {
            Err(SendError::Transport(crate::Error::PeerGone { .. })) => Ok(()),
            sent => sent,
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        let lost = self.lost.lock().expect("no panic while it is held");
        if let Some(lost) = lost.filter(|lost| !self.told && *lost != self.inner.node()) {
            self.told = true;
            return Ok(Received::Lost(lost, Loss::Failed));
        }
        drop(lost);
        match self.inner.recv(wait, frame)? {
            // Members end one after another.
            Received::Lost(..) => Ok(Received::Woken),
            received => Ok(received),
        }
    }

    fn waker(&self) -> InProcWaker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }

    fn address(&self, _: NodeId) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], 4157)))
    }
}

impl Mesh for Doomed {
    fn info(&self) -> Option<SocketAddr> {
        None
    }

    fn meet(&mut self, _: &[Option<SocketAddr>]) {}

    fn seek(&mut self, _: NodeId, _: &[SocketAddr]) {}

    fn is_up(&self, _: NodeId) -> bool {
        true
    }

    fn rtt(&self, _: NodeId) -> Option<Duration> {
        None
    }

    fn fault(&self, _: NodeId) -> Option<String> {
        None
    }

    fn run(&self) -> Option<u64> {
        None
    }

    fn own_trouble(&self, _: NodeId) -> Option<String> {
        None
    }

    fn poll_refusal(&mut self) -> Option<(String, u32)> {
        None
    }
}

struct Cluster {
    handles: Vec<Handle>,
    lost: Arc<Mutex<Option<NodeId>>>,
    wakes: Vec<InProcWaker>,
}

impl Cluster {
    /// Creates nodes that decide on a loss at once.
    fn new(nodes: usize) -> Self {
        Self::deciding_after(nodes, Duration::ZERO)
    }

    /// Creates nodes that wait that long for the reports of others before they decide.
    fn deciding_after(nodes: usize, decision_time: Duration) -> Self {
        let lost = Arc::new(Mutex::new(None));
        let ends: Vec<InProc> = inproc::network(nodes);
        let wakes = ends.iter().map(InProc::waker).collect();
        let handles = ends.into_iter().map(|inner| {
            let node = inner.node();
            let mesh = Doomed { inner, lost: Arc::clone(&lost), told: false };
            Handle::start(mesh, Membership::new(node, nodes, String::new()), decision_time)
                .expect("a thread")
        });
        Self { handles: handles.collect(), lost, wakes }
    }

    fn lose(&self, node: NodeId) {
        *self.lost.lock().expect("no panic while it is held") = Some(node);
        self.wakes.iter().for_each(Wake::wake);
    }

    /// Calls `call` in one thread per node, and returns the results.
    fn each<R: Send>(&self, call: impl Fn(usize, &Handle) -> R + Sync) -> Vec<R> {
        let call = &call;
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .handles
                .iter()
                .enumerate()
                .map(|(n, handle)| scope.spawn(move || call(n, handle)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }
}

fn part(node: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 3 + node) as u8).collect()
}

#[test]
fn all_get_what_all_give_whatever_its_size() {
    for nodes in 1..=4 {
        let cluster = Cluster::new(nodes);
        for bytes in [0, 1, 70_000, 5 << 20] {
            let expected: Vec<_> = (0..nodes).map(|node| part(node, bytes / (node + 1))).collect();
            for parts in cluster
                .each(|node, handle| handle.collect("all", true, &part(node, bytes / (node + 1))))
            {
                assert!(parts.as_ref() == Ok(&expected), "{nodes} nodes, {bytes} bytes");
            }
        }
    }
}

#[test]
fn only_node_0_gets_what_is_gathered() {
    let cluster = Cluster::new(3);
    let gathered = cluster.each(|node, handle| handle.collect("some", false, &part(node, 100_000)));
    let expected: Vec<_> = (0..3).map(|node| part(node, 100_000)).collect();
    assert!(gathered == [Ok(expected), Ok(Vec::new()), Ok(Vec::new())]);
}

#[test]
fn another_call_is_an_error_on_all_that_names_the_node() {
    let cluster = Cluster::new(3);
    let labels = ["ranks", "ranks", "loss"];
    for (node, outcome) in
        cluster.each(|node, handle| handle.collect(labels[node], true, &[])).iter().enumerate()
    {
        match outcome {
            Err(GroupError::Differs { node: other, ours, theirs }) => {
                assert_eq!((ours.as_str(), theirs.as_str()), (labels[node], labels[other.index()]));
                assert_ne!(ours, theirs);
            }
            // Another node may have found out first and have left.
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_loss_ends_every_wait_and_names_node_and_address() {
    let cluster = Cluster::new(3);
    let outcomes = cluster.each(|node, handle| match node {
        // Node 2 never comes.
        2 => Err(GroupError::Ended),
        0 => {
            cluster.lose(NodeId(2));
            handle.collect("all", true, &[1])
        }
        _ => handle.collect("all", true, &[1]),
    });
    let text = "node n2 (127.0.0.1:4157) was lost: it ended with an error of its own; start the cluster again";
    for (node, outcome) in outcomes.into_iter().enumerate().take(2) {
        assert_eq!(outcome.expect_err("it is needed").to_string(), text);
        assert_eq!(cluster.handles[node].failure().expect("a loss").to_string(), text);
        let later = cluster.handles[node].collect("all", true, &[]);
        assert_eq!(later.expect_err("it is needed").to_string(), text);
    }
}

#[test]
fn watches_hear_of_a_loss_before_and_after_it() {
    let cluster = Cluster::new(2);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let watch = || -> Arc<LossWatch> {
        let heard = Arc::clone(&heard);
        Arc::new(move |loss: PeerLoss| {
            heard.lock().expect("no panic while it is held").push(loss.node)
        })
    };
    let (early, late, dropped) = (watch(), watch(), watch());
    cluster.handles[0].watch(&early);
    cluster.handles[0].watch(&dropped);
    drop(dropped);
    cluster.handles[0].report(PeerLoss { node: NodeId(1), address: None, loss: Loss::Restarted });
    while heard.lock().expect("no panic while it is held").is_empty() {
        thread::yield_now();
    }
    cluster.handles[0].watch(&late);
    assert_eq!(*heard.lock().expect("no panic while it is held"), [NodeId(1), NodeId(1)]);
}

#[test]
fn a_stop_reaches_all_by_flag_or_by_code() {
    for code in [None, Some(15)] {
        let cluster = Cluster::new(3);
        let flags: Vec<Arc<AtomicBool>> = (0..3).map(|_| Arc::default()).collect();
        for (handle, flag) in cluster.handles.iter().zip(&flags) {
            handle.on_stop(Arc::clone(flag));
        }
        match code {
            Some(code) => cluster.handles[1].stop(code),
            None => flags[1].store(true, Ordering::Release),
        }
        for (handle, flag) in cluster.handles.iter().zip(&flags) {
            while !flag.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let seen = handle.shared.wait(|state| state.stop.map(Some));
            assert_eq!(seen, Some(code.unwrap_or(0)));
        }
        let late = Arc::new(AtomicBool::new(false));
        cluster.handles[2].on_stop(Arc::clone(&late));
        assert!(late.load(Ordering::Acquire), "who comes late stops too");
    }
}

#[test]
fn whoever_leaves_in_order_is_missed_only_if_needed() {
    let cluster = Cluster::new(3);
    let outcomes = cluster.each(|node, handle| {
        let all = handle.collect("all", true, &[node as u8]);
        if node == 1 {
            handle.leave(CloseReason::Finished);
            assert_eq!(handle.collect("more", true, &[]), Err(GroupError::Ended));
            return (all, None);
        }
        (all, Some(handle.collect("more", true, &[])))
    });
    for (all, more) in outcomes {
        assert_eq!(all, Ok(vec![vec![0], vec![1], vec![2]]));
        assert!(more.is_none_or(|more| more == Err(GroupError::Left { node: NodeId(1) })));
    }
}

/// Whoever cannot go on without a node that has left says so, and is not taken for the cause by who
/// comes when both have ended.
#[test]
fn whoever_ends_for_lack_of_another_names_that_one() {
    let (cluster, ended) = (Cluster::new(3), Barrier::new(2));
    let outcomes = cluster.each(|node, handle| {
        handle.collect("all", true, &[]).expect("all are here");
        match node {
            1 => {
                handle.leave(CloseReason::Finished);
                None
            }
            0 => {
                let more = handle.collect("more", true, &[]);
                handle.leave(CloseReason::Finished);
                ended.wait();
                Some(more)
            }
            _ => {
                ended.wait();
                Some(handle.collect("more", true, &[]))
            }
        }
    });
    for more in outcomes.into_iter().flatten() {
        let error = more.expect_err("n1 has left");
        assert_eq!(error.lacks(), Some(NodeId(1)), "{error}");
    }
}

#[test]
fn a_reported_silence_is_one_verdict_on_all_nodes_and_known_to_the_one_given_up() {
    let cluster = Cluster::new(3);
    // Only n1 receives nothing of n2, which is alive: n2 gives up n1 in turn, and has the higher id
    // of the two.
    let silent = Loss::Silent(Duration::from_secs(3));
    cluster.handles[1].report(PeerLoss { node: NodeId(2), address: None, loss: silent });
    let failures = cluster.each(|_, handle| handle.shared.wait(|state| state.failure.clone()));
    let is_lost = |error: &GroupError| error.lost().is_some_and(|loss| loss.node == NodeId(2));
    assert!(is_lost(&failures[0]) && is_lost(&failures[1]), "{failures:?}");
    assert_eq!(failures[2], GroupError::GivenUp { by: vec![NodeId(1)] });
}

#[test]
fn whoever_has_failed_by_its_own_word_is_named_by_all_however_few_have_heard_it() {
    for failed in [0, 2] {
        // A later message of n0 can overtake the first one of n1 on its way to n2.
        let cluster = Cluster::deciding_after(3, Duration::from_secs(1));
        // By a link for parameters; reports of the failed one about n1 change nothing, whichever id
        // is higher.
        cluster.handles[1].report(PeerLoss { node: id(failed), address: None, loss: Loss::Failed });
        let failures = cluster.each(|_, handle| handle.shared.wait(|state| state.failure.clone()));
        for (index, failure) in failures.iter().enumerate() {
            let expected = match index {
                index if index == failed => *failure == GroupError::GivenUp { by: vec![NodeId(1)] },
                _ => failure.lost().is_some_and(|loss| loss.node == id(failed)),
            };
            assert!(expected, "n{index} when n{failed} has failed: {failures:?}");
        }
    }
}

fn id(index: usize) -> NodeId {
    NodeId(u16::try_from(index).expect("a small cluster"))
}
