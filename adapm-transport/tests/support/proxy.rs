//! A listener that passes connections on to another one, badly: it cuts, splits, delays, holds back
//! and corrupts by a seeded plan.
//!
//! The bytes that are hit depend on the seed and the number of the connection alone; the times, on
//! the machine.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use adapm_verify::rng::Rng;

use super::relay::Relay;

/// The faults of a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) seed: u64,
    /// Cuts each connection when one of its directions has passed on this many bytes; small numbers
    /// as likely as large ones of the same ratio.
    pub(crate) cut_after: Option<Range<u64>>,
    /// Number of resets among a hundred cuts; the others are ordinary ends.
    pub(crate) reset_percent: u64,
    /// Passes on at most this many bytes at a time.
    pub(crate) chunk_max: usize,
    /// Waits up to this long before one in 64 chunks.
    pub(crate) delay_max: Duration,
    /// Flips a random bit in about one of this many bytes.
    pub(crate) flip_every: Option<u64>,
    /// Instead tampers like an attacker on the way: flips a bit, omits, repeats or moves bytes, or
    /// inserts bytes recorded on any connection.
    pub(crate) tampers: bool,
    /// Holds everything back for this long, once per connection, at a random byte of the first 64
    /// KiB.
    pub(crate) hold: Option<Duration>,
    /// Bytes passed on per second, in each direction of each connection.
    pub(crate) bytes_per_second: Option<u64>,
    /// Swallows a direction of a connection from its first piece on that has more than this many
    /// bytes.
    pub(crate) swallow_above: Option<usize>,
}

impl Faults {
    /// Returns no faults, with the seed for faults to be added.
    pub(crate) fn none(seed: u64) -> Self {
        Self {
            seed,
            cut_after: None,
            reset_percent: 100,
            chunk_max: 64 << 10,
            delay_max: Duration::ZERO,
            flip_every: None,
            tampers: false,
            hold: None,
            bytes_per_second: None,
            swallow_above: None,
        }
    }
}

/// The faults that a proxy has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) connections: u64,
    /// Cuts by a reset.
    pub(crate) resets: u64,
    /// Cuts by an ordinary end.
    pub(crate) ends: u64,
    /// Cuts of either kind in the middle of a packet of the direction that was cut.
    pub(crate) inside: u64,
    /// Those of them after a whole header: in the middle of the content.
    pub(crate) inside_body: u64,
    pub(crate) flips: u64,
    pub(crate) holds: u64,
    pub(crate) bytes: u64,
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, one| Self {
            connections: sum.connections + one.connections,
            resets: sum.resets + one.resets,
            ends: sum.ends + one.ends,
            inside: sum.inside + one.inside,
            inside_body: sum.inside_body + one.inside_body,
            flips: sum.flips + one.flips,
            holds: sum.holds + one.holds,
            bytes: sum.bytes + one.bytes,
        })
    }
}

/// A proxy before one listener, which runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the proxy and its connections.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) ends: AtomicBool,
    pub(crate) is_calm: AtomicBool,
    pub(crate) connections: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) fins: AtomicU64,
    pub(crate) inside: AtomicU64,
    pub(crate) inside_body: AtomicU64,
    pub(crate) flips: AtomicU64,
    pub(crate) holds: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// The last bytes that have passed on any connection, in any direction.
    pub(crate) heard: Mutex<Vec<u8>>,
}

impl Proxy {
    /// Listens at a free port of loopback and passes connections on to `target`.
    pub(crate) fn start(target: SocketAddr, faults: Faults) -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || accept(&listener, target, &faults, &for_thread));
        Self { address, shared, thread: Some(thread) }
    }

    /// Ends all faults, for existing connections too: healthy traffic must get through from here
    /// on.
    pub(crate) fn calm(&self) {
        self.shared.is_calm.store(true, Ordering::Relaxed);
    }

    /// Returns the address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its counts so far.
    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: read(&self.shared.connections),
            resets: read(&self.shared.resets),
            ends: read(&self.shared.fins),
            inside: read(&self.shared.inside),
            inside_body: read(&self.shared.inside_body),
            flips: read(&self.shared.flips),
            holds: read(&self.shared.holds),
            bytes: read(&self.shared.bytes),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        // Ends the wait for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, faults: &Faults, shared: &Arc<Shared>) {
    let mut relays: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((here, _)) = listener.accept() {
        if shared.ends.load(Ordering::Relaxed) {
            break;
        }
        relays.retain(|relay| !relay.is_finished());
        // The listener behind the proxy may have ended: the dialing side then sees the connection
        // end.
        let Ok(there) = TcpStream::connect(target) else { continue };
        let number = shared.connections.fetch_add(1, Ordering::Relaxed);
        let mut rng = Rng::new(faults.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.bits();
        let (faults, shared) = (faults.clone(), Arc::clone(shared));
        relays.push(thread::spawn(move || Relay::new(here, there, faults, rng, shared).run()));
    }
    for relay in relays {
        let _ = relay.join();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;
    use std::time::Duration;

    use super::{Counts, Faults, Proxy};

    /// Sends `bytes` through a proxy with these faults to a peer that echoes them. Returns the
    /// bytes that came back before the end.
    fn echo(bytes: &[u8], faults: Faults) -> (Vec<u8>, Counts) {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let proxy = Proxy::start(listener.local_addr().expect("it has one"), faults);
        let echo = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the proxy dials");
            let mut reader = stream.try_clone().expect("a stream can be cloned");
            let _ = std::io::copy(&mut reader, &mut stream);
            let _ = stream.shutdown(std::net::Shutdown::Write);
        });
        let mut stream = TcpStream::connect(proxy.address()).expect("the proxy listens");
        let mut writer = stream.try_clone().expect("a stream can be cloned");
        let sent = bytes.to_vec();
        let sender = thread::spawn(move || {
            let _ = writer.write_all(&sent);
            let _ = writer.shutdown(std::net::Shutdown::Write);
        });
        let mut back = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            back.extend_from_slice(&piece[..count]);
        }
        sender.join().expect("no panic");
        echo.join().expect("no panic");
        (back, proxy.counts())
    }

    fn bytes() -> Vec<u8> {
        (0..200_000_u32).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn passes_everything_on_without_faults() {
        let faults = Faults {
            chunk_max: 700,
            delay_max: Duration::from_millis(1),
            hold: Some(Duration::from_millis(5)),
            ..Faults::none(1)
        };
        let (back, counts) = echo(&bytes(), faults);
        assert_eq!(back, bytes());
        assert_eq!((counts.connections, counts.resets, counts.holds), (1, 0, 1));
        assert_eq!(counts.bytes, 2 * 200_000);
    }

    #[test]
    fn cuts_where_the_plan_says() {
        for seed in 0..20 {
            let faults = Faults { cut_after: Some(10_000..100_000), ..Faults::none(seed) };
            let (back, counts) = echo(&bytes(), faults);
            assert!(back.len() < 200_000, "{} came back", back.len());
            assert_eq!(back, bytes()[..back.len()]);
            assert_eq!(counts.resets, 1);
        }
    }

    #[test]
    fn turns_bits_over() {
        let (back, counts) = echo(&bytes(), Faults { flip_every: Some(5_000), ..Faults::none(3) });
        assert_eq!(back.len(), 200_000);
        let wrong = back.iter().zip(bytes()).filter(|(a, b)| **a != *b).count() as u64;
        assert!(
            counts.flips > 10 && wrong <= counts.flips && wrong > 0,
            "{wrong} wrong, {counts:?}"
        );
    }
}
