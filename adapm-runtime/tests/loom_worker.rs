//! A worker, its channel thread's engine and a peer under loom: the key leaves while the worker
//! pushes and pulls.
//!
//! Everything but the wire and the clock of the round is shipped code: fast path, refusal, slow
//! path, order rule, promise.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-runtime
//! --test 'loom_*'`

#![cfg(adapm_loom)]

#[path = "support/bed.rs"]
mod bed;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use adapm_core::config::NodeConfig;
use adapm_core::driver::{self, Host};
use adapm_core::engine::{self, Event, Input, Op, OpBody, OpId};
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::slot::State;
use adapm_core::store::Store;
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_runtime::model::{Command, ModelNode, Waiter};
use adapm_store::DenseStore;
use loom::thread;

use bed::Bed;

const W0: WorkerId = WorkerId(0);
const NODES: usize = 2;

type Keeper = Arc<DenseStore<i64>>;
type Engine = engine::Engine<Keeper, SystemPolicy>;
type Driver = driver::Driver<Keeper, SystemPolicy>;

/// Returns a key whose home is node 0.
fn key() -> Key {
    (0..)
        .map(Key)
        .find(|key| Layout::home(*key, NODES) == NodeId(0))
        .expect("each node is home of some key")
}

fn layout() -> Layout {
    Layout::dense(&[(key().0 + 1, 1)]).expect("a legal layout")
}

/// The engines of both nodes; frames arrive at once, in order.
struct Engines {
    /// Each behind a pointer: loom's threads have small stacks.
    nodes: Vec<Box<Driver>>,
    around: Around,
}

/// The surroundings of the engines: there are no replicas, so no key is dirty.
#[derive(Default)]
struct Around {
    /// The node that is fed.
    node: NodeId,
    frames: VecDeque<(NodeId, NodeId, Message)>,
    waiters: BTreeMap<OpId, Waiter<i64>>,
    /// True once the peer's localize is done.
    localized: bool,
}

impl Host<i64> for Around {
    fn take_dirty(&mut self, _keys: &mut Vec<Key>) {}

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.frames.push_back((self.node, to, message));
    }

    fn tell(&mut self, event: Event<i64>) {
        match event {
            Event::Done { op, values } if self.node == NodeId(0) => {
                self.waiters.remove(&op).expect("an operation ends once").tell(Ok(values));
            }
            Event::Done { .. } => self.localized = true,
            event => panic!("{event:?}"),
        }
    }
}

impl Engines {
    fn new(stores: [Keeper; NODES]) -> Self {
        let mut id = 0;
        let nodes = stores.into_iter().map(|store| {
            let config = NodeConfig::new(NodeId(id), NODES, 1);
            id += 1;
            let initial = Arc::new(|_: Key, _: &mut [i64]| ());
            let policy = System::Lapse.policy(1);
            let engine = Engine::new(config, layout(), store, policy, initial)
                .expect("a legal configuration");
            engine.populate();
            Box::new(Driver::new(engine))
        });
        Self { nodes: nodes.collect(), around: Around::default() }
    }

    /// Feeds node `to` and records its messages and notifications. Returns its next deadline.
    fn feed(&mut self, to: NodeId, now: Instant, input: Input<'_, i64>) -> Option<Instant> {
        let node = &mut self.nodes[to.index()];
        self.around.node = to;
        node.feed(now, input, &mut self.around).expect("nobody errs");
        node.until()
    }

    fn deliver(&mut self, now: Instant) {
        while let Some((from, to, message)) = self.around.frames.pop_front() {
            self.feed(to, now, Input::Message(from, message));
        }
    }
}

/// A worker pushes and pulls twice while a peer localizes the key.
#[test]
fn a_worker_reads_its_own_pushes_while_the_key_leaves() {
    let outcomes = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let seen = Arc::clone(&outcomes);
    loom::model(move || {
        let stores = [(); NODES].map(|()| Arc::new(DenseStore::<i64>::new(&layout())));
        let bed = Arc::new(Bed::default());
        let wake = Arc::clone(&bed);
        let node = ModelNode::new(layout(), Arc::clone(&stores[0]), 1, move || wake.wake());
        let mut engines = Engines::new(stores.clone());

        // The peer's request is on its way when the worker begins.
        let localize = OpBody::Localize { keys: vec![key()] };
        let begin = Op { id: OpId(0), worker: W0, body: localize };
        let now = engines.feed(NodeId(1), Instant::ZERO, Input::Op(begin)).expect("a round is due");
        engines.feed(NodeId(1), now, Input::Timeout(&[Clock(0)]));
        assert_eq!(engines.around.frames.len(), 1);

        let mut worker = node.worker(W0);
        let worker = thread::spawn(move || {
            for pushed in 1..=2 {
                worker.push(&[key()], &[1]).expect("the cluster runs");
                let mut value = [0];
                worker.pull(&[key()], &mut value).expect("the cluster runs");
                assert_eq!(value, [pushed], "a worker reads its own pushes");
            }
        });
        engines.deliver(now);
        let mut pushes = 0;
        for op in 1.. {
            let (commands, dirty) = node.take();
            assert!(dirty.is_empty(), "nobody holds a replica");
            let mut over = false;
            for (nth, command) in commands.into_iter().enumerate() {
                let Command::Op(waiter, worker, body) = command else { panic!("no intents here") };
                over |= body == OpBody::End;
                pushes += usize::from(matches!(body, OpBody::Push { .. }));
                let id = OpId(op * 10 + nth as u64);
                engines.around.waiters.insert(id, waiter);
                engines.feed(NodeId(0), now, Input::Op(Op { id, worker, body }));
                engines.deliver(now);
            }
            if over {
                break;
            }
            if node.doze_off() {
                bed.rest();
            }
            node.get_up();
        }
        worker.join().expect("the worker is done");
        assert!(engines.around.localized, "the peer got the key");
        stores[0].with_slot(key(), |slot| assert_eq!(slot.packed.state(), State::None));
        stores[1].with_slot(key(), |slot| {
            assert_eq!(
                (slot.packed.state(), &*slot.value),
                (State::Main, &[2][..]),
                "each push counts once"
            );
        });
        seen[pushes].fetch_add(1, Relaxed);
    });
    assert!(
        outcomes.iter().all(|times| times.load(Relaxed) > 0),
        "0, 1, 2 pushes elsewhere: {outcomes:?}"
    );
}
