//! Calls that are held up: waits with a limit end in time and cancel nothing, tasks are woken once,
//! failures reach all.
//!
//! The links here pass nothing on until the test opens them, so that nothing depends on time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use adapm_core::error::OpError;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Wake as _};
use adapm_core::{Key, Layout, NodeId, WorkerId};
use adapm_runtime::{Builder, Cluster, Nodes, RunError, System, Worker};
use adapm_transport::inproc::{self, InProc, InProcWaker};

use crate::executor::block_on;

/// A gate in all links.
#[derive(Clone, Default)]
struct Gate {
    is_open: Arc<AtomicBool>,
    wakers: Arc<Mutex<Vec<InProcWaker>>>,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.wakers.lock().expect("no panic").iter().for_each(|waker| waker.wake());
    }
}

/// An endpoint that sends nothing before its gate is open.
struct Gated {
    inner: InProc,
    gate: Gate,
}

impl Transport for Gated {
    type Error = adapm_transport::Error;
    type Waker = InProcWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Self::Error>> {
        if self.gate.is_open.load(Ordering::Acquire) {
            self.inner.send(to, frame)
        } else {
            Err(SendError::Full)
        }
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Self::Error> {
        self.inner.recv(wait, frame)
    }

    fn waker(&self) -> Self::Waker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }
}

/// Returns two nodes with closed links, and the gate that opens them.
fn held() -> (Cluster<i64>, Gate) {
    let gate = Gate::default();
    let for_ends = gate.clone();
    let nodes = Nodes::over(2, move |_, nodes| {
        let gated = |inner: InProc| {
            for_ends.wakers.lock().expect("no panic").push(inner.waker());
            Gated { inner, gate: for_ends.clone() }
        };
        inproc::network(nodes).into_iter().map(gated).collect()
    });
    let layout = Layout::dense(&[(20, 1)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).nodes(nodes).channels(1).system(System::Lapse);
    (builder.initial(|key, value| value.fill(key.0 as i64)).build().expect("a valid cluster"), gate)
}

/// Returns the worker of the first node.
fn first(cluster: &Cluster<i64>) -> Worker<i64> {
    cluster.worker(NodeId(0), WorkerId(0)).expect("it is free")
}

/// Returns a key of the first node, and one of the other.
fn keys() -> [Key; 2] {
    [0, 1].map(|node| {
        let at_home = |key: &Key| Layout::home(*key, 2) == NodeId(node);
        (0..).map(Key).find(at_home).expect("every node is home of some key")
    })
}

/// Long enough for the thread to have slept.
const SHORT: Duration = Duration::from_millis(2);

#[test]
fn a_wait_that_times_out_leaves_the_ticket_as_it_was() {
    let (cluster, gate) = held();
    let mut worker = first(&cluster);
    let [here, there] = keys();
    let mut pull = worker.pull_async(&[there, here]).expect("known keys");
    let push = worker.push_async(&[there], &[100]).expect("a known key");
    for limit in [Duration::ZERO, SHORT] {
        assert_eq!((pull.wait_timeout(limit), push.wait_timeout(limit)), (None, None));
        assert_eq!((pull.is_done(), push.is_done()), (false, false));
    }
    gate.open();
    let values = vec![there.0 as i64, here.0 as i64];
    assert_eq!(pull.wait_timeout(Duration::MAX), Some(Ok(values)), "no limit at all");
    assert_eq!((push.wait(), push.wait_timeout(Duration::ZERO)), (Ok(()), Some(Ok(()))));
    drop(worker);
    cluster.finish().expect("no failure");
    let mut value = [0];
    assert_eq!(cluster.read(&[there], &mut value), Ok(vec![]));
    assert_eq!(value, [there.0 as i64 + 100]);
}

#[test]
fn a_wait_with_a_limit_ends_as_soon_as_the_call() {
    let (cluster, gate) = held();
    let mut worker = first(&cluster);
    let mut pull = worker.pull_async(&keys()).expect("known keys");
    let waiting = thread::spawn(move || pull.wait_timeout(Duration::from_secs(600)));
    gate.open();
    let values = keys().map(|key| key.0 as i64).to_vec();
    assert_eq!(waiting.join().expect("no panic"), Some(Ok(values)));
}

#[test]
fn a_task_that_awaits_is_polled_when_it_is_woken_and_not_before() {
    let (cluster, gate) = held();
    let mut worker = first(&cluster);
    let [here, there] = keys();
    let task = thread::spawn(move || {
        block_on(async move {
            worker.push_async(&[there], &[7])?.await?;
            let values = worker.pull_async(&[there])?.await?;
            worker.localize_async(&[here])?.await?;
            Ok::<_, OpError>(values)
        })
    });
    gate.open();
    let (outcome, polls) = task.join().expect("no panic");
    assert_eq!(outcome, Ok(vec![there.0 as i64 + 7]));
    assert!(polls <= 4, "polled {polls} times for three calls");
}

/// A waker that counts its calls.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn the_task_that_polled_last_is_the_one_that_is_woken() {
    let (cluster, gate) = held();
    let mut worker = first(&cluster);
    let [_, there] = keys();
    let mut pull = worker.pull_async(&[there]).expect("a known key");
    let tasks = [(); 2].map(|()| Arc::new(Counting::default()));
    for task in &tasks {
        let waker = Waker::from(Arc::clone(task));
        let polled = Future::poll(std::pin::Pin::new(&mut pull), &mut Context::from_waker(&waker));
        assert_eq!(polled, Poll::Pending);
    }
    gate.open();
    assert_eq!(pull.wait(), Ok(vec![there.0 as i64]));
    drop((worker, cluster));
    assert_eq!(tasks.map(|task| task.0.load(Ordering::Acquire)), [0, 1]);
}

#[test]
fn whatever_is_held_up_ends_with_the_cluster() {
    let (cluster, gate) = held();
    let mut worker = first(&cluster);
    let [_, there] = keys();
    let pull = worker.pull_async(&[there]).expect("a known key");
    let push = worker.push_async(&[there], &[1]).expect("a known key");
    let other = cluster.worker(NodeId(1), WorkerId(0)).expect("it is free");
    let panicked = thread::spawn(move || {
        let _other = other;
        std::panic::resume_unwind(Box::new("planned"));
    });
    panicked.join().expect_err("it panics");
    assert_eq!((pull.wait(), push.wait()), (Err(OpError::Ended), Err(OpError::Ended)));
    let error = cluster.finish().expect_err("a worker was lost by a panic");
    assert!(
        matches!(error, RunError::WorkerPanicked { node: NodeId(1), worker: WorkerId(0), .. }),
        "{error}"
    );
    gate.open();
}
