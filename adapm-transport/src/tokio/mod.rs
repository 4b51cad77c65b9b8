//! Links over TCP that tasks of tokio serve: the same bytes as
//! [`Kind::Tcp`](crate::net::Kind::Tcp), which it talks with.
//!
//! | | [`Kind::Tcp`](crate::net::Kind::Tcp) | [`Kind::Tokio`](crate::net::Kind::Tokio) |
//! | --- | --- | --- |
//! | reads and writes | the thread that calls `recv` | two tasks a connection, also while that thread works |
//! | seals, opens, checks | that thread | the thread that calls `recv` |
//! | costs | nothing but the calls | a wake of another thread for what is sent, and one back |
//!
//! So it is for programs whose channel threads have much to do and large values, and for those that
//! have a runtime already.
//!
//! Values are read straight into the frame that the node gets, and written straight from the frame
//! that waits for its acknowledgement. A full queue on the way in stops reading, which the peer
//! sees as a full socket; a full queue on the way out is the session's to wait for. Either holds up
//! no other connection. Not here: the handshake and the session, which are the endpoint's.

mod connector;
mod runtime;
mod stream;

pub(crate) use connector::TokioConnector;
#[cfg(feature = "zmq")]
pub(crate) use connector::{Door, WAITING_MAX, listen, next_connection};
#[cfg(feature = "zmq")]
pub(crate) use runtime::started;
pub use runtime::{AlreadyLent, lend};
#[cfg(feature = "zmq")]
pub(crate) use stream::{close_after, drain, ended, unless};
