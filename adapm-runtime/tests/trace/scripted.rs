//! Engines driven by hand, at times set by the test: every line of the file is known.

use std::collections::VecDeque;
use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::driver::Driver;
use adapm_core::engine::{Engine, Input, Intent, SignalId};
use adapm_core::home::HomeMap;
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::wire::Message;
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_runtime::trace::{TraceHead, Tracer};
use adapm_verify::{Recorder, ReferenceStore};

use crate::Page;

/// Engines whose messages arrive 10 us after they were sent, one after the other.
pub(crate) struct Stage {
    nodes: Vec<Driver<ReferenceStore<i64>, SystemPolicy>>,
    now: Instant,
    flying: VecDeque<(NodeId, NodeId, Message)>,
    pub(crate) tracer: Tracer,
    pub(crate) page: Page,
}

impl Stage {
    pub(crate) fn new(nodes: usize, system: System, keys: &[Key]) -> Self {
        let page = Page::default();
        let tracer =
            Tracer::new(page.clone(), keys.iter().map(|key| (*key, format!("number {}", key.0))));
        tracer.begin(&TraceHead {
            homes: HomeMap::scale(nodes),
            part: None,
            run: 0,
            system: system.name().to_owned(),
            origin: 5_000,
        });
        let layout = Layout::dense(&[(100, 2)]).expect("a sound layout");
        let engine = |node| {
            let (store, policy) = (ReferenceStore::new(&layout), system.policy(1));
            let config = NodeConfig::new(node, nodes, 1);
            let engine = Engine::new(config, layout.clone(), store, policy, Arc::new(|_, _| {}));
            let mut engine = engine.expect("a sound configuration");
            engine.populate();
            engine.set_observer(tracer.observer(node));
            Driver::new(engine)
        };
        let nodes = (0..nodes).map(|node| engine(NodeId(node as u16))).collect();
        Self { nodes, now: Instant::ZERO, flying: VecDeque::new(), tracer, page }
    }

    /// Returns the `nth` key whose home is `node`.
    pub(crate) fn key(nodes: usize, node: u16, nth: usize) -> Key {
        let home = |key: &Key| Layout::home(*key, nodes) == NodeId(node);
        (0..100).map(Key).filter(home).nth(nth).expect("each node is home of some of 100 keys")
    }

    /// Feeds `input` at `micros`, and delivers until no message is in flight.
    pub(crate) fn feed(&mut self, micros: u64, node: u16, input: Input<'_, i64>) {
        self.now = Instant::from_micros(micros);
        self.step(NodeId(node), input);
        while let Some((from, to, message)) = self.flying.pop_front() {
            self.now = self.now.plus_nanos(10_000);
            self.step(to, Input::Message(from, message));
        }
    }

    /// Runs a round of `node` at `micros`, with its worker's clock at `clock`.
    pub(crate) fn round(&mut self, micros: u64, node: u16, clock: u64) {
        self.feed(micros, node, Input::Timeout(&[Clock(clock)]));
    }

    pub(crate) fn intent(
        &mut self,
        micros: u64,
        node: u16,
        key: Key,
        clocks: std::ops::Range<u64>,
    ) {
        let clocks = Clock(clocks.start)..Clock(clocks.end);
        self.feed(
            micros,
            node,
            Input::Intent(Intent {
                worker: WorkerId(0),
                id: SignalId::default(),
                keys: vec![key],
                clocks,
            }),
        );
    }

    fn step(&mut self, node: NodeId, input: Input<'_, i64>) {
        let mut said = Recorder::default();
        self.nodes[node.index()].feed(self.now, input, &mut said).expect("the script is sound");
        self.flying.extend(said.sent.into_iter().map(|(to, message)| (node, to, message)));
    }
}

#[test]
fn every_line_of_a_scripted_run_is_known() {
    let (key, other) = (Stage::key(2, 0, 0), Stage::key(2, 0, 1));
    let mut stage = Stage::new(2, System::Adapm, &[key]);
    stage.tracer.mark_at(Instant::ZERO, "epoch\n1");
    // The only node with intent gets the main copy; nothing is written about untraced keys.
    stage.intent(900, 1, key, 0..2);
    stage.intent(900, 1, other, 0..2);
    stage.round(1_000, 1, 0);
    // The second gets a replica.
    stage.intent(1_900, 0, key, 0..2);
    stage.round(2_000, 0, 0);
    // The owner's intent expires first: the holder, the only one left, is handed the main copy with
    // its next request.
    stage.round(3_000, 1, 2);
    stage.round(4_000, 0, 1);
    stage.round(5_000, 0, 2);
    stage.tracer.end_at(Instant::from_micros(6_000));
    // Events after the end are not in the file.
    stage.intent(6_500, 0, key, 2..9);
    stage.round(7_000, 0, 2);
    assert_eq!(stage.tracer.finish().expect("memory takes all"), 10);
    let text = format!(
        "adapm trace 2\nnodes 2\nsystem adapm\norigin 5000\nkey {key} number {}\n\
         # nanoseconds key node event\n\
         0 {key} n0 main-arrived\n\
         0 mark epoch 1\n\
         1000000 {key} n1 intent-active\n\
         1010000 {key} n0 main-left n1\n\
         1020000 {key} n1 main-arrived\n\
         2000000 {key} n0 intent-active\n\
         2020000 {key} n0 replica-set-up n1\n\
         3000000 {key} n1 intent-expired\n\
         4010000 {key} n1 main-left n0\n\
         4020000 {key} n0 main-arrived\n\
         5000000 {key} n0 intent-expired\n\
         6000000 end\n",
        key.0
    );
    assert_eq!(stage.page.text(), text);

    let trace = stage.page.read();
    assert!(trace.is_complete() && trace.nodes() == 2 && trace.system() == "adapm");
    let micros = |spans: &[adapm_runtime::trace::Span]| -> Vec<(u64, u64)> {
        spans.iter().map(|span| (span.start.nanos() / 1_000, span.end.nanos() / 1_000)).collect()
    };
    let spans = trace.spans(key);
    assert_eq!(micros(&spans[0].main), [(0, 1_010), (4_020, 6_000)]);
    assert_eq!(micros(&spans[0].replica), [(2_020, 4_020)]);
    assert_eq!(micros(&spans[0].intent), [(2_000, 5_000)]);
    assert_eq!(micros(&spans[1].main), [(1_020, 4_010)]);
    assert_eq!(micros(&spans[1].replica), []);
    assert_eq!(micros(&spans[1].intent), [(1_000, 3_000)]);
}

#[test]
fn a_replica_is_traced_until_its_holder_gives_it_up() {
    let key = Stage::key(2, 0, 0);
    let mut stage = Stage::new(2, System::AdapmNoRelocation, &[key]);
    stage.intent(900, 1, key, 0..3);
    stage.round(1_000, 1, 0);
    stage.round(2_000, 1, 3);
    stage.tracer.end_at(stage.now);
    let events: Vec<String> = stage.page.read().events().iter().map(ToString::to_string).collect();
    let expected = [
        "0 KEY n0 main-arrived",
        "1000000 KEY n1 intent-active",
        "1020000 KEY n1 replica-set-up n0",
        "2000000 KEY n1 intent-expired",
        "2000000 KEY n1 replica-dropped",
    ];
    assert_eq!(events, expected.map(|line| line.replace("KEY", &key.to_string())));
}
