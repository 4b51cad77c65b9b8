//! The verb `partition`: which node has which keys and samples of a task, in a file for its runs.
//!
//! Flags of data and model are those of `train`: samples and keys are those that such a run has.

use std::fs;
use std::path::Path;
use std::time::Instant;

use adapm_core::{Key, Layout};
use clap::{ArgMatches, Args, FromArgMatches};
use serde::Serialize;

use crate::cli::args::{
    PartitionOwnArgs, ProcessArgs, SettingsArgs, TraceKeysArgs, TrainOutputArgs,
};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::format;
use crate::cli::input as reading;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::program::{Program, Source, TrainArgs};
use crate::cli::table::{Align, Table};
use crate::files;
use crate::partition::{Bigraph, BigraphError, Costs, Options, PARTS_MAX, PartitionFile, hybrid};
use crate::run::survey::{Survey, Surveyed};
use crate::run::{Config as _, Keep, Run};

/// The flags of training that choose data and parameters, and those of a partition.
pub(crate) struct PartitionArgs<P: Program> {
    train: TrainArgs<P>,
    own: PartitionOwnArgs,
}

/// The flags as they are typed.
#[derive(Args)]
#[command(args_override_self = true)]
struct Typed<P: Program> {
    #[command(flatten)]
    own: PartitionOwnArgs,
    #[command(flatten, next_help_heading = "Data")]
    flags: P::TrainFlags,
    #[command(flatten, next_help_heading = "Model")]
    config: P::Config,
}

impl<P: Program> FromArgMatches for PartitionArgs<P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Typed { own, flags, config } = Typed::<P>::from_arg_matches(matches)?;
        let train = TrainArgs {
            settings: SettingsArgs::default(),
            flags,
            config,
            homes: None,
            output: TrainOutputArgs::default(),
            traced: TraceKeysArgs::default(),
            processes: ProcessArgs::default(),
        };
        Ok(Self { train, own })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<P: Program> Args for PartitionArgs<P> {
    fn augment_args(command: clap::Command) -> clap::Command {
        Typed::<P>::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Typed::<P>::augment_args_for_update(command)
    }
}

/// Partitions what training would train on, shows the parts and writes them to a file.
pub(crate) fn run<P: Program>(
    args: &PartitionArgs<P>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let PartitionArgs { train, own } = args;
    let output = Output::new(own.json);
    P::check_flags(train).map_err(|error| *error.0)?;
    train.config.check()?;
    let nodes = nodes_of(train)?;
    let mut files = P::files(&train.flags);
    files.read.extend(Files::given([("--bandwidth", &own.bandwidth)]));
    files.written = vec![(OUT_FLAG, own.out.as_path())];
    let mut outputs = Outputs::prepare(&files, interrupt)?;
    outputs.copies();
    let costs = own.bandwidth.as_deref().map(|path| costs(path, nodes)).transpose()?;
    let options = Options {
        rounds: own.rounds,
        store_rate: own.store_rate,
        priority: own.priority,
        costs,
        ..Options::usual(train.config.run().seed)
    };
    options.check(nodes).map_err(input)?;
    let read = || P::read(train).map_err(|error| *error.0);
    let (data, source) = reading::read(output, interrupt, true, read)?;
    outputs.check_inputs()?;
    let stopped = || Failure::Interrupted(interrupt.exit_code().unwrap_or(1));
    let Surveyed { graph, digest } = surveyed::<P>(train, &data)?;
    let began = Instant::now();
    let partition = hybrid(&graph, nodes, &options, interrupt.stop()).map_err(input)?;
    let seconds = began.elapsed().as_secs_f64();
    let file = PartitionFile::new(P::NAME, options.seed, digest, partition.ok_or_else(stopped)?);
    outputs.save(OUT_FLAG, &format!("the parts of {nodes} nodes"), |to| file.write_to(to));
    let report = Report::new(&graph, &file, seconds);
    output.text(&table::<P>(&report, &source, output))?;
    outputs.sentences().try_for_each(|sentence| output.sentence(sentence))?;
    output.object(&Object {
        task: P::NAME,
        data: &source.text,
        generated: source.is_generated,
        nodes,
        seed: options.seed,
        report: &report,
        saved: outputs.saved(OUT_FLAG).map(|path| path.display().to_string()),
    })?;
    outputs.finish()?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

/// Returns the number of parts.
fn nodes_of<P: Program>(train: &TrainArgs<P>) -> Result<usize, Failure> {
    match train.config.cluster().nodes {
        None => Err(Failure::Input("a part is for a node: give --nodes N".to_owned())),
        Some(nodes) if nodes > PARTS_MAX => Err(Failure::Input(format!(
            "--nodes {nodes}: a partition has {PARTS_MAX} parts at most"
        ))),
        Some(nodes) => Ok(nodes),
    }
}

fn input(error: BigraphError) -> Failure {
    Failure::Input(error.to_string())
}

/// Returns what training would train on.
fn surveyed<P: Program>(train: &TrainArgs<P>, data: &P::Data) -> Result<Surveyed, Failure> {
    let mut config = train.config.clone();
    let (_, run) = config.common_mut();
    run.keep = Keep::Nothing;
    let survey = Survey::default();
    P::train(data, &config, &Run::alone().surveyed_by(&survey))?;
    let none = || Failure::Input("the task has shown no samples".to_owned());
    survey.into_found().ok_or_else(none)
}

/// Reads bandwidths between so many nodes.
fn costs(path: &Path, nodes: usize) -> Result<Costs, Failure> {
    let refused =
        |text: String| Failure::Input(format!("{} (--bandwidth): {text}", path.display()));
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Input(files::unreadable(path, Some("--bandwidth"), &error)))?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (line, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let separated = |letter: char| letter == ',' || letter.is_whitespace();
        let words = text.split(separated).filter(|word| !word.is_empty());
        let numbers: Result<Vec<f64>, _> = words.map(str::parse).collect();
        match numbers {
            Ok(numbers) if numbers.len() == nodes => rows.push(numbers),
            Ok(numbers) => {
                let given = numbers.len();
                let text = format!("line {} has {given} numbers; give {nodes}", line + 1);
                return Err(refused(text));
            }
            Err(_) => return Err(refused(format!("line {} is no list of numbers", line + 1))),
        }
    }
    if rows.len() != nodes {
        return Err(refused(format!(
            "it has {} lines; give one for each of {nodes} nodes",
            rows.len()
        )));
    }
    let positive = || refused("a bandwidth between two nodes is not above 0".to_owned());
    Costs::of_bandwidths(&rows).ok_or_else(positive)
}

/// Parts in numbers.
#[derive(Serialize)]
struct Report {
    keys: usize,
    samples: usize,
    accesses: usize,
    /// Accesses of samples to keys with another home, as a share of all.
    remote_share: f64,
    /// Those of them to keys without a replica there.
    remote_share_with_replicas: f64,
    /// The same with homes by hash and samples dealt in turn.
    remote_share_by_hash: f64,
    seconds: f64,
    parts: Vec<Part>,
}

#[derive(Clone, Default, Serialize)]
struct Part {
    node: usize,
    keys: usize,
    replicas: usize,
    samples: usize,
    accesses: u64,
    remote: u64,
    remote_with_replicas: u64,
}

impl Report {
    /// Goes over all accesses once.
    fn new(graph: &Bigraph, partition: &PartitionFile, seconds: f64) -> Self {
        let nodes = partition.nodes;
        let mut parts: Vec<Part> =
            (0..nodes).map(|node| Part { node, ..Part::default() }).collect();
        partition.home.iter().for_each(|node| parts[usize::from(*node)].keys += 1);
        let mut hashed = 0;
        for (sample, node) in
            partition.nodes_of_samples().iter().map(|node| usize::from(*node)).enumerate()
        {
            let (part, replicas) = (&mut parts[node], &partition.secondary[node]);
            part.samples += 1;
            for key in graph.of(sample) {
                part.accesses += 1;
                let is_remote = usize::from(partition.home[*key as usize]) != node;
                let key = Key((*key).into());
                part.remote += u64::from(is_remote);
                part.remote_with_replicas +=
                    u64::from(is_remote && replicas.binary_search(&key).is_err());
                hashed += u64::from(Layout::home(key, nodes).index() != sample % nodes);
            }
        }
        for (part, replicas) in parts.iter_mut().zip(&partition.secondary) {
            part.replicas = replicas.len();
        }
        let share = |remote: u64| remote as f64 / graph.accesses().max(1) as f64;
        Self {
            keys: graph.keys(),
            samples: graph.samples(),
            accesses: graph.accesses(),
            remote_share: share(parts.iter().map(|part| part.remote).sum()),
            remote_share_with_replicas: share(
                parts.iter().map(|part| part.remote_with_replicas).sum(),
            ),
            remote_share_by_hash: share(hashed),
            seconds,
            parts,
        }
    }
}

/// Describes the parts.
fn table<P: Program>(report: &Report, source: &Source, output: Output) -> String {
    let mut columns = vec![Align::Left];
    columns.resize(7, Align::Right);
    let mut table = Table::new(&columns);
    table.row(["", "keys", "replicas", "samples", "accesses", "remote", "with replicas"]);
    let count = |number: usize| format::count(number as u64);
    let share = |remote: u64, of: u64| format::share(remote as f64 / of.max(1) as f64);
    for part in &report.parts {
        let counts = [part.keys, part.replicas, part.samples].map(count);
        let of = part.accesses;
        let shares = [share(part.remote, of), share(part.remote_with_replicas, of)];
        let first = [format!("node {}", part.node)].into_iter().chain(counts);
        table.row(first.chain([format::count(of)]).chain(shares));
    }
    let replicas = report.parts.iter().map(|part| part.replicas).sum();
    let counts = [report.keys, replicas, report.samples, report.accesses].map(count);
    let shares = [report.remote_share, report.remote_share_with_replicas].map(format::share);
    table.row(["all".to_owned()].into_iter().chain(counts).chain(shares));
    let by_hash = format::share(report.remote_share_by_hash);
    table.row(["by hash", "", "", "", "", &by_hash, ""]);
    let heading = output.bold(format!("partition {}", P::NAME));
    let seconds = format!("found in {:.1} s", report.seconds);
    format!("{heading}: {}, {seconds}\n{}\n", source.text, table.render())
}

/// The object of `--json`.
#[derive(Serialize)]
struct Object<'a> {
    task: &'static str,
    data: &'a str,
    generated: bool,
    nodes: usize,
    seed: u64,
    #[serde(flatten)]
    report: &'a Report,
    saved: Option<String>,
}

const OUT_FLAG: &str = "--out";
