//! Costs of a link of each kind beside the floor, a bare `TcpStream` on loopback, measured in turns
//! in one run; medians.
//!
//! | case | floor |
//! | --- | --- |
//! | one way, frames of a size | writing and reading as many bytes in pieces of that size, from one thread to another |
//! | there and back, 64 B | one such piece each way |
//!
//! `cargo bench -p adapm-transport --features zmq --bench kinds`; with `-- tcp zmq` only these.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};
use adapm_transport::net::{Kind, Net, network};

const TURNS: usize = 7;
const SIZES: [usize; 4] = [64, 1 << 10, 64 << 10, 1 << 20];
const BYTES: usize = 256 << 20;
const FRAMES_MAX: usize = 200_000;
const TRIPS: usize = 5_000;

fn main() {
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked =
        |kind: &Kind| asked.is_empty() || asked.iter().any(|name| *name == kind.scheme());
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(is_asked).collect();
    let head: String = kinds.iter().map(|kind| format!(" {kind} |")).collect();
    println!("| | floor |{head}");
    println!("| --- | ---: |{}", " ---: |".repeat(kinds.len()));
    for size in SIZES {
        let frames = (BYTES / size).min(FRAMES_MAX);
        let gigabytes = |time: Duration| (frames * size) as f64 / time.as_secs_f64() / 1e9;
        let times =
            medians(&kinds, || bare_one_way(size, frames), |kind| one_way(kind, size, frames));
        row(&format!("one way, {size} B, GB/s"), times.into_iter().map(gigabytes), 3);
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let times = medians(&kinds, bare_trip, trip);
    row("there and back, 64 B, µs", times.into_iter().map(micros), 1);
}

/// Returns the median times of the floor and of each kind, all measured in turns.
fn medians(
    kinds: &[Kind],
    floor: impl Fn() -> Duration,
    link: impl Fn(Kind) -> Duration,
) -> Vec<Duration> {
    let mut times = vec![Vec::new(); 1 + kinds.len()];
    for _ in 0..TURNS {
        times[0].push(floor());
        kinds.iter().zip(&mut times[1..]).for_each(|(kind, times)| times.push(link(*kind)));
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[TURNS / 2]
    };
    times.into_iter().map(median).collect()
}

fn row(name: &str, values: impl Iterator<Item = f64>, digits: usize) {
    let cells: String = values.map(|value| format!(" {value:.digits$} |")).collect();
    println!("| {name} |{cells}");
}

fn one_way(kind: Kind, size: usize, frames: usize) -> Duration {
    let (mut here, mut there) = pair(kind);
    let mut frame = Frame::default();
    let receiver = thread::spawn(move || {
        let mut frame = Frame::default();
        let mut count = 0;
        while count < frames {
            count += usize::from(is_frame(there.recv(None, &mut frame)));
        }
        there
    });
    let begun = Instant::now();
    for _ in 0..frames {
        loop {
            fill(&mut frame, size);
            match here.send(NodeId(1), &mut frame) {
                Ok(()) => break,
                Err(SendError::Full) => _ = is_frame(here.recv(None, &mut Frame::default())),
                Err(error) => panic!("send failed: {error}"),
            }
        }
    }
    while !receiver.is_finished() {
        is_frame(here.recv(Some(Duration::from_micros(200)), &mut frame));
    }
    let time = begun.elapsed();
    end([here, receiver.join().expect("no panic")]);
    time
}

/// Returns the median of many trips.
fn trip(kind: Kind) -> Duration {
    let (mut here, mut there) = pair(kind);
    let echo = thread::spawn(move || {
        let mut frame = Frame::default();
        for _ in 0..TRIPS {
            while !is_frame(there.recv(None, &mut frame)) {}
            there.send(NodeId(0), &mut frame).expect("room for one frame");
        }
        there
    });
    let mut frame = Frame::default();
    let times = (0..TRIPS).map(|_| {
        let begun = Instant::now();
        fill(&mut frame, 64);
        here.send(NodeId(1), &mut frame).expect("room for one frame");
        while !is_frame(here.recv(None, &mut frame)) {}
        begun.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    end([here, echo.join().expect("no panic")]);
    times.sort();
    times[TRIPS / 2]
}

/// Returns two endpoints with a link that is up.
fn pair(kind: Kind) -> (Net, Net) {
    let ends = network(2, kind).expect("this machine has a loopback address");
    let [mut here, mut there] = <[Net; 2]>::try_from(ends).expect("two endpoints");
    let mut frame = Frame::default();
    fill(&mut frame, 8);
    here.send(NodeId(1), &mut frame).expect("room for one frame");
    let short = Some(Duration::from_millis(1));
    while !is_frame(there.recv(short, &mut frame)) {
        is_frame(here.recv(short, &mut frame));
    }
    (here, there)
}

fn is_frame<E: std::error::Error>(received: Result<Received, E>) -> bool {
    match received.expect("the transport works") {
        Received::Frame(_) => true,
        Received::Woken | Received::TimedOut => false,
        Received::Lost(node, loss) => panic!("{node} lost: {loss}"),
    }
}

/// Prepares a frame like a sending node: reuses memory, and fills as many bytes.
fn fill(frame: &mut Frame, size: usize) {
    frame.clear();
    frame.head.extend_from_slice(&[7; 8]);
    frame.values.resize(size - 8);
}

fn end(ends: [Net; 2]) {
    let threads = ends.map(|mut end| thread::spawn(move || end.leave(CloseReason::Finished)));
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

fn bare_one_way(size: usize, frames: usize) -> Duration {
    let (mut here, mut there) = bare_pair();
    let receiver = thread::spawn(move || {
        let mut bytes = vec![0; size];
        (0..frames).for_each(|_| there.read_exact(&mut bytes).expect("the stream works"));
    });
    let bytes = vec![7; size];
    let begun = Instant::now();
    (0..frames).for_each(|_| here.write_all(&bytes).expect("the stream works"));
    receiver.join().expect("no panic");
    begun.elapsed()
}

fn bare_trip() -> Duration {
    let (mut here, mut there) = bare_pair();
    let echo = thread::spawn(move || {
        let mut bytes = [0; 64];
        for _ in 0..TRIPS {
            there.read_exact(&mut bytes).expect("the stream works");
            there.write_all(&bytes).expect("the stream works");
        }
    });
    let mut bytes = [7; 64];
    let times = (0..TRIPS).map(|_| {
        let begun = Instant::now();
        here.write_all(&bytes).expect("the stream works");
        here.read_exact(&mut bytes).expect("the stream works");
        begun.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    echo.join().expect("no panic");
    times.sort();
    times[TRIPS / 2]
}

fn bare_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let here = TcpStream::connect(listener.local_addr().expect("it has one")).expect("it listens");
    let (there, _) = listener.accept().expect("somebody has dialed");
    for stream in [&here, &there] {
        stream.set_nodelay(true).expect("a stream can be set");
    }
    (here, there)
}
