//! Clusters over decorated transports: random refusals, time-outs and wakes change no result, and a
//! frame that a transport loses ends the run by name.

use std::time::Duration;

use adapm_core::error::OpError;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Builder, Cluster, Nodes, Worker};
use adapm_transport::inproc::{self, InProc, InProcWaker};
use adapm_verify::{Numbered, ShakeRates, Shaky};

const KEYS: u64 = 20;
const ROUNDS: u64 = 200;

/// Returns a cluster of three nodes over the endpoints.
fn cluster<T: Transport + Send + 'static>(
    network: impl Fn(usize) -> Vec<T> + 'static,
) -> Cluster<i64> {
    let layout = Layout::dense(&[(KEYS, 1)]).expect("a legal layout");
    let nodes = Nodes::over(3, move |_, nodes| network(nodes));
    Builder::<i64>::new(layout).nodes(nodes).build().expect("a legal cluster")
}

fn work(mut worker: Worker<i64>) -> Result<(), OpError> {
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    for _ in 0..ROUNDS {
        let clock = worker.advance_clock();
        worker.intent(&keys[..5], clock..clock + 3)?;
        worker.push(&keys, &[1; KEYS as usize])?;
    }
    worker.quiesce()
}

#[test]
fn a_shaky_transport_changes_no_result() {
    let rates = ShakeRates { full: 20, timed_out: 20, woken: 5 };
    for seed in 0..5 {
        let cluster = cluster(move |nodes| {
            Numbered::network(Shaky::network(inproc::network(nodes), rates, seed))
        });
        cluster.try_run(work).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut sums = Vec::new();
        cluster.visit_main(|_, value| sums.push(value[0])).expect("the cluster is at rest");
        assert_eq!(sums, [3 * ROUNDS as i64; KEYS as usize], "seed {seed}");
    }
}

/// An endpoint of n0 that loses its twentieth frame.
struct Leaky {
    inner: InProc,
    sent: u64,
}

impl Transport for Leaky {
    type Error = adapm_transport::Error;
    type Waker = InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        self.sent += 1;
        if self.inner.node() == NodeId(0) && self.sent == 20 {
            return Ok(());
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        self.inner.recv(wait, frame)
    }

    fn waker(&self) -> InProcWaker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }
}

#[test]
fn a_frame_that_a_transport_loses_ends_the_run_by_name() {
    let cluster = cluster(|nodes| {
        let ends = inproc::network(nodes).into_iter();
        Numbered::network(ends.map(|inner| Leaky { inner, sent: 0 }).collect())
    });
    let error = cluster.try_run(work).expect_err("a frame is lost").to_string();
    assert!(error.contains(" of n0 never came: n0 has sent "), "{error}");
}
