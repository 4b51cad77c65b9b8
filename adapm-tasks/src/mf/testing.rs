//! [`crate::testing`] of ratings.

use std::path::Path;

use crate::data::DataError;
use crate::data::ratings::read;
use crate::mf::checkpoint::Checkpoint;
use crate::mf::ids::Ids;
use crate::mf::prediction::Means;
use crate::run::file::CheckpointError;

/// Returns the ratings in a file of these bytes as they come: row, column, value.
///
/// # Errors
///
/// As [`Ratings::load`](crate::mf::Ratings::load), but for a file without a rating.
pub fn ratings_of(bytes: &[u8]) -> Result<Vec<(String, String, f32)>, DataError> {
    let mut ratings = Vec::new();
    read(bytes, Path::new("file"), &mut |rating| {
        ratings.push((rating.row.to_string(), rating.column.to_string(), rating.value));
        Ok(())
    })?;
    Ok(ratings)
}

/// Returns the factors in a file of these bytes.
///
/// # Errors
///
/// As [`Checkpoint::load`].
pub fn read_factors(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::of_bytes(bytes, Path::new("file"))
}

/// Returns the bytes of a file of `factors`.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn factors_bytes(factors: &Checkpoint) -> Vec<u8> {
    factors.write_to(Vec::new()).expect("memory takes all bytes")
}

/// Factors of rows with these ids (two that are the index if there is none) and of `columns`
/// columns, all of them `value`.
#[must_use]
pub fn factors_of(row_ids: &[u64], columns: u64, dim: usize, value: f32) -> Checkpoint {
    let row_ids = if row_ids.is_empty() { Ids::Indices(2) } else { Ids::Numbers(row_ids.to_vec()) };
    let values = vec![value; (row_ids.len() + columns as usize) * dim].into();
    let column_ids = Ids::Indices(columns as u32);
    let (rows, trained_on, range) = (row_ids.len() as u64, 0, (value, value));
    let (means, scale) = (Means::default(), 1.0);
    Checkpoint { dim, rows, columns, row_ids, column_ids, trained_on, range, means, scale, values }
}
