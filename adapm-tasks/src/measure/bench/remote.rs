//! Pulls and pushes of keys that another node holds, and their floor: bytes there and back without
//! a parameter manager.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Pull, System};
use adapm_transport::net::Kind;
use adapm_transport::threads;

use crate::measure::bench::figure::{BenchError, Desk, Figure, Goal, TURNS, median};
use crate::measure::bench::rows::{
    Access, BATCH, Floats, LEN, WINDOW, first, link_name, links, pair,
};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    for kind in links(desk) {
        for keys in [1, BATCH] {
            for access in Access::ALL {
                let figure = synchronous(kind, access, keys)?;
                desk.add(figure)?;
            }
        }
        let what =
            format!("pull, {BATCH} keys a call, {WINDOW} calls at once, {}", link_name(kind));
        let rate = outstanding(kind)?;
        desk.add(Figure::new(what, "M keys/s", rate).after("3.2, 1 channel 6.5"))?;
    }
    Ok(())
}

/// Calls of the first node's worker, one after the other, in turns with as many bytes over a bare
/// socket.
fn synchronous(kind: Option<Kind>, access: Access, keys: usize) -> Result<Figure, BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Classic).build()?;
    let values = keys * LEN * size_of::<f32>();
    let (out, back) = match access {
        Access::Pull => (HEAD + keys * PER_KEY, HEAD + values),
        Access::Push => (HEAD + keys * PER_KEY + values, HEAD),
    };
    let echo = kind.map_or_else(Echo::between_threads, |kind| Echo::over(kind, out, back))?;
    // The channels between threads are one worker's.
    let echo = std::sync::Mutex::new(echo);
    let far = far_keys(keys);
    let work = |mut worker: Floats| {
        if worker.node() == NodeId(1) {
            return Ok(None);
        }
        let echo = echo.lock().expect("one worker measures");
        let mut room = vec![0.0; keys * LEN];
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..CALLS {
            let start = Instant::now();
            echo.exchange();
            times[0].push(start.elapsed().as_nanos() as f64 / 1e3);
            let start = Instant::now();
            match access {
                Access::Pull => worker.pull(&far, &mut room)?,
                Access::Push => worker.push(&far, &room)?,
            }
            times[1].push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        Ok(Some(times.map(median)))
    };
    let [floor, value] = first(cluster.run(work)?)?;
    let plural = if keys == 1 { "" } else { "s" };
    let what = format!("{}, {keys} key{plural}, {}", access.name(), link_name(kind));
    let figure = Figure::new(what, "us", value).beside(floor).towards(Goal::AtMost(1.6 * floor));
    Ok(match (access, keys) {
        (Access::Push, _) => figure,
        (Access::Pull, 1) => figure.after("133, 1 channel 123"),
        (Access::Pull, _) => figure.after("184, 1 channel 147"),
    })
}

/// Millions of keys a second with several calls under way.
fn outstanding(kind: Option<Kind>) -> Result<f64, BenchError> {
    let cluster = pair(layout(), kind)?.system(System::Classic).build()?;
    let far = far_keys(KEYS as usize / 2);
    let work = |mut worker: Floats| {
        if worker.node() == NodeId(1) {
            return Ok(None);
        }
        let mut rates = Vec::new();
        for _ in 0..TURNS {
            let mut under_way = VecDeque::<Pull<f32>>::new();
            let start = Instant::now();
            for call in 0..CALLS {
                if under_way.len() == WINDOW {
                    under_way.pop_front().expect("as many as the window").wait()?;
                }
                let keys = far
                    .chunks_exact(BATCH)
                    .nth(call % (far.len() / BATCH))
                    .expect("within the keys");
                under_way.push_back(worker.pull_async(keys)?);
            }
            for ticket in under_way {
                ticket.wait()?;
            }
            rates.push((CALLS * BATCH) as f64 / 1e6 / start.elapsed().as_secs_f64());
        }
        Ok(Some(median(rates)))
    };
    first(cluster.run(work)?)
}

fn layout() -> Layout {
    Layout::dense(&[(KEYS, LEN)]).expect("few keys, short values")
}

/// Keys whose home is the second node.
fn far_keys(count: usize) -> Vec<Key> {
    let far = (0..KEYS).map(Key).filter(|key| Layout::home(*key, 2) == NodeId(1));
    far.take(count).collect()
}

/// A thread that exchanges bytes with another over a socket, or nothing with another thread,
/// whenever it is asked to.
pub(super) struct Echo {
    ask: mpsc::Sender<()>,
    answer: mpsc::Receiver<()>,
}

impl Echo {
    /// Exchanges of `out` bytes for `back` bytes over a socket such as links of this kind use, from
    /// a thread that is asked and answers through channels.
    pub(super) fn over(kind: Kind, out: usize, back: usize) -> io::Result<Self> {
        match kind {
            #[cfg(unix)]
            Kind::Unix => {
                let (here, there) = std::os::unix::net::UnixStream::pair()?;
                Self::between(here, there, out, back)
            }
            _ => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let here = TcpStream::connect(listener.local_addr()?)?;
                let (there, _) = listener.accept()?;
                for stream in [&here, &there] {
                    stream.set_nodelay(true)?;
                }
                Self::between(here, there, out, back)
            }
        }
    }

    /// Returns the same four hand-overs between threads as within a process, without bytes.
    pub(super) fn between_threads() -> io::Result<Self> {
        let (to_far, far_in) = mpsc::channel();
        let (far_out, from_far) = mpsc::channel();
        let answer = move || while far_in.recv().is_ok() && far_out.send(()).is_ok() {};
        threads::spawn("echo", answer).map_err(io::Error::other)?;
        Self::asking(move || to_far.send(()).is_ok() && from_far.recv().is_ok())
    }

    /// Waits for one exchange.
    pub(super) fn exchange(&self) {
        // If a thread has ended, so has the socket: then there is nothing to compare with.
        if self.ask.send(()).is_ok() {
            let _ = self.answer.recv();
        }
    }

    fn between<S>(mut here: S, mut there: S, out: usize, back: usize) -> io::Result<Self>
    where
        S: Read + Write + Send + 'static,
    {
        let answer = move || {
            let (mut request, reply) = (vec![0; out], vec![7; back]);
            while there.read_exact(&mut request).is_ok() && there.write_all(&reply).is_ok() {}
        };
        threads::spawn("echo", answer).map_err(io::Error::other)?;
        let (request, mut reply) = (vec![7; out], vec![0; back]);
        Self::asking(move || {
            here.write_all(&request).is_ok() && here.read_exact(&mut reply).is_ok()
        })
    }

    /// Returns a thread that does `exchange` when it is asked to.
    fn asking(mut exchange: impl FnMut() -> bool + Send + 'static) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let (answers, answer) = mpsc::channel();
        let ask_on =
            move || while asked.recv().is_ok() && exchange() && answers.send(()).is_ok() {};
        threads::spawn("echo", ask_on).map_err(io::Error::other)?;
        Ok(Self { ask, answer })
    }
}

const KEYS: u64 = 4_000;

/// Bytes of a message, about, and of each key in it.
const HEAD: usize = 64;
const PER_KEY: usize = 8;

/// Calls of a turn.
const CALLS: usize = 2_000;
