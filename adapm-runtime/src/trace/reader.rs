//! The reading side: parses a file as a whole, checks each line against those before it, and turns
//! events into the time spans that a picture shows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};

use adapm_core::{Instant, Key, NodeId};

use crate::trace::event::{Happening, TraceEvent, number};
use crate::trace::{EVENTS_MAX, FIRST_LINE, LINE_BYTES_MAX, NODES_MAX};

/// A parsed trace: events in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    nodes: usize,
    parts: Vec<NodeId>,
    /// The run of a part.
    run: Option<u64>,
    system: String,
    origin: u64,
    keys: Vec<(Key, String)>,
    events: Vec<TraceEvent>,
    marks: Vec<Mark>,
    end: Instant,
    is_complete: bool,
}

/// A remark that the program made at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The time.
    pub at: Instant,
    /// The text.
    pub text: String,
}

impl Trace {
    /// Reads a trace; needs 32 bytes per event. A cut-off end of the file is ignored.
    ///
    /// # Errors
    /// The file cannot be read, or the first line that is invalid.
    pub fn read(mut from: impl BufRead) -> Result<Self, TraceError> {
        let mut reading = Reading::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let read = from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
            read.map_err(TraceError::Unreadable)?;
            let Some((b'\n', text)) = text.split_last() else {
                if text.len() as u64 == LINE_BYTES_MAX {
                    return Err(TraceError::Line { line, fault: TraceFault::NoText });
                }
                break;
            };
            let taken = std::str::from_utf8(text).map_err(|_| TraceFault::NoText);
            let taken = taken.and_then(|text| reading.line(text));
            taken.map_err(|fault| TraceError::Line { line, fault })?;
            reading.lines = line;
        }
        let line = reading.lines + 1;
        reading.finish().map_err(|fault| TraceError::Line { line, fault })
    }

    /// Merges the parts of one run, which all began at the same moment; the origin is that of the
    /// lowest node. A single trace of all nodes is returned as it is.
    ///
    /// # Errors
    /// Parts of different runs, or two of one node. Nodes may be missing.
    pub fn merge(mut parts: Vec<Self>) -> Result<Self, MergeError> {
        if let Some(index) = parts.iter().position(|part| part.parts.is_empty()) {
            return if parts.len() == 1 {
                Ok(parts.remove(0))
            } else {
                Err(MergeError::Whole(index))
            };
        }
        let mut parts = parts.into_iter();
        let mut merged = parts.next().ok_or(MergeError::Nothing)?;
        for part in parts {
            let node = part.parts[0];
            if merged.parts.contains(&node) {
                return Err(MergeError::Twice(node));
            }
            let run = |trace: &Self| (trace.run, trace.nodes);
            if (run(&merged), &merged.system, &merged.keys)
                != (run(&part), &part.system, &part.keys)
            {
                return Err(MergeError::OtherRun(node));
            }
            if merged.parts.iter().all(|other| node < *other) {
                merged.origin = part.origin;
            }
            merged.parts.push(node);
            merged.events.extend(part.events);
            merged.marks.extend(part.marks);
            merged.end = merged.end.max(part.end);
            merged.is_complete &= part.is_complete;
        }
        merged.parts.sort_unstable();
        merged.events.sort_by_key(|event| event.at);
        merged.marks.sort_by_key(|mark| mark.at);
        Ok(merged)
    }

    /// Returns the number of nodes of the cluster.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns time 0, in nanoseconds since 1970.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Returns the nodes whose processes wrote the parts; none if one process had all nodes.
    #[must_use]
    pub fn parts(&self) -> &[NodeId] {
        &self.parts
    }

    /// Returns the run number of a part, or `None` if one process had all nodes.
    #[must_use]
    pub fn run(&self) -> Option<u64> {
        self.run
    }

    /// Returns the traced keys, each with its name for people, in the order of the file.
    #[must_use]
    pub fn keys(&self) -> &[(Key, String)] {
        &self.keys
    }

    /// Returns all events by time; events at the same time are in the order of the file.
    #[must_use]
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// Returns the marks, in the order of time.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Returns the end of the trace: the end of the run, or the last event if that is later or the
    /// run was cut off.
    #[must_use]
    pub fn end(&self) -> Instant {
        self.end
    }

    /// Returns true if the trace was written to the end of the run.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the spans of `key` at each node, by node. Open spans end with the trace.
    #[must_use]
    pub fn spans(&self, key: Key) -> Vec<Spans> {
        let mut all = vec![Spans::default(); self.nodes()];
        let mut open = vec![Open::default(); self.nodes()];
        for event in self.events().iter().filter(|event| event.key == key) {
            let index = event.node.index();
            let (spans, open) = (&mut all[index], &mut open[index]);
            match event.what {
                Happening::MainArrived => {
                    close(&mut spans.replica, &mut open.replica, event.at);
                    open.main = Some(event.at);
                }
                Happening::MainLeft { .. } => close(&mut spans.main, &mut open.main, event.at),
                Happening::ReplicaSetUp { .. } => open.replica = Some(event.at),
                Happening::ReplicaDropped => close(&mut spans.replica, &mut open.replica, event.at),
                Happening::IntentActive => open.intent = Some(event.at),
                Happening::IntentExpired => close(&mut spans.intent, &mut open.intent, event.at),
            }
        }
        for (spans, mut open) in all.iter_mut().zip(open) {
            close(&mut spans.main, &mut open.main, self.end());
            close(&mut spans.replica, &mut open.replica, self.end());
            close(&mut spans.intent, &mut open.intent, self.end());
        }
        all
    }
}

/// The state of the parser.
#[derive(Default)]
struct Reading {
    lines: u64,
    nodes: Option<usize>,
    part: Option<NodeId>,
    run: Option<u64>,
    system: Option<String>,
    origin: Option<u64>,
    keys: Vec<(Key, String)>,
    known: BTreeSet<Key>,
    copies: BTreeMap<(Key, NodeId), Known>,
    events: Vec<TraceEvent>,
    marks: Vec<Mark>,
    end: Option<Instant>,
}

/// The state of a key at a node, according to the lines so far.
#[derive(Clone, Copy, Default)]
struct Known {
    at: Instant,
    copy: Copied,
    intent: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Copied {
    #[default]
    None,
    Replica,
    Main,
}

impl Reading {
    fn line(&mut self, line: &str) -> Result<(), TraceFault> {
        if self.lines == 0 {
            return if line == FIRST_LINE { Ok(()) } else { Err(TraceFault::NotATrace) };
        }
        if line.starts_with('#') {
            return Ok(());
        }
        if self.end.is_some() {
            return Err(TraceFault::BehindTheEnd);
        }
        let (word, rest) = line.split_once(' ').ok_or(TraceFault::Unknown)?;
        match word.parse::<u64>().ok().filter(|_| !word.starts_with('+')) {
            Some(nanos) => self.happening(Instant::from_nanos(nanos), rest),
            None => self.head(word, rest),
        }
    }

    fn head(&mut self, word: &str, rest: &str) -> Result<(), TraceFault> {
        if !self.events.is_empty() || !self.marks.is_empty() {
            return Err(TraceFault::Head);
        }
        let again = match word {
            "nodes" => {
                let nodes: usize = rest.parse().map_err(|_| TraceFault::Unknown)?;
                if nodes == 0 || nodes > NODES_MAX {
                    return Err(TraceFault::TooManyNodes);
                }
                self.nodes.replace(nodes).is_some()
            }
            "part" => self
                .part
                .replace(number(rest, 'n').map(NodeId).ok_or(TraceFault::Unknown)?)
                .is_some(),
            "run" => self.run.replace(run_number(rest).ok_or(TraceFault::Unknown)?).is_some(),
            "system" => self.system.replace(rest.to_owned()).is_some(),
            "origin" => {
                self.origin.replace(rest.parse().map_err(|_| TraceFault::Unknown)?).is_some()
            }
            "key" => {
                let (key, title) = rest.split_once(' ').unwrap_or((rest, ""));
                let key = number(key, 'k').map(Key).ok_or(TraceFault::Unknown)?;
                self.keys.push((key, title.to_owned()));
                !self.known.insert(key)
            }
            _ => return Err(TraceFault::Unknown),
        };
        if again { Err(TraceFault::Head) } else { Ok(()) }
    }

    fn happening(&mut self, at: Instant, rest: &str) -> Result<(), TraceFault> {
        if self.events.len() + self.marks.len() >= EVENTS_MAX {
            return Err(TraceFault::TooMany);
        }
        if rest == "end" {
            self.end = Some(at);
            return Ok(());
        }
        if let Some(text) = rest.strip_prefix("mark ") {
            self.marks.push(Mark { at, text: text.to_owned() });
            return Ok(());
        }
        let mut fields = rest.split(' ');
        let mut field = || fields.next().ok_or(TraceFault::Unknown);
        let key = number(field()?, 'k').map(Key).ok_or(TraceFault::Unknown)?;
        let node = number(field()?, 'n').map(NodeId).ok_or(TraceFault::Unknown)?;
        let what = Happening::parse(field()?, fields).ok_or(TraceFault::Unknown)?;
        if !self.known.contains(&key) {
            return Err(TraceFault::UnknownKey(key));
        }
        let other = match what {
            Happening::MainLeft { to: other } | Happening::ReplicaSetUp { owner: other } => other,
            _ => node,
        };
        let is_foreign = self.part.is_some_and(|part| part != node);
        let unknown =
            [node, other].into_iter().find(|node| node.index() >= self.nodes.unwrap_or(0));
        if let Some(unknown) = unknown.or(is_foreign.then_some(node)) {
            return Err(TraceFault::UnknownNode(unknown));
        }
        self.copies.entry((key, node)).or_default().happen(at, what)?;
        if self.copies.len() > NODES_MAX {
            return Err(TraceFault::TooManyNodes);
        }
        self.events.push(TraceEvent { at, key, node, what });
        Ok(())
    }

    fn finish(mut self) -> Result<Trace, TraceFault> {
        let (Some(nodes), Some(system), Some(origin)) = (self.nodes, self.system, self.origin)
        else {
            return Err(if self.lines == 0 { TraceFault::NotATrace } else { TraceFault::Head });
        };
        if self.part.is_some_and(|part| part.index() >= nodes)
            || self.part.is_some() != self.run.is_some()
        {
            return Err(TraceFault::Head);
        }
        // Stable: lines of one node and key keep their order.
        self.events.sort_by_key(|event| event.at);
        self.marks.sort_by_key(|mark| mark.at);
        let last =
            self.events.last().map(|event| event.at).max(self.marks.last().map(|mark| mark.at));
        Ok(Trace {
            nodes,
            parts: self.part.into_iter().collect(),
            run: self.run,
            system,
            origin,
            keys: self.keys,
            events: self.events,
            marks: self.marks,
            is_complete: self.end.is_some(),
            end: self.end.max(last).unwrap_or(Instant::ZERO),
        })
    }
}

/// Parses the number of a run in its written form.
fn run_number(text: &str) -> Option<u64> {
    let is_written_so =
        text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(text, 16).ok().filter(|_| is_written_so)
}

impl Known {
    fn happen(&mut self, at: Instant, what: Happening) -> Result<(), TraceFault> {
        if at < self.at {
            return Err(TraceFault::Backwards);
        }
        self.at = at;
        let (from, to) = match what {
            Happening::MainArrived if self.copy == Copied::Replica => {
                (Copied::Replica, Copied::Main)
            }
            Happening::MainArrived => (Copied::None, Copied::Main),
            Happening::MainLeft { .. } => (Copied::Main, Copied::None),
            Happening::ReplicaSetUp { .. } => (Copied::None, Copied::Replica),
            Happening::ReplicaDropped => (Copied::Replica, Copied::None),
            Happening::IntentActive | Happening::IntentExpired => {
                let active = what == Happening::IntentActive;
                let was = std::mem::replace(&mut self.intent, active);
                return if was == active { Err(TraceFault::Impossible) } else { Ok(()) };
            }
        };
        if std::mem::replace(&mut self.copy, to) == from {
            Ok(())
        } else {
            Err(TraceFault::Impossible)
        }
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start.
    pub start: Instant,
    /// The end.
    pub end: Instant,
}

impl Span {
    /// Returns the length in nanoseconds.
    #[must_use]
    pub fn nanos(self) -> u64 {
        self.end.nanos_since(self.start)
    }
}

/// The spans of one key at one node; each list in the order of time, without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Times at which the main copy was here.
    pub main: Vec<Span>,
    /// Times at which a replica was here.
    pub replica: Vec<Span>,
    /// Times at which acted-on intent was active here.
    pub intent: Vec<Span>,
}

/// The start times of open spans.
#[derive(Clone, Copy, Default)]
struct Open {
    main: Option<Instant>,
    replica: Option<Instant>,
    intent: Option<Instant>,
}

fn close(spans: &mut Vec<Span>, open: &mut Option<Instant>, end: Instant) {
    spans.extend(open.take().map(|start| Span { start, end }));
}

/// Errors of reading a trace. Their text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A line is invalid.
    #[error("line {line}: {fault}")]
    Line {
        /// The line number, from 1.
        line: u64,
        /// The fault of the line.
        fault: TraceFault,
    },
}

/// Faults of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFault {
    /// The first line is not that of a trace of this version.
    #[error("the first line is not `{FIRST_LINE}`; give a file that was written by --trace-keys")]
    NotATrace,
    /// Neither a line of the head, nor an event, nor a mark, nor the end.
    #[error("neither a line of the head nor an event; trace again if the file was edited")]
    Unknown,
    /// A line of the head is missing, repeated, or after the first event.
    #[error(
        "the head needs nodes, system, origin, keys, and for a part its run, each once and before all events"
    )]
    Head,
    /// Not 1 to 65,536 nodes, or more than 65,536 pairs of key and node.
    #[error("1 to {NODES_MAX} nodes can be read, and as many pairs of key and node")]
    TooManyNodes,
    /// An event of a key that the head does not list.
    #[error("{0} is not among the keys of the head")]
    UnknownKey(Key),
    /// An event of a node that the head does not list.
    #[error("{0} is not among the nodes of this file")]
    UnknownNode(NodeId),
    /// An event earlier than the one before it of the same key at the same node.
    #[error("earlier than the event before it of this key at this node")]
    Backwards,
    /// An event that cannot follow the one before it of the same key at the same node.
    #[error("cannot follow the event before it of this key at this node")]
    Impossible,
    /// A line after the end.
    #[error("behind the end; put one trace into a file")]
    BehindTheEnd,
    /// Longer than 4,096 bytes, or not UTF-8.
    #[error("not UTF-8 text of at most {LINE_BYTES_MAX} bytes")]
    NoText,
    /// More than 2^24 events or marks.
    #[error("more than {EVENTS_MAX} events; trace fewer keys or fewer epochs")]
    TooMany,
}

/// Errors of merging parts of a trace. Their text is one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There are no parts.
    #[error("there are no files; give at least one")]
    Nothing,
    /// The part at this index, from 0, has all nodes already.
    #[error("one of the files covers all nodes; give it alone")]
    Whole(usize),
    /// Two parts of this node.
    #[error("two of the files are of {0}; give one for each node")]
    Twice(NodeId),
    /// The part of this node belongs to another run than the first, or differs from it in nodes,
    /// system or keys.
    #[error("the part of {0} is of another run than the first; give the parts of one run")]
    OtherRun(NodeId),
}
