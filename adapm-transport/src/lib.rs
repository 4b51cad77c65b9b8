//! Transports carry opaque frames between the nodes of one channel: once, whole, in order per pair
//! of nodes.
//!
//! | module | feature | is |
//! | --- | --- | --- |
//! | [`inproc`] | | nodes as threads of one process; frames are moved, not copied |
//! | [`net`] | `tcp`, on by default | nodes as processes: links over TCP and Unix sockets, resumed when a connection breaks |
//! | [`tokio`](net::Kind::Tokio) | `tokio` | the same links on tasks of tokio; the same bytes as over TCP |
//! | [`zmq`](net::Kind::Zmq) | `zmq` | the same links over ZeroMQ |
//! | [`group`] | `tcp` | the processes of one cluster: how they find each other, and how they end |
//!
//! A transport knows nothing of keys or messages: [`adapm_core::wire`] encodes messages as frames,
//! and the driver of a [`adapm_core::engine`] engine connects the two:
//!
//! ```
//! use std::thread;
//!
//! use adapm_core::NodeId;
//! use adapm_core::transport::{Frame, Received, Transport};
//! use adapm_core::wire::{self, Message, message::Body};
//! use adapm_transport::inproc;
//!
//! let mut ends = inproc::network(2).into_iter();
//! let (mut here, mut there) = (ends.next().expect("node 0"), ends.next().expect("node 1"));
//!
//! let peer = thread::spawn(move || {
//!     let mut frame = Frame::default();
//!     let received = there.recv(None, &mut frame)?;
//!     let message = wire::decode(&mut frame).expect("bytes that `encode` made");
//!     Ok::<_, adapm_transport::Error>((received, message))
//! });
//!
//! let mut frame = Frame::default();
//! wire::encode(Message::bare(Body::News), &mut frame);
//! here.send(NodeId(1), &mut frame).expect("there is room for one frame");
//!
//! let received = peer.join().expect("no panic");
//! assert_eq!(received, Ok((Received::Frame(NodeId(0)), Message::bare(Body::News))));
//! ```
//!
//! # Between processes
//!
//! Guarantees of an endpoint of [`net`], and their limits:
//!
//! | event | outcome |
//! | --- | --- |
//! | a connection breaks, at any byte | it is dialed again, and the link goes on: no frame is lost or doubled |
//! | a byte is changed on the way | the packet fails decryption, or its checksum if there is no token; as above |
//! | a peer is silent for the suspect time (2 s) | its connection is replaced |
//! | a peer is silent for the dead time (10 s) | `recv` reports it lost, once; frames to it are dropped |
//! | a peer ends | in order: nothing is reported. After a failure: it is lost, and so are the nodes that it has lost |
//! | a peer has given this node up | that peer is lost, with that reason ([`GaveUp`](adapm_core::transport::Loss::GaveUp)) |
//! | a peer is started anew | its state is gone: it is lost, and is notified of that; with a token only once the peer's first life is silent, as any holder of the token could claim a restart |
//! | nodes do not belong together | both sides report why: version, cluster, token, node id and count, channel, layout |
//! | an unauthenticated peer connects | at most 4 KiB, 5 s and 64 of them at a time; no effect on others |
//! | the user of an endpoint is slow | the ways of its peers to it fill up, and no others |
//!
//! Without a token an endpoint listens on this machine only, unless it is told to be insecure. With
//! a token, no outsider can join, read or change anything ([`docs::security`]).
//!
//! # A transport of your own
//!
//! Implement [`Transport`](adapm_core::transport::Transport) for one node's endpoint, and
//! [`Wake`](adapm_core::transport::Wake) for a handle that ends its wait. The rules, and the cost
//! of breaking them:
//!
//! * `send` never blocks. Two nodes that block on each other's full ways deadlock. With no room,
//!   return [`Full`](adapm_core::transport::SendError::Full), leave the frame as it is, and record
//!   that its sender waits: once there is room, its `recv` must return
//!   [`Woken`](adapm_core::transport::Received::Woken), else it waits forever.
//! * Every way has a bound, in bytes too. Frames are up to
//!   [`FRAME_BYTES_MAX`](adapm_core::wire::FRAME_BYTES_MAX) long; check a length that a peer claims
//!   before allocating for it.
//! * Each frame arrives once, whole, and after all frames sent before it from that node to this
//!   one. The protocol repeats nothing: a frame lost is an update lost.
//! * After `Ok`, the frame passed to `send` may hold anything; leave used memory in it if there is
//!   some. `recv` overwrites the frame it is given; its memory may be kept.
//! * A wake before, at the start of, or during a `recv` ends that `recv` or the next. Neither
//!   frames nor wakes may starve the other.
//! * No sender is preferred: one that floods must not keep another's frames from arriving.
//! * Every permanent end of a peer is reported by [`Lost`](adapm_core::transport::Received::Lost),
//!   once per peer and after its last frame; frames to it are then taken and dropped. `leave` is
//!   bounded in time.
//!
//! One line of a test checks the whole contract, given a function from a number of nodes to their
//! endpoints:
//!
//! ```
//! // In `tests/suite.rs`, with `adapm-verify` as a dev-dependency.
//! adapm_verify::transport_suite!(inproc, adapm_transport::inproc::network);
//! # fn main() {}
//! ```
//!
//! Not here: the meaning of a frame. The crate has no unsafe code.
//!
#![doc = include_str!("../../adapm-core/docs/pages.md")]
#![forbid(unsafe_code)]

pub mod docs;
pub mod error;
#[cfg(feature = "tcp")]
pub mod group;
pub mod inproc;
#[cfg(feature = "tcp")]
pub mod net;
#[cfg(feature = "tcp")]
mod tcp;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod threads;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(any(feature = "zmq", feature = "testing"))]
mod zmq;

pub use error::Error;
