//! The search for the word that answers a question: that whose vector has the largest cosine with
//! `b - a + c`, of all but `a`, `b` and `c` (3CosAdd; Mikolov, Yih and Zweig, NAACL 2013). All
//! vectors are of length 1 before; of equal ones the more frequent wins.
//!
//! Beside it the baseline: the word nearest to `c` alone, of all but `a`, `b` and `c` ("only-b";
//! Linzen, RepEval 2016, §3). What it answers needs no analogy.
//!
//! Vectors come in blocks, in any order, so no more than a block of the model has to be in one
//! place, and answers that were found among different vectors can be brought together. A cosine has
//! the same bits in any block.

use adapm_transport::threads;
use serde::{Deserialize, Serialize};

use crate::matrix::{Left, Panels, dot, multiply};
use crate::wv::vectors::Vectors;

/// The answer to a question, if any word is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The word nearest to `b - a + c`.
    pub(crate) word: Option<u32>,
    /// The word nearest to `c`.
    pub(crate) baseline: Option<u32>,
}

/// Answers to questions, from all vectors that it is shown.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    questions: &'a [[u32; 4]],
    analogies: Nearest<1>,
    /// The words that are `c` of a question, ascending.
    words: Vec<u32>,
    /// The answer of a word is not among the other two words of a question: the best three contain
    /// one that is.
    neighbours: Nearest<3>,
    dim: usize,
    panels: Panels,
    block: Vec<f32>,
}

/// The `K` words whose vectors are nearest to each of some queries, of all but some.
#[derive(Debug)]
struct Nearest<const K: usize> {
    /// `[queries x dim]`.
    queries: Vec<f32>,
    /// Words that are not looked for, by query.
    excluded: Vec<[u32; 3]>,
    /// By query, the nearest first.
    best: Vec<[Best; K]>,
    cosines: Vec<f32>,
    scratch: Vec<f32>,
}

/// A word and its cosine, up to a factor that is the same for all answers to a question.
type Best = Option<(f32, u32)>;

impl<'a> Search<'a> {
    /// Returns a search that has seen no vector, by vectors of length 1 of the words of the
    /// questions.
    pub(crate) fn new<'v>(
        questions: &'a [[u32; 4]],
        dim: usize,
        vector: impl Fn(u32) -> &'v [f32],
    ) -> Self {
        let query = |[a, b, c, _]: &[u32; 4]| {
            let (a, b, c) = (vector(*a), vector(*b), vector(*c));
            a.iter().zip(b).zip(c).map(|((a, b), c)| b - a + c)
        };
        let queries = questions.iter().flat_map(query).collect();
        let analogies =
            Nearest::new(queries, questions.iter().map(|[a, b, c, _]| [*a, *b, *c]).collect());
        let mut words: Vec<u32> = questions.iter().map(|[_, _, c, _]| *c).collect();
        words.sort_unstable();
        words.dedup();
        let queries = words.iter().flat_map(|word| vector(*word)).copied().collect();
        let neighbours = Nearest::new(queries, words.iter().map(|word| [*word; 3]).collect());
        let (panels, block) = (Panels::default(), Vec::new());
        Self { questions, analogies, words, neighbours, dim, panels, block }
    }

    /// Looks for answers among the words from number `first` on, whose vectors are `[words x dim]`,
    /// of any length.
    pub(crate) fn see(&mut self, first: u32, vectors: &[f32]) {
        let dim = self.dim;
        for (number, vectors) in vectors.chunks(BLOCK * dim).enumerate() {
            let (first, words) = (first + (number * BLOCK) as u32, vectors.len() / dim);
            self.block.clear();
            self.block.extend_from_slice(vectors);
            self.block.chunks_exact_mut(dim).for_each(normalize);
            self.panels.fill_transposed(&self.block, dim, dim, words);
            self.analogies.see(first, &self.panels, words);
            self.neighbours.see(first, &self.panels, words);
        }
    }

    /// Takes what another search has found, of the same questions, for as good.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.analogies.merge(&other.analogies);
        self.neighbours.merge(&other.neighbours);
    }

    /// Returns the answers, by question.
    pub(crate) fn found(&self) -> Vec<Answer> {
        let answer = |(question, [best]): (&[u32; 4], &[Best; 1])| {
            let [a, b, c, _] = question;
            let place = self.words.binary_search(c).expect("it is one of them");
            let mut near = self.neighbours.best[place].iter().flatten().map(|(_, word)| *word);
            let baseline = near.find(|word| word != a && word != b);
            Answer { word: best.map(|(_, word)| word), baseline }
        };
        self.questions.iter().zip(&self.analogies.best).map(answer).collect()
    }
}

impl<const K: usize> Nearest<K> {
    fn new(queries: Vec<f32>, excluded: Vec<[u32; 3]>) -> Self {
        let best = vec![[None; K]; excluded.len()];
        Self { queries, excluded, best, cosines: Vec::new(), scratch: Vec::new() }
    }

    /// Looks among `words` words from `first` on, whose vectors are the columns of `vectors`.
    fn see(&mut self, first: u32, vectors: &Panels, words: usize) {
        if self.excluded.is_empty() {
            return;
        }
        let dim = self.queries.len() / self.excluded.len();
        self.cosines.resize(ROWS * words, 0.0);
        let rows = self.excluded.chunks(ROWS).zip(self.queries.chunks(ROWS * dim));
        for ((excluded, queries), best) in rows.zip(self.best.chunks_mut(ROWS)) {
            let left =
                Left { data: queries, rows: excluded.len(), row_stride: dim, inner_stride: 1 };
            let cosines = &mut self.cosines[..excluded.len() * words];
            multiply(left, vectors, cosines, &mut self.scratch);
            for ((excluded, cosines), best) in
                excluded.iter().zip(cosines.chunks_exact_mut(words)).zip(best)
            {
                for word in excluded {
                    if let Some(cosine) =
                        word.checked_sub(first).and_then(|at| cosines.get_mut(at as usize))
                    {
                        *cosine = f32::NEG_INFINITY;
                    }
                }
                // More than `K` of a block cannot be among the best.
                for _ in 0..K {
                    let largest = maximum(cosines);
                    if largest == f32::NEG_INFINITY
                        || best[K - 1].is_some_and(|(least, _)| largest < least)
                    {
                        break;
                    }
                    let Some(at) = cosines.iter().position(|cosine| *cosine == largest) else {
                        break;
                    };
                    insert(best, (largest, first + at as u32));
                    cosines[at] = f32::NEG_INFINITY;
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        for (best, found) in self.best.iter_mut().zip(&other.best) {
            found.iter().flatten().for_each(|found| insert(best, *found));
        }
    }
}

/// Puts a word where it belongs among the best, if it does.
fn insert<const K: usize>(best: &mut [Best; K], found: (f32, u32)) {
    let is_better =
        |(cosine, word): (f32, u32)| found.0 > cosine || (found.0 == cosine && found.1 < word);
    if let Some(place) = best.iter().position(|best| best.is_none_or(is_better)) {
        best[place..].rotate_right(1);
        best[place] = Some(found);
    }
}

/// Makes a vector one of length 1; one of length 0, or that has no length, becomes 0.
pub(crate) fn normalize(vector: &mut [f32]) {
    let square = dot(vector, vector);
    let factor = 1.0 / square.sqrt();
    if factor.is_finite() && square.is_finite() {
        vector.iter_mut().for_each(|value| *value *= factor);
    } else {
        vector.fill(0.0);
    }
}

/// Returns the largest of the numbers, in lanes that the compiler vectorises.
fn maximum(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *value);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// Returns the answers to `questions` among the first `limit` of `vectors`.
pub(crate) fn answers(
    vectors: &Vectors,
    limit: usize,
    questions: &[[u32; 4]],
    threads: usize,
) -> Vec<Answer> {
    let dim = vectors.dim();
    let values = &vectors.values()[..limit.min(vectors.words().len()) * dim];
    let mut normalized = values.to_vec();
    normalized.chunks_exact_mut(dim).for_each(normalize);
    let new = || Search::new(questions, dim, |word| &normalized[word as usize * dim..][..dim]);
    // Whole blocks, so that a thread has whole panels to multiply.
    let words = (values.len() / dim).div_ceil(threads.max(1)).next_multiple_of(BLOCK);
    let search = |(number, vectors): (usize, &[f32])| {
        let mut search = new();
        search.see((number * words) as u32, vectors);
        search
    };
    let parts = values.chunks(words * dim).enumerate();
    let mut found = new();
    threads::map("adapm search", parts, search).iter().for_each(|part| found.merge(part));
    found.found()
}

/// Words of a block: their vectors stay in the second cache, their cosines with [`ROWS`] queries
/// too.
const BLOCK: usize = 512;
/// Queries that are multiplied together.
const ROWS: usize = 64;

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::kge::Names;

    fn vectors(words: usize, dim: usize) -> Vectors {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut names = Names::default();
        (0..words).for_each(|word| names.push(word.to_string().as_bytes()));
        let values = (0..words * dim).map(|_| random.random::<f32>() - 0.5).collect();
        Vectors::new(names, dim, values).unwrap()
    }

    /// Returns the definition, in f64.
    fn expected(vectors: &Vectors, [a, b, c, _]: [u32; 4]) -> Answer {
        let vector = |word: u32| -> Vec<f64> {
            let vector = vectors.vector(word as usize).unwrap();
            let norm = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            vector.iter().map(|x| f64::from(*x) / norm).collect()
        };
        let (va, vb, vc) = (vector(a), vector(b), vector(c));
        let nearest = |query: &dyn Fn(usize) -> f64| {
            let cosine = |word: &u32| -> f64 {
                vector(*word).iter().enumerate().map(|(at, x)| x * query(at)).sum()
            };
            let words = (0..vectors.words().len() as u32).filter(|word| ![a, b, c].contains(word));
            words.max_by(|x, y| cosine(x).total_cmp(&cosine(y)))
        };
        Answer { word: nearest(&|at| vb[at] - va[at] + vc[at]), baseline: nearest(&|at| vc[at]) }
    }

    #[test]
    fn the_answer_has_the_largest_cosine_of_all_other_words_however_many_threads_search() {
        let vectors = vectors(1300, 12);
        let question = |i: u32| [i * 7 % 1300, i * 13 % 1300, i * 29 % 1300, 0];
        let questions: Vec<[u32; 4]> = (1..=150).map(question).collect();
        let answers = answers(&vectors, usize::MAX, &questions, 1);
        for (question, answer) in questions.iter().zip(&answers) {
            assert_eq!(*answer, expected(&vectors, *question), "{question:?}");
        }
        for threads in [2, 3, 7] {
            assert_eq!(super::answers(&vectors, usize::MAX, &questions, threads), answers);
        }
    }

    #[test]
    fn blocks_in_any_order_and_in_parts_give_the_same_answers() {
        let vectors = vectors(1000, 8);
        let questions: Vec<[u32; 4]> = (0..70).map(|i| [i, i + 100, i + 200, 0]).collect();
        let mut normalized = vectors.values().to_vec();
        normalized.chunks_exact_mut(8).for_each(normalize);
        let new = || Search::new(&questions, 8, |word| &normalized[word as usize * 8..][..8]);
        let whole = answers(&vectors, usize::MAX, &questions, 1);
        let mut merged = new();
        for first in [700, 0, 13] {
            let end = if first == 0 {
                13
            } else if first == 13 {
                700
            } else {
                1000
            };
            let mut part = new();
            part.see(first as u32, &vectors.values()[first * 8..end * 8]);
            merged.merge(&part);
        }
        assert_eq!(merged.found(), whole);
    }

    #[test]
    fn ties_go_to_the_more_frequent_word_and_vectors_without_length_are_harmless() {
        let mut names = Names::default();
        (0..5).for_each(|word| names.push(word.to_string().as_bytes()));
        let values = vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 3.0];
        let tied = Vectors::new(names.clone(), 2, values).unwrap();
        // Words 3 and 4 are one direction.
        assert_eq!(
            answers(&tied, 5, &[[0, 1, 2, 0]], 1),
            [Answer { word: Some(3), baseline: Some(3) }]
        );
        let none = Answer::default();
        assert_eq!(
            answers(&tied, 3, &[[0, 1, 2, 0]], 1),
            [none],
            "no word but those of the question"
        );
        let values = vec![f32::NAN, 0.0, f32::INFINITY, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 3.0];
        let odd = Vectors::new(names, 2, values).unwrap();
        assert!(
            answers(&odd, 5, &[[0, 1, 2, 0], [2, 4, 4, 0]], 2)
                .iter()
                .all(|answer| answer.word.is_some())
        );
    }
}
