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
    /// The best that is possible, where it is known: on generated data.
    best_mrr: Option<f64>,
}

impl Quality {
    pub(super) fn new(metrics: Option<&RankMetrics>, is_generated: bool) -> Self {
        Self {
            mrr: metrics.map(|metrics| metrics.mrr),
            mrr_optimistic: metrics.map(|metrics| metrics.mrr_optimistic),
            mrr_pessimistic: metrics.map(|metrics| metrics.mrr_pessimistic),
            hits_at_1: metrics.map(|metrics| metrics.hits_at_1),
            hits_at_3: metrics.map(|metrics| metrics.hits_at_3),
            hits_at_10: metrics.map(|metrics| metrics.hits_at_10),
            best_mrr: is_generated.then_some(BEST_MRR),
        }
    }
}

/// A row per split that was evaluated; empty if none was.
pub(super) fn table(splits: &[(&str, Option<&RankMetrics>)], is_generated: bool) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let mut any = false;
    for (split, metrics) in splits {
        let Some(metrics) = metrics else { continue };
        if !any {
            table.row(["filtered", "MRR", "Hits@1", "Hits@3", "Hits@10"]);
            any = true;
        }
        let mut row = vec![(*split).to_owned()];
        row.extend(
            [metrics.mrr, metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10].map(format::figure),
        );
        if metrics.has_ties() {
            let (worst, best) = (metrics.mrr_pessimistic, metrics.mrr_optimistic);
            row.push(format!("pessimistic {worst:.4}, optimistic {best:.4}"));
        }
        table.row(row);
    }
    if !any {
        return String::new();
    }
    if is_generated {
        table.row(["best possible".to_owned(), format::figure(BEST_MRR)]);
    }
    table.render() + "\n"
}

/// Each held-out fact of generated family trees follows from a training fact.
pub(crate) const BEST_MRR: f64 = 1.0;
