//! Figures over ranks, for people and for programs.

use adapm_tasks::metric::RankMetrics;
use serde::Serialize;

use crate::format;
use crate::table::{Align, Table};

/// Means over ranks.
#[derive(Serialize)]
pub(super) struct Quality {
    mrr: Option<f64>,
    mrr_optimistic: Option<f64>,
    mrr_pessimistic: Option<f64>,
    hits_at_1: Option<f64>,
    hits_at_3: Option<f64>,
    hits_at_10: Option<f64>,
    /// What ranking by frequency reaches.
    baseline_mrr: Option<f64>,
    /// The best that is possible, where it is known: on generated data.
    best_mrr: Option<f64>,
}

impl Quality {
    pub(super) fn new(
        metrics: Option<&RankMetrics>,
        baseline: Option<&RankMetrics>,
        is_generated: bool,
    ) -> Self {
        Self {
            mrr: metrics.map(|metrics| metrics.mrr),
            mrr_optimistic: metrics.map(|metrics| metrics.mrr_optimistic),
            mrr_pessimistic: metrics.map(|metrics| metrics.mrr_pessimistic),
            hits_at_1: metrics.map(|metrics| metrics.hits_at_1),
            hits_at_3: metrics.map(|metrics| metrics.hits_at_3),
            hits_at_10: metrics.map(|metrics| metrics.hits_at_10),
            baseline_mrr: baseline.map(|metrics| metrics.mrr),
            best_mrr: is_generated.then_some(BEST_MRR),
        }
    }
}

/// A row per split that was evaluated, and what ranking by frequency reaches on the last; empty if none was.
pub(super) fn table(
    splits: &[(&str, Option<&RankMetrics>)],
    baseline: Option<(&RankMetrics, f32)>,
    is_generated: bool,
) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let mut any = false;
    for (split, metrics) in splits {
        let Some(metrics) = metrics else { continue };
        if !any {
            table.row(["filtered", "MRR", "Hits@1", "Hits@3", "Hits@10"]);
            any = true;
        }
        let mut row = figures(split, metrics);
        if metrics.has_ties() {
            let (worst, best) = (metrics.mrr_pessimistic, metrics.mrr_optimistic);
            row.push(format!("pessimistic {worst:.4}, optimistic {best:.4}"));
        }
        table.row(row);
    }
    if !any {
        return String::new();
    }
    if let Some((baseline, weight)) = baseline {
        let mut row = figures("by frequency", baseline);
        row.push(match weight {
            0.0 => "the obvious baseline".to_owned(),
            weight if weight > 1.0 => "decides above".to_owned(),
            weight => format!("weighs {weight} above"),
        });
        table.row(row);
    }
    if is_generated {
        table.row(["best possible".to_owned(), format::figure(BEST_MRR)]);
    }
    table.render() + "\n"
}

fn figures(name: &str, metrics: &RankMetrics) -> Vec<String> {
    let RankMetrics { mrr, hits_at_1, hits_at_3, hits_at_10, .. } = *metrics;
    let figures = [mrr, hits_at_1, hits_at_3, hits_at_10].map(format::figure);
    [name.to_owned()].into_iter().chain(figures).collect()
}

/// Each held-out fact of generated family trees follows from a training fact.
pub(crate) const BEST_MRR: f64 = 1.0;
