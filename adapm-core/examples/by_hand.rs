//! Three nodes driven by hand, in a for loop: no threads, no sockets, no clock. Every message is
//! printed. `cargo run -p adapm-core --example by_hand`

use std::collections::VecDeque;
use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::driver::{Driver, Host};
use adapm_core::engine::{Engine, Event, Input, Intent, Op, OpBody, OpId, SignalId};
use adapm_core::policy::System;
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::ReferenceStore;

/// The environment of the engine of node `.0`: messages in flight, with receiver and sender.
struct World<'a>(NodeId, &'a mut VecDeque<(NodeId, NodeId, Message)>);

impl Host<i64> for World<'_> {
    /// Adds nothing: no worker pushes to a local copy.
    fn take_dirty(&mut self, _keys: &mut Vec<Key>) {}

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.1.push_back((to, self.0, message));
    }

    fn tell(&mut self, event: Event<i64>) {
        println!("  {}: {event:?}", self.0);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::dense(&[(10, 2)])?;
    let mut nodes = Vec::new();
    for id in (0..3).map(NodeId) {
        let initial = Arc::new(|key: Key, value: &mut [i64]| value.fill(key.0 as i64));
        let (store, policy) = (ReferenceStore::<i64>::new(&layout), System::Adapm.policy(1));
        let node = Engine::new(NodeConfig::new(id, 3, 1), layout.clone(), store, policy, initial)?;
        node.populate();
        nodes.push(Driver::new(node));
    }

    let key =
        (0..).map(Key).find(|key| Layout::home(*key, 3) == NodeId(0)).expect("a key at home on n0");
    let op = |id, body| Input::Op(Op { id: OpId(id), worker: WorkerId(0), body });
    let intent = Intent {
        worker: WorkerId(0),
        id: SignalId::default(),
        keys: vec![key],
        clocks: Clock(0)..Clock(9),
    };
    let mut script = VecDeque::from([
        ("n1 pulls, without intent", 1, op(1, OpBody::Pull { keys: vec![key] })),
        ("n1 signals intent", 1, Input::Intent(intent.clone())),
        ("n1 begins a round", 1, Input::Timeout(&[Clock(0)])),
        ("n2 signals intent", 2, Input::Intent(intent)),
        ("n2 begins a round", 2, Input::Timeout(&[Clock(0)])),
        (
            "n0 pushes, without a copy",
            0,
            op(2, OpBody::Push { keys: vec![key], updates: vec![10, 10] }),
        ),
        ("n2 has had news, and asks", 2, Input::Timeout(&[Clock(1)])),
    ]);
    let mut messages = VecDeque::new();
    for step in 1.. {
        let now = Instant::from_micros(1_000 * step);
        let (node, input) = if let Some((to, from, message)) = messages.pop_front() {
            println!("  {from} -> {to}: {message:?}");
            (to, Input::Message(from, message))
        } else if let Some((title, node, input)) = script.pop_front() {
            println!("{title}");
            (NodeId(node), input)
        } else {
            break;
        };
        nodes[node.index()].feed(now, input, &mut World(node, &mut messages))?;
    }
    Ok(())
}
