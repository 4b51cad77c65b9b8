//! The whole contract of a transport, in one line; and its first rule over sockets whose datagrams
//! get lost, repeated, reordered and cut.

use adapm_core::NodeId;
use adapm_verify::{FaultRates, Faulty};
use plug_in_udp::{Exit, UdpEnd, network_through};

adapm_verify::transport_suite!(udp, plug_in_udp::network);

#[test]
fn frames_arrive_over_a_bad_network() {
    adapm_verify::transport_suite::frames_arrive_once_whole_and_in_order(&bad_network);
}

fn bad_network(nodes: usize) -> Vec<UdpEnd> {
    network_through(nodes, |node: NodeId| -> Exit {
        let rates = FaultRates { lost: 5, repeated: 5, reordered: 5, cut: 1 };
        let mut network = Faulty::new(rates, u64::from(node.0));
        Box::new(move |to, datagram| network.pass(to, datagram))
    })
}
