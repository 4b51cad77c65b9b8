//! The transport contract, for every transport of this crate.

mod inproc {
    adapm_verify::transport_suite!(adapm_transport::inproc::network);
}

#[cfg(feature = "tcp")]
mod tcp {
    use adapm_transport::net::{Kind, Net, network};

    fn over_tcp(nodes: usize) -> Vec<Net> {
        network(nodes, Kind::Tcp).expect("this machine has a loopback address")
    }

    adapm_verify::transport_suite!(over_tcp);
}

#[cfg(feature = "tcp")]
mod unix {
    use adapm_transport::net::{Kind, Net, network};

    fn over_unix(nodes: usize) -> Vec<Net> {
        network(nodes, Kind::Unix).expect("this machine has a folder for sockets")
    }

    adapm_verify::transport_suite!(over_unix);
}

#[cfg(feature = "tokio")]
mod tokio {
    use adapm_transport::net::{Kind, Net, network};

    fn over_tokio(nodes: usize) -> Vec<Net> {
        network(nodes, Kind::Tokio).expect("this machine has a loopback address")
    }

    adapm_verify::transport_suite!(over_tokio);
}

#[cfg(feature = "zmq")]
mod zmq {
    use adapm_transport::net::{Kind, Net, network};

    fn over_zmq(nodes: usize) -> Vec<Net> {
        network(nodes, Kind::Zmq).expect("this machine has a loopback address")
    }

    adapm_verify::transport_suite!(over_zmq);
}
