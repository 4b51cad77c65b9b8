//! Target `inputs`: whatever callers and peers feed an engine, it neither panics nor hangs, refuses
//! without changing anything, ends no operation twice, leaves none waiting once a peer is lost, and
//! only sends what its receiver can read (protocol, "What must hold", invariant 11).
//!
//! One engine among three nodes; the input plays its workers, its clock and both peers, which
//! answer requests sensibly, make messages up, or spoil them. Invented messages may well lose
//! updates: the lockstep cluster checks the duties of honest peers.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapm_core::clock::Tick;
use adapm_core::config::NodeConfig;
use adapm_core::driver::{Driver, Host};
use adapm_core::engine::{Engine, Event, Input, Intent, KeyView, Op, OpBody, OpId, SignalId};
use adapm_core::error::{Fault, InputError};
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::slot::Pushed;
use adapm_core::store::Store;
use adapm_core::wire::{Message, shape};
use adapm_core::{ChannelId, Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::arb::{self, Choices, Space};
use adapm_verify::{Recorder, ReferenceStore};

use crate::peer;

const NODES: usize = 3;
const WORKERS: usize = 2;
const SELF: NodeId = NodeId(0);

/// More outputs than this after one input are a hang.
const OUTPUTS_MAX: usize = 10_000;

/// Runs the steps that `bytes` choose. Returns true if the engine took a message.
pub fn inputs(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let mut play = Play::new(&mut choices);
    while !choices.is_exhausted() {
        play.step(&mut choices);
        let waiting = &play.unfinished;
        assert!(
            !play.bereaved || waiting.is_empty(),
            "after a loss nothing waits, but {waiting:?} does"
        );
    }
    play.taken > 0
}

/// The engine and the state of the surrounding world.
struct Play {
    node: Driver<Arc<ReferenceStore<i64>>, SystemPolicy>,
    around: Around,
    store: Arc<ReferenceStore<i64>>,
    layout: Layout,
    now: Instant,
    clocks: [Clock; WORKERS],
    ops: u64,
    unfinished: BTreeSet<OpId>,
    signalled: Vec<Intent>,
    heard: Vec<(NodeId, Message)>,
    taken: u32,
    /// True once a peer was lost: from then on every operation ends with the input that begins it.
    bereaved: bool,
}

/// The surroundings of the engine, with its outputs of the last step.
#[derive(Default)]
struct Around {
    said: Recorder<i64>,
    outputs: usize,
}

impl Host<i64> for Around {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        self.said.take_dirty(keys);
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.count();
        self.said.transmit(to, message);
    }

    fn tell(&mut self, event: Event<i64>) {
        self.count();
        self.said.tell(event);
    }
}

impl Around {
    fn count(&mut self) {
        self.outputs += 1;
        assert!(self.outputs <= OUTPUTS_MAX, "an input has more than {OUTPUTS_MAX} outputs");
    }

    /// Returns the outputs since the last call.
    fn take_said(&mut self) -> Recorder<i64> {
        self.outputs = 0;
        std::mem::take(&mut self.said)
    }
}

/// The state that an error must leave unchanged.
#[derive(Debug, PartialEq)]
struct Snapshot {
    keys: Vec<(KeyView, Vec<i64>, Vec<i64>)>,
    side_entries: usize,
    at_rest: bool,
}

impl Play {
    fn new(choices: &mut Choices<'_>) -> Self {
        let layout = Layout::dense(&[(6, 1), (2, 3)]).expect("the layout is legal");
        let store = Arc::new(ReferenceStore::new(&layout));
        let system = System::ALL[choices.below(System::ALL.len() as u64) as usize];
        let mut config = NodeConfig::new(SELF, NODES, WORKERS);
        config.location_caches = choices.flag();
        config.parked_max = 4;
        config.grants_max = 2;
        config.unresponsive_nanos = Some(6_000_000);
        let initial = Arc::new(|key: Key, value: &mut [i64]| value.fill(key.0 as i64));
        let node = Engine::new(
            config,
            layout.clone(),
            Arc::clone(&store),
            system.policy(WORKERS),
            initial,
        )
        .expect("the configuration is legal");
        node.populate();
        Self {
            node: Driver::new(node),
            around: Around::default(),
            store,
            layout,
            now: Instant::ZERO,
            clocks: [Clock(0); WORKERS],
            ops: 0,
            unfinished: BTreeSet::new(),
            signalled: Vec::new(),
            heard: Vec::new(),
            taken: 0,
            bereaved: false,
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(32) {
            0..2 => self.hear(choices, |space, choices| space.message::<i64>(choices)),
            2..4 => self.hear(choices, |space, choices| {
                let mut message = space.message::<i64>(choices);
                arb::spoil(&mut message, choices);
                message
            }),
            4..10 => self.hear(choices, peer::unasked),
            10..17 => self.answer(choices),
            17..21 => self.operate(choices),
            21..25 => self.signal(choices),
            25..29 => self.pass_time(choices),
            29..31 => self.push(choices),
            _ => {
                let number = choices.below(16) as u16;
                let node = NodeId(number % 8);
                self.feed(if number < 8 { Input::PeerLost(node) } else { Input::Heard(node) });
            }
        }
    }

    /// Delivers a message made up by `compose` from a peer.
    fn hear(
        &mut self,
        choices: &mut Choices<'_>,
        compose: fn(&Space<'_>, &mut Choices<'_>) -> Message,
    ) {
        let message = compose(&space(&self.layout), choices);
        let from = NodeId([1, 1, 1, 2, 2, 2, 0, 3][choices.below(8) as usize]);
        self.hear_from(from, message, choices);
    }

    /// Lets a peer answer the oldest message that waits for an answer, each entry by choice.
    fn answer(&mut self, choices: &mut Choices<'_>) {
        if self.heard.is_empty() {
            return;
        }
        let (from, message) = self.heard.remove(0);
        if let Some(answer) = peer::answer(message, &space(&self.layout), choices) {
            self.hear_from(from, answer, choices);
        }
    }

    /// Gives the message a value block, mostly of the length it needs, and feeds it.
    fn hear_from(&mut self, from: NodeId, mut message: Message, choices: &mut Choices<'_>) {
        if let Err(Fault::BlockLen { expected, .. }) = self.measure(&message)
            && choices.below(32) != 31
        {
            message.values.resize(expected);
        }
        self.feed(Input::Message(from, message));
    }

    fn operate(&mut self, choices: &mut Choices<'_>) {
        let keys: Vec<Key> = (0..choices.below(4)).map(|_| Key(choices.below(9))).collect();
        let elements: usize = keys.iter().filter_map(|key| self.layout.value_len(*key)).sum();
        let elements = if choices.below(8) == 0 { choices.below(16) as usize } else { elements };
        let values = vec![choices.below(4) as i64; elements];
        let body = match choices.below(14) {
            0..3 => OpBody::Pull { keys },
            3..6 => OpBody::Push { keys, updates: values },
            6..8 => OpBody::Set { keys, values },
            8 => OpBody::Localize { keys },
            9 => OpBody::WaitSync,
            10 => OpBody::Barrier,
            11 => OpBody::Renew { keys },
            12 => {
                let tick = Tick::new(choices.below(3), choices.below(8));
                OpBody::Tick { tick, waits: choices.flag() }
            }
            _ => {
                let rare =
                    [OpBody::Quiesce, OpBody::End, OpBody::Leave, OpBody::Freeze, OpBody::Thaw];
                rare[choices.below(rare.len() as u64) as usize].clone()
            }
        };
        let id = OpId(self.ops);
        self.ops += 1;
        let worker = WorkerId(choices.below(8).min(2) as u16);
        self.unfinished.insert(id);
        if !self.feed(Input::Op(Op { id, worker, body })) {
            self.unfinished.remove(&id);
        }
    }

    /// Signals, or takes back a signal, which may never have been sent.
    fn signal(&mut self, choices: &mut Choices<'_>) {
        if choices.below(4) == 0 && !self.signalled.is_empty() {
            let at = choices.below(self.signalled.len() as u64) as usize;
            let intent = self.signalled.swap_remove(at);
            self.feed(Input::TakeBack(intent));
            return;
        }
        let worker = choices.below(8).min(2) as usize;
        let keys: Vec<Key> = (0..choices.below(4)).map(|_| Key(choices.below(9))).collect();
        let clock = self.clocks.get(worker).copied().unwrap_or(Clock(0));
        let start = clock + choices.below(64);
        let clocks = start..start + choices.below(8);
        let intent = Intent {
            worker: WorkerId(worker as u16),
            id: SignalId(choices.below(3)),
            keys,
            clocks,
        };
        if choices.below(16) == 0 {
            self.feed(Input::TakeBack(intent));
        } else if self.feed(Input::Intent(intent.clone())) {
            self.signalled.push(intent);
        }
    }

    fn pass_time(&mut self, choices: &mut Choices<'_>) {
        for clock in &mut self.clocks {
            *clock = if choices.below(256) == 255 {
                Clock::INFINITY
            } else {
                *clock + choices.below(16)
            };
        }
        self.now = self.now.plus_nanos(choices.below(1 << 24));
        let clocks = self.clocks;
        let given = if choices.below(32) == 31 { &clocks[1..] } else { &clocks[..] };
        self.feed(Input::Timeout(given));
    }

    /// Pushes by a worker through shared memory, like the runtime's fast path.
    fn push(&mut self, choices: &mut Choices<'_>) {
        let key = Key(choices.below(8));
        let update = vec![1_i64; self.store.value_len(key)];
        if self.store.with_slot(key, |mut slot| slot.push(&update)) == Pushed::Dirtied {
            self.around.said.dirty.push(key);
            self.node.look_at_dirty_keys(&mut self.around);
            self.take_said();
        }
    }

    /// Feeds one input and drains the outputs. Returns true if the engine took it.
    fn feed(&mut self, input: Input<'_, i64>) -> bool {
        let before = self.snapshot();
        let is_message = matches!(input, Input::Message(..));
        let is_loss = matches!(input, Input::PeerLost(_));
        let verdict = self.node.feed(self.now, input, &mut self.around);
        self.bereaved |= is_loss && verdict.is_ok();
        if let Err(error) = &verdict {
            assert_eq!(self.snapshot(), before, "an error changes nothing: {error}");
            assert_eq!(
                is_message,
                matches!(error, InputError::Peer(_)),
                "the error blames the wrong side: {error}"
            );
            assert!(
                self.around.said.is_silent(),
                "an error says nothing to anybody: {:?}",
                self.around.said
            );
        }
        self.take_said();
        self.taken += u32::from(is_message && verdict.is_ok());
        verdict.is_ok()
    }

    fn take_said(&mut self) {
        let Recorder { sent, events, .. } = self.around.take_said();
        for (to, message) in sent {
            assert!(to != SELF && to.index() < NODES, "a message to {to}");
            assert_eq!(
                self.measure(&message),
                Ok(()),
                "a message that no receiver takes: {message:?}"
            );
            self.heard.push((to, message));
        }
        for event in events {
            if let Event::Done { op, .. } | Event::Failed { op, .. } = event {
                assert!(self.unfinished.remove(&op), "{op:?} ends twice, or was never begun");
            }
        }
    }

    fn measure(&self, message: &Message) -> Result<(), Fault> {
        shape::check::<i64>(message, &self.layout, NODES, ChannelId(0), 1)
    }

    fn snapshot(&self) -> Snapshot {
        let keys = (0..self.layout.keys().end.0).map(|key| {
            let key = Key(key);
            let values =
                self.store.with_slot(key, |slot| (slot.value.to_vec(), slot.delta.to_vec()));
            (self.node.engine().inspect(key), values.0, values.1)
        });
        Snapshot {
            keys: keys.collect(),
            side_entries: self.node.engine().side_entries(),
            at_rest: self.node.engine().is_at_rest(),
        }
    }
}

/// Returns the space of the peers' messages.
fn space(layout: &Layout) -> Space<'_> {
    Space { layout, nodes: NODES, channel: ChannelId(0), channels: 1 }
}
