//! Word similarity: how well cosines of vectors agree with what people say, by Spearman's
//! correlation of ranks.
//!
//! A line has two words and a number, separated by a tab, spaces or commas; lines that begin with
//! `#` are left out, and so is a first line whose third field is no number, which names the
//! columns. Words are compared as in [`Analogies`].
//!
//! [`Analogies`]: crate::wv::Analogies

use std::collections::HashMap;
use std::path::Path;

use memchr::memmem;

use crate::data::bytes;
use crate::data::lines::{csv_fields, lines};
use crate::matrix::dot;
use crate::run::CheckpointError;
use crate::wv::error::{CorpusError, LineFault};
use crate::wv::search::normalize;
use crate::wv::vectors::Vectors;

/// Pairs of words, each with how similar people find them.
#[derive(Clone, Debug, PartialEq)]
pub struct Similarities {
    pairs: Vec<Pair>,
}

#[derive(Clone, Debug, PartialEq)]
struct Pair {
    /// In lower case.
    words: [Vec<u8>; 2],
    similarity: f64,
}

/// The agreement of vectors with people's judgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SimilarityReport {
    /// Pairs.
    pub asked: u64,
    /// Pairs whose words both have vectors.
    pub seen: u64,
    /// Spearman's correlation over the seen pairs, with mean ranks for ties; `None` if it has no
    /// value: fewer than two pairs are seen, or one side is all ties.
    pub correlation: Option<f64>,
}

impl Similarities {
    /// Reads a file of pairs.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, or a line that is no pair (with file, line, column).
    pub fn load(path: &Path) -> Result<Self, CorpusError> {
        Self::of_bytes(&bytes::read(path)?, path)
    }

    /// Parses the bytes of the file at `path`.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CorpusError> {
        let mut pairs = Vec::new();
        let mut may_name_columns = true;
        for (line, text) in lines(bytes).filter(|(_, text)| !text.starts_with(b"#")) {
            let malformed = |column, reason| CorpusError::Malformed {
                path: path.to_path_buf(),
                line,
                column,
                reason,
            };
            let [a, b, number] = fields(text).ok_or_else(|| malformed(1, LineFault::NotAPair))?;
            let similarity =
                str::from_utf8(&number).ok().and_then(|number| number.parse::<f64>().ok());
            let names_columns = std::mem::take(&mut may_name_columns) && similarity.is_none();
            match similarity.filter(|similarity| similarity.is_finite()) {
                Some(similarity) => {
                    pairs.push(Pair {
                        words: [a, b].map(|word| word.to_ascii_lowercase()),
                        similarity,
                    });
                }
                None if names_columns => {}
                None => {
                    let column = memmem::rfind(text, &number).unwrap_or(0) as u64 + 1;
                    return Err(malformed(column, LineFault::NotANumber));
                }
            }
        }
        Ok(Self { pairs })
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns true if there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Compares the pairs with the first `limit` of the vectors.
    ///
    /// # Errors
    ///
    /// Vectors in a file that cannot be read.
    pub fn evaluate(
        &self,
        vectors: &Vectors,
        limit: usize,
    ) -> Result<SimilarityReport, CheckpointError> {
        let words = self.pairs.iter().flat_map(|pair| &pair.words);
        let mut numbers: HashMap<&[u8], Option<usize>> =
            words.map(|word| (word.as_slice(), None)).collect();
        for number in 0..limit.min(vectors.words().len()) {
            let word = vectors.words().bytes(number).unwrap_or_default().to_ascii_lowercase();
            if let Some(found) = numbers.get_mut(word.as_slice()) {
                found.get_or_insert(number);
            }
        }
        let vector = |number: usize| {
            let mut vector = vec![0.0; vectors.dim()];
            vectors.values.read(number * vector.len(), &mut vector)?;
            normalize(&mut vector);
            Ok::<_, CheckpointError>(vector)
        };
        let number = |word: &Vec<u8>| numbers.get(word.as_slice()).copied().flatten();
        let (mut said, mut computed) = (Vec::new(), Vec::new());
        for Pair { words: [a, b], similarity } in &self.pairs {
            if let Some((a, b)) = number(a).zip(number(b)) {
                said.push(*similarity);
                computed.push(f64::from(dot(&vector(a)?, &vector(b)?)));
            }
        }
        let correlation = correlation(&ranks(&said), &ranks(&computed));
        let (asked, seen) = (self.pairs.len() as u64, said.len() as u64);
        Ok(SimilarityReport { asked, seen, correlation })
    }
}

/// Splits a line at its tabs, else at its commas, else at its spaces; `None` unless there are three
/// fields.
fn fields(line: &[u8]) -> Option<[Vec<u8>; 3]> {
    let fields: Vec<Vec<u8>> = match [b'\t', b','].into_iter().find(|byte| line.contains(byte)) {
        Some(separator) => csv_fields(line, separator),
        None => line.split(u8::is_ascii_whitespace).map(<[u8]>::to_vec).collect(),
    };
    let trimmed = fields.iter().map(|field| field.trim_ascii().to_vec());
    trimmed.filter(|field| !field.is_empty()).collect::<Vec<_>>().try_into().ok()
}

/// Returns the rank of each value, from 1; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = first as f64 + (tied.len() + 1) as f64 / 2.0;
        tied.iter().for_each(|place| ranks[*place] = mean);
        first += tied.len();
    }
    ranks
}

/// Returns Pearson's correlation; `None` if one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a_mean, b_mean) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| of(a - a_mean, b - b_mean)).sum()
    };
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (scale > 0.0).then(|| sum(&|a, b| a * b) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kge::Names;

    fn parsed(text: &str) -> Result<Similarities, CorpusError> {
        Similarities::of_bytes(text.as_bytes(), Path::new("pairs"))
    }

    #[test]
    fn tabs_commas_and_spaces_separate_and_a_heading_is_left_out() {
        let expected = parsed("a b 1.5\nc d 2").unwrap();
        assert_eq!(expected.len(), 2);
        for text in [
            "# said\nA\tb\t1.5\r\nc\td\t2\n",
            "Word 1,Word 2,Human (mean)\na,b,1.50\nc, d,2",
            "x y z\n\na  b 1.5\nc d 2e0",
        ] {
            assert_eq!(parsed(text).unwrap(), expected, "{text:?}");
        }
        assert!(parsed("").unwrap().is_empty());
    }

    #[test]
    fn lines_that_are_no_pair_are_located() {
        let located = |text| match parsed(text) {
            Err(CorpusError::Malformed { line, column, reason, .. }) => (line, column, reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(located("a b 1\na b"), (2, 1, LineFault::NotAPair));
        assert_eq!(located("a b c 1"), (1, 1, LineFault::NotAPair));
        assert_eq!(located("a b 1\na\tb\tx"), (2, 5, LineFault::NotANumber));
        assert_eq!(located("a b nan"), (1, 5, LineFault::NotANumber));
    }

    #[test]
    fn the_correlation_is_of_ranks_and_ties_share_theirs() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        let rho = |a: &[f64], b: &[f64]| correlation(&ranks(a), &ranks(b));
        assert_eq!(rho(&[1.0, 2.0, 3.0], &[0.1, 0.5, 100.0]), Some(1.0));
        assert_eq!(rho(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // scipy.stats.spearmanr([1, 2, 2, 4], [1, 3, 2, 4]) is 0.9486832980505138.
        let found = rho(&[1.0, 2.0, 2.0, 4.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((found - 0.948_683_298_050_513_8).abs() < 1e-12, "{found}");
        assert_eq!(rho(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(rho(&[], &[]), None);
    }

    #[test]
    fn pairs_with_a_word_without_vector_are_not_seen() {
        let mut names = Names::default();
        ["sun", "moon", "tea"].iter().for_each(|word| names.push(word.as_bytes()));
        let vectors = Vectors::new(names, 2, vec![1.0, 0.0, 2.0, 0.2, 0.0, 3.0]).unwrap();
        let similarities = parsed("Sun moon 9\nsun tea 1\nmoon tea 2\nsun cup 5").unwrap();
        let report = similarities.evaluate(&vectors, usize::MAX).unwrap();
        assert_eq!((report.asked, report.seen, report.correlation), (4, 3, Some(1.0)));
        assert_eq!(similarities.evaluate(&vectors, 2).unwrap().seen, 1);
    }
}
