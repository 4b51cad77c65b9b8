//! Matrix factorization: a vector of factors per row and per column, trained so that their products
//! are the observed cells.
//!
//! ```text
//!   Ratings (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> Checkpoint, RMSE on test
//!                                                                                                       |
//!   Ratings ------------------------------------------------------------------> evaluate() <-----------+
//! ```
//!
//! The task of AdaPM App. C and Lapse §4.1, on what the means of rows and columns leave. Row `i` is
//! key `i`, column `j` is key `rows + j`. Rows or columns that train does not know have no key: a
//! known row with an unknown column is predicted to have its mean, and the reverse.
//!
//! ```
//! use adapm_tasks::mf::{EvalConfig, Ratings, SyntheticConfig, TrainConfig, evaluate, train};
//! use adapm_tasks::run::Run;
//!
//! let mut synthetic = SyntheticConfig::default();
//! (synthetic.rows, synthetic.columns, synthetic.cells) = (200, 100, 4_000);
//! let ratings = Ratings::synthetic(synthetic)?;
//! let mut config = TrainConfig::default();
//! (config.cluster.nodes, config.dim, config.epochs) = (Some(2), 8, Some(10));
//! let trained = train(&ratings, &config, &Run::alone())?;
//! assert!(trained.epochs[9].loss < trained.epochs[0].loss);
//!
//! // The same parameters give the same figures on any number of nodes.
//! let mut config = EvalConfig::default();
//! config.cluster.nodes = Some(3);
//! let checkpoint = trained.checkpoint.expect("is asked for by default");
//! assert_eq!(trained.test, evaluate(&ratings, &checkpoint, &config, &Run::alone())?.figures);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is read
//!
//! A line is a rating: row, column and value between tabs, `;`, `,`, `::` or blanks, or an entry of
//! a MatrixMarket file ([`RatingFormat`]). Files are UTF-8, plain or compressed by gzip.
//!
//! | the first line | is taken as |
//! | --- | --- |
//! | has a number | a rating: row, column, value, and perhaps a time, which is not used |
//! | has none | names of the columns in any order, of which user, item and rating are used: `userId`, `user_id:token`, `uid`, `User-ID`, `row`; `movieId`, `ISBN`, `product`, `column`; `rating`, `stars`, `score`, `value`, and others like them |
//! | has names that are not known | an error that shows them; but a single one that is left is the one of the three that is missing |
//! | begins with `#` or `%` | a comment, or names; a rating if it is one as the other lines are, without a space after the sign |
//!
//! An id is any text. Those of a side that are all numbers (`7`, not `007` or `7.0`) are in the
//! order of numbers, else in that of their bytes. Fields may be quoted, with quotes doubled in
//! them; numbers may have a comma for a point, where it separates nothing. Repeated cells are all
//! trained on. Without a file for test, one cell in ten is held out, always the same ones.
//!
//! # What a cell costs
//!
//! A worker's cells come in tiles, of up to 256 columns by up to 1,024 rows with up to 4,096 cells.
//! It pulls their vectors, steps on the cells one after the other, and pushes what each vector has
//! moved by: in a matrix whose cells are a hundredth of all, a vector each way per three to six
//! cells. In memory a cell has 8 bytes and its share of the list of rows of a tile (in order
//! `plain` 12 bytes), at the node that has its row. What was read from files also has 12 bytes in
//! [`Ratings`], on every node: from 4 M cells on in a temporary file (in `TMPDIR`), which takes no
//! memory that the system cannot take back. Generated cells exist only where they are trained on,
//! so a matrix of a billion cells needs about 10 GB in all, spread over the nodes.
//!
#![doc = include_str!("../../docs/mf.md")]

mod cells;
mod checkpoint;
mod config;
mod ids;
pub(crate) mod kernel;
mod order;
mod predict;
mod prediction;
#[cfg(feature = "cli")]
pub(crate) mod program;
mod ratings;
mod reader;
mod residuals;
pub(crate) mod selection;
mod step;
mod synthetic;
pub(crate) mod task;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod tiles;
mod training;

pub use cells::Cell;
pub use checkpoint::Checkpoint;
pub use config::{EvalConfig, Optimizer, Order, Penalty, Selection, TrainConfig};
pub use predict::{Candidate, Predictor};
pub use prediction::RatingMetrics;
#[cfg(feature = "cli")]
pub use program::Mf;
pub use ratings::{RatingCounts, Ratings, RatingsSource};
pub use synthetic::SyntheticConfig;
pub use task::{KEY_KINDS, traced_keys};
pub use training::{EvalReport, Found, Predicted, TrainReport, evaluate, train};

pub use crate::data::{RatingFormat, RatingId};
pub use crate::run::NoProgress;
