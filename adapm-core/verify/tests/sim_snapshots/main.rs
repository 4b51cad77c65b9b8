//! The costs of each system on six patterns of access, on four simulated nodes: the shape of
//! AdaPM Table 2 and Figures 8 and 9 in the small. A change of cost shows as a difference from the
//! tables in this folder.
//!
//! `ADAPM_BLESS=1 cargo test -p adapm-verify --test sim_snapshots` rewrites the tables. Times and
//! bytes are those of the model ([`adapm_verify::sim::engines`]); the comparison of systems is what
//! counts ([`claims`]), and what a system's description says it costs ([`formulas`]).

mod claims;
mod formulas;
mod pattern;
mod run;

use std::path::PathBuf;
use std::{env, fs};

use adapm_core::policy::System;

use crate::pattern::Pattern;
use crate::run::{Cost, Setting, cost};

/// Columns, right-aligned except the first.
const COLUMNS: [(&str, usize); 11] = [
    ("system", 22),
    ("ms", 8),
    ("messages", 9),
    ("kB", 9),
    ("local %", 9),
    ("waited %", 9),
    ("remote %", 9),
    ("relocated", 10),
    ("replicas", 9),
    ("held", 8),
    ("stale us", 9),
];

fn line(cells: [String; COLUMNS.len()]) -> String {
    let mut line = String::new();
    for (index, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        line += &if index == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") };
    }
    line.trim_end().to_owned() + "\n"
}

fn row(system: System, cost: &Cost) -> String {
    let percent = |count: u64| format!("{:.2}", 100.0 * count as f64 / cost.reads() as f64);
    line([
        system.name().to_owned(),
        format!("{:.1}", cost.nanos as f64 / 1e6),
        cost.messages.to_string(),
        format!("{:.1}", cost.bytes as f64 / 1e3),
        percent(cost.local),
        percent(cost.waited),
        percent(cost.remote),
        cost.relocations.to_string(),
        cost.replicas.to_string(),
        format!("{:.1}", cost.replicas_held()),
        format!("{:.0}", cost.staleness_nanos as f64 / 1e3),
    ])
}

fn table(pattern: Pattern) -> String {
    let mut table = format!("{}\n\n", pattern.description());
    table += &line(COLUMNS.map(|(name, _)| name.to_owned()));
    for system in System::ALL {
        table += &row(system, &cost(pattern, system, Setting::default()));
    }
    table + FOOT
}

#[test]
fn costs_are_those_of_the_tables() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sim_snapshots");
    let mut changed = Vec::new();
    for pattern in Pattern::ALL {
        let path = folder.join(format!("{}.txt", pattern.name()));
        let table = table(pattern);
        if env::var_os("ADAPM_BLESS").is_some() {
            fs::write(&path, &table).expect("a table can be written");
        }
        let told = fs::read_to_string(&path).unwrap_or_default();
        if told != table {
            changed.push(format!("{}\nis told, but it is\n\n{table}", told));
        }
    }
    assert!(
        changed.is_empty(),
        "costs have changed; if they may, write them with ADAPM_BLESS=1\n\n{}",
        changed.join("\n")
    );
}

const FOOT: &str = "
held: replicas held on all nodes, the mean over time. stale us: mean staleness of a refresh, microseconds.
full, nups, parallax: after their replicas were set up.
";
