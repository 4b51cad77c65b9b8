//! Factorizes generated matrices of many shapes with the default settings, on 1, 2 and 4 nodes, and
//! prints the RMSE on test beside that of the best of trivial means: the table of the
//! documentation.
//!
//! ```sh
//! cargo run --release --example mf_shapes            # all shapes, seed 1
//! cargo run --release --example mf_shapes -- 3       # seeds 1 to 3
//! cargo run --release --example mf_shapes -- 1 tiny small
//! cargo run --release --example mf_shapes -- 1 FOLDER   # a folder with train and test
//! ```

use std::error::Error;
use std::path::Path;

use adapm_tasks::mf::{Ratings, TrainConfig, train};
use adapm_tasks::run::{Keep, Run};

#[path = "../tests/support/shapes.rs"]
mod shapes;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seeds: u64 = args.next().map_or(Ok(1), |text| text.parse())?;
    let mut names: Vec<String> = args.collect();
    if names.is_empty() {
        names = shapes::NAMES.map(str::to_owned).to_vec();
    }
    println!(
        "| shape | cells | trivial means | means alone | 1 node | 2 nodes | 4 nodes | epochs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        row(&name, seeds)?;
    }
    Ok(())
}

/// Prints the row of a shape, or of the folder `name`, for the seeds 1 to `seeds`.
fn row(name: &str, seeds: u64) -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("adapm-shapes-{}", std::process::id()));
    let is_shape = shapes::NAMES.contains(&name);
    let mut trivial = "-".to_owned();
    if is_shape {
        let shape = shapes::Shape::new(name);
        shape.write(&folder)?;
        trivial = format!("{:.4}", shape.baseline());
    }
    let ratings = Ratings::load(if is_shape { &folder } else { Path::new(name) });
    std::fs::remove_dir_all(&folder).ok();
    let ratings = ratings?;
    let (mut means, mut epochs) = (0.0, Vec::new());
    let mut cells = Vec::new();
    for nodes in [1, 2, 4] {
        let mut errors = Vec::new();
        for seed in 1..=seeds {
            let mut config = TrainConfig::default();
            (config.cluster.nodes, config.run.seed, config.run.keep) =
                (Some(nodes), seed, Keep::Nothing);
            let report = match train(&ratings, &config, &Run::alone()) {
                Ok(report) => report,
                // A matrix of a few rows and columns has too few keys for many nodes.
                Err(error) if nodes > 1 => {
                    eprintln!("{name} on {nodes} nodes: {error}");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            means = report.own.means.map_or(f64::NAN, |means| means.rmse);
            errors.push(format!("{:.4}", report.test.map_or(f64::NAN, |test| test.rmse)));
            epochs.push(report.epochs.len().to_string());
        }
        cells.push(errors.join(", "));
    }
    let (len, name) =
        (ratings.train_len(), Path::new(name).file_name().unwrap_or_default().display());
    println!(
        "| {name} | {len} | {trivial} | {means:.4} | {} | {} |",
        cells.join(" | "),
        epochs.join(", ")
    );
    Ok(())
}
