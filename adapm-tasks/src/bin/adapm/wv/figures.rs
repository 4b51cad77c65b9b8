//! Answers to questions and agreement with people, for people and for programs.

use adapm_tasks::wv::{AnalogyReport, SectionKind, SimilarityReport, Tally};
use serde::Serialize;

use crate::format;
use crate::table::{Align, Table};

/// What vectors know, in numbers.
#[derive(Serialize)]
pub(super) struct Quality {
    /// Share of the seen questions with the right answer.
    accuracy: Option<f64>,
    /// Share of the seen questions to which the word nearest to the third is the right answer.
    baseline_accuracy: Option<f64>,
    /// Share of the questions whose words all have vectors.
    coverage: Option<f64>,
    /// Share of all questions with the right answer.
    accuracy_of_all: Option<f64>,
    semantic_accuracy: Option<f64>,
    syntactic_accuracy: Option<f64>,
    questions: Option<u64>,
    /// Spearman's correlation over the seen pairs.
    similarity: Option<f64>,
    similarity_coverage: Option<f64>,
    /// The best accuracy that is possible, where it is known: on generated text.
    best_accuracy: Option<f64>,
}

impl Quality {
    pub(super) fn new(
        analogies: Option<&AnalogyReport>,
        similarity: Option<&SimilarityReport>,
        are_planted: bool,
    ) -> Self {
        let total = analogies.map(AnalogyReport::total);
        let of_kind = |kind| analogies.map(|report| report.of_kind(kind).accuracy());
        Self {
            accuracy: total.map(Tally::accuracy),
            baseline_accuracy: total.map(Tally::baseline_accuracy),
            coverage: total.map(Tally::coverage),
            accuracy_of_all: total.map(Tally::accuracy_of_all),
            semantic_accuracy: of_kind(SectionKind::Semantic),
            syntactic_accuracy: of_kind(SectionKind::Syntactic),
            questions: total.map(|tally| tally.asked),
            similarity: similarity.and_then(|report| report.correlation),
            similarity_coverage: similarity.map(|report| report.seen as f64 / report.asked.max(1) as f64),
            best_accuracy: are_planted.then_some(BEST_ACCURACY),
        }
    }
}

/// A row per section and one of all; empty if nothing was asked.
pub(super) fn table(
    analogies: Option<&AnalogyReport>,
    similarity: Option<&SimilarityReport>,
    are_planted: bool,
) -> String {
    let mut text = String::new();
    if let Some(report) = analogies {
        let columns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Right];
        let mut table = Table::new(&columns);
        table.row(["", "accuracy", "baseline", "seen", "coverage", "of all"]);
        for section in &report.sections {
            row(&mut table, &section.name, section.tally);
        }
        row(&mut table, "semantic", report.of_kind(SectionKind::Semantic));
        row(&mut table, "syntactic", report.of_kind(SectionKind::Syntactic));
        row(&mut table, "all", report.total());
        if are_planted {
            table.row(["best possible".to_owned(), format::figure(BEST_ACCURACY)]);
        }
        text.push_str(&table.render());
        text.push_str("baseline: the word nearest to the third of a question, which needs no analogy\n\n");
    }
    if let Some(report) = similarity {
        let mut table = Table::new(&[Align::Left]);
        let correlation = report.correlation.map_or_else(|| "none".to_owned(), format::figure);
        let (seen, asked) = (format::count(report.seen), format::count(report.asked));
        table.row(["similarity", &format!("Spearman {correlation} over {seen} of {asked} pairs")]);
        text.push_str(&table.render());
        text.push('\n');
    }
    text
}

fn row(table: &mut Table, name: &str, tally: Tally) {
    // What was not asked has no share.
    let share = |over: u64, share: f64| if over == 0 { "-".to_owned() } else { format::figure(share) };
    table.row([
        name.to_owned(),
        share(tally.seen, tally.accuracy()),
        share(tally.seen, tally.baseline_accuracy()),
        format!("{} of {}", format::count(tally.seen), format::count(tally.asked)),
        share(tally.asked, tally.coverage()),
        share(tally.asked, tally.accuracy_of_all()),
    ]);
}

/// All questions about the generated text have answers that follow from it.
pub(crate) const BEST_ACCURACY: f64 = 1.0;
