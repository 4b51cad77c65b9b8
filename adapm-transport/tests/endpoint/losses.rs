//! Peers that fall silent, are started anew, or misbehave.

use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{Frame, Loss, Transport};
use adapm_transport::net::{HandshakeError, Net, NetConfig, NetError, PeerState};

use crate::cluster::{Cluster, DEAD_AFTER};

/// Starts node `node` of three again at a new address, knowing the addresses of the others.
fn restarted(cluster: &mut Cluster, node: u16) -> Net {
    let mut config = NetConfig::new(NodeId(node), 3);
    config.link = LinkConfig::with_dead_after(DEAD_AFTER);
    let mut net = Net::listen(config).expect("a free port");
    let address = |end: &Option<Net>| end.as_ref().map(|end| end.address().clone());
    let mut addresses: Vec<_> = cluster.ends.iter().map(address).collect();
    addresses[usize::from(node)] = None;
    net.connect(&addresses);
    net
}

#[test]
fn a_peer_that_is_silent_is_suspected_and_lost() {
    for silent in [0, 2] {
        let mut cluster = Cluster::new(3, |_| {});
        let kept = cluster.take(silent);
        let others: Vec<usize> = (0..3).filter(|at| *at != silent).collect();
        let node = silent as u16;
        cluster.until("it is suspected", |cluster| {
            others.iter().all(|at| cluster.state(*at, node) == PeerState::Suspect)
        });
        cluster.until("it is lost", |cluster| {
            others.iter().all(|at| cluster.state(*at, node) == PeerState::Lost)
        });
        for at in &others {
            assert_eq!(cluster.told[*at].losses.len(), 1);
            let (lost, Loss::Silent(silence)) = cluster.told[*at].losses[0] else {
                panic!("{:?}", cluster.told[*at])
            };
            assert!(lost == node && silence >= DEAD_AFTER, "{silence:?}");
        }
        cluster.check_all_ways();
        // It comes back too late and is notified of that.
        cluster.ends[silent] = Some(kept);
        cluster.until("it knows", |cluster| {
            !cluster.told[silent].errors.is_empty() || !cluster.told[silent].losses.is_empty()
        });
        for at in &others {
            assert_eq!(cluster.told[*at].losses.len(), 1, "a loss is told once");
        }
    }
}

#[test]
fn silence_shorter_than_the_dead_time_does_no_harm() {
    let mut cluster = Cluster::new(3, |_| {});
    for silent in [0, 1, 2] {
        let kept = cluster.take(silent);
        let others: Vec<usize> = (0..3).filter(|at| *at != silent).collect();
        cluster.until("it is suspected", |cluster| {
            others.iter().all(|at| cluster.state(*at, silent as u16) == PeerState::Suspect)
        });
        cluster.ends[silent] = Some(kept);
        cluster.until("all are up again", Cluster::are_all_up);
        cluster.check_all_ways();
    }
    assert!(cluster.told.iter().all(|told| told.losses.is_empty() && told.errors.is_empty()));
}

#[test]
fn time_in_which_an_endpoint_was_not_driven_is_not_silence_of_its_peers() {
    let mut cluster = Cluster::new(2, |_| {});
    // Both threads are blocked for longer than the dead time.
    thread::park_timeout(3 * DEAD_AFTER);
    cluster.pass(Duration::from_millis(100));
    assert!(cluster.told.iter().all(|told| told.losses.is_empty()), "{:?}", cluster.told);
    cluster.check_all_ways();
}

#[test]
fn a_process_that_was_started_anew_is_lost_and_told_so() {
    let mut cluster = Cluster::new(3, |_| {});
    // As after a loss of power: its sockets exist but stay silent.
    std::mem::forget(cluster.take(2));
    cluster.until("it is suspected", |cluster| {
        [0, 1].iter().all(|at| cluster.state(*at, 2) == PeerState::Suspect)
    });
    let mut anew = restarted(&mut cluster, 2);
    let mut frame = Frame::default();
    let error = (0..2_000).find_map(|_| {
        cluster.turn();
        anew.recv(Some(Duration::from_millis(1)), &mut frame).err()
    });
    let Some(NetError::Refused { refusal, .. }) = error else { panic!("{error:?}") };
    assert_eq!(refusal, HandshakeError::Restarted);
    drop(anew);
    cluster.until("the others know", |cluster| {
        [0, 1].iter().all(|at| cluster.told[*at].losses.len() == 1)
    });
    for at in [0, 1] {
        let (node, loss) = cluster.told[at].losses[0];
        // The one that was not dialed first may have run out of patience.
        assert!(
            node == 2 && matches!(loss, Loss::Restarted | Loss::Silent(_)),
            "{:?}",
            cluster.told[at]
        );
    }
    assert!((0..2).any(|at: usize| cluster.told[at].losses[0].1 == Loss::Restarted));
    cluster.check_all_ways();
}

#[test]
fn a_second_process_with_the_same_node_id_is_turned_away() {
    let mut cluster = Cluster::new(3, |_| {});
    let mut second = restarted(&mut cluster, 2);
    let mut frame = Frame::default();
    let error = (0..1_000).find_map(|_| {
        cluster.turn();
        second.recv(Some(Duration::from_millis(1)), &mut frame).err()
    });
    let text = error.expect("it is told").to_string();
    assert!(text.contains("node id n2 is taken by the process at 127.0.0.1:"), "{text}");
    let notice = cluster
        .end(0)
        .poll_notice()
        .or_else(|| cluster.end(1).poll_notice())
        .expect("the others know");
    assert!(notice.to_string().contains("node id n2 is taken"), "{notice}");
    cluster.check_all_ways();
    assert!(cluster.told.iter().all(|told| told.losses.is_empty() && told.errors.is_empty()));
}
