//! What the figures of the demo say, in plain words: a sentence per system, made from what was measured.

use adapm_tasks::System;
use adapm_tasks::kge::{ManagerStats, TrainReport};
use console::Term;

use crate::demo::{Outcome, seconds};
use crate::format;
use crate::output::Output;

/// A sentence per system in the order of the columns, and one on who won what.
pub(crate) fn sentences(outcomes: &[Outcome], nodes: usize, output: Output) -> String {
    let adapm = outcomes.iter().find(|outcome| outcome.system == System::Adapm);
    let Some(adapm) = adapm.map(|outcome| &outcome.report) else { return String::new() };
    let width = usize::from(Term::stdout().size().1).min(LINE_MAX);
    let mut text = String::new();
    for outcome in outcomes {
        let own = &outcome.report;
        let sentence = match outcome.system {
            System::Classic => classic(own, adapm, nodes),
            System::Full => full(own, adapm),
            _ => adaptive(&own.stats),
        };
        let line = format!("{}: {sentence}", output.bold(outcome.system.name()));
        text.push_str(&format!("\n{}\n", format::wrapped(&line, width)));
    }
    text + &format!("\n{}\n", format::wrapped(&winners(outcomes), width))
}

fn adaptive(stats: &ManagerStats) -> String {
    format!(
        "workers tell ahead what they will need; keys that one node needs moved there ({} times), keys that several \
         need were copied ({} times), so that {} of the accesses needed no other node.",
        format::count(stats.relocations),
        format::count(stats.replicas),
        format::share(stats.local_share()),
    )
}

fn classic(own: &TrainReport, adapm: &TrainReport, nodes: usize) -> String {
    let (asked, all) = (own.stats.remote + own.stats.waited, accesses(&own.stats));
    format!(
        "each key stays on one of {}, so that {} of the accesses asked another node and waited for the answer; \
         {} and {} of adapm.",
        format::plural(nodes, "node"),
        format::share(asked as f64 / all.max(1) as f64),
        compared(seconds(own), seconds(adapm), "the time"),
        compared(own.stats.bytes_sent as f64, adapm.stats.bytes_sent as f64, "the bytes"),
    )
}

fn full(own: &TrainReport, adapm: &TrainReport) -> String {
    format!(
        "every node has a copy of every key, so that {} of the accesses needed no other node, and every change goes \
         to all nodes whether they need it or not; {} and {} of adapm.",
        format::share(own.stats.local_share()),
        compared(seconds(own), seconds(adapm), "the time"),
        compared(own.stats.bytes_sent as f64, adapm.stats.bytes_sent as f64, "the bytes"),
    )
}

/// Which system was best at what, whoever that is.
fn winners(outcomes: &[Outcome]) -> String {
    let least = |of: &dyn Fn(&TrainReport) -> f64| {
        let best = outcomes.iter().min_by(|a, b| of(&a.report).total_cmp(&of(&b.report)));
        best.map_or("", |outcome| outcome.system.name())
    };
    let quality = |report: &TrainReport| -report.test.map_or(0.0, |test| test.mrr);
    format!(
        "Here {} was fastest, {} sent the fewest bytes and {} has the highest MRR. All nodes share this machine, where \
         a message takes microseconds; between machines every access that asks another node takes many times longer.",
        least(&seconds),
        least(&|report| report.stats.bytes_sent as f64),
        least(&quality),
    )
}

fn accesses(stats: &ManagerStats) -> u64 {
    stats.local + stats.waited + stats.remote
}

/// `3.20 times the bytes`, or what can be said if adapm had none.
fn compared(own: f64, adapm: f64, what: &str) -> String {
    let ratio = own / adapm;
    match ratio {
        _ if adapm <= 0.0 => format!("more than {what}"),
        10.0.. => format!("{ratio:.0} times {what}"),
        _ => format!("{ratio:.2} times {what}"),
    }
}

/// Longer lines are hard to read.
const LINE_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_adapm() {
        assert_eq!(compared(3.0, 2.0, "the time"), "1.50 times the time");
        assert_eq!(compared(31.0, 2.0, "the time"), "16 times the time");
        assert_eq!(compared(3.0, 0.0, "the bytes"), "more than the bytes");
    }
}
