//! What the figures of the demo say, in plain words: a sentence per system, made from what was measured.

use adapm_tasks::System;
use adapm_tasks::kge::TrainReport;

use crate::demo::{Outcome, seconds};
use crate::format;
use crate::output::Output;

/// A sentence per system, in the order of the columns.
pub(crate) fn sentences(outcomes: &[Outcome], nodes: usize, output: Output) -> String {
    let find =
        |system| outcomes.iter().find(|outcome| outcome.system == system).map(|outcome| &outcome.report);
    let Some(adapm) = find(System::Adapm) else { return String::new() };
    let mut text = String::from("\n");
    for outcome in outcomes {
        let sentence = match outcome.system {
            System::Classic => classic(&outcome.report, adapm, nodes),
            System::Full => full(&outcome.report, adapm),
            _ => adaptive(&outcome.report),
        };
        text.push_str(&format!("{} {sentence}\n", output.bold(outcome.system.name())));
    }
    text
}

fn adaptive(own: &TrainReport) -> String {
    format!(
        "heard from the loader what each worker will need, and moved ({}) or copied ({}) it there in time: \
         {} of the accesses did not leave their node.",
        format::count(own.stats.relocations),
        format::count(own.stats.replicas),
        format::share(own.stats.local_share()),
    )
}

fn classic(own: &TrainReport, adapm: &TrainReport, nodes: usize) -> String {
    format!(
        "keeps each parameter on one of {nodes} nodes for good, so {} of the accesses were questions to another node: \
         it took {} and sent {}.",
        format::share(own.stats.remote as f64 / accesses(own).max(1) as f64),
        compared(seconds(own), seconds(adapm), "the time"),
        compared(own.stats.bytes_sent as f64, adapm.stats.bytes_sent as f64, "the bytes"),
    )
}

fn full(own: &TrainReport, adapm: &TrainReport) -> String {
    format!(
        "copies everything to every node: all local, but every change goes to all, needed or not: \
         it took {} and sent {}.",
        compared(seconds(own), seconds(adapm), "the time"),
        compared(own.stats.bytes_sent as f64, adapm.stats.bytes_sent as f64, "the bytes"),
    )
}

fn accesses(report: &TrainReport) -> u64 {
    report.stats.local + report.stats.waited + report.stats.remote
}

/// `3.2 times the bytes of adapm`, or `less: 0.80 times the time of adapm`.
fn compared(own: f64, adapm: f64, what: &str) -> String {
    if adapm <= 0.0 {
        return format!("{what} of a run that adapm did without");
    }
    let ratio = own / adapm;
    let less = if ratio < 0.95 { "only " } else { "" };
    format!("{less}{ratio:.2} times {what} of adapm")
}
