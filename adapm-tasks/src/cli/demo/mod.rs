//! The verb `demo`: a small generated job of each of three tasks under three systems, side by side.
//! Each job is a comparison whose command line is chosen here.
//!
//! Nothing is delayed and nothing is left out: every figure is of the run at hand, also where
//! adapting loses.

use std::ffi::OsString;
use std::path::Path;

use crate::System;

use crate::cli::args::DemoArgs;
use crate::cli::demo::outcome::{Compared, Outcome, Sought};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::compare;
use crate::cli::output::Output;
use crate::cli::table::{Align, Table};
use crate::cli::verbs::{Cli, Verb};
use crate::cli::{format, report};

mod outcome;
mod verdict;

/// Reads a figure from an outcome.
type Cell<'a> = &'a dyn Fn(&Outcome) -> String;

/// Trains each job under each system in turn and compares.
pub(crate) fn run(args: &DemoArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(false);
    let (folder, _unkept) = match &args.folder {
        Some(folder) => (folder.clone(), None),
        None => {
            let unkept = tempfile::tempdir().map_err(|error| Failure::Folder {
                path: std::env::temp_dir(),
                reason: format!("{}; check it, or give --out", crate::files::reason(&error)),
            })?;
            (unkept.path().to_path_buf(), Some(unkept))
        }
    };
    if let Some(path) = JOBS.map(|job| folder.join(job.name)).into_iter().find(|own| own.exists()) {
        let reason = "it is there already; give another folder".to_owned();
        return Err(Failure::Folder { path, reason });
    }
    output.text(&introduction(args, output))?;
    let mut all = Vec::new();
    for job in &JOBS {
        let compared = job.compare(args, &folder, interrupt)?;
        if !compared.outcomes.is_empty() {
            output.text(&comparison(job, &compared, output))?;
        }
        if let Some(code) = interrupt.exit_code() {
            output.text("\nstopped: the table is of the runs that had ended\n")?;
            return Err(Failure::Interrupted(code));
        }
        all.push(compared);
    }
    output.text(&verdict::sentences(&all, args.nodes, output))?;
    if let Some(folder) = &args.folder {
        let names = JOBS.map(|job| job.name).join(", ");
        let kept = format!("runs, tables and pictures are in {}: {names}", folder.display());
        output.text(&format!("\n{}\n", format::wrapped(&kept, output.width())))?;
    }
    output.text(&format!("\n{}\n{NEXT}", output.bold("try next")))
}

fn introduction(args: &DemoArgs, output: Output) -> String {
    let names = SYSTEMS.map(System::name).join(", ");
    let heading = output.bold("adapm demo");
    let title = format::wrapped(
        &format!("{heading}: three small jobs, each under {names}"),
        output.width(),
    );
    let mut table = Table::new(&[]);
    for job in &JOBS {
        table.row([output.bold(job.name).to_string(), job.data.to_owned()]);
        let (dim, epochs) = (args.dim.unwrap_or(job.dim), args.epochs.unwrap_or(job.epochs));
        let epochs = format::plural(epochs as usize, "epoch");
        table.row([String::new(), format!("{dim} {}; {epochs}", job.plan)]);
    }
    let cluster = report::cluster(args.nodes, &report::workers(None, args.nodes));
    table.row(["cluster".to_owned(), format!("{cluster}; each run is a process of its own")]);
    format!("{title}\n{}", table.render())
}

/// Returns a column per system, a row per figure, with what the row means.
fn comparison(job: &Job, compared: &Compared, output: Output) -> String {
    let outcomes = &compared.outcomes;
    let mut columns = vec![Align::Left];
    columns.resize(1 + outcomes.len(), Align::Right);
    let mut table = Table::new(&columns);
    let heading = outcomes.iter().map(|outcome| output.bold(outcome.system.name()).to_string());
    table.row([output.bold(job.name).to_string()].into_iter().chain(heading));
    let figure = |figure: Option<f64>| figure.map_or_else(|| "-".into(), format::figure);
    let best = format!("best possible: {}", figure(compared.best));
    let alone = compared.alone.map_or_else(
        || "without evaluation".to_owned(),
        |seconds| format!("adapm on one node: {}", format::seconds(seconds)),
    );
    let rows: [(&str, Cell<'_>, &str); 9] = [
        (job.figure, &|run| figure(run.figure), &best),
        ("training time", &|run| format::seconds(run.seconds()), &alone),
        ("local accesses", &|run| format::share(run.local_share()), "needed no other node"),
        ("waited", &|run| format::count(run.totals.waited), "for a key in transit"),
        ("remote", &|run| format::count(run.totals.remote), "asked another node"),
        ("bytes sent", &|run| format::bytes(run.totals.bytes_sent), "between the nodes"),
        ("relocations", &|run| format::count(run.totals.relocations), "keys moved to a node"),
        ("replicas", &|run| format::count(run.totals.replicas), "copies set up"),
        ("staleness", &staleness, "mean age of a copy"),
    ];
    for (name, cell, note) in rows {
        let cells = outcomes.iter().map(cell);
        table.row([name.to_owned()].into_iter().chain(cells).chain([output.dim(note).to_string()]));
    }
    format!("\n{}", table.render())
}

fn staleness(outcome: &Outcome) -> String {
    let totals = &outcome.totals;
    if totals.refreshes == 0 { "-".into() } else { format::seconds(totals.staleness_mean) }
}

const SYSTEMS: [System; 3] = [System::Adapm, System::Classic, System::Full];

const NEXT: &str = "  adapm train kge --nodes 4 --system lapse  another system, the same graph
  adapm train mf --data RATINGS --nodes 2   your ratings: `user item rating`
  adapm compare kge --nodes 1,2,4 --out C   all that was measured, as pictures
  adapm train kge --help                    all settings

  From a clone, write `cargo run --release --` for `adapm`.
";

/// A job that each system gets, on data that is generated.
struct Job {
    name: &'static str,
    /// The data and the model, in words.
    data: &'static str,
    plan: &'static str,
    dim: usize,
    epochs: u32,
    /// The settings that are not as by default.
    flags: &'static [&'static str],
    /// The figure that is measured in the end.
    figure: &'static str,
    sought: Sought,
}

impl Job {
    /// Compares the systems in a folder of the job's own.
    fn compare(
        &self,
        args: &DemoArgs,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Compared, Failure> {
        let words = self.words(args, &folder.join(self.name));
        let (cli, given) = Cli::read(words)?;
        let Some(Verb::Compare { task }) = cli.verb else { return Ok(Compared::default()) };
        let records = compare::collect(&task, &given, self.name, interrupt)?;
        if let Some(failed) = records.iter().find(|record| record.has_failed()) {
            return Err(Failure::Compared(compare::refusal(failed)));
        }
        Ok(Compared::of((self.name, self.sought), &records, args.nodes))
    }

    /// Returns the command line of the comparison.
    fn words(&self, args: &DemoArgs, folder: &Path) -> Vec<OsString> {
        let (dim, epochs) = (args.dim.unwrap_or(self.dim), args.epochs.unwrap_or(self.epochs));
        let systems = SYSTEMS.map(System::name).join(",");
        let (nodes, seed) = (args.nodes.to_string(), args.seed.to_string());
        let (dim, epochs) = (dim.to_string(), epochs.to_string());
        let mut words = vec!["adapm", "compare", self.name, "--systems", &systems, "--runs", "1"];
        words.extend(["--nodes", &nodes, "--seed", &seed, "--dim", &dim, "--epochs", &epochs]);
        words.extend(self.flags);
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.extend(["--out".into(), folder.into()]);
        words
    }
}

const JOBS: [Job; 3] = [
    // Few facts and few epochs: at the usual rate, where a run ends depends on luck. The papers'
    // way to draw negatives (AdaPM §5.1): many small accesses, which is what a parameter manager
    // is for.
    Job {
        name: "kge",
        data: "generated families: who is whose what",
        plan: "reals an entity, 16 negatives for each side of a fact",
        dim: 64,
        epochs: 8,
        flags: &[
            "--learning-rate",
            "0.2",
            "--negatives",
            "independent",
            "--negative-count",
            "16",
            "--loss",
            "logistic",
            "--n3",
            "0",
            "--valid-every",
            NEVER,
        ],
        figure: "test MRR",
        sought: Sought { field: "mrr", best: "best_mrr", is_higher_better: true },
    },
    // Noise is small here, and nothing is selected: what is compared is the end.
    Job {
        name: "mf",
        data: "generated ratings: rows and columns of a matrix, some much more often than others",
        plan: "factors",
        dim: 8,
        epochs: 8,
        flags: &["--l2", "0.01", "--no-hold-back", "--valid-every", NEVER],
        figure: "test RMSE",
        sought: Sought { field: "rmse", best: "best_rmse", is_higher_better: false },
    },
    // Few words, each seen often: steps may be long, and none is too frequent. After 3 epochs
    // accuracy depends on luck.
    Job {
        name: "wv",
        data: "generated sentences, with questions of analogy",
        plan: "numbers a vector, skip-gram, 5 negatives",
        dim: 32,
        epochs: 5,
        flags: &[
            "--sentences",
            "20000",
            "--min-count",
            "1",
            "--learning-rate",
            "0.1",
            "--sample",
            "0",
        ],
        figure: "accuracy",
        sought: Sought { field: "accuracy", best: "best_accuracy", is_higher_better: true },
    },
];

/// Epochs after which one is evaluated: selecting one on the way would take longer than the
/// training.
const NEVER: &str = "1000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_a_comparison_on_the_nodes_that_are_asked_for() {
        let args = DemoArgs { nodes: 3, epochs: Some(2), ..DemoArgs::default_values() };
        for job in &JOBS {
            let words = job.words(&args, Path::new("demo"));
            assert!(words.windows(2).any(|pair| pair == ["--nodes", "3"]), "{words:?}");
            let (cli, given) = Cli::read(words).expect("a command line");
            assert!(matches!(cli.verb, Some(Verb::Compare { .. })), "{}", job.name);
            assert_eq!(given.settings()["epochs"].as_u64(), Some(2), "{}", job.name);
        }
    }
}
