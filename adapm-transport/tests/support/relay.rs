//! One connection through a proxy: both directions, in one thread, so that a cut hits both at once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adapm_verify::rng::Rng;
use mio::{Events, Interest, Poll, Token};
use socket2::SockRef;

use super::follow::Follower;
use super::proxy::{Faults, Shared};

/// A connection and its planned faults.
pub(crate) struct Relay {
    ends: [mio::net::TcpStream; 2],
    ways: [Way; 2],
    faults: Faults,
    cut: Option<Cut>,
    /// The direction and the byte before which everything is held back.
    hold: Option<(usize, u64)>,
    held_until: Option<Instant>,
    rng: Rng,
    shared: Arc<Shared>,
}

/// A cut: when one direction has passed on `at` bytes, both end.
#[derive(Clone, Copy)]
struct Cut {
    way: usize,
    at: u64,
    resets: bool,
}

/// One direction: from `ends[way]` to the other.
#[derive(Default)]
struct Way {
    buffer: Vec<u8>,
    start: usize,
    passed: u64,
    follower: Follower,
    not_before: Option<Instant>,
    is_swallowed: bool,
    has_ended: bool,
    is_shut: bool,
}

/// The outcome of a step.
enum Step {
    Moved,
    Waits,
    Cut,
    Broken,
}

impl Relay {
    /// Creates a relay; `number` tells connections of one proxy apart.
    pub(crate) fn new(
        here: TcpStream,
        there: TcpStream,
        faults: Faults,
        mut rng: Rng,
        shared: Arc<Shared>,
    ) -> Self {
        let ends = [here, there].map(|end| {
            end.set_nonblocking(true).expect("a socket can be told not to block");
            end.set_nodelay(true).expect("a TCP socket can be told not to wait");
            mio::net::TcpStream::from_std(end)
        });
        let cut = faults.cut_after.clone().map(|range| Cut {
            way: rng.within(0..2),
            at: log_uniform(&mut rng, range.start.max(1), range.end),
            resets: rng.chance(faults.reset_percent),
        });
        let hold = faults.hold.map(|_| (rng.within(0..2), rng.within(1..64 << 10) as u64));
        Self { ends, ways: Default::default(), faults, cut, hold, held_until: None, rng, shared }
    }

    /// Runs until both directions have ended, or a fault ends them.
    pub(crate) fn run(mut self) {
        let mut poll = Poll::new().expect("the system has room for one more poll");
        let mut events = Events::with_capacity(8);
        for (index, end) in self.ends.iter_mut().enumerate() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(end, Token(index), interest).expect("a socket can be watched");
        }
        while !self.shared.ends.load(Ordering::Relaxed) {
            let mut moved = false;
            for way in 0..2 {
                match self.step(way) {
                    Step::Moved => moved = true,
                    Step::Waits => {}
                    Step::Cut => return self.end_by_plan(),
                    Step::Broken => return self.reset(),
                }
            }
            if self.ways.iter().all(|way| way.is_shut) {
                return;
            }
            if !moved && poll.poll(&mut events, Some(self.wait())).is_err() {
                events.clear();
            }
        }
    }

    fn step(&mut self, way: usize) -> Step {
        if self.is_held() {
            return Step::Waits;
        }
        let moved = match self.fill(way) {
            Ok(moved) => moved,
            Err(_) => return Step::Broken,
        };
        match self.pass_on(way) {
            Ok(Step::Waits) if moved => Step::Moved,
            Ok(step) => step,
            Err(_) => Step::Broken,
        }
    }

    /// Reads unless bytes wait to be passed on.
    fn fill(&mut self, index: usize) -> io::Result<bool> {
        let way = &mut self.ways[index];
        if way.has_ended || way.start < way.buffer.len() {
            return Ok(false);
        }
        way.buffer.resize(BUFFER_BYTES, 0);
        way.start = 0;
        let read = self.ends[index].read(&mut way.buffer);
        way.buffer.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(count) => {
                way.has_ended = count == 0;
                way.is_swallowed |= self.faults.swallow_above.is_some_and(|most| count > most);
                if way.is_swallowed {
                    way.buffer.clear();
                }
                self.corrupt(index);
                Ok(true)
            }
            Err(error) if is_transient(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn corrupt(&mut self, index: usize) {
        let Some(every) = self.faults.flip_every.filter(|_| !self.is_calm()) else { return };
        let mut left = self.ways[index].buffer.len() as u64;
        while left > 0 && !self.ways[index].buffer.is_empty() {
            if self.rng.bits() % every < left {
                if self.faults.tampers {
                    self.tamper(index)
                } else {
                    self.flip(index)
                }
                self.shared.flips.fetch_add(1, Ordering::Relaxed);
            }
            left = left.saturating_sub(every);
        }
        if self.faults.tampers {
            let mut heard = self.shared.heard.lock().expect("no panic while it is held");
            heard.extend_from_slice(&self.ways[index].buffer);
            let surplus = heard.len().saturating_sub(BUFFER_BYTES);
            heard.drain(..surplus);
        }
    }

    fn flip(&mut self, index: usize) {
        let buffer = &mut self.ways[index].buffer;
        let at = self.rng.within(0..buffer.len());
        buffer[at] ^= 1 << self.rng.within(0..8);
    }

    fn tamper(&mut self, index: usize) {
        let trick = self.rng.within(0..5);
        if trick == 0 {
            return self.flip(index);
        }
        let buffer = &mut self.ways[index].buffer;
        // Mostly a part of one or two packets.
        let from = self.rng.within(0..buffer.len());
        let to = buffer.len().min(from + self.rng.within(1..300));
        match trick {
            1 => drop(buffer.drain(from..to)),
            2 => {
                let again = buffer[from..to].to_vec();
                buffer.splice(to..to, again);
            }
            3 => {
                let moved: Vec<u8> = buffer.drain(from..to).collect();
                let at = self.rng.within(0..buffer.len() + 1);
                buffer.splice(at..at, moved);
            }
            _ => {
                let heard = self.shared.heard.lock().expect("no panic while it is held");
                let from_heard = self.rng.within(0..heard.len().max(1));
                let some = heard.iter().skip(from_heard).take(to - from).copied();
                buffer.splice(from..from, some);
            }
        }
    }

    /// Writes one chunk, up to the byte of a cut.
    fn pass_on(&mut self, index: usize) -> io::Result<Step> {
        let calm = self.is_calm();
        let way = &mut self.ways[index];
        let waiting = &way.buffer[way.start..];
        if waiting.is_empty() {
            if way.has_ended && !way.is_shut {
                way.is_shut = true;
                let _ = self.ends[1 - index].shutdown(Shutdown::Write);
                return Ok(Step::Moved);
            }
            return Ok(Step::Waits);
        }
        if !calm && way.not_before.is_some_and(|time| Instant::now() < time) {
            return Ok(Step::Waits);
        }
        let cut = self.cut.filter(|cut| cut.way == index && !calm && way.passed < cut.at);
        let mut count = waiting.len().min(self.rng.within(1..self.faults.chunk_max + 1));
        if let Some(cut) = cut {
            count = count.min(usize::try_from(cut.at - way.passed).unwrap_or(usize::MAX));
        }
        let written = match self.ends[1 - index].write(&waiting[..count]) {
            Ok(written) => written,
            Err(error) if is_transient(&error) => return Ok(Step::Waits),
            Err(error) => return Err(error),
        };
        way.follower.feed(&waiting[..written]);
        way.start += written;
        way.passed += written as u64;
        self.shared.bytes.fetch_add(written as u64, Ordering::Relaxed);
        let passed = way.passed;
        if cut.is_some_and(|cut| cut.at == passed) {
            return Ok(Step::Cut);
        }
        if let Some(rate) = self.faults.bytes_per_second {
            way.not_before =
                Some(Instant::now() + Duration::from_secs(written as u64) / rate as u32);
        }
        if !self.faults.delay_max.is_zero() && self.rng.within(0..64) == 0 {
            let delay = self.faults.delay_max.mul_f64(self.rng.within(1..101) as f64 / 100.0);
            way.not_before = Some(Instant::now() + delay);
        }
        Ok(Step::Moved)
    }

    /// Returns true while everything is held back; the hold begins when its byte was passed.
    fn is_held(&mut self) -> bool {
        if self.is_calm() {
            return false;
        }
        if let (Some((way, at)), Some(time)) = (self.hold, self.faults.hold)
            && self.ways[way].passed >= at
        {
            self.hold = None;
            self.held_until = Some(Instant::now() + time);
            self.shared.holds.fetch_add(1, Ordering::Relaxed);
        }
        self.held_until.is_some_and(|until| Instant::now() < until)
    }

    fn is_calm(&self) -> bool {
        self.shared.is_calm.load(Ordering::Relaxed)
    }

    /// Returns how long only new bytes or room can make progress: until the first of several times.
    fn wait(&self) -> Duration {
        let delays = self.ways.iter().filter_map(|way| way.not_before);
        let now = Instant::now();
        let next = delays.chain(self.held_until).filter(|&time| time > now).min();
        next.map_or(POLL_MAX, |time| (time - now).min(POLL_MAX))
    }

    fn end_by_plan(self) {
        let Some(cut) = self.cut else { return };
        let add = |counter: &std::sync::atomic::AtomicU64, counts: bool| {
            counter.fetch_add(u64::from(counts), Ordering::Relaxed);
        };
        let follower = &self.ways[cut.way].follower;
        add(&self.shared.inside, follower.is_inside());
        add(&self.shared.inside_body, follower.is_inside_body());
        add(&self.shared.resets, cut.resets);
        add(&self.shared.fins, !cut.resets);
        if cut.resets {
            self.reset();
        }
    }

    /// Ends both connections so that bytes in flight are lost and both peers get an error.
    fn reset(self) {
        for end in &self.ends {
            let _ = SockRef::from(end).set_linger(Some(Duration::ZERO));
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn log_uniform(rng: &mut Rng, start: u64, end: u64) -> u64 {
    let share = rng.within(0..1_000_000) as f64 / 1e6;
    let drawn = start as f64 * (end as f64 / start as f64).powf(share);
    (drawn as u64).clamp(start, end - 1)
}

const BUFFER_BYTES: usize = 64 << 10;

/// Maximum delay with which the end of the proxy, or calm, is noticed.
const POLL_MAX: Duration = Duration::from_millis(20);
