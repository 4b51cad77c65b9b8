//! Matrix factorization: a vector of factors per row and per column, trained so that their products are the observed cells.

mod cell;
mod ids;
mod planted;
mod ratings;
mod reader;
mod skew;

pub use cell::Cell;
pub use planted::{PlantedConfig, PlantedError};
pub use ratings::{RatingCounts, Ratings, RatingsSource};
