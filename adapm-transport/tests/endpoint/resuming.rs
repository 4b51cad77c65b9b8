//! Links over connections that are cut at random bytes: every frame once and in order.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{Frame, Received, SendError, Transport};
use adapm_transport::net::{Address, Net, NetConfig};
use adapm_verify::rng::Rng;
use adapm_verify::silence::Silence;

use crate::cluster::Cluster;
use crate::support::{Counts, Faults, Proxy};

/// Returns frame `number`: its head holds the number, which also determines its length.
fn numbered(number: u64) -> Frame {
    let mut rng = Rng::new(number);
    let mut frame = Frame { head: number.to_le_bytes().to_vec(), ..Frame::default() };
    let values = match number % 20 {
        0 => rng.within(0..100_000),
        _ => rng.within(0..600),
    };
    frame.values.resize(values);
    frame.values.bytes_mut().fill(number as u8);
    frame
}

/// Sends `frames` frames each way between two nodes, through a proxy with `faults`.
fn run(faults: Faults, frames: u64) -> (Counts, [u64; 2]) {
    let mut cluster = Cluster::of(apart());
    let socket = cluster.end(0).address().socket().expect("a network address");
    let proxy = Proxy::start(socket, faults);
    cluster.end(1).connect(&[Some(Address::Tcp(proxy.address()))]);
    let mut sent = [0; 2];
    let mut received = [0; 2];
    let mut frame = Frame::default();
    let mut silence = Silence::new();
    while received != [frames; 2] {
        let is_over = silence.is_too_long((sent, received));
        assert!(!is_over, "{sent:?} sent, {received:?} received: {:?}", proxy.counts());
        for at in 0..2 {
            let end = cluster.end(at);
            while sent[at] < frames {
                let mut next = numbered(sent[at]);
                match end.send(NodeId(1 - at as u16), &mut next) {
                    Ok(()) => sent[at] += 1,
                    Err(SendError::Full) => break,
                    Err(SendError::Transport(error)) => panic!("{error}"),
                }
            }
            let mut wait = Duration::from_millis(1);
            loop {
                match end.recv(Some(wait), &mut frame).expect("no refusal") {
                    Received::Frame(_) => {
                        assert!(
                            frame == numbered(received[at]),
                            "frame {} lost, doubled or changed",
                            received[at]
                        );
                        received[at] += 1;
                    }
                    Received::Woken => {}
                    Received::TimedOut => break,
                    Received::Lost(node, loss) => {
                        panic!("node {node} lost: {loss}; {:?}", proxy.counts())
                    }
                }
                wait = Duration::ZERO;
            }
        }
    }
    let resumed = [0, 1].map(|at| cluster.end(at).stats().resumes);
    (proxy.counts(), resumed)
}

/// Returns two endpoints that do not know each other.
fn apart() -> Vec<Net> {
    let listen = |node| {
        let mut config = NetConfig::new(NodeId(node), 2);
        // A corrupted length is noticed when the peer is suspected, after a fifth of this.
        config.link = LinkConfig::with_dead_after(Duration::from_secs(2));
        Net::listen(config).expect("a free port")
    };
    vec![listen(0), listen(1)]
}

#[test]
fn cuts_at_any_byte_lose_and_double_nothing() {
    let faults = Faults { cut_after: Some(100..200_000), reset_percent: 70, ..Faults::none(1) };
    let (counts, resumed) = run(faults, 6_000);
    assert!(resumed.iter().all(|resumed| *resumed >= 5), "{resumed:?} resumed, {counts:?}");
    assert!(counts.inside >= 3, "{counts:?}");
}

#[test]
fn splits_and_delays_change_nothing() {
    let faults = Faults { chunk_max: 700, delay_max: Duration::from_millis(1), ..Faults::none(2) };
    let (_, resumed) = run(faults, 2_000);
    assert_eq!(resumed, [0, 0]);
}

#[test]
fn corrupt_bytes_are_noticed_and_sent_again() {
    let faults = Faults { flip_every: Some(200_000), ..Faults::none(3) };
    let (counts, resumed) = run(faults, 3_000);
    assert!(
        counts.flips > 3 && resumed.iter().any(|resumed| *resumed > 2),
        "{resumed:?} resumed, {counts:?}"
    );
}
