//! [`crate::testing`] of ratings.

use std::path::Path;

use crate::data::DataError;
use crate::data::ratings::read;

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
