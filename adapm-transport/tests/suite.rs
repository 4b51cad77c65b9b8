//! The transport contract, for every transport of this crate.

#[cfg(feature = "tcp")]
use adapm_transport::net::{Kind, network};

adapm_verify::transport_suite!(inproc, adapm_transport::inproc::network);

#[cfg(feature = "tcp")]
adapm_verify::transport_suite!(tcp, |nodes| network(nodes, Kind::Tcp)
    .expect("this machine has a loopback address"));

#[cfg(feature = "tcp")]
adapm_verify::transport_suite!(unix, |nodes| network(nodes, Kind::Unix)
    .expect("this machine has a folder for sockets"));

#[cfg(feature = "tokio")]
adapm_verify::transport_suite!(tokio, |nodes| network(nodes, Kind::Tokio)
    .expect("this machine has a loopback address"));

#[cfg(feature = "zmq")]
adapm_verify::transport_suite!(zmq, |nodes| network(nodes, Kind::Zmq)
    .expect("this machine has a loopback address"));
