//! A made-up run recorded by tracers: the files, and the events that a reader must find in them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use adapm_core::home::HomeMap;
use adapm_core::{Counter, Instant, Key, NodeId};
use adapm_runtime::trace::{Happening, TraceEvent, TraceHead, Tracer};
use adapm_verify::arb::Choices;

/// The files of a run.
pub(super) struct Told {
    /// Each with its events, in the order of time.
    pub(super) files: Vec<(Vec<u8>, Vec<TraceEvent>)>,
    /// True if the run ended in order.
    pub(super) is_complete: bool,
}

impl Told {
    /// Chooses a small run of one process, or of one for each node.
    pub(super) fn of(choices: &mut Choices<'_>) -> Self {
        let nodes = 1 + choices.below(NODES_MAX) as usize;
        let titles: Vec<(Key, String)> =
            (0..choices.below(KEYS_MAX)).map(|_| (Key(choices.below(8)), text(choices))).collect();
        let (has_parts, is_complete) = (choices.flag(), choices.flag());
        let origin = choices.number();
        let parts: Vec<Option<NodeId>> = if has_parts {
            (0..nodes).map(|node| Some(NodeId(node as u16))).collect()
        } else {
            vec![None]
        };
        let (system, run) = (text(choices), choices.number());
        let files = parts.into_iter().map(|part| {
            let origin = origin.saturating_add(choices.below(3) * 100);
            let head = TraceHead {
                homes: HomeMap::scale(nodes),
                part,
                run,
                system: system.clone(),
                origin,
            };
            file(&head, &titles, is_complete, choices)
        });
        Self { files: files.collect(), is_complete }
    }
}

/// Returns the file of one process, and its events.
fn file(
    head: &TraceHead,
    titles: &[(Key, String)],
    is_complete: bool,
    choices: &mut Choices<'_>,
) -> (Vec<u8>, Vec<TraceEvent>) {
    let page = Page::default();
    let tracer = Tracer::new(page.clone(), titles.to_vec());
    tracer.begin(head);
    let mut copies = Vec::new();
    let mut events = Vec::new();
    let nodes = (0..head.homes.nodes()).map(|node| NodeId(node as u16));
    for &key in tracer.keys() {
        for node in nodes.clone().filter(|node| head.part.is_none_or(|part| part == *node)) {
            let is_home = head.homes.home(key) == node;
            copies.push(Copy {
                key,
                node,
                place: if is_home { Place::Main } else { Place::None },
                intent: false,
            });
            if is_home {
                events.push(TraceEvent {
                    at: Instant::ZERO,
                    key,
                    node,
                    what: Happening::MainArrived,
                });
            }
        }
    }
    let mut now = Instant::ZERO;
    for _ in 0..choices.below(EVENTS_MAX) {
        now = now.plus_nanos(if choices.below(16) == 0 {
            choices.number()
        } else {
            choices.below(200)
        });
        let at = choices.below(copies.len() as u64 + 1) as usize;
        match copies.get_mut(at) {
            Some(copy) => events.push(TraceEvent {
                at: now,
                key: copy.key,
                node: copy.node,
                what: copy.happen(&tracer, now, head.homes.nodes(), choices),
            }),
            None => tracer.mark_at(now, &text(choices)),
        }
    }
    if is_complete {
        tracer.end_at(now);
        // None of this may be in the file.
        tracer.mark_at(now, "behind the end");
    }
    // Drops the writer's buffer too.
    drop(tracer);
    let bytes = page.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (bytes, events)
}

/// The state of a key at a node.
struct Copy {
    key: Key,
    node: NodeId,
    place: Place,
    intent: bool,
}

#[derive(Clone, Copy)]
enum Place {
    None,
    Replica,
    Main,
}

impl Copy {
    /// Makes a possible event happen, and records it by `tracer`.
    fn happen(
        &mut self,
        tracer: &Tracer,
        now: Instant,
        nodes: usize,
        choices: &mut Choices<'_>,
    ) -> Happening {
        let mut observer = tracer.observer(self.node);
        if choices.below(3) == 0 {
            self.intent = !self.intent;
            observer.on_intent(now, self.key, self.intent);
            return if self.intent { Happening::IntentActive } else { Happening::IntentExpired };
        }
        let other = NodeId(choices.below(nodes as u64) as u16);
        let is_main = choices.flag();
        match self.place {
            Place::Main => {
                self.place = Place::None;
                observer.on_relocation(now, self.key, other, Counter(1));
                Happening::MainLeft { to: other }
            }
            Place::None | Place::Replica if is_main => {
                self.place = Place::Main;
                observer.on_arrival(now, self.key, Counter(1));
                Happening::MainArrived
            }
            Place::None => {
                self.place = Place::Replica;
                observer.on_replica_installed(now, self.key, other);
                Happening::ReplicaSetUp { owner: other }
            }
            Place::Replica => {
                self.place = Place::None;
                observer.on_replica_released(now, self.key);
                Happening::ReplicaDropped
            }
        }
    }
}

/// Chooses a name: some are empty, some contain line ends, some are long.
fn text(choices: &mut Choices<'_>) -> String {
    let piece = ["", "/m/027rn", "two words", "a\nb\r", "\u{fc} \u{1f98a}\u{2028}", "#", "end"]
        [choices.below(7) as usize];
    piece.repeat([1, 1, 1, 600][choices.below(4) as usize])
}

/// A file in memory.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NODES_MAX: u64 = 3;
const KEYS_MAX: u64 = 4;
/// Maximum number of events in one file, marks included.
const EVENTS_MAX: u64 = 40;
