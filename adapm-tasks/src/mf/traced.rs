//! Keys of rows and columns that are worth tracing.

use adapm_core::Key;

use crate::data::RatingId;
use crate::mf::ratings::Ratings;
use crate::run::traced::{self, KeyChoice, UnknownKey};

/// What keys can be asked for by name, which is the id in the data.
pub const KEY_KINDS: &[&str] = &["row", "column"];

/// The keys that `choices` name, each with what it is; without choices five between the most frequent and a typical one. Goes
/// over all of the training data.
///
/// # Errors
///
/// The first choice that the ratings do not have.
pub fn traced_keys(ratings: &Ratings, choices: &[KeyChoice]) -> Result<Vec<(Key, String)>, UnknownKey> {
    let rows = ratings.rows();
    let counts: Vec<u64> = ratings.counts_by_vector().into_iter().flatten().map(u64::from).collect();
    let named = |kind: &'static str, name: &str| {
        let id = RatingId::of(name);
        let key = match kind {
            "row" => ratings.row_ids.find(id),
            _ => ratings.column_ids.find(id).map(|column| rows + column),
        };
        key.map(|key| vec![key])
    };
    let title = |key: usize| {
        format!("{}, in {} of {} ratings", name_of(ratings, key), counts[key], ratings.train_len())
    };
    traced::chosen(choices, counts.len(), &counts, named, title)
}

/// What a key is of: `row 17`, `column 3`, by the ids of the data.
pub(crate) fn name_of(ratings: &Ratings, key: usize) -> String {
    let (kind, id) = match key.checked_sub(ratings.rows()) {
        None => ("row", ratings.row_id(key)),
        Some(column) => ("column", ratings.column_id(column)),
    };
    format!("{kind} {}", id.map(|id| id.to_string()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mf::PlantedConfig;

    #[test]
    fn rows_and_columns_are_found_by_id_and_what_is_not_there_is_told() {
        let config = PlantedConfig { rows: 50, columns: 30, cells: 300, ..PlantedConfig::default() };
        let ratings = Ratings::planted(config).expect("there is such a matrix");
        let keys = |text: &str| {
            let choices = KeyChoice::list(text, KEY_KINDS).expect("choices");
            traced_keys(&ratings, &choices).map(|keys| keys.iter().map(|(key, _)| key.0).collect::<Vec<_>>())
        };
        assert_eq!(keys("row:0,row:49,column:0,column:29,key:3"), Ok(vec![0, 49, 50, 79, 3]));
        for text in ["row:50", "column:30", "row:x", "key:80"] {
            assert!(keys(text).is_err(), "{text}");
        }
        assert_eq!(
            keys("row:50").unwrap_err().to_string(),
            "no row 50 in the data; give a name as in its files"
        );
        let chosen = traced_keys(&ratings, &[]).expect("needs no names");
        assert!(chosen[0].1.ends_with(" of 300 ratings (the most frequent)"), "{chosen:?}");
    }
}
