//! Nodes that send each other numbered frames of all sizes through proxies, and check every
//! received byte.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};
use adapm_transport::net::{Address, Kind, Net, NetConfig};
use adapm_verify::rng::Rng;
use adapm_verify::silence::{Silence, patience};

use crate::support::{Counts, Faults, Proxy, from_unix, to_unix};

/// State shared by the nodes: the numbers of sent and received frames, by sender and receiver.
struct Tally {
    nodes: usize,
    sent: Vec<AtomicU64>,
    received: Vec<AtomicU64>,
    /// True once no node sends any more.
    drains: AtomicBool,
    ends: AtomicBool,
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) frames: u64,
    pub(crate) resumes: u64,
    /// Frames that were written again, as their first connection had ended.
    pub(crate) repeated: u64,
}

/// Lets three nodes of `kind` talk through proxies with these `faults` until `is_enough`; then the
/// faults end, and all sent frames must arrive.
pub(crate) fn run(kind: Kind, faults: &Faults, is_enough: impl Fn(&Counts) -> bool) -> Outcome {
    const NODES: usize = 3;
    let mut nets: Vec<Net> = (0..NODES)
        .map(|node| Net::listen(config(node, NODES, kind)).expect("a free port"))
        .collect();
    let proxies: Vec<Proxy> = (0_u64..)
        .zip(&nets)
        .map(|(node, net)| {
            Proxy::start(socket(net), Faults { seed: faults.seed ^ (node << 32), ..faults.clone() })
        })
        .collect();
    let folder = tempfolder(kind);
    let address = |(node, proxy): (usize, &Proxy)| {
        let Some(folder) = &folder else { return Address::at(kind, proxy.address()) };
        let path = folder.join(node.to_string());
        from_unix(&path, proxy.address());
        Some(Address::Unix(path))
    };
    let addresses: Vec<Option<Address>> = proxies.iter().enumerate().map(address).collect();
    let none = || (0..NODES * NODES).map(|_| AtomicU64::new(0)).collect();
    let (drains, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    let tally = Arc::new(Tally { nodes: NODES, sent: none(), received: none(), drains, ends });
    let (sender, done) = mpsc::channel();
    for (node, mut net) in nets.drain(..).enumerate() {
        net.connect(&addresses);
        let (tally, sender) = (Arc::clone(&tally), sender.clone());
        let rng = Rng::new(faults.seed.wrapping_add(node as u64));
        thread::spawn(move || {
            let stats = Speaker { net, node, rng, tally }.run();
            let _ = sender.send(stats);
        });
    }
    drop(sender);
    let counts = || proxies.iter().map(Proxy::counts).sum::<Counts>();
    let said = || format!("{:?}, {} frames", counts(), tally.frames());
    // Bytes flow even without faults.
    let faults = || format!("{:?}", Counts { bytes: 0, ..counts() });
    wait(&done, said, faults, || is_enough(&counts()));
    tally.drains.store(true, Ordering::SeqCst);
    proxies.iter().for_each(Proxy::calm);
    wait(&done, said, said, || tally.is_settled());
    tally.ends.store(true, Ordering::SeqCst);
    let stats: Vec<_> =
        (0..NODES).map(|_| done.recv_timeout(patience()).expect("each node ends")).collect();
    folder.into_iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
    Outcome {
        counts: counts(),
        frames: tally.frames(),
        resumes: stats.iter().map(|stats| stats.0).sum(),
        repeated: stats.iter().map(|stats| stats.1).sum::<u64>() - tally.frames(),
    }
}

/// Waits for `is_there` while `progress` moves; a node that ends before has failed, and `said`
/// describes its progress.
fn wait(
    done: &mpsc::Receiver<(u64, u64)>,
    said: impl Fn() -> String,
    progress: impl Fn() -> String,
    is_there: impl Fn() -> bool,
) {
    let mut silence = Silence::new();
    while !is_there() {
        match done.recv_timeout(Duration::from_millis(5)) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            ended => panic!("a node has failed ({ended:?}): {}", said()),
        }
        assert!(!silence.is_too_long(progress()), "nothing moves: {}", said());
    }
}

fn config(node: usize, nodes: usize, kind: Kind) -> NetConfig {
    let mut config = NetConfig::new(NodeId(u16::try_from(node).expect("a few nodes")), nodes);
    config.kind = kind;
    config.token = Some(adapm_transport::testing::token(5));
    // Long enough for a busy machine not to look like a dead one.
    config.link = LinkConfig::with_dead_after(Duration::from_secs(30));
    config.link.window_bytes = 1 << 20;
    config
}

/// Returns the address at which a proxy reaches it.
fn socket(net: &Net) -> SocketAddr {
    match net.address() {
        Address::Unix(path) => to_unix(path.clone()),
        address => address.socket().expect("all others have one"),
    }
}

/// Creates a folder for sockets, if nodes of `kind` need one.
fn tempfolder(kind: Kind) -> Option<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name =
        format!("adapm-resets-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    (kind == Kind::Unix).then(|| fs::create_dir_all(&folder).map(|()| folder).expect("a folder"))
}

/// One node.
struct Speaker {
    net: Net,
    node: usize,
    rng: Rng,
    tally: Arc<Tally>,
}

impl Speaker {
    fn run(mut self) -> (u64, u64) {
        let mut frame = Frame::default();
        while !self.tally.ends.load(Ordering::SeqCst) {
            if !self.tally.drains.load(Ordering::SeqCst) {
                self.speak(&mut frame);
            }
            loop {
                match self
                    .net
                    .recv(Some(Duration::from_millis(1)), &mut frame)
                    .expect("no peer is refused")
                {
                    Received::Frame(from) => self.check(from, &frame),
                    Received::Woken => {}
                    Received::TimedOut => break,
                    Received::Lost(node, loss) => panic!("{node} is lost: {loss}"),
                }
                // A node that only listens never speaks.
                if self.rng.chance(10) {
                    break;
                }
            }
        }
        let stats = self.net.stats();
        self.net.leave(CloseReason::Finished);
        (stats.resumes, stats.frames_sent)
    }

    /// Sends a few frames to all other nodes.
    fn speak(&mut self, frame: &mut Frame) {
        for to in (0..self.tally.nodes).filter(|&to| to != self.node) {
            for _ in 0..self.rng.within(0..8) {
                let sent = &self.tally.sent[self.node * self.tally.nodes + to];
                let number = sent.load(Ordering::SeqCst);
                fill(frame, self.node, to, number);
                match self.net.send(NodeId(u16::try_from(to).expect("a few nodes")), frame) {
                    Ok(()) => sent.store(number + 1, Ordering::SeqCst),
                    Err(SendError::Full) => break,
                    Err(SendError::Transport(error)) => panic!("{error}"),
                }
            }
        }
    }

    fn check(&self, NodeId(from): NodeId, frame: &Frame) {
        let received = &self.tally.received[usize::from(from) * self.tally.nodes + self.node];
        let number = received.load(Ordering::SeqCst);
        let mut expected = Frame::default();
        fill(&mut expected, usize::from(from), self.node, number);
        assert!(
            *frame == expected,
            "frame {number} of node {from} to node {} is lost, doubled or changed",
            self.node
        );
        received.store(number + 1, Ordering::SeqCst);
    }
}

impl Tally {
    /// Returns true if all sent frames have arrived; only after the senders were told to stop.
    fn is_settled(&self) -> bool {
        self.sent
            .iter()
            .zip(&self.received)
            .all(|(sent, received)| sent.load(Ordering::SeqCst) == received.load(Ordering::SeqCst))
    }

    fn frames(&self) -> u64 {
        self.received.iter().map(|received| received.load(Ordering::SeqCst)).sum()
    }
}

/// Fills frame `number` from one node to another: its size and bytes follow from these numbers.
fn fill(frame: &mut Frame, from: usize, to: usize, number: u64) {
    let mut rng = Rng::new(number << 8 | (from << 4 | to) as u64);
    frame.clear();
    frame.head.extend_from_slice(&number.to_le_bytes());
    let head = rng.within(0..40);
    frame.head.extend((0..head).map(|_| rng.bits() as u8));
    let values = match rng.within(0..20) {
        0 => rng.within(0..20_000),
        1..8 => 0,
        _ => rng.within(0..600),
    };
    frame.values.resize(values);
    let start = rng.bits() as u8;
    frame
        .values
        .bytes_mut()
        .iter_mut()
        .zip(0_usize..)
        .for_each(|(byte, at)| *byte = start.wrapping_add((at % 251) as u8));
}
