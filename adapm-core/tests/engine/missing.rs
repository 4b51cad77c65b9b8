//! A barrier or quiesce that waits for long reports the missing participants once: own workers on
//! each node, nodes on node 0 (protocol, "Operations"). Workers that mix the two calls wait for
//! each other, even on one node. So does a tick.

use std::sync::Arc;

use adapm_core::clock::Tick;
use adapm_core::config::NodeConfig;
use adapm_core::engine::{
    Absent, Collective, Engine, Event, Initial, Input, Op, OpBody, OpId, Output,
};
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::wire::Message;
use adapm_core::wire::message::{Barrier, Body, Quiesce};
use adapm_core::{ChannelId, Clock, Instant, Layout, NodeId, WorkerId};
use adapm_verify::ReferenceStore;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const WORKERS: usize = 3;
const LONG_NANOS: u64 = 5_000_000_000;

struct Alone {
    node: Engine<ReferenceStore<f32>, SystemPolicy>,
    ops: u64,
}

impl Alone {
    /// Creates one of `nodes` nodes with three workers; messages of the others are invented.
    fn new(node: NodeId, nodes: usize) -> Self {
        Self::on_channel(node, nodes, ChannelId(0))
    }

    fn on_channel(node: NodeId, nodes: usize, channel: ChannelId) -> Self {
        Self::under(System::Adapm, node, nodes, channel)
    }

    fn under(system: System, node: NodeId, nodes: usize, channel: ChannelId) -> Self {
        let layout = Layout::dense(&[(8, 2)]).expect("valid");
        let initial: Initial<f32> = Arc::new(|_, value| value.fill(1.0));
        let store = ReferenceStore::new(&layout);
        let config = NodeConfig::new(node, nodes, WORKERS).on_channel(channel, 2);
        let node =
            Engine::new(config, layout, store, system.policy(WORKERS), initial).expect("valid");
        node.populate();
        Self { node, ops: 0 }
    }

    fn call(&mut self, now: u64, worker: u16, body: OpBody<f32>) {
        self.ops += 1;
        let op = Op { id: OpId(self.ops), worker: WorkerId(worker), body };
        self.node.handle_input(Instant::from_nanos(now), Input::Op(op)).expect("a sound call");
    }

    fn hear(&mut self, now: u64, from: NodeId, body: Body) {
        let message = Input::Message(from, Message::bare(body));
        self.node.handle_input(Instant::from_nanos(now), message).expect("a sound message");
    }

    /// Returns the reports until then, waking the engine at the times that it asks for.
    fn told(&mut self, now: u64) -> Vec<(Collective, Vec<Absent>)> {
        let mut told = Vec::new();
        loop {
            match self.node.poll_output() {
                Output::Event(Event::Missing { call, absent }) => told.push((call, absent)),
                Output::Event(_) | Output::Transmit(..) => {}
                Output::Wait { until: Some(until), .. } if until <= Instant::from_nanos(now) => {
                    let clocks = [Clock(0); WORKERS];
                    self.node.handle_input(until, Input::Timeout(&clocks)).expect("all clocks");
                }
                Output::Wait { .. } => return told,
            }
        }
    }
}

fn worker(node: NodeId, worker: u16, elsewhere: bool) -> Absent {
    Absent { node, worker: Some(WorkerId(worker)), elsewhere }
}

#[test]
fn workers_of_one_node_that_mix_the_calls_are_told_of_each_other() {
    for nodes in [1, 2] {
        let mut alone = Alone::new(N0, nodes);
        alone.call(0, 0, OpBody::Barrier);
        alone.call(1_000, 1, OpBody::Quiesce);
        assert_eq!(alone.told(LONG_NANOS - 1), []);
        let (w0, w1, w2) = (worker(N0, 0, true), worker(N0, 1, true), worker(N0, 2, false));
        assert_eq!(alone.told(LONG_NANOS + 999), [(Collective::Barrier, vec![w1, w2])]);
        assert_eq!(alone.told(LONG_NANOS + 1_000), [(Collective::Quiesce, vec![w0, w2])]);
        assert_eq!(alone.told(100 * LONG_NANOS), [], "it is told once");
        // A worker that ends is not waited for any more; the others still are.
        alone.call(100 * LONG_NANOS, 2, OpBody::End);
        assert_eq!(alone.told(200 * LONG_NANOS), []);
    }
}

#[test]
fn the_next_call_is_told_of_again() {
    let mut alone = Alone::new(N0, 1);
    for round in 0..3 {
        let now = 10 * round * LONG_NANOS;
        let body = || if round == 1 { OpBody::Quiesce } else { OpBody::Barrier };
        alone.call(now, 0, body());
        alone.call(now, 2, body());
        let told = alone.told(now + LONG_NANOS);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1, [worker(N0, 1, false)]);
        alone.call(now + LONG_NANOS, 1, body());
        assert_eq!(alone.told(now + 9 * LONG_NANOS), [], "all have called");
    }
}

#[test]
fn node_0_tells_of_nodes_and_who_waits_in_the_other_call() {
    let mut alone = Alone::new(N0, 3);
    (0..3).for_each(|worker| alone.call(0, worker, OpBody::Quiesce));
    alone.hear(0, N1, Body::Barrier(Barrier::Arrived { number: 0 }));
    let told = alone.told(LONG_NANOS);
    let node = |node, elsewhere| Absent { node: NodeId(node), worker: None, elsewhere };
    let at_barrier = (Collective::Barrier, vec![node(0, true), node(2, false)]);
    let at_quiesce = (Collective::Quiesce, vec![node(1, true), node(2, false)]);
    assert_eq!(told, [at_barrier, at_quiesce]);
    assert_eq!(alone.told(9 * LONG_NANOS), []);
}

#[test]
fn others_than_node_0_tell_of_their_own_workers_and_of_what_node_0_says() {
    let mut alone = Alone::new(N1, 3);
    alone.call(0, 0, OpBody::Quiesce);
    assert_eq!(
        alone.told(LONG_NANOS),
        [(Collective::Quiesce, vec![worker(N1, 1, false), worker(N1, 2, false)])]
    );
    (1..3).for_each(|worker| alone.call(LONG_NANOS, worker, OpBody::Quiesce));
    assert_eq!(alone.told(9 * LONG_NANOS), [], "nodes are node 0's to tell of");
    alone.hear(9 * LONG_NANOS, N0, Body::Quiesce(Quiesce::Done { number: 0 }));
    (0..3).for_each(|worker| alone.call(9 * LONG_NANOS, worker, OpBody::Barrier));
    let missing = Barrier::Missing { number: 0, nodes: vec![NodeId(2)] };
    alone.hear(15 * LONG_NANOS, N0, Body::Barrier(missing));
    let absent = vec![Absent { node: NodeId(2), worker: None, elsewhere: false }];
    assert_eq!(alone.told(15 * LONG_NANOS), [(Collective::Barrier, absent)]);
}

/// A quiesce is called on all channels, and reported by one.
#[test]
fn other_channels_than_the_first_are_silent() {
    let mut alone = Alone::on_channel(N0, 2, ChannelId(1));
    alone.call(0, 0, OpBody::Quiesce);
    assert_eq!(alone.told(9 * LONG_NANOS), []);
    (1..3).for_each(|worker| alone.call(9 * LONG_NANOS, worker, OpBody::Quiesce));
    assert_eq!(alone.told(19 * LONG_NANOS), []);
}

/// A worker that is late under a bound is reported by its node, and a node by node 0, once until
/// the least tick rises; who is within the bound, or has ended, is not.
#[test]
fn whoever_holds_up_a_tick_is_told_of() {
    let two = System::BoundedDelay { delay: 2 };
    let mut alone = Alone::under(two, N0, 3, ChannelId(0));
    let reach = |alone: &mut Alone, now, worker, count| {
        alone.call(now, worker, OpBody::Tick { tick: Tick::new(0, count), waits: true });
    };
    alone.call(0, 2, OpBody::End);
    reach(&mut alone, 0, 0, 2);
    assert_eq!(alone.told(2 * LONG_NANOS), [], "two clocks ahead");
    reach(&mut alone, 2 * LONG_NANOS, 0, 3);
    let node = |node| Absent { node: NodeId(node), worker: None, elsewhere: false };
    let told = alone.told(3 * LONG_NANOS);
    assert_eq!(told, [(Collective::Tick, vec![worker(N0, 1, false), node(1), node(2)])]);
    assert_eq!(alone.told(9 * LONG_NANOS), [], "it is told once");
    reach(&mut alone, 9 * LONG_NANOS, 1, 1);
    let clock = |count| Body::Barrier(Barrier::Clock { tick: Tick::new(0, count) });
    alone.hear(9 * LONG_NANOS, NodeId(2), clock(5));
    alone.hear(9 * LONG_NANOS, N1, clock(1));
    let told = alone.told(20 * LONG_NANOS);
    assert_eq!(told, [(Collective::Tick, vec![node(1)])], "n2 is ahead of it");

    let mut other = Alone::under(two, N1, 3, ChannelId(0));
    reach(&mut other, 0, 0, 4);
    let told = other.told(LONG_NANOS);
    assert_eq!(told, [(Collective::Tick, vec![worker(N1, 1, false), worker(N1, 2, false)])]);
    let mut beside = Alone::under(two, N1, 3, ChannelId(1));
    reach(&mut beside, 0, 0, 4);
    assert_eq!(beside.told(9 * LONG_NANOS), [], "channel 0 tells");
}
