//! A lost node ends the cluster in order: operations name the node and its address, threads end,
//! and peers are informed.
//!
//! The transport here is in-process, and the test tells it which node to report lost. Real
//! processes: `tests/processes`.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapm_core::error::OpError;
use adapm_core::transport::{CloseReason, Frame, Loss, Received, SendError, Transport, Wake};
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{BuildError, Builder, Cluster, Nodes, RunError, System, TryRunError, Worker};
use adapm_transport::error::PeerLoss;
use adapm_transport::group::GroupError;
use adapm_transport::inproc::{self, InProc};

use crate::channels;

/// State shared by the endpoints of one test.
#[derive(Default)]
struct Fate {
    lost: AtomicBool,
    wakes: Mutex<Vec<Box<dyn Fn() + Send>>>,
    reasons: Mutex<Vec<(NodeId, CloseReason)>>,
}

/// An in-process endpoint that reports node n2 lost once its fate says so.
struct Doomed {
    inner: InProc,
    fate: Arc<Fate>,
    told: bool,
}

const VICTIM: NodeId = NodeId(2);
const LOSS: Loss = Loss::Silent(Duration::from_secs(1));

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4157))
}

impl Transport for Doomed {
    type Error = adapm_transport::Error;
    type Waker = inproc::InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        let lost = self.fate.lost.load(Ordering::Acquire);
        if lost && (to == VICTIM || self.inner.node() == VICTIM) {
            return Ok(());
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        if self.fate.lost.load(Ordering::Acquire) && !self.told && self.inner.node() != VICTIM {
            self.told = true;
            return Ok(Received::Lost(VICTIM, LOSS));
        }
        match self.inner.recv(wait, frame)? {
            // Survivors end one after another.
            Received::Lost(..) => Ok(Received::Woken),
            received => Ok(received),
        }
    }

    fn waker(&self) -> Self::Waker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        let mut reasons = self.fate.reasons.lock().expect("no panic while it is held");
        reasons.push((self.inner.node(), reason));
        self.inner.leave(reason);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        (node == VICTIM).then(address)
    }
}

fn cluster(fate: &Arc<Fate>, system: System, channels: usize) -> Cluster<i64> {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let fate = Arc::clone(fate);
    let nodes = Nodes::over(3, move |_, nodes| {
        let ends = inproc::network(nodes).into_iter();
        let ends: Vec<Doomed> =
            ends.map(|inner| Doomed { inner, fate: Arc::clone(&fate), told: false }).collect();
        let mut wakes = fate.wakes.lock().expect("no panic while it is held");
        for end in &ends {
            let waker = end.waker();
            wakes.push(Box::new(move || waker.wake()));
        }
        ends
    });
    let builder = Builder::<i64>::new(layout).nodes(nodes).channels(channels).system(system);
    builder.build().expect("a valid cluster")
}

fn lose(fate: &Fate) {
    fate.lost.store(true, Ordering::Release);
    fate.wakes.lock().expect("no panic while it is held").iter().for_each(|wake| wake());
}

type Call = fn(&mut Worker<i64>) -> Result<(), OpError>;

/// Repeats `call` until it fails: the node is lost at some moment before, during or after the
/// first.
fn until_it_fails(mut worker: Worker<i64>, fate: &Fate, call: Call) -> OpError {
    if worker.node() == NodeId(0) {
        lose(fate);
    }
    loop {
        if let Err(error) = call(&mut worker) {
            return error;
        }
    }
}

#[test]
fn every_wait_ends_and_names_node_and_address() {
    let calls: [(&str, Call); 7] = [
        ("pull", |worker| worker.pull(&keys(), &mut [0; 100])),
        ("push", |worker| worker.push(&keys(), &[1; 100])),
        ("set", |worker| worker.set(&keys(), &[1; 100])),
        ("localize", |worker| worker.localize(&keys())),
        ("barrier", Worker::barrier),
        ("quiesce", Worker::quiesce),
        ("wait_sync", Worker::wait_sync),
    ];
    for (name, call) in calls {
        let fate = Arc::new(Fate::default());
        let channels = channels::draw();
        let cluster = cluster(&fate, System::Adapm, channels);
        let errors = Mutex::new(Vec::new());
        let outcome = cluster.run(|worker| {
            let node = worker.node();
            let error = until_it_fails(worker, &fate, call);
            errors.lock().expect("no panic while it is held").push((node, error));
        });
        let lost = RunError::PeerLost { node: VICTIM, address: Some(address()), loss: LOSS };
        assert_eq!(outcome, Err(lost.clone()), "{name}");
        for (node, error) in errors.into_inner().expect("no panic") {
            let named = OpError::PeerLost { node: VICTIM, address: Some(address()) };
            assert!(error == named || node == VICTIM, "{name} of {node}: {error}");
        }
        assert_eq!(cluster.read(&[Key(0)], &mut [0]), Err(lost.clone()));
        assert_eq!(cluster.shutdown(), Err(lost));
        let reasons = fate.reasons.lock().expect("no panic while it is held");
        assert_eq!(reasons.len(), 3 * channels, "{name}");
        for (node, reason) in reasons.iter() {
            let expected =
                if *node == VICTIM { CloseReason::Failed } else { CloseReason::Lost(VICTIM) };
            assert_eq!(*reason, expected, "{name} of {node}");
        }
    }
}

/// Whatever the worker does with the error and however it ends: neither the worker nor the caller
/// is blamed.
#[test]
fn what_workers_answer_because_of_a_loss_is_blamed_on_nobody_but_the_lost_node() {
    for panics in [false, true] {
        let (fate, channels) = (Arc::new(Fate::default()), channels::draw());
        let cluster = cluster(&fate, System::Adapm, channels);
        let outcome = cluster.try_run(|worker| -> Result<(), OpError> {
            let error = until_it_fails(worker, &fate, |worker| worker.push(&keys(), &[1; 100]));
            if panics { std::panic::resume_unwind(Box::new(error)) } else { Err(error) }
        });
        let lost = RunError::PeerLost { node: VICTIM, address: Some(address()), loss: LOSS };
        let error = outcome.expect_err("a node is lost");
        assert_eq!(error, TryRunError::Cluster(lost.clone()));
        assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&lost));
        assert_eq!(cluster.shutdown(), Err(lost));
        let reasons = fate.reasons.lock().expect("no panic while it is held");
        let blamed = reasons
            .iter()
            .filter(|(node, reason)| *node != VICTIM && *reason != CloseReason::Lost(VICTIM));
        assert_eq!(blamed.count(), 0, "peers hear of the lost node: {reasons:?}");
    }
}

#[test]
fn an_operation_that_failed_with_a_node_keeps_that_as_its_source() {
    let lost = OpError::PeerLost { node: VICTIM, address: Some(address()) };
    let error = RunError::from(lost.clone());
    assert_eq!(error.to_string(), "node n2 (127.0.0.1:4157) was lost: start the cluster again");
    assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&lost));
    let group =
        GroupError::PeerLost(PeerLoss { node: VICTIM, address: Some(address()), loss: LOSS });
    let error = BuildError::from(group.clone());
    assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&group));
}

#[test]
fn a_cluster_that_ends_in_order_says_so() {
    let (fate, channels) = (Arc::new(Fate::default()), channels::draw());
    let cluster = cluster(&fate, System::Adapm, channels);
    cluster.run(|mut worker| worker.push(&keys(), &[1; 100])).expect("no failure");
    let reasons = fate.reasons.lock().expect("no panic while it is held").clone();
    assert_eq!(reasons.len(), 3 * channels, "the peers have heard when run returns");
    assert!(reasons.iter().all(|(_, reason)| *reason == CloseReason::Finished), "{reasons:?}");
}

#[test]
fn nobody_waits_for_the_replicas_of_a_lost_node() {
    let fate = Arc::new(Fate::default());
    let cluster = cluster(&fate, System::Full, channels::draw());
    lose(&fate);
    let outcome = cluster.run(|mut worker| worker.quiesce().is_err());
    assert!(matches!(outcome, Err(RunError::PeerLost { node: VICTIM, .. })), "{outcome:?}");
}

#[test]
fn the_message_is_one_line_with_node_address_and_reason() {
    let lost = RunError::PeerLost { node: VICTIM, address: Some(address()), loss: LOSS };
    let text =
        "node n2 (127.0.0.1:4157) was lost: it has been silent for 1.0 s; start the cluster again";
    assert_eq!(lost.to_string(), text);
    let lost = RunError::PeerLost { node: VICTIM, address: None, loss: Loss::Reported(NodeId(1)) };
    assert_eq!(lost.to_string(), "node n2 was lost: node n1 has lost it; start the cluster again");
}

fn keys() -> Vec<Key> {
    (0..100).map(Key).collect()
}
