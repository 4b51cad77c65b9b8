//! From events to stretches of time: what a picture shows.

use adapm_core::{Instant, Key};

use crate::trace::Trace;
use crate::trace::event::Happening;

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it begins.
    pub start: Instant,
    /// When it ends.
    pub end: Instant,
}

impl Span {
    /// Its length in nanoseconds.
    #[must_use]
    pub fn nanos(self) -> u64 {
        self.end.nanos_since(self.start)
    }
}

/// What one node had of one key; each list in the order of time, without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Where the main copy was here.
    pub main: Vec<Span>,
    /// Where a replica was here.
    pub replica: Vec<Span>,
    /// Where acted-on intent was active here.
    pub intent: Vec<Span>,
}

impl Trace {
    /// What each node had of `key`, by node. What lasts at the end of the trace ends with it.
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

/// What has begun and not ended.
#[derive(Clone, Copy, Default)]
struct Open {
    main: Option<Instant>,
    replica: Option<Instant>,
    intent: Option<Instant>,
}

fn close(spans: &mut Vec<Span>, open: &mut Option<Instant>, end: Instant) {
    spans.extend(open.take().map(|start| Span { start, end }));
}
