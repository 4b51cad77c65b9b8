//! Links over TCP served by tasks of tokio: the same bytes as [`Kind::Tcp`](crate::net::Kind::Tcp),
//! with which they interoperate.
//!
//! | | [`Kind::Tcp`](crate::net::Kind::Tcp) | [`Kind::Tokio`](crate::net::Kind::Tokio) |
//! | --- | --- | --- |
//! | reads | the thread that calls `recv` | a task a connection, also while that thread works |
//! | writes | the thread that calls `send` and `recv` | that thread what is short if nothing waits to be read, else a task |
//! | seals, opens, checks | that thread | that thread |
//! | costs | nothing but the calls | a wake of another thread for each arrival, and for each such task |
//!
//! So it suits programs whose channel threads have much to do and large values, and programs that
//! already have a runtime.
//!
//! Values are read straight into the node's frame, and written straight from the frame that waits
//! for its acknowledgement. A full queue on the way in stops reading, which the peer sees as a full
//! socket; the session waits for a full queue on the way out. Neither blocks other connections. Not
//! here: the handshake and the session, which are the endpoint's.

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
