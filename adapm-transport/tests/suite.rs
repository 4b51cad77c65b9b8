//! The transport contract, for every transport of this crate.

mod inproc {
    adapm_core::transport_suite!(adapm_transport::inproc::network);
}
