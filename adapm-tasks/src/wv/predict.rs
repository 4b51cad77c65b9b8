//! Answers of word vectors: the words nearest to a word, and those that answer `a is to b as c is
//! to ?`.
//!
//! Nearest by the cosine; of equal ones the more frequent comes first. The first answer to an
//! analogy is that of an evaluation ([`Analogies::evaluate`](crate::wv::Analogies::evaluate)).
//!
//! From a file of ours the head is read, and of the values the input vectors, which are the first
//! half, block by block. So the checksum, which is of the whole file, is not checked. Files of
//! other programs are read whole ([`Vectors::open`]).

use std::path::Path;

use crate::kge::Names;
use crate::matrix::{Left, Panels, dot, multiply};
use crate::run::config::whole;
use crate::run::error::TaskError;
use crate::run::file::CheckpointError;
use crate::run::values::Values;
use crate::top::{Scored, Top};
use crate::wv::checkpoint::Checkpoint;
use crate::wv::search::normalize;
use crate::wv::vectors::Vectors;

/// A query, by the numbers of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// Which words are near this one?
    Word(u32),
    /// `a` is to `b` as `c` is to which words? Those near `b - a + c` (3CosAdd), of vectors of
    /// length 1.
    Analogy([u32; 3]),
}

/// A word near what is asked for; never a word of the query itself.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Neighbour {
    /// Its number.
    pub word: u32,
    /// The cosine of its vector and the query's, -1 to 1.
    pub cosine: f32,
}

/// Vectors that answer queries.
///
/// ```
/// use adapm_tasks::wv::{Predictor, Query, Vectors};
/// use adapm_tasks::kge::Names;
///
/// let mut words = Names::default();
/// ["sun", "moon", "stone"].into_iter().for_each(|word| words.push(word.as_bytes()));
/// let vectors = Vectors::new(words, 2, vec![1.0, 0.0, 3.0, 4.0, 0.0, -1.0]).expect("all fit");
///
/// // From a file of ours it is `Predictor::open(path)?`.
/// let mut predictor = Predictor::new(&vectors);
/// let near = &predictor.answer(&[Query::Word(0)], 1)?[0];
/// assert_eq!((near[0].word, near[0].cosine), (1, 0.6));
/// # Ok::<(), adapm_tasks::run::TaskError>(())
/// ```
#[derive(Debug)]
pub struct Predictor {
    words: Names,
    dim: usize,
    /// `[words x dim]`, and perhaps more.
    values: Values,
    /// Words that can be answers, the first ones.
    limit: usize,
}

impl Predictor {
    /// Opens a file written by [`Checkpoint::save`]. Reads its head: the words, and what tells how
    /// long the file has to be.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::load`]; damage of the vectors is not seen, unless it makes them no finite
    /// numbers, which is when they are read, or until [`check`](Self::check) is called.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let Checkpoint { dim, words, values, .. } = Checkpoint::open(path)?;
        Ok(Self { limit: words.len(), words, dim, values })
    }

    /// Returns one for vectors in memory.
    #[must_use]
    pub fn new(vectors: &Vectors) -> Self {
        let (words, dim) = (vectors.words().clone(), vectors.dim());
        Self { limit: words.len(), words, dim, values: vectors.values.clone() }
    }

    /// Returns the same, in which only the first `words`, which are the most frequent, can be
    /// answers.
    #[must_use]
    pub fn limited_to(self, words: usize) -> Self {
        Self { limit: words.min(self.words.len()), ..self }
    }

    /// Returns the words, the most frequent first.
    #[must_use]
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// Reads the whole file, if there is one, and compares its checksum.
    ///
    /// # Errors
    ///
    /// A file that is damaged or cannot be read.
    pub fn check(&mut self) -> Result<(), CheckpointError> {
        self.values.check()
    }

    /// Answers queries in their order, each with at most `top` words, the nearest first.
    ///
    /// Cost: two operations for each query, word and dimension, and a pass over the vectors for
    /// each 256 queries. Memory: the vectors of 512 words, whatever their number.
    ///
    /// # Errors
    ///
    /// A number of a word that there is not; a file that cannot be read.
    pub fn answer(
        &mut self,
        queries: &[Query],
        top: usize,
    ) -> Result<Vec<Vec<Neighbour>>, TaskError> {
        let last = (self.words.len() as u64).saturating_sub(1);
        let asked = queries.iter().flat_map(Query::words);
        asked.copied().try_for_each(|word| whole("word", word.into(), 0, last))?;
        let mut answers = Vec::with_capacity(queries.len());
        for queries in queries.chunks(BATCH) {
            answers.append(&mut self.answer_batch(queries, top)?);
        }
        Ok(answers)
    }

    fn answer_batch(
        &mut self,
        queries: &[Query],
        top: usize,
    ) -> Result<Vec<Vec<Neighbour>>, CheckpointError> {
        let dim = self.dim;
        let mut vectors = Vec::with_capacity(queries.len() * dim);
        for query in queries {
            vectors.append(&mut self.vector(query)?);
        }
        let lengths: Vec<f32> =
            vectors.chunks_exact(dim).map(|vector| dot(vector, vector).sqrt()).collect();
        let mut tops = vec![Top::new(top); queries.len()];
        let (mut panels, mut block) = (Panels::default(), Vec::new());
        let (mut products, mut scratch) = (Vec::new(), Vec::new());
        for first in (0..self.limit).step_by(BLOCK) {
            let words = BLOCK.min(self.limit - first);
            block.resize(words * dim, 0.0);
            self.values.read(first * dim, &mut block)?;
            block.chunks_exact_mut(dim).for_each(normalize);
            panels.fill_transposed(&block, dim, dim, words);
            products.resize(queries.len() * words, 0.0);
            let (rows, row_stride) = (queries.len(), dim);
            let left = Left { data: &vectors, rows, row_stride, inner_stride: 1 };
            multiply(left, &panels, &mut products, &mut scratch);
            for ((query, products), top) in
                queries.iter().zip(products.chunks_exact(words)).zip(&mut tops)
            {
                for (word, product) in (first as u32..).zip(products) {
                    if !query.words().contains(&word) {
                        top.offer(f64::from(*product), word);
                    }
                }
            }
        }
        // The vector of an analogy has another length than 1, which changes no order.
        let cosine = |product: f64, length: f32| match length {
            0.0 => 0.0,
            length => (product as f32 / length).clamp(-1.0, 1.0),
        };
        let neighbours = |(top, length): (Top, f32)| {
            let neighbour = |Scored { score, index }: Scored| Neighbour {
                word: index,
                cosine: cosine(score, length),
            };
            top.into_vec().into_iter().map(neighbour).collect()
        };
        Ok(tops.into_iter().zip(lengths).map(neighbours).collect())
    }

    /// Returns the vector that words are compared with.
    fn vector(&mut self, query: &Query) -> Result<Vec<f32>, CheckpointError> {
        let vector = |word: u32| {
            let mut vector = vec![0.0; self.dim];
            self.values.read(word as usize * self.dim, &mut vector)?;
            normalize(&mut vector);
            Ok(vector)
        };
        match *query {
            Query::Word(word) => vector(word),
            Query::Analogy([a, b, c]) => {
                let (a, b, c) = (vector(a)?, vector(b)?, vector(c)?);
                // Summed as an evaluation sums.
                Ok(a.iter().zip(&b).zip(&c).map(|((a, b), c)| b - a + c).collect())
            }
        }
    }
}

impl Query {
    /// Returns its words.
    fn words(&self) -> &[u32] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::Analogy(words) => words,
        }
    }
}

/// Queries that are answered by one pass over the vectors.
const BATCH: usize = 256;
/// Words that are compared at once.
const BLOCK: usize = 512;

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::run::config::{ConfigError, Wanted};
    use crate::wv::search::answers;

    /// Returns input and output vectors of so many words.
    fn checkpoint(words: usize, dim: usize) -> Checkpoint {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut names = Names::default();
        (0..words).for_each(|word| names.push(word.to_string().as_bytes()));
        let values = (0..2 * words * dim).map(|_| random.random::<f32>() - 0.5);
        let values = values.collect::<Vec<_>>().into();
        Checkpoint { dim, words: names, counts: vec![1; words], values }
    }

    fn words(neighbours: &[Neighbour]) -> Vec<u32> {
        neighbours.iter().map(|neighbour| neighbour.word).collect()
    }

    #[test]
    fn the_first_answers_are_those_of_an_evaluation_from_memory_and_from_a_file() {
        let checkpoint = checkpoint(1300, 12);
        let vectors = checkpoint.vectors();
        let analogy = |i: u32| [i * 7 % 1000, i * 13 % 1000, i * 29 % 1000];
        let asked: Vec<[u32; 3]> = (1..=300).map(analogy).collect();
        let questions: Vec<[u32; 4]> = asked.iter().map(|[a, b, c]| [*a, *b, *c, 0]).collect();
        let expected = answers(&vectors, 1000, &questions, 1);
        let queries: Vec<Query> = asked.into_iter().map(Query::Analogy).collect();
        let path = env::temp_dir().join(format!("adapm-wv-predict-{}", process::id()));
        checkpoint.save(&path).expect("the folder for temporary files can be written");
        for predictor in [Predictor::open(&path).expect("it is there"), Predictor::new(&vectors)] {
            let found = predictor.limited_to(1000).answer(&queries, 3).expect("all are known");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.first().map(|best| best.word), expected.word);
                assert_eq!(found.len(), 3);
            }
        }
        fs::remove_file(path).expect("it was just written");
    }

    #[test]
    fn neighbours_are_in_the_order_of_their_cosines() {
        let checkpoint = checkpoint(700, 6);
        let vectors = checkpoint.vectors();
        let mut predictor = Predictor::new(&vectors);
        let found = predictor.answer(&[Query::Word(650)], 699).expect("the word is known");
        let cosine = |word: u32| {
            let [a, b] =
                [650, word].map(|word| vectors.vector(word as usize).expect("it is there"));
            let product = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            product(a, b) / (product(a, a) * product(b, b)).sqrt()
        };
        let mut expected: Vec<u32> = (0..700).filter(|word| *word != 650).collect();
        expected.sort_by(|a, b| cosine(*b).total_cmp(&cosine(*a)));
        assert_eq!(words(&found[0]), expected);
        for neighbour in &found[0] {
            assert!((f64::from(neighbour.cosine) - cosine(neighbour.word)).abs() < 1e-6);
        }
    }

    #[test]
    fn words_that_there_are_not_are_refused_and_damage_is_seen_if_that_is_asked_for() {
        let checkpoint = checkpoint(5, 2);
        let mut predictor = Predictor::new(&checkpoint.vectors());
        let error = predictor.answer(&[Query::Analogy([0, 1, 5])], 1).expect_err("there is none");
        let wanted = Wanted::Whole { min: 0, max: 4 };
        let expected = ConfigError::Value { field: "word", value: "5".to_owned(), wanted };
        assert!(matches!(error, TaskError::Config(error) if error == expected));

        let mut bytes = checkpoint.write_to(Vec::new()).expect("memory takes all bytes");
        // An output vector.
        let at = bytes.len() - 8 - 4;
        bytes[at] ^= 1;
        let path = env::temp_dir().join(format!("adapm-wv-predict-damage-{}", process::id()));
        fs::write(&path, bytes).expect("the folder for temporary files can be written");
        let mut damaged = Predictor::open(&path).expect("the head is whole");
        let asked = [Query::Word(3)];
        let expected = predictor.answer(&asked, 4).expect("the word is known");
        assert_eq!(damaged.answer(&asked, 4).expect("the vectors are whole"), expected);
        assert_eq!(damaged.check(), Err(CheckpointError::Corrupt { path: path.clone() }));
        fs::remove_file(path).expect("it was just written");
    }
}
