//! Honest nodes that were started wrongly: both sides report why, in the same words.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Transport};
use adapm_transport::net::hello::ClusterId;
use adapm_transport::net::packet::{Greeting, PROTOCOL_VERSION};
use adapm_transport::net::{Address, Net, NetConfig};
use adapm_verify::silence::Silence;

use crate::sound::{SoundNodes, config, token};
use crate::stranger::{Stranger, identity, packet_of_version};

/// Lets `net` go on until it fails, and returns why.
#[track_caller]
pub(crate) fn fails(net: &mut Net) -> String {
    let mut silence = Silence::new();
    loop {
        match net.recv(Some(Duration::from_millis(50)), &mut Frame::default()) {
            Ok(_) => assert!(!silence.is_too_long(()), "nobody refuses it"),
            Err(error) => return error.to_string(),
        }
    }
}

/// Lets `net` go on until it knows why it has no link with node 0, for good or so far, and returns
/// the reason.
#[track_caller]
fn is_kept_from_node_0(net: &mut Net) -> String {
    let mut silence = Silence::new();
    loop {
        if let Err(error) = net.recv(Some(Duration::from_millis(50)), &mut Frame::default()) {
            return error.to_string();
        }
        if let Some(reason) = net.peer(NodeId(0)).and_then(|peer| peer.refused) {
            return reason;
        }
        assert!(!silence.is_too_long(()), "nobody refuses it");
    }
}

/// Returns a table in which only `node` has an address.
pub(crate) fn only(node: usize, address: SocketAddr, nodes: usize) -> Vec<Option<Address>> {
    (0..nodes).map(|index| (index == node).then_some(Address::Tcp(address))).collect()
}

/// Lets a node with other settings than the sound nodes dial their node 0; `here` and `there` are
/// the reports of the two.
#[track_caller]
fn refused_by(sound: SoundNodes, configure: impl Fn(&mut NetConfig), here: &str, there: &str) {
    let mut config = config(3, 4);
    configure(&mut config);
    let nodes = config.nodes;
    let mut net = Net::listen(config).expect("it can listen");
    net.connect(&only(0, sound.address(0), nodes));
    let error = is_kept_from_node_0(&mut net);
    assert!(error.contains(here), "{error}");
    let notice = sound.notice(0, there);
    assert!(notice.starts_with("refused 127.0.0.1:"), "{notice}");
    sound.finish(&[]);
}

/// Like [`refused_by`], with sound nodes that are configured as usual.
#[track_caller]
fn refused(configure: impl Fn(&mut NetConfig), here: &str, there: &str) {
    refused_by(SoundNodes::start(4, &[0, 1, 2], |_| {}), configure, here, there);
}

/// Checks that opening an endpoint fails with these words.
#[track_caller]
fn cannot_listen(configure: impl Fn(&mut NetConfig), words: &str) {
    let mut config = config(3, 4);
    configure(&mut config);
    let error = Net::listen(config).expect_err("it cannot listen").to_string();
    assert!(error.contains(words) && !error.contains('\n'), "{error}");
}

cases! {
    fn a_node_with_another_token() {
        refused(|config| config.token = Some(token(2)), "the tokens differ", "the tokens differ");
    }

    fn a_node_without_the_token() {
        refused(
            |config| config.token = None,
            "the peer has a token, this node has none: give all nodes the same token",
            "the peer has no token, this node has one: give all nodes the same token",
        );
    }

    fn a_node_with_a_token_among_nodes_without() {
        refused_by(
            SoundNodes::start(4, &[0, 1, 2], |config| config.token = None),
            |_| {},
            "the peer has no token, this node has one",
            "the peer has a token, this node has none",
        );
    }

    fn a_node_of_another_cluster() {
        let words = "it belongs to another cluster: check the rendezvous and the cluster id";
        refused(|config| config.cluster = ClusterId(77), words, words);
    }

    fn a_node_with_another_layout() {
        let words = "the layouts differ: give all nodes the same keys, lengths and value type";
        refused(|config| config.layout_digest = 77, words, words);
    }

    fn a_node_that_counts_otherwise() {
        refused(
            |config| config.nodes = 5,
            "node counts differ (5 here, 4 there): start all nodes with the same count",
            "node counts differ (4 here, 5 there): start all nodes with the same count",
        );
    }

    fn a_node_on_another_channel() {
        refused(
            |config| config.channel = 6,
            "channels differ (6 here, 0 there): check the addresses",
            "channels differ (0 here, 6 there): check the addresses",
        );
    }

    fn a_node_of_another_version() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let mut stranger = Stranger::dial(sound.address(0));
        stranger.say(&packet_of_version(PROTOCOL_VERSION + 1, Greeting::Hello));
        let told = stranger.hear_end().expect("it is told why").to_string();
        let (ours, theirs) = (PROTOCOL_VERSION, PROTOCOL_VERSION + 1);
        assert!(told.contains(&format!("protocol versions differ ({theirs} here, {ours} there)")), "{told}");
        sound.notice(0, &format!("{theirs}"));
        sound.finish(&[]);
    }

    fn two_processes_with_one_node_id() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let (_first, met) = Stranger::meet(sound.address(0), identity(3), 0, adapm_core::link::Seq(0)).expect("it is node 3");
        assert_eq!(met.node, NodeId(0));
        let mut second = Net::listen(config(3, 4)).expect("it can listen");
        second.connect(&only(0, sound.address(0), 4));
        let error = fails(&mut second);
        let words = "node id n3 is taken by the process at 127.0.0.1:";
        assert!(error.contains(words) && error.contains("give each process its own"), "{error}");
        sound.notice(0, words);
        sound.finish(&[]);
    }

    fn a_node_that_was_given_the_address_of_another() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let mut net = Net::listen(config(3, 4)).expect("it can listen");
        net.connect(&only(0, sound.address(1), 4));
        let words = "node n1 is at the address of node n0: check the addresses";
        let error = is_kept_from_node_0(&mut net);
        assert!(error.contains(words), "{error}");
        sound.notice(1, words);
        sound.finish(&[]);
    }

    fn a_node_that_dials_itself() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let mut net = Net::listen(config(3, 4)).expect("it can listen");
        let own = net.address().socket().expect("TCP has one");
        net.connect(&only(0, own, 4));
        let error = is_kept_from_node_0(&mut net);
        assert!(error.contains("node n3 is at the address of node n0: check the addresses"), "{error}");
        sound.finish(&[]);
    }

    fn a_node_that_dials_where_nobody_listens() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = nobody.local_addr().expect("it has one");
        drop(nobody);
        let mut net = Net::listen(config(3, 4)).expect("it can listen");
        net.connect(&only(0, address, 4));
        let mut silence = Silence::new();
        loop {
            net.recv(Some(Duration::from_millis(20)), &mut Frame::default()).expect("it goes on trying");
            let status = net.peers().find(|status| status.node == NodeId(0)).expect("node 0 is a peer");
            if status.refused.is_some_and(|why| why.contains("Connection refused")) {
                break;
            }
            assert!(!silence.is_too_long(()), "it does not say why");
        }
        sound.finish(&[]);
    }

    fn a_node_whose_port_is_taken() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let taken = sound.address(0).to_string();
        let words = format!("cannot listen at {taken}: it is in use; give another port, or none for any free one");
        cannot_listen(|config| config.bind.clone_from(&taken), &words);
        sound.finish(&[]);
    }

    fn a_node_that_is_to_listen_where_it_cannot() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        for (bind, words) in [
            ("no-such-host", "cannot listen at `no-such-host`: give an address of this machine"),
            ("127.0.0.1:99999", "cannot listen at `127.0.0.1:99999`"),
            ("203.0.113.7", "cannot listen at 203.0.113.7:0: this machine has no such address"),
        ] {
            cannot_listen(|config| bind.clone_into(&mut config.bind), words);
        }
        sound.finish(&[]);
    }

    fn a_node_that_would_let_anybody_in() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        let words = "listening at 0.0.0.0:0 without a token lets anybody join: give all nodes --token-file, or --insecure";
        cannot_listen(
            |config| {
                config.token = None;
                "0.0.0.0:0".clone_into(&mut config.bind);
            },
            words,
        );
        sound.finish(&[]);
    }

    fn a_node_id_that_the_cluster_does_not_have() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
        cannot_listen(|config| config.node = NodeId(4), "there is no node n4 in a cluster of 4: ids are 0 to 3");
        sound.finish(&[]);
    }
}
