//! The verb `bench`: what the parameter manager costs on this machine, each figure beside its
//! floor.
//!
//! [`crate::measure::bench`] measures the calls, [`training`] runs `train` as processes of
//! their own, [`table`] shows a figure as soon as it is known, to people and to programs.
//! [`counts`] are of what repeats: beside what the library counts itself, instructions, by
//! callgrind.

pub(crate) mod child;
mod counts;
pub(crate) mod job;
mod table;
mod training;

use std::sync::atomic::Ordering;

use crate::measure::bench::{Outcome, Plan, measure};

use crate::cli::args::BenchArgs;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use job::Benchmark;

/// Measures everything asked for and shows what came out.
pub(crate) fn run(args: &BenchArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(operation) = args.operation {
        return counts::alone(&operation, args.times, interrupt);
    }
    let output = Output::new(args.json);
    let mut plan = Plan::default();
    (plan.is_quick, plan.kinds) = (args.quick, args.kinds());
    output.text(&table::heading(&plan, output))?;
    let (mut figures, mut is_below_columns) = (Vec::new(), false);
    for benchmark in args.benchmarks() {
        // Counts have columns of their own.
        if benchmark != Benchmark::Counts && !is_below_columns {
            output.text(&table::figures_heading(output))?;
        }
        is_below_columns = benchmark != Benchmark::Counts;
        output.text(&table::group(benchmark.name(), output))?;
        let mut printed = Ok(());
        let mut tell = |outcome| {
            let shown = show(benchmark, &outcome, output);
            if printed.is_ok() {
                printed = shown;
            }
            if printed.is_err() {
                // The reader of stdout has left.
                interrupt.stop().store(true, Ordering::Relaxed);
            }
            if let Outcome::Measured(figure) = outcome {
                figures.push(figure);
            }
        };
        let measured = match benchmark {
            Benchmark::Calls(group) => measure(group, &plan, interrupt.stop(), &mut tell)
                .map_err(|error| counts::failure(error, interrupt)),
            Benchmark::Counts => counts::measure(&plan, interrupt, output),
            Benchmark::Training(job) => training::measure(job, plan.is_quick, interrupt, &mut tell),
        };
        printed.and(measured)?;
    }
    output.text(&table::closing(&figures, output))
}

fn show(benchmark: Benchmark, outcome: &Outcome, output: Output) -> Result<(), Failure> {
    output.object(&table::Row::new(benchmark.name(), outcome))?;
    output.text(&match outcome {
        Outcome::Measured(figure) => table::line(figure, output),
        Outcome::Skipped { what, why } => table::skipped(what, why, output),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::job::Way;
    use crate::cli::data::sets::Task;
    use crate::cli::verbs::Cli;

    #[test]
    fn every_way_is_a_command_line_that_is_understood() {
        for job in Task::ALL {
            for is_quick in [false, true] {
                for way in Way::ALL {
                    let words = way.words(&job.flags(is_quick).0);
                    let words = ["adapm".to_owned()].into_iter().chain(words);
                    Cli::try_parse_from(words).expect("it is understood");
                }
            }
        }
    }
}
