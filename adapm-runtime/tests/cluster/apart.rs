//! Nodes that are built one by one, as on different machines: only their transport joins them.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use adapm_core::error::{ConfigError, OpError};
use adapm_core::transport::Loss;
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{BuildError, Builder, Nodes, RunError, TryRunError, Workers};
use adapm_transport::inproc::{self, InProc};
use adapm_verify::silence::patience;

fn layout() -> Layout {
    Layout::dense(&[(40, 2)]).expect("a legal layout")
}

/// Returns a builder of `node` of three, with that endpoint.
fn builder(node: u16, end: InProc) -> Builder<i64> {
    builder_with(node, end, layout())
}

fn builder_with(node: u16, end: InProc, layout: Layout) -> Builder<i64> {
    let mut end = Some(end);
    let nodes = Nodes::only(NodeId(node), 3, move |_| end.take().expect("there is one channel"));
    Builder::new(layout).nodes(nodes).channels(1).initial(|key, value| value.fill(key.0 as i64))
}

#[test]
fn nodes_that_are_built_apart_are_one_cluster() {
    let nodes = (0..).zip(inproc::network(3)).map(|(node, end)| {
        thread::spawn(move || {
            let cluster = builder(node, end).build().expect("a legal node");
            assert_eq!((cluster.nodes(), cluster.workers()), (3, &Workers::from(1)));
            let keys: Vec<Key> = (0..40).map(Key).collect();
            let sums = cluster.run(|mut worker| {
                assert_eq!(worker.node(), NodeId(node));
                for _ in 0..50 {
                    let clock = worker.advance_clock();
                    worker.intent(&keys, clock..clock + 2).expect("a window");
                    worker.push(&keys, &[1; 80]).expect("known keys");
                }
                worker.quiesce().expect("no failure");
                let mut values = [0; 80];
                worker.pull(&keys, &mut values).expect("known keys");
                values.iter().sum::<i64>()
            });
            assert_eq!(sums, Ok(vec![80 * 150 + 2 * (0..40).sum::<i64>()]));
            let mut own = Vec::new();
            cluster
                .visit_main(|key, value| own.push((key, value.to_vec())))
                .expect("the cluster is at rest");
            own
        })
    });
    // All are started before the first is waited for.
    let nodes: Vec<_> = nodes.collect();
    let mut all: Vec<_> =
        nodes.into_iter().flat_map(|node| node.join().expect("no panic")).collect();
    all.sort();
    assert_eq!(all, (0..40).map(|key| (Key(key), vec![key as i64 + 150; 2])).collect::<Vec<_>>());
}

#[test]
fn a_node_that_there_is_not_is_refused() {
    let refused = builder(3, inproc::network(1).remove(0)).build().expect_err("nodes are 0..3");
    assert_eq!(
        refused,
        BuildError::Config(ConfigError::NodeOutOfRange { node: NodeId(3), nodes: 3 })
    );
}

/// The end of a node that others wait for.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Worker,
    Panic,
    /// The node is never built, so it introduces itself to nobody.
    Unbuilt,
}

/// Builds a node whose worker waits at a barrier for the failing node. Returns the error.
fn waits_in_vain(node: u16, end: InProc) -> RunError {
    let cluster = match builder(node, end).build() {
        Ok(cluster) => cluster,
        Err(BuildError::Run(error)) => return error,
        Err(error) => panic!("n{node} cannot be built: {error}"),
    };
    let ran = cluster.try_run(|mut worker| -> Result<(), OpError> {
        worker.push(&(0..40).map(Key).collect::<Vec<_>>(), &[1; 80])?;
        worker.barrier()
    });
    match ran.expect_err("the failing node comes to no barrier") {
        TryRunError::Cluster(error) => error,
        error => panic!("n{node} blames its worker: {error}"),
    }
}

fn fails(node: u16, end: InProc, failing: Failing) {
    if matches!(failing, Failing::Unbuilt) {
        return;
    }
    let cluster = builder(node, end).build().expect("a legal node");
    let ran = cluster.try_run(|mut worker| {
        worker.push(&(0..40).map(Key).collect::<Vec<_>>(), &[1; 80]).expect("its peers are there");
        match failing {
            Failing::Worker => Err::<(), _>("no data"),
            _ => resume_unwind(Box::new("no data")),
        }
    });
    assert!(ran.expect_err("its worker fails").to_string().contains("no data"));
}

#[test]
fn a_node_that_fails_ends_all_others_which_name_it() {
    for failing in [Failing::Worker, Failing::Panic, Failing::Unbuilt] {
        let (tell, told) = mpsc::channel();
        for (node, end) in (0..).zip(inproc::network(3)) {
            let tell = tell.clone();
            thread::spawn(move || {
                if node == 1 {
                    fails(node, end, failing);
                } else {
                    tell.send((node, waits_in_vain(node, end))).expect("the test waits");
                }
            });
        }
        drop(tell);
        for _ in 0..2 {
            let ended = told.recv_timeout(patience());
            let (node, error) = ended.unwrap_or_else(|_| panic!("{failing:?}: a node waits on"));
            // Where the other survivor was faster, its word is the first.
            let losses = [Loss::Failed, Loss::Reported(NodeId(2 - node))];
            let lost =
                losses.map(|loss| RunError::PeerLost { node: NodeId(1), address: None, loss });
            assert!(lost.contains(&error), "{failing:?}: n{node} ends with {error}");
        }
    }
}

/// A key more, which no worker ever accesses, or another home of one: two nodes would own it.
#[test]
fn a_node_with_other_keys_or_homes_ends_the_run() {
    let layout = |keys| Layout::dense(&[(keys, 2)]).expect("a legal layout");
    ends_with_a_reason(move |node, end| builder_with(node, end, layout(40 + u64::from(node == 2))));
    ends_with_a_reason(move |node, end| {
        let homes: Vec<u16> =
            (0..40).map(|key| (key + u16::from(key == 7 && node == 2)) % 3).collect();
        builder_with(node, end, layout(40)).homes(homes)
    });
}

/// Runs three nodes, of which node 2 differs.
fn ends_with_a_reason(build: impl Fn(u16, InProc) -> Builder<i64> + Clone + Send + 'static) {
    let nodes = (0..).zip(inproc::network(3)).map(|(node, end)| {
        let build = build.clone();
        thread::spawn(move || {
            // A peer may have introduced itself by the time the node is built, or later.
            let cluster = match build(node, end).build() {
                Ok(cluster) => cluster,
                Err(error) => return error.to_string(),
            };
            let keys: Vec<Key> = (0..40).map(Key).collect();
            let ran = cluster.try_run(|mut worker| {
                worker.push(&keys, &[1; 80])?;
                worker.quiesce()
            });
            ran.expect_err("a node differs").to_string()
        })
    });
    let nodes: Vec<_> = nodes.collect();
    let errors: Vec<String> =
        nodes.into_iter().map(|node| node.join().expect("no panic")).collect();
    let is_named = errors.iter().any(|error| error.contains("has another layout"));
    assert!(is_named, "nobody says what differs: {errors:#?}");
}
