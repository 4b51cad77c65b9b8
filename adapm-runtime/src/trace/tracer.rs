//! The writing side: one tracer for all engines of a process, through an observer each.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use adapm_core::home::HomeMap;
use adapm_core::observe::Observe;
use adapm_core::{Counter, Instant, Key, NodeId};

use crate::sync::{Mutex, lock};
use crate::trace::event::{Happening, TraceEvent};
use crate::trace::{FIRST_LINE, LINE_BYTES_MAX};

/// A writer of events of selected keys. Clones write to the same place.
///
/// A write error never disturbs the run: nothing more is written, and [`Tracer::finish`] returns
/// the error.
#[derive(Clone)]
pub struct Tracer(Arc<Shared>);

struct Shared {
    /// Sorted.
    keys: Vec<Key>,
    sink: Mutex<Sink>,
}

struct Sink {
    titles: Vec<(Key, String)>,
    out: BufWriter<Box<dyn Write + Send>>,
    phase: Phase,
    events: u64,
    error: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    Running(std::time::Instant),
    Finished,
}

/// The head of a file, written before the first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHead {
    /// The home of each key among the nodes of the cluster.
    pub homes: HomeMap,
    /// The node of this file, if each node is a process; `None`: all nodes.
    pub part: Option<NodeId>,
    /// The run of a part: a number shared by all its processes and by no other run.
    pub run: u64,
    /// The name of the system.
    pub system: String,
    /// Time 0, in nanoseconds since 1970.
    pub origin: u64,
}

impl TraceHead {
    /// Returns the present time in nanoseconds since 1970.
    #[must_use]
    pub fn wall_clock() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Tracer {
    /// Writes events of `keys` to `out`, each key with a name for people, cut off at 1,000
    /// characters. The file lists the keys in this order, each once.
    #[must_use]
    pub fn new(
        out: impl Write + Send + 'static,
        keys: impl IntoIterator<Item = (Key, String)>,
    ) -> Self {
        let mut titles: Vec<(Key, String)> = Vec::new();
        let mut sorted: Vec<Key> = Vec::new();
        for (key, title) in keys {
            if let Err(at) = sorted.binary_search(&key) {
                sorted.insert(at, key);
                titles.push((key, title));
            }
        }
        let sink = Sink {
            out: BufWriter::with_capacity(BUFFER_BYTES, Box::new(out)),
            phase: Phase::Fresh,
            events: 0,
            error: None,
            titles,
        };
        Self(Arc::new(Shared { keys: sorted, sink: Mutex::new(sink) }))
    }

    /// Writes to a new file, or overwrites an old one.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, keys: impl IntoIterator<Item = (Key, String)>) -> io::Result<Self> {
        Ok(Self::new(File::create(path)?, keys))
    }

    /// Returns the traced keys, ascending.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.0.keys
    }

    /// Writes the head, and the main copies at their homes. [`crate::Builder::trace`] calls this
    /// when the cluster starts; a second call does nothing.
    pub fn begin(&self, head: &TraceHead) {
        let mut sink = lock(&self.0.sink);
        if sink.phase != Phase::Fresh {
            return;
        }
        sink.phase = Phase::Running(std::time::Instant::now());
        sink.line(FIRST_LINE);
        sink.line(format_args!("nodes {}", head.homes.nodes()));
        if let Some(node) = head.part {
            sink.line(format_args!("part {node}"));
            sink.line(format_args!("run {:016x}", head.run));
        }
        sink.line(format_args!("system {}", one_line(&head.system)));
        sink.line(format_args!("origin {}", head.origin));
        for (key, title) in std::mem::take(&mut sink.titles) {
            sink.line(format_args!("key {key} {}", one_line(&title)));
        }
        sink.line("# nanoseconds key node event");
        for &key in &self.0.keys {
            let home = head.homes.home(key);
            if head.part.is_none_or(|part| part == home) {
                let event =
                    TraceEvent { at: Instant::ZERO, key, node: home, what: Happening::MainArrived };
                sink.event(&event);
            }
        }
    }

    /// Returns the observer for an engine of `node`.
    #[must_use]
    pub fn observer(&self, node: NodeId) -> Box<dyn Observe + Send> {
        Box::new(Tap { tracer: self.clone(), node })
    }

    /// Writes a remark at the present moment, such as the start of an epoch. Does nothing before
    /// the cluster has started.
    pub fn mark(&self, text: &str) {
        let now = lock(&self.0.sink).now();
        now.into_iter().for_each(|now| self.mark_at(now, text));
    }

    /// Like [`Tracer::mark`], at a given time.
    pub fn mark_at(&self, now: Instant, text: &str) {
        let mut sink = lock(&self.0.sink);
        if matches!(sink.phase, Phase::Running(_)) {
            sink.line(format_args!("{} mark {}", now.nanos(), one_line(text)));
        }
    }

    /// Ends the file; later events are not traced. A second call does nothing.
    pub fn end(&self) {
        let now = lock(&self.0.sink).now();
        now.into_iter().for_each(|now| self.end_at(now));
    }

    /// Like [`Tracer::end`], at a given time.
    pub fn end_at(&self, now: Instant) {
        let mut sink = lock(&self.0.sink);
        if matches!(sink.phase, Phase::Running(_)) {
            sink.line(format_args!("{} end", now.nanos()));
            let flushed = sink.out.flush().err();
            sink.error = sink.error.take().or(flushed);
        }
        sink.phase = Phase::Finished;
    }

    /// Ends the file unless it has ended, and returns the number of its events.
    ///
    /// # Errors
    /// The first write error: the file ends before it.
    pub fn finish(&self) -> io::Result<u64> {
        self.end();
        let mut sink = lock(&self.0.sink);
        sink.error.take().map_or(Ok(sink.events), Err)
    }

    fn tell(&self, at: Instant, key: Key, node: NodeId, what: Happening) {
        if self.0.keys.binary_search(&key).is_ok() {
            lock(&self.0.sink).event(&TraceEvent { at, key, node, what });
        }
    }
}

impl Sink {
    fn event(&mut self, event: &TraceEvent) {
        if matches!(self.phase, Phase::Running(_)) {
            self.line(event);
            self.events += 1;
        }
    }

    fn line(&mut self, line: impl fmt::Display) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "{line}").err();
        }
    }

    fn now(&self) -> Option<Instant> {
        let Phase::Running(began) = self.phase else { return None };
        Some(Instant::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Tracers are equal if they write to the same place.
impl PartialEq for Tracer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer of {:?}", self.0.keys)
    }
}

/// The observer of one engine.
struct Tap {
    tracer: Tracer,
    node: NodeId,
}

impl Observe for Tap {
    fn on_relocation(&mut self, now: Instant, key: Key, to: NodeId, _: Counter) {
        self.tracer.tell(now, key, self.node, Happening::MainLeft { to });
    }

    fn on_arrival(&mut self, now: Instant, key: Key, _: Counter) {
        self.tracer.tell(now, key, self.node, Happening::MainArrived);
    }

    fn on_replica_installed(&mut self, now: Instant, key: Key, owner: NodeId) {
        self.tracer.tell(now, key, self.node, Happening::ReplicaSetUp { owner });
    }

    fn on_replica_released(&mut self, now: Instant, key: Key) {
        self.tracer.tell(now, key, self.node, Happening::ReplicaDropped);
    }

    fn on_intent(&mut self, now: Instant, key: Key, active: bool) {
        let what = if active { Happening::IntentActive } else { Happening::IntentExpired };
        self.tracer.tell(now, key, self.node, what);
    }
}

/// Makes `text` fit into a line: replaces control characters and cuts a long text off.
fn one_line(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Of up to four bytes each; the rest of a line fits into the remaining bytes.
const TEXT_CHARS_MAX: usize = (LINE_BYTES_MAX as usize - 96) / 4;

/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 16;
