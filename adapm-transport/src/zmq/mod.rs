//! Links over ZeroMQ: one DEALER for each node that is dialed, one ROUTER for all that dial.
//!
//! Every packet is one message of three parts: header, head, values. Sockets of the `zeromq` crate
//! serve as pipes that may lose packets: numbers, acknowledgements, heartbeats and redialing are
//! the endpoint's, as for every kind. The shortcomings of such a socket are handled around it:
//!
//! ```text
//!  dialing node                                                        listening node
//!  task ─ pipe_io ─> DEALER <─unix─> relay <══ ZMTP over TCP ══> relay <─unix─> ROUTER <─ pipe_io ─ task
//!            credit                    guard                       guard                     credit
//! ```
//!
//! | shortcoming of the socket | remedy |
//! | --- | --- |
//! | allocates any length that a frame claims, and aborts the process if it cannot | a [`guard`] reads all lengths first, on both sides |
//! | any number of unauthenticated peers, for any time | 64 that have not introduced themselves, 5 s each; the oldest is closed for a newcomer |
//! | queues 100,000 messages a peer, of any size; waits forever, or with a lock held, on a full queue | a credit ([`pipe_io`]) of few messages and bytes is always below that |
//! | with several threads, all of them can wait for a lock that was handed to a task which waits for a thread | all sockets of the process share one thread of their own |
//! | a DEALER does not reconnect, and does not notice the end of its peer | the relay notices; the endpoint redials, with a new socket |
//! | of two peers with one name, the newer takes over | the older keeps it: names are random, and the newer is closed |
//! | does not report why it could not connect | the relay connects, and reports |
//!
//! The relay is one more copy of all bytes, through a Unix socket in a directory that only this
//! user can open, and the socket copies them twice: this is the slowest kind. Without a token any
//! process that reaches the port can join, as with all kinds. Not here: ZeroMQ's own authentication
//! and encryption, which the crate lacks.

#[cfg(feature = "zmq")]
mod connector;
mod guard;
#[cfg(feature = "zmq")]
mod pipe_io;
#[cfg(feature = "zmq")]
mod relay;
#[cfg(feature = "zmq")]
mod router;

#[cfg(feature = "zmq")]
pub(crate) use connector::ZmqConnector;
#[cfg(feature = "testing")]
pub(crate) use guard::Guard;
