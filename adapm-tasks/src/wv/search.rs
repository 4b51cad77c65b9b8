//! Which word answers a question: that whose vector has the largest cosine with `b - a + c`, of all but `a`, `b` and `c`
//! (3CosAdd; Mikolov, Yih and Zweig, NAACL 2013). All vectors are of length 1 before; of equal ones the more frequent wins.
//!
//! Vectors come in blocks, in any order, so no more than a block of the model has to be in one place, and answers that were
//! found among different vectors can be brought together. A cosine has the same bits in whatever block it is computed.

use adapm_transport::threads;

use crate::matrix::{Left, Panels, dot, multiply};
use crate::wv::vectors::Vectors;

/// The best answers that were found so far.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    questions: &'a [[u32; 4]],
    dim: usize,
    /// `b - a + c` of each question, `[questions x dim]`.
    queries: &'a [f32],
    best: Vec<Best>,
    panels: Panels,
    block: Vec<f32>,
    cosines: Vec<f32>,
    scratch: Vec<f32>,
}

/// A word and its cosine, up to a factor that is the same for all answers to a question.
pub(crate) type Best = Option<(f32, u32)>;

/// `b - a + c` of each question, `[questions x dim]`, from vectors of length 1 by word.
pub(crate) fn queries<'v>(questions: &[[u32; 4]], vector: impl Fn(u32) -> &'v [f32]) -> Vec<f32> {
    let query = |[a, b, c, _]: &[u32; 4]| {
        let (a, b, c) = (vector(*a), vector(*b), vector(*c));
        a.iter().zip(b).zip(c).map(|((a, b), c)| b - a + c)
    };
    questions.iter().flat_map(query).collect()
}

impl<'a> Search<'a> {
    /// A search that has seen no vector.
    pub(crate) fn new(questions: &'a [[u32; 4]], dim: usize, queries: &'a [f32]) -> Self {
        let best = vec![None; questions.len()];
        let (panels, block, cosines, scratch) = (Panels::default(), Vec::new(), Vec::new(), Vec::new());
        Self { questions, dim, queries, best, panels, block, cosines, scratch }
    }

    /// Looks for answers among the words from number `first` on, whose vectors are `[words x dim]`, of any length.
    pub(crate) fn see(&mut self, first: u32, vectors: &[f32]) {
        let dim = self.dim;
        for (number, vectors) in vectors.chunks(BLOCK * dim).enumerate() {
            self.see_block(first + (number * BLOCK) as u32, vectors);
        }
    }

    fn see_block(&mut self, first: u32, vectors: &[f32]) {
        let (dim, words) = (self.dim, vectors.len() / self.dim);
        self.block.clear();
        self.block.extend_from_slice(vectors);
        self.block.chunks_exact_mut(dim).for_each(normalize);
        self.panels.fill_transposed(&self.block, dim, dim, words);
        self.cosines.resize(ROWS * words, 0.0);
        let rows = self.questions.chunks(ROWS).zip(self.queries.chunks(ROWS * dim));
        for ((questions, queries), best) in rows.zip(self.best.chunks_mut(ROWS)) {
            let left = Left { data: queries, rows: questions.len(), row_stride: dim, inner_stride: 1 };
            let cosines = &mut self.cosines[..questions.len() * words];
            multiply(left, &self.panels, cosines, &mut self.scratch);
            for ((question, cosines), best) in questions.iter().zip(cosines.chunks_exact_mut(words)).zip(best)
            {
                for word in &question[..3] {
                    if let Some(cosine) = word.checked_sub(first).and_then(|at| cosines.get_mut(at as usize))
                    {
                        *cosine = f32::NEG_INFINITY;
                    }
                }
                let largest = maximum(cosines);
                let is_better = best.is_none_or(|(cosine, _)| largest >= cosine);
                if is_better
                    && largest > f32::NEG_INFINITY
                    && let Some(at) = cosines.iter().position(|cosine| *cosine == largest)
                {
                    *best = better(*best, Some((largest, first + at as u32)));
                }
            }
        }
    }

    /// Takes what was found elsewhere, by question, for as good.
    pub(crate) fn merge(&mut self, found: &[Best]) {
        for (best, found) in self.best.iter_mut().zip(found) {
            *best = better(*best, *found);
        }
    }

    /// What was found, by question; none where there is no word but those of the question.
    pub(crate) fn found(&self) -> &[Best] {
        &self.best
    }
}

fn better(a: Best, b: Best) -> Best {
    let (Some((a_cosine, a_word)), Some((b_cosine, b_word))) = (a, b) else { return a.or(b) };
    let is_b = b_cosine > a_cosine || (b_cosine == a_cosine && b_word < a_word);
    if is_b { b } else { a }
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

/// The largest of the numbers, in lanes that the compiler vectorises.
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

/// The words that answer `questions` among the first `limit` of `vectors`.
pub(crate) fn answers(
    vectors: &Vectors,
    limit: usize,
    questions: &[[u32; 4]],
    threads: usize,
) -> Vec<Option<u32>> {
    let dim = vectors.dim();
    let values = &vectors.values()[..limit.min(vectors.words().len()) * dim];
    let mut normalized = values.to_vec();
    normalized.chunks_exact_mut(dim).for_each(normalize);
    let queries = queries(questions, |word| &normalized[word as usize * dim..][..dim]);
    // Whole blocks, so that a thread has whole panels to multiply.
    let words = (values.len() / dim).div_ceil(threads.max(1)).next_multiple_of(BLOCK);
    let mut found = Search::new(questions, dim, &queries);
    let search = |(number, vectors): (usize, &[f32])| {
        let mut search = Search::new(questions, dim, &queries);
        search.see((number * words) as u32, vectors);
        search.found().to_vec()
    };
    let parts = values.chunks(words * dim).enumerate();
    threads::map("adapm search", parts, search).iter().for_each(|part| found.merge(part));
    found.found().iter().map(|best| best.map(|(_, word)| word)).collect()
}

/// Words of a block: their vectors stay in the second cache, their cosines with [`ROWS`] queries too.
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

    /// The definition, in f64.
    fn expected(vectors: &Vectors, [a, b, c, _]: [u32; 4]) -> Option<u32> {
        let vector = |word: u32| -> Vec<f64> {
            let vector = vectors.vector(word as usize).unwrap();
            let norm = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            vector.iter().map(|x| f64::from(*x) / norm).collect()
        };
        let (va, vb, vc) = (vector(a), vector(b), vector(c));
        let cosine = |word: &u32| -> f64 {
            vector(*word).iter().enumerate().map(|(at, x)| x * (vb[at] - va[at] + vc[at])).sum()
        };
        let words = (0..vectors.words().len() as u32).filter(|word| ![a, b, c].contains(word));
        words.max_by(|x, y| cosine(x).total_cmp(&cosine(y)))
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
        let queries = queries(&questions, |word| &normalized[word as usize * 8..][..8]);
        let whole = answers(&vectors, usize::MAX, &questions, 1);
        let mut merged = Search::new(&questions, 8, &queries);
        for first in [700, 0, 13] {
            let end = if first == 0 {
                13
            } else if first == 13 {
                700
            } else {
                1000
            };
            let mut part = Search::new(&questions, 8, &queries);
            part.see(first as u32, &vectors.values()[first * 8..end * 8]);
            merged.merge(part.found());
        }
        let found: Vec<Option<u32>> = merged.found().iter().map(|best| best.map(|(_, word)| word)).collect();
        assert_eq!(found, whole);
    }

    #[test]
    fn ties_go_to_the_more_frequent_word_and_vectors_without_length_are_harmless() {
        let mut names = Names::default();
        (0..5).for_each(|word| names.push(word.to_string().as_bytes()));
        let values = vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 3.0];
        let tied = Vectors::new(names.clone(), 2, values).unwrap();
        assert_eq!(answers(&tied, 5, &[[0, 1, 2, 0]], 1), [Some(3)]);
        assert_eq!(answers(&tied, 3, &[[0, 1, 2, 0]], 1), [None], "no word but those of the question");
        let values = vec![f32::NAN, 0.0, f32::INFINITY, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 3.0];
        let odd = Vectors::new(names, 2, values).unwrap();
        assert!(answers(&odd, 5, &[[0, 1, 2, 0], [2, 4, 4, 0]], 2).iter().all(Option::is_some));
    }
}
