//! The verdict of the demo in plain words: a sentence per system, made from the measured figures.

use crate::System;

use crate::cli::demo::outcome::{Compared, Outcome};
use crate::cli::format;
use crate::cli::output::Output;

/// Returns a sentence per system in the order of the columns, and one on who won what.
pub(super) fn sentences(compared: &[Compared], nodes: usize, output: Output) -> String {
    let totals = totals(compared);
    let Some(adapm) = totals.iter().find(|total| total.system == System::Adapm) else {
        return String::new();
    };
    let width = output.width().min(LINE_MAX);
    let mut text = String::new();
    for own in &totals {
        let sentence = match own.system {
            System::Classic => classic(own, adapm, nodes),
            System::Full => full(own, adapm) + &stale(compared),
            _ => adaptive(own),
        };
        let line = format!("{}: {sentence}", output.bold(own.system.name()));
        text.push_str(&format!("\n{}\n", format::wrapped(&line, width)));
    }
    text + &format!("\n{}\n", format::wrapped(&winners(compared, &totals), width))
}

/// Returns what each system did in all jobs together.
fn totals(compared: &[Compared]) -> Vec<Outcome> {
    let mut totals: Vec<Outcome> = Vec::new();
    for outcome in compared.iter().flat_map(|job| &job.outcomes) {
        match totals.iter_mut().find(|total| total.system == outcome.system) {
            Some(total) => total.add(outcome),
            None => totals.push(outcome.clone()),
        }
    }
    totals
}

fn adaptive(own: &Outcome) -> String {
    format!(
        "workers announce what they will need. Keys that one node needs moved there ({} times), keys that several \
         need were replicated ({} times), so {} of all accesses needed no other node.",
        format::count(own.totals.relocations),
        format::count(own.totals.replicas),
        format::share(own.local_share()),
    )
}

fn classic(own: &Outcome, adapm: &Outcome, nodes: usize) -> String {
    let (asked, all) = (own.totals.remote + own.totals.waited, own.accesses());
    format!(
        "each key stays on one of {}, so {} of all accesses asked another node and waited for the answer. It took \
         {} and {} of adapm.",
        format::plural(nodes, "node"),
        format::share(asked as f64 / all.max(1) as f64),
        compare(own.seconds(), adapm.seconds(), "the time"),
        compare(own.totals.bytes_sent as f64, adapm.totals.bytes_sent as f64, "the bytes"),
    )
}

fn full(own: &Outcome, adapm: &Outcome) -> String {
    format!(
        "every node has a copy of every key, so {} of all accesses needed no other node, but every change goes to all \
         nodes, whether they need it or not. It took {} and {} of adapm.",
        format::share(own.local_share()),
        compare(own.seconds(), adapm.seconds(), "the time"),
        compare(own.totals.bytes_sent as f64, adapm.totals.bytes_sent as f64, "the bytes"),
    )
}

/// Returns a sentence on the first job that ended clearly worse with full replication than with
/// adapm; empty if none did.
fn stale(compared: &[Compared]) -> String {
    let of = |job: &Compared, system| {
        job.outcomes.iter().find(|outcome| outcome.system == system)?.figure
    };
    let clearly_worse = |job: &Compared| {
        let (full, adapm) = (of(job, System::Full)?, of(job, System::Adapm)?);
        let behind = if job.is_higher_better { adapm - full } else { full - adapm };
        (behind > CLEARLY * adapm).then(|| (job.name, format::figure(full), format::figure(adapm)))
    };
    let found = compared.iter().find_map(clearly_worse);
    found.map_or(String::new(), |(job, full, adapm)| {
        format!(
            " {job} ended at {full} instead of {adapm}: copies of keys that all nodes change at once are refreshed no more \
             often than others."
        )
    })
}

/// Names the best system by each measure.
fn winners(compared: &[Compared], totals: &[Outcome]) -> String {
    let least = |of: &dyn Fn(&Outcome) -> f64| {
        let best = totals.iter().min_by(|a, b| of(a).total_cmp(&of(b)));
        best.map_or("", |total| total.system.name())
    };
    let (fastest, thriftiest) =
        (least(&Outcome::seconds), least(&|total| total.totals.bytes_sent as f64));
    let all = if fastest == thriftiest {
        format!("{fastest} was fastest and sent the fewest bytes")
    } else {
        format!("{fastest} was fastest and {thriftiest} sent the fewest bytes")
    };
    format!(
        "Across all {} jobs {all}. {} All nodes share this machine, where a message takes microseconds; between machines \
         every access that asks another node takes many times longer.",
        counted(compared.len()),
        scores(compared),
    )
}

/// `Classic scored best in kge, mf and wv.`; systems with the same figure share the place.
fn scores(compared: &[Compared]) -> String {
    let mut by_systems: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for job in compared {
        let best = best_figures(job);
        match by_systems.iter_mut().find(|(systems, _)| *systems == best) {
            Some((_, jobs)) => jobs.push(job.name),
            None => by_systems.push((best, vec![job.name])),
        }
    }
    let each = by_systems
        .iter()
        .map(|(systems, jobs)| format!("{} scored best in {}", listed(systems), listed(jobs)));
    let text = each.collect::<Vec<_>>().join("; ");
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).chain(['.']).collect())
}

/// `kge, mf and wv`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn counted(number: usize) -> String {
    ["no", "one", "two", "three"]
        .get(number)
        .map_or_else(|| number.to_string(), |word| (*word).to_owned())
}

/// Returns the systems with the best figure, which is compared with the digits that are shown.
fn best_figures(job: &Compared) -> Vec<&'static str> {
    let loss = |outcome: &Outcome| match outcome.figure {
        Some(figure) if job.is_higher_better => (-figure * SHOWN).round(),
        Some(figure) => (figure * SHOWN).round(),
        None => f64::INFINITY,
    };
    let best = job.outcomes.iter().map(loss).fold(f64::INFINITY, f64::min);
    let best = job.outcomes.iter().filter(|outcome| loss(outcome) <= best);
    best.map(|outcome| outcome.system.name()).collect()
}

/// `3.20 times the bytes`, or what can be said if adapm had none.
fn compare(own: f64, adapm: f64, what: &str) -> String {
    let ratio = own / adapm;
    match ratio {
        _ if adapm <= 0.0 => format!("more than {what}"),
        10.0.. => format!("{ratio:.0} times {what}"),
        _ => format!("{ratio:.2} times {what}"),
    }
}

/// Figures are shown with four digits after the decimal point.
const SHOWN: f64 = 1e4;

/// By which part of adapm's figure another is clearly worse.
const CLEARLY: f64 = 0.05;

/// Longer lines are hard to read.
const LINE_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::outcome::Totals;

    fn outcome(system: System, figure: Option<f64>, seconds: f64) -> Outcome {
        let (epoch_seconds, bytes_sent) = (vec![seconds], seconds as u64);
        Outcome {
            system,
            figure,
            totals: Totals { epoch_seconds, bytes_sent, ..Totals::default() },
        }
    }

    #[test]
    fn ratios_are_of_adapm() {
        assert_eq!(compare(3.0, 2.0, "the time"), "1.50 times the time");
        assert_eq!(compare(31.0, 2.0, "the time"), "16 times the time");
        assert_eq!(compare(3.0, 0.0, "the bytes"), "more than the bytes");
    }

    fn job(name: &'static str, is_higher_better: bool) -> Compared {
        let outcomes = vec![
            outcome(System::Adapm, Some(0.5), 1.0),
            outcome(System::Classic, Some(0.4), 2.0),
            outcome(System::Full, None, 3.0),
        ];
        Compared { name, is_higher_better, outcomes, ..Compared::default() }
    }

    #[test]
    fn full_replication_that_ends_clearly_worse_is_said_and_no_other() {
        let outcome = |system, figure| outcome(system, figure, 1.0);
        let job = |is_higher_better, adapm, full| {
            let outcomes = vec![outcome(System::Adapm, Some(adapm)), outcome(System::Full, full)];
            vec![Compared { name: "kge", is_higher_better, outcomes, ..Compared::default() }]
        };
        let said = stale(&job(true, 0.95, Some(0.8)));
        assert!(said.starts_with(" kge ended at 0.8000 instead of 0.9500: "), "{said}");
        assert!(!stale(&job(false, 0.2, Some(0.25))).is_empty());
        assert!(
            stale(&job(true, 0.95, Some(0.94))).is_empty()
                && stale(&job(true, 0.95, None)).is_empty()
        );
        assert!(stale(&job(true, 0.8, Some(0.95))).is_empty());
    }

    #[test]
    fn the_best_figure_is_the_lowest_error_or_the_highest_share() {
        assert_eq!(
            [best_figures(&job("kge", true)), best_figures(&job("mf", false))],
            [["adapm"], ["classic"]]
        );
        let mut wv = job("wv", true);
        wv.outcomes[2].figure = Some(0.500_04);
        assert_eq!(best_figures(&wv), ["adapm", "full"], "both are shown as 0.5000");
        let jobs = [job("kge", true), wv];
        assert_eq!(scores(&jobs), "Adapm scored best in kge; adapm and full scored best in wv.");
    }

    #[test]
    fn who_won_what_is_one_sentence_each() {
        let jobs = [job("kge", true), job("mf", false), job("wv", true)];
        let text = winners(&jobs, &totals(&jobs));
        let expected = "Across all three jobs adapm was fastest and sent the fewest bytes. Adapm scored best in kge and wv; \
                        classic scored best in mf. All nodes share this machine,";
        assert!(text.starts_with(expected), "{text}");
        let mut jobs = [job("kge", false), job("mf", false), job("wv", false)];
        for outcome in jobs.iter_mut().flat_map(|job| &mut job.outcomes) {
            outcome.totals.bytes_sent = 10 - outcome.totals.bytes_sent;
        }
        let text = winners(&jobs, &totals(&jobs));
        let expected = "Across all three jobs adapm was fastest and full sent the fewest bytes. Classic scored best in kge, mf \
                        and wv. ";
        assert!(text.starts_with(expected), "{text}");
    }
}
