//! Listening: invalid settings are refused before anything is sent, with a readable text.

use adapm_core::NodeId;
use adapm_core::transport::{Frame, SendError, Transport};
use adapm_transport::net::{Address, Kind, Net, NetConfig, NetError};

fn config(bind: &str) -> NetConfig {
    let mut config = NetConfig::new(NodeId(0), 2);
    config.bind = bind.to_owned();
    config
}

#[test]
fn the_system_chooses_a_port_of_the_loopback_address() {
    for bind in ["", "127.0.0.1", "127.0.0.1:0", "::1", "[::1]:0"] {
        let net = Net::listen(config(bind)).expect("a loopback address");
        let socket = net.address().socket().expect("a network address");
        assert!(socket.ip().is_loopback() && socket.port() > 0, "{socket}");
        assert_eq!(net.address().kind(), Kind::Tcp);
    }
}

#[test]
fn a_port_in_use_is_named() {
    let first = Net::listen(config("")).expect("a free port");
    let at = first.address().socket().expect("a network address").to_string();
    let error = Net::listen(config(&at)).expect_err("it is in use");
    assert_eq!(
        error.to_string(),
        format!("cannot listen at {at}: it is in use; give another port, or none for any free one")
    );
}

#[test]
fn an_address_of_another_machine_is_named() {
    let mut config = config("192.0.2.1:0");
    config.insecure = true;
    let error = Net::listen(config).expect_err("no machine has it");
    assert_eq!(error.to_string(), "cannot listen at 192.0.2.1:0: this machine has no such address");
}

#[test]
fn what_is_no_address_is_named() {
    for bind in ["localhost:1", "1.2.3.4:99999", "nonsense", "tcp://127.0.0.1:0"] {
        let error = Net::listen(config(bind)).expect_err("not an address");
        assert!(
            error.to_string().starts_with(&format!("cannot listen at `{bind}`: give an address")),
            "{error}"
        );
    }
}

#[test]
fn nobody_listens_to_the_world_without_a_token() {
    let error = Net::listen(config("0.0.0.0:0")).expect_err("anybody could join");
    let text = error.to_string();
    assert!(
        text.contains("0.0.0.0:0") && text.contains("--token-file") && text.contains("--insecure"),
        "{text}"
    );
    let mut insecure = config("0.0.0.0:0");
    insecure.insecure = true;
    Net::listen(insecure).expect("it was asked for");
    let mut guarded = config("0.0.0.0:0");
    guarded.token = Some(adapm_transport::testing::token(7));
    Net::listen(guarded).expect("only who knows the token can join");
}

#[test]
fn node_ids_are_below_the_number_of_nodes() {
    for (node, nodes) in [(2, 2), (0, 0), (9, 3)] {
        let error = Net::listen(NetConfig::new(NodeId(node), nodes)).expect_err("no such node");
        assert_eq!(error, NetError::Nodes { node: NodeId(node), nodes });
    }
    assert!(Net::listen(NetConfig::new(NodeId(0), 70_000)).is_err());
}

#[test]
fn a_unix_socket_lies_where_it_should_and_goes_with_its_endpoint() {
    let mut unix = config("");
    unix.kind = Kind::Unix;
    let net = Net::listen(unix.clone()).expect("a folder for sockets");
    let Address::Unix(path) = net.address().clone() else { panic!("{}", net.address()) };
    assert!(path.exists());
    let given = path.with_file_name("given");
    unix.bind = given.display().to_string();
    let second = Net::listen(unix.clone()).expect("the folder is there");
    assert_eq!(second.address(), &Address::Unix(given.clone()));
    let error = Net::listen(unix).expect_err("it is in use");
    assert!(error.to_string().contains("it is in use"), "{error}");
    drop((second, net));
    assert!(!given.exists() && !path.exists() && !path.parent().expect("a folder").exists());
}

#[test]
fn frames_go_to_peers_only() {
    let mut net = Net::listen(config("")).expect("a free port");
    for node in [0, 2] {
        let mut frame = Frame { head: vec![1], ..Frame::default() };
        let expected = NetError::UnknownNode { node: NodeId(node), nodes: 2 };
        assert_eq!(net.send(NodeId(node), &mut frame), Err(SendError::Transport(expected)));
        assert_eq!(frame.head, [1]);
    }
}
