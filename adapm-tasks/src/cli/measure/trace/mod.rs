//! The verb `trace`: what happened to a run's traced keys, as text or drawn.
//!
//! [`text`] and [`draw`] show, [`shares`] is what both count. The file's format is
//! [`adapm_runtime::trace`]'s.

mod draw;
pub(crate) mod error;
mod shares;
mod text;

use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::files;
use adapm_core::{Instant, NodeId};
use adapm_runtime::trace::{Span, Trace};

use crate::cli::args::TraceArgs;
use crate::cli::failure::Failure;
use crate::cli::files::Files;
use crate::cli::files::Outputs;
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::trace::error::TraceFailure;
use crate::cli::output::Output;

/// Reads what `args` name, and prints or draws it.
pub(crate) fn run(args: &TraceArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let read = args.files.iter().map(|file| ("FILE", file.as_path())).collect();
    let written = Files::given([("--svg", &args.svg)]);
    let mut outputs = Outputs::prepare(&Files { read, written }, interrupt)?;
    let trace = self::read(&args.files)?;
    let window = window(args, &trace)?;
    let output = Output::new(false);
    if !outputs.has("--svg") {
        return output.text(&text::summary(&trace, window, output));
    }
    let picture = draw::picture(&trace, window)?;
    outputs
        .save("--svg", &text::headline(&trace, window), |file| file.write_all(picture.as_bytes()));
    let told = outputs.sentences().try_for_each(|sentence| {
        output.text(&format!("{}\n", format::wrapped(sentence, output.width())))
    });
    outputs.finish()?;
    told
}

/// Returns the part of `file` that node `node` writes if each is a process.
pub(crate) fn part_of(file: &Path, node: NodeId) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(format!(".{node}"));
    PathBuf::from(name)
}

fn read(files: &[PathBuf]) -> Result<Trace, TraceFailure> {
    let mut parts = Vec::new();
    for file in files {
        if file.exists() {
            parts.push(read_one(file)?);
        } else {
            read_parts(file, &mut parts)?;
        }
    }
    Trace::merge(parts).map_err(TraceFailure::Parts)
}

/// Reads the parts that processes have written in the place of `file`.
fn read_parts(file: &Path, parts: &mut Vec<Trace>) -> Result<(), TraceFailure> {
    let first = part_of(file, NodeId(0));
    // If neither file exists, the error names the one that was given.
    let first = read_one(if first.exists() { &first } else { file })?;
    let nodes = first.nodes();
    parts.push(first);
    for node in (1..nodes).map(|index| NodeId(u16::try_from(index).unwrap_or(u16::MAX))) {
        let path = part_of(file, node);
        if !path.exists() {
            return Err(TraceFailure::Missing { path, node });
        }
        parts.push(read_one(&path)?);
    }
    Ok(())
}

fn read_one(path: &Path) -> Result<Trace, TraceFailure> {
    let unreadable = |error| TraceFailure::Unreadable { path: path.to_owned(), error };
    let file = files::open(path).map_err(unreadable)?;
    Trace::read(BufReader::new(file))
        .map_err(|error| TraceFailure::Malformed { path: path.to_owned(), error })
}

fn window(args: &TraceArgs, trace: &Trace) -> Result<Span, TraceFailure> {
    let instant = |seconds: f64| Instant::from_nanos((seconds * 1e9) as u64);
    let start = args.from.map_or(Instant::ZERO, instant);
    let end = args.until.map_or(trace.end(), |until| instant(until).min(trace.end()));
    if start >= end {
        return Err(TraceFailure::Nothing { seconds: trace.end().nanos() as f64 / 1e9 });
    }
    Ok(Span { start, end })
}
