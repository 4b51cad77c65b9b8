//! Target `traces`: any file is a trace of keys or is refused at one of its lines; a trace lies
//! within its time, survives writing and reading, and is merged with others or refused in one line.
//!
//! The first byte chooses between files as they are, cut at zeros, with a sound head or without,
//! and files that tracers write of a made-up run, with changes here and there. Files without
//! changes must read back as recorded. Not here: opening files, text and pictures of them, whose
//! columns are checked.

mod told;

use adapm_core::{Instant, Key};
use adapm_runtime::trace::{Span, Trace, TraceError};
use adapm_verify::arb::Choices;

use crate::shares::shares;
use crate::traces::told::Told;

/// Reads the files that `bytes` choose. Returns true if one of them is a trace of something.
pub fn traces(bytes: &[u8]) -> bool {
    let Some((&form, rest)) = bytes.split_first() else { return false };
    let files = if form & 1 == 0 { raw(form, rest) } else { changed(form, rest) };
    let traces: Vec<Trace> = files.iter().take(FILES_MAX).filter_map(|file| read(file)).collect();
    let is_of_something = traces.iter().any(|trace| !trace.events().is_empty());
    for trace in &traces {
        check(trace);
        assert_eq!(
            read(written(trace).as_bytes()).as_ref(),
            Some(trace),
            "a trace is read as it is written"
        );
    }
    match Trace::merge(traces) {
        Ok(whole) => check(&whole),
        Err(error) => {
            assert!(!error.to_string().contains(char::is_control), "an error is one line")
        }
    }
    is_of_something
}

/// Returns the files as they are, or after a sound head.
fn raw(form: u8, bytes: &[u8]) -> Vec<Vec<u8>> {
    let head = if form & 2 == 0 { HEAD } else { "" };
    bytes.split(|byte| *byte == 0).map(|file| [head.as_bytes(), file].concat()).collect()
}

/// Returns files of tracers, with changes.
fn changed(form: u8, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut choices = Choices::from_bytes(bytes);
    let told = Told::of(&mut choices);
    let mut files = Vec::new();
    for (file, events) in told.files {
        let trace = read(&file).expect("what a tracer writes is a trace");
        assert_eq!(trace.events(), events, "a trace is what was told");
        assert_eq!(trace.is_complete(), told.is_complete);
        files.push(file);
    }
    if form & 2 == 0 {
        files.iter_mut().for_each(|file| change(file, &mut choices));
    }
    files
}

fn change(file: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(CHANGES_MAX) {
        // Mostly after the head, whose faults hide all others.
        let from = [0, file.len() / 2][choices.below(2) as usize];
        let at = from + choices.below((file.len() - from) as u64 + 1) as usize;
        match choices.below(5) {
            0 => file.truncate(at),
            1 => file.insert(at, choices.below(256) as u8),
            2 if at < file.len() => drop(file.remove(at)),
            3 if at < file.len() => file[at] = choices.below(256) as u8,
            // Repeats a line.
            4 if at < file.len() => {
                let line =
                    file[at..].split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
                let line = line.to_vec();
                file.splice(at..at, line);
            }
            _ => {}
        }
    }
}

fn read(file: &[u8]) -> Option<Trace> {
    match Trace::read(file) {
        Ok(trace) => Some(trace),
        Err(error) => {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            let TraceError::Line { line, .. } = error else {
                panic!("memory can be read: {error}")
            };
            // An unfinished line, and a missing end, count as one more.
            let lines = file.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert!((1..=lines + 1).contains(&line), "{error}: there is no such line");
            None
        }
    }
}

/// Checks the invariants of every trace.
fn check(trace: &Trace) {
    let nodes = trace.nodes();
    assert!(trace.parts().is_sorted() && trace.parts().iter().all(|part| part.index() < nodes));
    assert!(
        trace.events().is_sorted_by_key(|event| event.at)
            && trace.marks().is_sorted_by_key(|mark| mark.at)
    );
    let keys: Vec<Key> = trace.keys().iter().map(|(key, _)| *key).collect();
    for event in trace.events() {
        assert!(event.at <= trace.end() && event.node.index() < nodes && keys.contains(&event.key));
    }
    let window = Span { start: Instant::ZERO, end: trace.end() };
    for key in keys.into_iter().take(KEYS_MAX) {
        let all = trace.spans(key);
        assert_eq!(all.len(), nodes, "each node has its spans");
        for spans in all {
            [spans.main, spans.replica, spans.intent]
                .iter()
                .for_each(|spans| check_spans(spans, window));
        }
    }
}

fn check_spans(spans: &[Span], window: Span) {
    assert!(spans.iter().all(|span| span.start <= span.end && span.end <= window.end), "{spans:?}");
    assert!(spans.windows(2).all(|two| two[0].end <= two[1].start), "spans overlap: {spans:?}");
    if window.nanos() > 0 && !spans.is_empty() {
        let columns = shares(spans, window, COLUMNS);
        assert!(
            columns.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)),
            "{columns:?} of {spans:?}"
        );
    }
}

/// Formats the file of an unmerged trace.
fn written(trace: &Trace) -> String {
    let mut file = format!("adapm trace 2\nnodes {}\n", trace.nodes());
    let mut line = |line: String| file.extend([line.as_str(), "\n"]);
    trace.parts().iter().for_each(|part| line(format!("part {part}")));
    trace.run().into_iter().for_each(|run| line(format!("run {run:016x}")));
    line(format!("system {}", trace.system()));
    line(format!("origin {}", trace.origin()));
    for (key, title) in trace.keys() {
        line(if title.is_empty() { format!("key {key}") } else { format!("key {key} {title}") });
    }
    trace.events().iter().for_each(|event| line(event.to_string()));
    trace.marks().iter().for_each(|mark| line(format!("{} mark {}", mark.at.nanos(), mark.text)));
    if trace.is_complete() {
        line(format!("{} end", trace.end().nanos()));
    }
    file
}

const HEAD: &str = "adapm trace 2\nnodes 3\nsystem adapm\norigin 10\nkey k7 seven\nkey k8 eight\n";

/// Maximum number of files in one input.
const FILES_MAX: usize = 8;
/// Maximum number of changes to one file.
const CHANGES_MAX: u64 = 6;
/// Maximum number of keys whose spans are checked: a file may claim 65,536 nodes.
const KEYS_MAX: usize = 4;
/// Columns of a picture.
const COLUMNS: usize = 7;
