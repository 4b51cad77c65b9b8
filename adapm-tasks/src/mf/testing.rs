//! [`crate::testing`] of ratings.

use std::path::Path;
use std::sync::Arc;

use crate::data::DataError;
use crate::data::ratings::read;
use crate::mf::checkpoint::Checkpoint;
use crate::run::file::CheckpointError;

/// The ratings in a file of these bytes as they come: row, column, value.
///
/// # Errors
///
/// As [`Ratings::load`](crate::mf::Ratings::load), but for a file without a rating.
pub fn ratings_of(bytes: &[u8]) -> Result<Vec<(u64, u64, f32)>, DataError> {
    let mut ratings = Vec::new();
    read(bytes, Path::new("file"), &mut |rating| {
        ratings.push((rating.row, rating.column, rating.value));
        Ok(())
    })?;
    Ok(ratings)
}

/// The factors in a file of these bytes.
///
/// # Errors
///
/// As [`Checkpoint::load`].
pub fn read_factors(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::of_bytes(bytes, Path::new("file"))
}

/// The bytes of a file of `factors`.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn factors_bytes(factors: &Checkpoint) -> Vec<u8> {
    factors.write_to(Vec::new()).expect("memory takes all bytes")
}

/// Factors of rows with these ids (two that are the index if there is none) and of `columns` columns, all of them `value`.
#[must_use]
pub fn factors_of(row_ids: &[u64], columns: u64, dim: usize, value: f32) -> Checkpoint {
    let rows = if row_ids.is_empty() { 2 } else { row_ids.len() };
    let values = Arc::new(vec![value; (rows + columns as usize) * dim]);
    Checkpoint { dim, rows: rows as u64, columns, row_ids: row_ids.to_vec(), column_ids: Vec::new(), values }
}
