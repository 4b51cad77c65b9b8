//! The output of the processes: whole lines, each after the name of its node; node 0's stdout as it
//! is, and its bar at the bottom.
//!
//! Two lines are never mixed: each goes out in one write under the lock of the stream. A line
//! without an end is cut after [`LINE_MAX`] bytes, so that memory stays bounded.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use adapm_transport::threads;

use crate::cli::painter::{MARK, Moment, Painter};

/// Threads that carry output, and their end.
pub(super) struct Relays {
    /// Changes whenever a process prints something.
    life: Arc<AtomicU64>,
    /// The reader of stdout has left.
    is_unread: Arc<AtomicBool>,
    /// Draws the progress that node 0 reports, and keeps lines above it.
    painter: Arc<Painter>,
    alive: Option<mpsc::Sender<()>>,
    all_ended: mpsc::Receiver<()>,
    /// The last line of each node.
    last_lines: Arc<Mutex<BTreeMap<usize, Vec<u8>>>>,
}

impl Relays {
    pub(super) fn new() -> Self {
        let (alive, all_ended) = mpsc::channel();
        let (life, is_unread, painter) = (Arc::default(), Arc::default(), Arc::new(Painter::new()));
        let last_lines = Arc::default();
        Self { life, is_unread, painter, alive: Some(alive), all_ended, last_lines }
    }

    /// Returns true if a bar can be seen.
    pub(super) fn has_screen(&self) -> bool {
        !self.painter.is_nobody()
    }

    /// Prints the lines of `stream` to stderr, each after `prefix`, and draws what others of them
    /// say.
    pub(super) fn prefixed(
        &self,
        stream: impl Read + Send + 'static,
        node: usize,
        prefix: String,
    ) -> io::Result<()> {
        let (life, painter) = (Arc::clone(&self.life), Arc::clone(&self.painter));
        let last_lines = Arc::clone(&self.last_lines);
        self.start(move || {
            let mut lines = Lines::new(prefix.into_bytes());
            // If stderr is closed, lines are dropped: the process must be able to go on all the
            // same.
            let print = |text: &[u8]| painter.aside(|| drop(io::stderr().lock().write_all(text)));
            read_all(stream, |bytes| {
                let text = lines.feed(bytes);
                if !text.is_empty() {
                    life.fetch_add(1, Ordering::Relaxed);
                    let last = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
                    let last = last.unwrap_or_default().to_vec();
                    last_lines.lock().unwrap_or_else(PoisonError::into_inner).insert(node, last);
                    print(text);
                }
                // The last one is what there is to see.
                lines.moment.take().iter().for_each(|moment| painter.show(moment));
                true
            });
            print(lines.finish());
            if lines.has_drawn {
                painter.show(&Moment::Over);
            }
        })
    }

    /// Prints `stream` to stdout. Once stdout is closed, so is the stream, and the process that
    /// writes it learns that.
    pub(super) fn verbatim(&self, stream: impl Read + Send + 'static) -> io::Result<()> {
        let (is_unread, painter) = (Arc::clone(&self.is_unread), Arc::clone(&self.painter));
        self.start(move || {
            let mut whole = WholeLines::default();
            let print = |bytes: &[u8]| {
                if bytes.is_empty() {
                    return true;
                }
                let printed = painter.aside(|| {
                    let mut stdout = io::stdout().lock();
                    stdout.write_all(bytes).and_then(|()| stdout.flush())
                });
                if printed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                    is_unread.store(true, Ordering::Relaxed);
                }
                printed.is_ok()
            };
            read_all(stream, |bytes| print(&whole.feed(bytes)));
            print(&whole.rest);
        })
    }

    /// Returns the last line that a node has printed for people, after its prefix.
    pub(super) fn last_line(&self, node: usize) -> String {
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(&node).map_or_else(String::new, |line| String::from_utf8_lossy(line).into_owned())
    }

    /// Returns a number that changes whenever a process prints a line for people.
    pub(super) fn life(&self) -> u64 {
        self.life.load(Ordering::Relaxed)
    }

    /// Returns true if stdout was closed by its reader, as `head` does.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// Waits until all streams have ended; for a moment only, as a stream may live on in what a
    /// process started.
    pub(super) fn finish(&mut self) {
        self.alive = None;
        // Nothing is ever sent: this ends when the last thread lets go, or when it has been too
        // long.
        let _ = self.all_ended.recv_timeout(FINISH_MAX);
    }

    fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let alive = self.alive.clone();
        let relay = move || {
            work();
            drop(alive);
        };
        threads::spawn("relay", relay).map(drop).map_err(io::Error::other)
    }
}

/// Reads to the end, or until `take` has enough.
fn read_all(mut stream: impl Read, mut take: impl FnMut(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(bytes) if take(&buffer[..bytes]) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Turns pieces of text into whole lines with a prefix, and lines of [`MARK`] into what is to be
/// drawn.
struct Lines {
    prefix: Vec<u8>,
    line: Vec<u8>,
    out: Vec<u8>,
    /// The last reported moment, if it was not yet drawn.
    moment: Option<Moment>,
    has_drawn: bool,
}

impl Lines {
    fn new(prefix: Vec<u8>) -> Self {
        Self { prefix, line: Vec::new(), out: Vec::new(), moment: None, has_drawn: false }
    }

    /// Returns the lines that `bytes` completes.
    fn feed(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for part in piece.chunks(LINE_MAX) {
                if self.line.len() + part.len() > LINE_MAX {
                    self.end_line();
                }
                self.line.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    self.line.pop();
                    self.end_line();
                }
            }
        }
        &self.out
    }

    /// Returns the line that never ended, if there is one.
    fn finish(&mut self) -> &[u8] {
        self.out.clear();
        if !self.line.is_empty() {
            self.end_line();
        }
        &self.out
    }

    fn end_line(&mut self) {
        let told = self.line.strip_prefix(MARK.to_string().as_bytes());
        if let Some(moment) = told.and_then(|text| serde_json::from_slice(text).ok()) {
            (self.moment, self.has_drawn) = (Some(moment), true);
            self.line.clear();
            return;
        }
        self.out.extend_from_slice(&self.prefix);
        self.out.append(&mut self.line);
        self.out.push(b'\n');
    }
}

/// Holds back what is no whole line, so that lines of stderr fall between lines on a terminal; but
/// not forever.
#[derive(Default)]
struct WholeLines {
    rest: Vec<u8>,
}

impl WholeLines {
    fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let endless = whole == 0 && self.rest.len() > LINE_MAX;
        let rest = self.rest.split_off(if endless { self.rest.len() } else { whole });
        mem::replace(&mut self.rest, rest)
    }
}

/// Bytes of a line that are kept until its end comes.
const LINE_MAX: usize = 16 * 1024;

/// Output that is still in the pipes of a process that has ended is read in far less.
const FINISH_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixed(pieces: &[&[u8]]) -> Vec<u8> {
        let mut lines = Lines::new(b"n1 | ".to_vec());
        let mut text: Vec<u8> =
            pieces.iter().flat_map(|piece| lines.feed(piece).to_vec()).collect();
        text.extend_from_slice(lines.finish());
        text
    }

    #[test]
    fn lines_get_their_prefix_wherever_they_are_cut() {
        let text = b"one\n\ntwo\nthree";
        let expected = b"n1 | one\nn1 | \nn1 | two\nn1 | three\n";
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(prefixed(&[first, second]), expected, "cut at {cut}");
        }
        assert_eq!(prefixed(&[b""]), b"");
    }

    #[test]
    fn what_is_to_be_drawn_is_not_printed() {
        let mut lines = Lines::new(b"n0 | ".to_vec());
        let moment = Moment::Waiting("reading data".to_owned());
        let told = format!("one\n{MARK}{}\ntwo\n", serde_json::to_string(&moment).expect("JSON"));
        assert_eq!(lines.feed(told.as_bytes()), b"n0 | one\nn0 | two\n");
        assert_eq!(lines.moment, Some(moment));
        // What another program prints is printed.
        assert_eq!(
            lines.feed(format!("{MARK}x\n").as_bytes()),
            format!("n0 | {MARK}x\n").as_bytes()
        );
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines::new(b"> ".to_vec());
        let mut text = Vec::new();
        for _ in 0..100 {
            text.extend_from_slice(lines.feed(&[b'x'; 1000]));
            assert!(lines.line.len() <= LINE_MAX);
        }
        text.extend_from_slice(lines.finish());
        assert_eq!(text.iter().filter(|byte| **byte == b'x').count(), 100_000);
        let longest = text.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(longest <= Some(LINE_MAX + 2), "{longest:?}");
    }

    #[test]
    fn stdout_passes_unchanged_and_whole_lines_at_a_time() {
        let mut whole = WholeLines::default();
        assert_eq!(whole.feed(b"{\"a\""), b"");
        assert_eq!(whole.feed(b":1}\n{"), b"{\"a\":1}\n");
        assert_eq!(whole.feed(b"}\n"), b"{}\n");
        let mut passed = 0;
        for _ in 0..50 {
            passed += whole.feed(&[b'y'; 1000]).len();
            assert!(whole.rest.len() <= LINE_MAX);
        }
        assert_eq!(passed + whole.rest.len(), 50_000, "no line feed was added");
    }
}
