//! Classes of nodes, a node a line.

use serde::Serialize;

use crate::cli::args::predict::GnnArgs;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::program::Error;
use crate::cli::progress::Screen;
use crate::gnn::{Architecture, Graph, Predictor};
use crate::run::TaskError;

#[derive(Serialize)]
struct Object {
    task: &'static str,
    node: u32,
    class: u32,
    probability: f32,
    /// What the data says.
    known_class: Option<u32>,
}

/// Classifies the nodes that are asked for, else all.
pub(crate) fn run(args: &GnnArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    let screen = Screen::new("predict", output, interrupt);
    screen.waiting("reading the model");
    let model = interrupt.hurry(|| {
        let model = Architecture::open(&args.load)?;
        let reads_all = model.head.nodes == 0 || args.node.is_empty() && args.split.is_none();
        if args.check || reads_all {
            model.values.check()?;
        }
        Ok(model)
    });
    let model = model.map_err(TaskError::Checkpoint)?;
    screen.waiting("reading data");
    let (graph, _) = interrupt.hurry(|| args.data.read()).map_err(|error| *error.0)?;
    let nodes = nodes(args, &graph)?;
    screen.waiting("classifying");
    let predictions = interrupt.hurry(|| {
        let other = |error| Error::of_input(format!("{}: {error}", args.load.display())).0;
        let mut predictor = Predictor::new(&graph, model).map_err(|error| *other(error))?;
        Ok::<_, Failure>(predictor.predict(&nodes)?)
    })?;
    screen.finish()?;
    for (nodes, predictions) in nodes.chunks(LINES).zip(predictions.chunks(LINES)) {
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::Interrupted(code));
        }
        let mut lines = String::new();
        for (node, prediction) in nodes.iter().zip(predictions) {
            let (node, class, probability) = (*node, prediction.class, prediction.probability);
            if args.json {
                let known_class = graph.label(node);
                let object = Object { task: "gnn", node, class, probability, known_class };
                output.object(&object)?;
            } else {
                lines += &format!("{node}\t{class}\t{probability}\n");
            }
        }
        output.text(&lines)?;
    }
    Ok(())
}

/// Returns the nodes that are asked for.
fn nodes(args: &GnnArgs, graph: &Graph) -> Result<Vec<u32>, Failure> {
    if let Some(node) = args.node.iter().find(|node| **node as usize >= graph.nodes()) {
        let last = graph.nodes() - 1;
        let text = format!("the data has no node {node} (--node); give one of 0 to {last}");
        return Err(Failure::Input(text));
    }
    let Some(part) = args.split else {
        let all = || (0..graph.nodes() as u32).collect();
        return Ok(if args.node.is_empty() { all() } else { args.node.clone() });
    };
    let nodes = graph.part(part);
    if nodes.is_empty() {
        let text = format!(
            "the data has no node for {part} (--split); leave it out to classify all nodes"
        );
        return Err(Failure::Input(text));
    }
    Ok(nodes.to_vec())
}

/// Lines that are printed at once.
const LINES: usize = 1024;
