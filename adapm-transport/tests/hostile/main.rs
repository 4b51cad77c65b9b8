//! Peers that are mistaken, broken or hostile, against a sound cluster that has to stay so.
//!
//! Every case runs in a process of its own, so that its memory can be measured, and asserts three
//! things: the reports on both sides, that the nodes of the cluster go on talking with each other,
//! and that memory grows by at most 8 MiB.
//!
//! `ADAPM_HOSTILE_KIND=tokio` lets the nodes listen by another kind of endpoint that speaks the
//! same bytes.
//!
//! Not here: the content of the protocol's messages (the runtime's tests), and connections that
//! merely break (`tests/resets`).

#[macro_use]
mod case;
mod sound;
mod stranger;

#[cfg(all(feature = "tokio", feature = "zmq"))]
mod connectors;
mod dialed;
mod floods;
mod garbage;
mod handshakes;
mod liars;
mod mistaken;

fn main() {
    #[cfg(all(feature = "tokio", feature = "zmq"))]
    let connectors = connectors::CASES;
    #[cfg(not(all(feature = "tokio", feature = "zmq")))]
    let connectors = &[];
    let modules = [
        connectors,
        dialed::CASES,
        floods::CASES,
        garbage::CASES,
        handshakes::CASES,
        liars::CASES,
        mistaken::CASES,
    ];
    case::run_all(&modules.concat())
}
