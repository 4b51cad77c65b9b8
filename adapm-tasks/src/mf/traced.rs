//! Keys of rows and columns that are worth tracing.

use adapm_core::Key;

use crate::mf::ratings::Ratings;
use crate::run::traced::{KeyChoice, UnknownKey, across_the_range};

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
    let described = |(key, what): (usize, &str)| {
        let (kind, id) = match key.checked_sub(rows) {
            None => ("row", ratings.row_id(key)),
            Some(column) => ("column", ratings.column_id(column)),
        };
        let what = if what.is_empty() { String::new() } else { format!(" ({what})") };
        let (id, count, all) = (id.unwrap_or_default(), counts[key], ratings.train_len());
        (Key(key as u64), format!("{kind} {id}, in {count} of {all} ratings{what}"))
    };
    if choices.is_empty() {
        return Ok(across_the_range(&counts).into_iter().map(described).collect());
    }
    let chosen = choices.iter().map(|choice| {
        let key = match choice {
            KeyChoice::Named { kind: "row", name } => place(rows, name, |row| ratings.row_id(row)),
            KeyChoice::Named { name, .. } => {
                let column = place(ratings.columns(), name, |column| ratings.column_id(column));
                column.map(|column| rows + column)
            }
            KeyChoice::Key(number) => usize::try_from(*number).ok().filter(|key| *key < counts.len()),
        };
        let unknown = || UnknownKey { choice: choice.clone(), keys: counts.len() as u64 };
        key.map(|key| described((key, ""))).ok_or_else(unknown)
    });
    chosen.collect()
}

/// The index with this id, of ids that ascend.
fn place(len: usize, id: &str, id_of: impl Fn(usize) -> Option<u64>) -> Option<usize> {
    let id: u64 = id.parse().ok()?;
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if id_of(middle)? < id {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (id_of(low) == Some(id)).then_some(low)
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

    #[test]
    fn ids_with_gaps_are_found() {
        let ids = [3, 9, 11];
        let find = |id: &str| place(3, id, |at| ids.get(at).copied());
        let found = ["3", "9", "11", "0", "4", "12", "", "-3"].map(find);
        assert_eq!(found, [Some(0), Some(1), Some(2), None, None, None, None, None]);
        assert_eq!(place(0, "1", |_| None), None);
    }
}
