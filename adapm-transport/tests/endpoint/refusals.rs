//! Nodes that do not belong together: the reason on both sides, and a cluster that goes on.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{Frame, Transport};
use adapm_transport::net::{Address, ClusterId, Net, NetConfig, PeerState, Token};

use crate::cluster::{Cluster, DEAD_AFTER};

fn token(byte: u8) -> Option<Token> {
    Some(adapm_transport::testing::token(byte))
}

/// Lets a node 2 with such settings dial node 0 of a cluster in which only nodes 0 and 1 have met.
/// Returns its error, with the address if that is final, and the notice of node 0.
fn refused(base: impl Fn(&mut NetConfig), spoil: impl Fn(&mut NetConfig)) -> (String, String) {
    let mut cluster = Cluster::apart(3, &base);
    drop(cluster.take(2));
    cluster.until("both are up", |cluster| {
        cluster.state(0, 1) == PeerState::Up && cluster.state(1, 0) == PeerState::Up
    });
    let mut config = NetConfig::new(NodeId(2), 3);
    config.link = LinkConfig::with_dead_after(DEAD_AFTER);
    base(&mut config);
    spoil(&mut config);
    let mut stranger = Net::listen(config).expect("a free port");
    stranger.connect(&[Some(cluster.end(0).address().clone())]);
    let mut frame = Frame::default();
    let error = (0..2_000).find_map(|_| {
        cluster.turn();
        let ended = stranger.recv(Some(Duration::from_millis(1)), &mut frame).err();
        ended.map(|error| error.to_string()).or_else(|| stranger.peer(NodeId(0))?.refused)
    });
    let error = error.expect("the dialing side knows");
    let notice = (0..2_000).find_map(|_| {
        cluster.turn();
        cluster.end(0).poll_notice()
    });
    let notice = notice.expect("the listening side is told").to_string();
    assert!(notice.starts_with("refused 127.0.0.1:"), "{notice}");
    cluster.ends.pop();
    cluster.check_all_ways();
    (error, notice)
}

#[test]
fn tokens() {
    let differ = "the tokens differ: give all nodes the same token";
    let (there, here) = refused(|config| config.token = token(1), |config| config.token = token(2));
    assert!(there.ends_with(differ) && here.ends_with(differ), "{there} / {here}");
    let (there, here) = refused(|config| config.token = token(1), |config| config.token = None);
    assert!(there.contains("the peer has a token, this node has none"), "{there}");
    assert!(here.contains("the peer has no token, this node has one"), "{here}");
    let (there, here) = refused(|_| {}, |config| config.token = token(2));
    assert!(there.contains("the peer has no token, this node has one"), "{there}");
    assert!(here.contains("the peer has a token, this node has none"), "{here}");
}

#[test]
fn clusters_channels_and_layouts() {
    // An earlier run that is about to end may be there: it is tried again.
    let (there, here) = refused(|_| {}, |config| config.cluster = ClusterId(5));
    assert!(there.starts_with("it belongs to another cluster"), "{there}");
    assert!(here.contains("another cluster"), "{here}");
    let (there, here) = refused(|_| {}, |config| config.channel = 4);
    assert!(there.starts_with("channels differ (4 here, 0 there)"), "{there}");
    assert!(here.contains("channels differ (0 here, 4 there)"), "{here}");
    let (there, here) =
        refused(|config| config.token = token(1), |config| config.layout_digest = 4);
    assert!(there.starts_with("node n0 at tcp://127.0.0.1:"), "{there}");
    assert!(
        there.contains("the layouts differ") && here.contains("the layouts differ"),
        "{there} / {here}"
    );
}

#[test]
fn node_counts() {
    let (there, here) = refused(|_| {}, |config| config.nodes = 4);
    assert!(there.contains("node counts differ (4 here, 3 there)"), "{there}");
    assert!(here.contains("node counts differ (3 here, 4 there)"), "{here}");
}

#[test]
fn an_address_of_another_node() {
    let mut cluster = Cluster::apart(3, |_| {});
    drop(cluster.take(2));
    let wrong = cluster.end(1).address().clone();
    let mut config = NetConfig::new(NodeId(2), 3);
    config.link = LinkConfig::with_dead_after(DEAD_AFTER);
    let mut lost = Net::listen(config).expect("a free port");
    lost.connect(&[Some(wrong)]);
    let mut frame = Frame::default();
    let text = (0..2_000).find_map(|_| {
        cluster.turn();
        lost.recv(Some(Duration::from_millis(1)), &mut frame).expect("it is tried again");
        lost.peer(NodeId(0))?.refused
    });
    let text = text.expect("the reason is known");
    assert!(text.contains("node n1 is at the address of node n0"), "{text}");
    // Once the right address is known they meet.
    lost.connect(&[Some(cluster.end(0).address().clone())]);
    let is_up = (0..2_000).any(|_| {
        cluster.turn();
        lost.recv(Some(Duration::from_millis(1)), &mut frame).expect("nothing is final");
        lost.peer(NodeId(0)).is_some_and(|peer| peer.state == PeerState::Up)
    });
    assert!(is_up, "a wrong address is not the end");
}

#[test]
fn a_peer_that_is_not_up_yet_is_awaited_and_the_reason_is_known() {
    let mut cluster = Cluster::apart(2, |_| {});
    let address = cluster.end(0).address().clone();
    drop(cluster.take(0));
    cluster.until("the reason is known", |cluster| {
        let end = cluster.ends[1].as_ref().expect("it has not ended");
        end.peers().all(|peer| peer.refused.as_deref() == Some("Connection refused"))
    });
    let socket = address.socket().expect("a network address");
    assert_eq!(Transport::address(cluster.end(1), NodeId(0)), Some(socket));
    let mut config = NetConfig::new(NodeId(0), 2);
    config.link = LinkConfig::with_dead_after(DEAD_AFTER);
    config.bind = socket.to_string();
    let late = Net::listen(config).expect("the port is free again");
    assert_eq!(late.address(), &Address::Tcp(socket));
    cluster.ends[0] = Some(late);
    cluster.until("both are up", Cluster::are_all_up);
    cluster.check_all_ways();
}

#[test]
#[cfg(not(feature = "zmq"))]
fn an_address_that_this_build_cannot_dial() {
    let mut net = Net::listen(NetConfig::new(NodeId(1), 2)).expect("a free port");
    net.connect(&[Some("zmq://127.0.0.1:9".parse().expect("an address"))]);
    let error =
        net.recv(Some(Duration::ZERO), &mut Frame::default()).expect_err("it cannot be dialed");
    assert_eq!(error.to_string(), "this build has no transport zmq: build it with feature `zmq`");
}

#[test]
fn of_several_addresses_all_are_tried() {
    let mut cluster = Cluster::apart(2, |_| {});
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let closed = Address::Tcp(nobody.local_addr().expect("it is bound"));
    drop(nobody);
    let right = cluster.end(0).address().clone();
    cluster.end(1).connect_any(NodeId(0), &[closed, right]);
    cluster.until("both are up", Cluster::are_all_up);
    cluster.check_all_ways();
}
