//! Probabilities of clicks, an example a line.

use std::path::Path;

use serde::Serialize;

use crate::cli::args::predict::CtrArgs;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::progress::Screen;
use crate::ctr::Predictor;
use crate::run::TaskError;

#[derive(Serialize)]
struct Object {
    task: &'static str,
    /// The example's number, from 1.
    example: u64,
    probability: f32,
}

/// Predicts all examples of a file.
pub(crate) fn run(args: &CtrArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    let screen = Screen::new("predict", output, interrupt);
    screen.waiting("reading the model");
    let opened = interrupt.hurry(|| {
        let predictor = Predictor::open(&args.load)?;
        if args.check {
            predictor.check()?;
        }
        Ok(predictor)
    });
    let mut predictor = opened.map_err(TaskError::Checkpoint)?;
    screen.finish()?;
    let mut example = 0;
    let is_stdin = args.data == Path::new("-");
    let data = if is_stdin { Path::new("/dev/stdin") } else { &args.data };
    let predicted = predictor.predict(data, |probability| {
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::Interrupted(code));
        }
        example += 1;
        if args.json {
            output.object(&Object { task: "ctr", example, probability })
        } else {
            output.text(&format!("{probability}\n"))
        }
    });
    predicted?
}
