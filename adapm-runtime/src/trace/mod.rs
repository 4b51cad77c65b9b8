//! Events of selected keys in a text file: the data behind AdaPM Figure 15 (AdaPM §E).
//!
//! A [`Tracer`] writes while a cluster runs; a [`Trace`] is the parsed file. Only traced keys cost:
//! for any other key, an event is one look at a short sorted list, and accesses of workers are not
//! events. Memory holds only one write buffer. Events of a key are recorded by the node that has
//! the copy, in its own order.
//!
//! ```
//! use adapm_core::{Key, Layout};
//! use adapm_runtime::{Builder, trace::{Trace, Tracer}};
//!
//! let file = std::env::temp_dir().join(format!("adapm-doc-{}.trace", std::process::id()));
//! let tracer = Tracer::create(&file, [(Key(7), "the lucky one".to_owned())])?;
//! let cluster = Builder::<f32>::new(Layout::dense(&[(100, 1)])?).nodes(2).trace(&tracer).build()?;
//! cluster.try_run(|mut worker| worker.localize(&[Key(7)]))?;
//! tracer.finish()?;
//!
//! let trace = Trace::read(std::io::BufReader::new(std::fs::File::open(&file)?))?;
//! let owned: u64 = trace.spans(Key(7)).iter().flat_map(|node| &node.main).map(|span| span.nanos()).sum();
//! assert!(owned <= trace.end().nanos());
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The file
//!
//! Lines of UTF-8, fields separated by one space; a line that starts with `#` is a comment.
//!
//! ```text
//! adapm trace 2                              version
//! nodes 4
//! part n2                                    only if the nodes are processes: this file is of n2 alone
//! run 6b1f0c53d2a98e47                       then also: the run's number, agreed on by all processes
//! system adapm
//! origin 1763752800123456789                 time 0, in nanoseconds since 1970
//! key k17 entity /m/027rn, in 7614 triples   a traced key, and its name for people
//! # nanoseconds key node event
//! 0 k17 n0 main-arrived                      the first place of the main copy: the key's home
//! 0 mark epoch 1                             a mark that the program made
//! 1200345 k17 n1 intent-active               the first acted-on intent of n1
//! 1400990 k17 n0 main-left n1                n0 gave the main copy to n1
//! 1650121 k17 n1 main-arrived
//! 3004500 k17 n2 intent-active
//! 3300100 k17 n2 replica-set-up n1           usable at n2, owned by n1
//! 9400000 k17 n2 intent-expired              the last intent of n2
//! 9400000 k17 n2 replica-dropped
//! 12000000 end                               missing if the run was cut off
//! ```
//!
//! A replica that becomes the main copy ends with `main-arrived`. Lines of one node and key are in
//! the order of time; lines of different nodes nearly so. If nodes are processes, each has its own
//! part: parts of one run number are merged ([`Trace::merge`]), regardless of the clocks of their
//! hosts. Time 0 is the last time that the processes waited for each other before their engines
//! start, equal on all of them within about a round trip. In a sparse layout a main copy counts as
//! present from the start.
//!
//! Not here: pictures, which the command `adapm trace` draws.

mod event;
mod reader;
mod tracer;

pub use event::{Happening, TraceEvent};
pub use reader::{Mark, MergeError, Span, Spans, Trace, TraceError, TraceFault};
pub use tracer::{TraceHead, Tracer};

/// The first line of a file of this version.
const FIRST_LINE: &str = "adapm trace 2";

/// Maximum bytes of a line, its end included.
const LINE_BYTES_MAX: u64 = 4_096;

/// Maximum number of nodes of a trace, and of pairs of key and node.
const NODES_MAX: usize = 1 << 16;

/// Maximum number of events and of marks of a trace.
const EVENTS_MAX: usize = 1 << 24;
