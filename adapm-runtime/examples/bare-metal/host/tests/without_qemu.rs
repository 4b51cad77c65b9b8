//! The whole count with node 1 in a thread instead of a microcontroller: the same node, line and
//! task, over pipes in memory.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use adapm_core::{Layout, NodeId};
use adapm_store::DenseStore;
use adapm_store::fixed::{self, FixedStore};
use bare_metal_host::count::{Summary, count};
use bare_metal_host::noise::Noise;
use bare_metal_host::serial::Serial;
use serial_node::line::{End, FRAME_BYTES_MAX, Line, LineError};
use serial_node::node::{NodeError, Port, SerialNode};
use serial_node::task;

/// One direction of a line, read and written by threads.
struct Pipe {
    bytes: Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

struct Mouth(Sender<Vec<u8>>);

/// A thread's replacement for a board.
struct Desk {
    origin: Instant,
    from: Pipe,
    to: Mouth,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.bytes.recv().unwrap_or_default();
        }
        let len = into.len().min(self.rest.len());
        into[..len].copy_from_slice(&self.rest[..len]);
        self.rest.drain(..len);
        Ok(len)
    }
}

impl Write for Mouth {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Port for Desk {
    fn now(&mut self) -> adapm_core::Instant {
        adapm_core::Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    fn read(&mut self, bytes: &mut Vec<u8>) {
        bytes.append(&mut self.from.rest);
        bytes.extend(self.from.bytes.try_iter().flatten());
    }

    fn write(&mut self, bytes: &[u8]) {
        // After the end of the other side nothing reads.
        self.to.write_all(bytes).ok();
    }

    fn idle(&mut self) {
        if let Ok(bytes) = self.from.bytes.recv_timeout(Duration::from_millis(1)) {
            self.from.rest = bytes;
        }
    }
}

fn line() -> (Pipe, Mouth) {
    let (mouth, bytes) = mpsc::channel();
    (Pipe { bytes, rest: Vec::new() }, Mouth(mouth))
}

/// Runs node 1 in a thread. Returns the number of its wrong sums.
fn node(from: Pipe, to: Mouth, terms: u64) -> JoinHandle<Result<usize, NodeError>> {
    type Parameters =
        FixedStore<i64, { fixed::keys_of(task::EXTENTS) }, { fixed::elements_of(task::EXTENTS) }>;
    thread::spawn(move || {
        let store = Parameters::for_layout(&task::layout()).expect("made for it");
        let port = Desk { origin: Instant::now(), from, to };
        let parts = (task::layout(), &store, Arc::new(task::initial) as _);
        let line = Line::new(End::Answering, terms, DEAD_AFTER);
        task::run(&mut SerialNode::new(NodeId(1), parts, (port, line))?)
    })
}

/// Counts over a line with `noise`. Returns the results of both nodes.
fn counted(noise: u64, terms: u64) -> (Result<Summary, String>, Result<usize, NodeError>) {
    let (from_node, to_host) = line();
    let (from_host, to_node) = line();
    let node = node(from_host, to_host, terms);
    let serial = Serial::new((from_node, to_node), task::terms(), DEAD_AFTER, Noise::new(noise));
    let counted = count(serial);
    (counted, node.join().expect("node 1 does not panic"))
}

#[test]
fn every_sum_is_exact_over_a_sound_line() {
    let (summary, node) = counted(0, task::terms());
    let summary = summary.expect("node 0 ends in order");
    assert_eq!(summary.check(), Ok(()), "{summary}");
    assert_eq!(node, Ok(0));
    assert_eq!((summary.line.damaged, summary.report.damaged), (0, 0));
}

#[test]
fn every_sum_is_exact_over_a_line_that_spoils_bytes() {
    let (summary, node) = counted(700, task::terms());
    let summary = summary.expect("node 0 ends in order");
    assert_eq!(summary.check(), Ok(()), "{summary}");
    assert_eq!(node, Ok(0));
    assert!(summary.line.damaged > 0 && summary.report.damaged > 0, "{summary}");
    assert!(summary.line.pipes > 5, "{summary}");
}

#[test]
fn nodes_of_different_layouts_refuse_each_other() {
    let (summary, node) = counted(0, task::terms() ^ 1);
    let told = summary.expect_err("node 0 does not count with a stranger");
    assert!(told.contains("build both from the same sources"), "{told}");
    assert!(matches!(node, Err(NodeError::Line(_))), "{node:?}");
}

#[test]
fn values_that_no_frame_holds_are_refused_at_the_start() {
    let (from, to) = line();
    let layout = Layout::dense(&[(2, FRAME_BYTES_MAX / 8)]).expect("legal");
    let store = DenseStore::<i64>::new(&layout);
    let port = Desk { origin: Instant::now(), from, to };
    let parts = (layout, &store, Arc::new(task::initial) as _);
    let line = Line::new(End::Answering, task::terms(), DEAD_AFTER);
    let refused = SerialNode::new(NodeId(1), parts, (port, line)).map(drop);
    let Err(NodeError::Line(LineError::FrameLen { bytes })) = refused else {
        panic!("{refused:?}")
    };
    assert!(bytes > FRAME_BYTES_MAX);
}

const DEAD_AFTER: Duration = Duration::from_secs(20);
