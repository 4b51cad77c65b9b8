//! Conservation over real connections that are reset at random bytes all the time: in the end every
//! key has its initial value plus every push, once.
//!
//! The proxies count their faults, and the tests assert that there were many. `cargo test --
//! --nocapture` shows the figures.

#[path = "../../../adapm-transport/tests/support/mod.rs"]
mod support;

#[path = "../support/channels.rs"]
mod channels;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use adapm_core::error::OpError;
use adapm_core::link::LinkConfig;
use adapm_core::{ChannelId, Key, Layout, NodeId};
use adapm_runtime::{Builder, Nodes, Random, System, Worker};
use adapm_transport::net::{Address, Kind, Net, NetConfig, Token};
use adapm_verify::silence::Silence;

use support::{Counts, Faults, Proxy};

const NODES: usize = 3;
const WORKERS: usize = 2;
const KEYS: u64 = 40;
const LENGTH: usize = 3;

type IntWorker = Worker<i64>;

/// A network whose connections all go through proxies.
#[derive(Clone)]
struct Storm {
    faults: Faults,
    proxies: Arc<Mutex<Vec<Proxy>>>,
}

impl Storm {
    fn new(faults: Faults) -> Self {
        Self { faults, proxies: Arc::default() }
    }

    /// Returns the endpoints of one channel.
    fn network(&self, channel: ChannelId, nodes: usize) -> Vec<Net> {
        let listen = |node: usize| {
            let mut config =
                NetConfig::new(NodeId(u16::try_from(node).expect("a few nodes")), nodes);
            config.channel = channel.0;
            config.token =
                Some(Token::new(b"0123456789abcdef0123456789abcdef").expect("long enough"));
            // Long enough for a busy machine not to look like a dead one.
            config.link = LinkConfig::with_dead_after(Duration::from_secs(30));
            Net::listen(config).expect("loopback has a free port")
        };
        let mut nets: Vec<Net> = (0..nodes).map(listen).collect();
        let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut addresses = Vec::new();
        for net in &nets {
            let seed = self.faults.seed ^ (proxies.len() as u64) << 32;
            let target = net.address().socket().expect("TCP has a socket address");
            let proxy = Proxy::start(target, Faults { seed, ..self.faults.clone() });
            addresses.push(Address::at(Kind::Tcp, proxy.address()));
            proxies.push(proxy);
        }
        for net in &mut nets {
            net.connect(&addresses);
        }
        nets
    }

    fn counts(&self) -> Counts {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Proxy::counts).sum()
    }

    fn calm(&self) {
        self.proxies.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Proxy::calm);
    }
}

/// State shared with all workers.
#[derive(Default)]
struct Weather {
    is_enough: AtomicBool,
    operations: AtomicU64,
}

/// Does random operations until the storm has lasted long enough. Returns the sum pushed to each
/// key.
fn work(worker: &mut IntWorker, weather: &Weather) -> Vec<[i64; LENGTH]> {
    let mut random =
        Random::new(u64::from(worker.node().0) << 32 | u64::from(worker.id().0) | 1 << 60);
    let mut pushed = vec![[0; LENGTH]; KEYS as usize];
    let mut values = vec![0; 3 * LENGTH];
    while !weather.is_enough.load(Ordering::Relaxed) {
        // Some keys are hot, so that they are replicated, and some move.
        let first = if random.below(3) == 0 { random.below(4) } else { random.below(KEYS) };
        let keys = [first, (first + 7) % KEYS, (first + 19) % KEYS].map(Key);
        match random.below(8) {
            0 => {
                let clock = worker.clock();
                worker.intent(&keys, clock + 1..clock + 6).expect("a window");
            }
            1 => match worker.localize(&keys[..1]) {
                // Not under systems whose copies come by access.
                Ok(()) | Err(OpError::Immovable) => {}
                Err(error) => panic!("a known key: {error}"),
            },
            2 | 3 => worker.pull(&keys, &mut values).expect("known keys"),
            choice => {
                let updates: Vec<i64> =
                    (0..3 * LENGTH).map(|_| random.below(1 << 20) as i64).collect();
                for (key, update) in keys.iter().zip(updates.chunks(LENGTH)) {
                    let total = &mut pushed[key.0 as usize];
                    total.iter_mut().zip(update).for_each(|(total, update)| *total += update);
                }
                if choice == 4 {
                    drop(worker.push_async(&keys, &updates).expect("known keys"));
                } else {
                    worker.push(&keys, &updates).expect("known keys");
                }
            }
        }
        worker.advance_clock();
        weather.operations.fetch_add(1, Ordering::Relaxed);
    }
    worker.quiesce().expect("no failure");
    pushed
}

fn initial(key: Key, value: &mut [i64]) {
    value.iter_mut().zip(1..).for_each(|(value, at)| *value = 1_000_000 * at + key.0 as i64);
}

/// Runs `system` in a storm of these `faults` until `is_enough`, and checks every key.
fn conserves(system: System, faults: Faults, is_enough: impl Fn(&Counts) -> bool + Send) {
    let storm = Storm::new(faults);
    let network = storm.clone();
    let layout = Layout::dense(&[(KEYS, LENGTH)]).expect("a valid layout");
    let cluster = Builder::<i64>::new(layout)
        .nodes(Nodes::over(NODES, move |channel, nodes| network.network(channel, nodes)))
        .workers(WORKERS)
        .channels(channels::draw())
        .system(system)
        .initial(initial)
        .build()
        .expect("a valid cluster");
    let weather = Weather::default();
    let pushed = thread::scope(|scope| {
        let (weather, storm) = (Arc::new(weather), &storm);
        let for_watch = Arc::clone(&weather);
        scope.spawn(move || {
            let mut silence = Silence::new();
            // Bytes flow even without faults.
            let faults = || Counts { bytes: 0, ..storm.counts() };
            while !is_enough(&storm.counts()) && !silence.is_too_long(faults()) {
                thread::park_timeout(Duration::from_millis(5));
            }
            for_watch.is_enough.store(true, Ordering::Relaxed);
        });
        let pushed = cluster.run(|mut worker| work(&mut worker, &weather)).expect("no failure");
        println!(
            "{system}: {:?}, {} operations",
            storm.counts(),
            weather.operations.load(Ordering::Relaxed)
        );
        pushed
    });
    assert_eq!(pushed.len(), NODES * WORKERS);
    let mut keys = 0;
    let visited = cluster.visit_main(|key, value| {
        let mut expected = vec![0; LENGTH];
        initial(key, &mut expected);
        for worker in &pushed {
            let pushed = &worker[key.0 as usize];
            expected.iter_mut().zip(pushed).for_each(|(expected, pushed)| *expected += pushed);
        }
        assert_eq!(value, expected, "{system}: updates of {key} were lost or doubled");
        keys += 1;
    });
    visited.expect("the cluster is quiet");
    assert_eq!(keys, KEYS);
    let stats = cluster.stats();
    assert!(stats.messages_sent > 100, "{system}: nodes have hardly talked: {stats:?}");
    storm.calm();
    cluster.shutdown().expect("no failure");
}

#[test]
fn hundreds_of_resets_lose_and_double_no_update() {
    let faults = Faults { cut_after: Some(1..30_000), chunk_max: 500, ..Faults::none(11) };
    let (resets, inside) = (AtomicU64::new(0), AtomicU64::new(0));
    conserves(System::Adapm, faults, |counts| {
        resets.store(counts.resets, Ordering::Relaxed);
        inside.store(counts.inside_body, Ordering::Relaxed);
        counts.resets >= 500 && counts.inside_body >= 50
    });
    let (resets, inside) = (resets.into_inner(), inside.into_inner());
    assert!(resets >= 500 && inside >= 50, "{resets} resets, {inside} of them inside a frame");
}

#[test]
fn every_system_conserves_updates_under_resets() {
    let systems: Vec<(System, u64)> = System::ALL.into_iter().zip(20..).collect();
    // Two at a time, as nodes mostly wait for connections.
    for systems in systems.chunks(2) {
        thread::scope(|scope| {
            for &(system, seed) in systems {
                // After most handshakes: each failure delays the next, and those of the test above
                // suffice.
                let faults = Faults { cut_after: Some(200..20_000), ..Faults::none(seed) };
                scope.spawn(move || conserves(system, faults, |counts| counts.resets >= 60));
            }
        });
    }
}

#[test]
fn all_faults_together_lose_and_double_no_update() {
    let faults = Faults {
        cut_after: Some(1..60_000),
        reset_percent: 60,
        chunk_max: 300,
        delay_max: Duration::from_micros(500),
        flip_every: Some(60_000),
        hold: Some(Duration::from_millis(20)),
        ..Faults::none(12)
    };
    conserves(System::Adapm, faults, |counts| {
        counts.resets >= 60 && counts.ends >= 30 && counts.flips >= 20 && counts.holds >= 5
    });
}
