//! A transport that is often full, often times out early and sometimes wakes without a reason, by a
//! seed.
//!
//! Not here: lost frames, which a transport must not cause ([`super::faulty`]).

use core::net::SocketAddr;
use core::time::Duration;

use adapm_core::id::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport, Wake, Way};

use crate::rng::Rng;

/// Rates of a [`Shaky`] transport's effects, in percent of the calls. Defaults to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShakeRates {
    /// `send` refuses the frame as if the queue were full; the next `recv` reports room.
    pub full: u64,
    /// `recv` with a limit returns at once, as if the time were over.
    pub timed_out: u64,
    /// `recv` reports a wake, though no waker was called and no frame was refused. Drivers should
    /// tolerate that; the transport contract forbids it.
    pub woken: u64,
}

/// A transport at its worst, for tests of drivers: the seed decides which calls are affected.
/// Frames arrive as the transport below carries them.
///
/// ```
/// use adapm_core::NodeId;
/// use adapm_core::transport::{Frame, Received, SendError, Transport};
/// use adapm_transport::inproc;
/// use adapm_verify::{ShakeRates, Shaky};
///
/// let rates = ShakeRates { full: 50, timed_out: 50, woken: 5 };
/// let mut ends = Shaky::network(inproc::network(2), rates, 7);
/// let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
/// while ends[0].send(NodeId(1), &mut frame) == Err(SendError::Full) {
///     assert_eq!(ends[0].recv(None, &mut Frame::default())?, Received::Woken);
/// }
/// while ends[1].recv(None, &mut frame)? != Received::Frame(NodeId(0)) {}
/// assert_eq!(frame.head, [1, 2, 3]);
/// # Ok::<(), adapm_transport::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shaky<T> {
    inner: T,
    rates: ShakeRates,
    rng: Rng,
}

impl<T: Transport> Shaky<T> {
    /// Wraps one endpoint.
    #[must_use]
    pub fn new(inner: T, rates: ShakeRates, seed: u64) -> Self {
        Self { inner, rates, rng: Rng::new(seed) }
    }

    /// Wraps the endpoints of a network, each with a stream of its own.
    #[must_use]
    pub fn network(ends: Vec<T>, rates: ShakeRates, seed: u64) -> Vec<Self> {
        let mut seeds = Rng::new(seed);
        ends.into_iter().map(|end| Self::new(end, rates, seeds.bits())).collect()
    }
}

impl<T: Transport> Transport for Shaky<T> {
    type Error = T::Error;
    type Waker = T::Waker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<T::Error>> {
        if self.rng.chance(self.rates.full) {
            self.inner.waker().wake();
            return Err(SendError::Full);
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, T::Error> {
        if wait.is_some() && self.rng.chance(self.rates.timed_out) {
            return Ok(Received::TimedOut);
        }
        if self.rng.chance(self.rates.woken) {
            return Ok(Received::Woken);
        }
        self.inner.recv(wait, frame)
    }

    fn waker(&self) -> T::Waker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }

    fn way(&self, node: NodeId) -> Way {
        self.inner.way(node)
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        self.inner.address(node)
    }
}
