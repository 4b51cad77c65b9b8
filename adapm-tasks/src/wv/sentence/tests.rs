//! Sentences: cut at lines and at a thousand words, each word kept as often as it should be.

use super::*;
use crate::wv::corpus;
use crate::wv::text::Text;

fn vocabulary(text: &[u8]) -> Vocabulary {
    Vocabulary::count(&Text::of_bytes(text), 1, 1).unwrap()
}

fn sentences(
    text: &[u8],
    keep_thresholds: &[u32],
    window: u16,
    seed: u64,
    worker: usize,
    epoch: u32,
) -> Vec<Sentence> {
    let vocabulary = vocabulary(text);
    let plan = Plan { vocabulary: &vocabulary, keep_thresholds, window, seed };
    let text = Text::of_bytes(text);
    let share = text.share(0, 1).unwrap();
    Sentences::new(plan, &share, worker, epoch).map(Result::unwrap).collect()
}

#[test]
fn a_line_is_a_sentence_of_known_words_and_one_word_is_none() {
    // Numbers: c 0 (4 times), b 1 (3), a 2 (2), d 3 (1).
    let text = b"a b c c\n\n\nd\r\nb a\n b c c";
    let found = sentences(text, &[u32::MAX; 4], 1, 1, 0, 0);
    let words: Vec<Vec<u32>> = found
        .iter()
        .map(|sentence| {
            sentence.places.iter().map(|place| sentence.distinct[*place as usize]).collect()
        })
        .collect();
    assert_eq!(words, [vec![2, 1, 0, 0], vec![1, 2], vec![1, 0, 0]]);
    assert_eq!(found[0].distinct, [0, 1, 2]);
    let keys: Vec<u64> = found[1].keys(Keys { words: 4 }).iter().map(|key| key.0).collect();
    assert_eq!(keys, [1, 2, 5, 6]);
    assert!(found.iter().all(|sentence| sentence.windows.iter().all(|window| *window == 1)));
}

#[test]
fn long_lines_are_cut_at_a_thousand_words() {
    let found = sentences(&b"a b ".repeat(1201), &[u32::MAX; 2], 5, 1, 0, 0);
    assert_eq!(
        found.iter().map(|sentence| sentence.places.len()).collect::<Vec<_>>(),
        [1000, 1000, 402]
    );
}

#[test]
fn contexts_reach_as_far_as_the_window_and_the_sentence() {
    let places = vec![0, 1, 2, 1, 0];
    let sentence =
        Sentence { distinct: vec![5, 6, 7], places, windows: vec![1, 3, 1, 2, 9], read: 5 };
    let contexts: Vec<Vec<usize>> =
        sentence.contexts().map(|(_, context)| context.collect()).collect();
    let expected: [&[usize]; 5] = [&[1], &[0, 2, 3, 4], &[1, 3], &[1, 2, 4], &[0, 1, 2, 3]];
    assert_eq!(contexts, expected);
    assert_eq!(sentence.pairs(), expected.iter().map(|context| context.len()).sum::<usize>());
}

#[test]
fn windows_are_uniform_and_depend_on_seed_worker_and_epoch_alone() {
    let text = b"a b ".repeat(25_000);
    let keep_thresholds = [u32::MAX; 2];
    let found = sentences(&text, &keep_thresholds, 5, 7, 2, 1);
    let mut seen = [0_u32; 5];
    found
        .iter()
        .flat_map(|sentence| &sentence.windows)
        .for_each(|w| seen[usize::from(*w) - 1] += 1);
    // Five standard deviations of 50,000 draws with chance 1/5.
    assert!(seen.iter().all(|n| n.abs_diff(10_000) < 450), "{seen:?}");
    assert_eq!(found, sentences(&text, &keep_thresholds, 5, 7, 2, 1));
    for other in [(8, 2, 1), (7, 3, 1), (7, 2, 2)] {
        assert_ne!(
            found[0].windows,
            sentences(&text, &keep_thresholds, 5, other.0, other.1, other.2)[0].windows
        );
    }
}

#[test]
fn frequent_words_are_kept_by_the_formula_of_word2vec() {
    // `a` is 9/10 of the text: of each occurrence, sqrt(t / f) + t / f are kept.
    let text = b"a a a a a a a a a b\n".repeat(5000);
    let vocabulary = vocabulary(&text);
    let (sample, share) = (0.01_f64, 0.9_f64);
    let chance = (sample / share).sqrt() + sample / share;
    let thresholds = keep_thresholds(&vocabulary, sample);
    assert!((f64::from(thresholds[0]) / TWO_TO_32 - chance).abs() < 1e-9);
    let plan = Plan { vocabulary: &vocabulary, keep_thresholds: &thresholds, window: 5, seed: 3 };
    let mut seen = [0.0; 2];
    let text = Text::of_bytes(&text);
    let mut reader = Sentences::new(plan, &text.share(0, 1).unwrap(), 0, 1);
    while reader.fill().unwrap() {
        reader.words.iter().for_each(|word| seen[*word as usize] += 1.0);
    }
    // Five standard deviations.
    assert!((seen[0] - 45_000.0 * chance).abs() < 5.0 * (45_000.0 * chance).sqrt(), "{seen:?}");
    let rare = (sample / 0.1).sqrt() + sample / 0.1;
    assert!((seen[1] - 5000.0 * rare).abs() < 5.0 * (5000.0 * rare).sqrt(), "{seen:?}");
    assert_eq!(
        keep_thresholds(&vocabulary, 0.0),
        [u32::MAX; 2],
        "all are kept if nothing is thinned"
    );
    assert_eq!(keep_thresholds(&vocabulary, 1.0), [u32::MAX; 2]);
}

#[test]
fn every_word_of_the_vocabulary_that_is_read_is_counted_once() {
    let text = b"a b c\n\nd\nx\nb a\na a";
    let vocabulary = Vocabulary::count(&Text::of_bytes(b"a b c d a a b"), 1, 1).unwrap();
    let plan =
        Plan { vocabulary: &vocabulary, keep_thresholds: &[u32::MAX; 4], window: 1, seed: 1 };
    let text = Text::of_bytes(text);
    let share = text.share(0, 1).unwrap();
    let read: Vec<u64> =
        Sentences::new(plan, &share, 0, 1).map(|sentence| sentence.unwrap().read).collect();
    // `d` alone is no sentence and counts with the next, `x` has no vector.
    assert_eq!(read, [3, 3, 2]);
}

fn judged(corpus: &Corpus, seed: u64) -> Judged {
    let keep_thresholds = keep_thresholds(corpus.vocabulary(), 0.0);
    let plan = Plan {
        vocabulary: corpus.vocabulary(),
        keep_thresholds: &keep_thresholds,
        window: 2,
        seed,
    };
    Judged::draw(corpus, &plan, &corpus::negative_table(corpus.vocabulary().counts())).unwrap()
}

#[test]
fn the_sample_depends_on_the_seed_alone_and_workers_share_it() {
    let corpus = Corpus::count(Text::generated(1, 3000), 1, 1).unwrap();
    let keys = |judged: &Judged| -> Vec<Vec<Key>> {
        let keys = Keys { words: corpus.vocabulary().len() as u64 };
        judged.of_worker(0, 1).map(|(_, passage)| passage.keys(keys)).collect()
    };
    let sample = judged(&corpus, 1);
    assert_eq!(keys(&sample), keys(&judged(&corpus, 1)));
    assert_ne!(keys(&sample), keys(&judged(&corpus, 2)));
    let of_three: usize = (0..3).map(|number| sample.of_worker(number, 3).count()).sum();
    assert_eq!((of_three, sample.passages.len()), (100, 100));
    let pairs: usize = sample.passages.iter().map(|passage| passage.sentence.pairs()).sum();
    assert_eq!(sample.pairs(), pairs as u64);
}

#[test]
fn a_text_of_a_few_words_has_a_sample_too_and_a_long_line_has_its_beginnings() {
    let few = Corpus::count(Text::of_bytes(b"a b"), 1, 1).unwrap();
    assert_eq!(judged(&few, 1).pairs(), 2);
    let line = Corpus::count(Text::of_bytes(&b"a b c d ".repeat(10_000)), 1, 1).unwrap();
    let sample = judged(&line, 1);
    assert!(sample.passages.iter().all(|passage| passage.sentence.places.len() == WORDS));
}

#[test]
fn the_loss_is_that_of_its_definition() {
    let sentence =
        Sentence { distinct: vec![0, 2], places: vec![0, 1, 0], windows: vec![1; 3], read: 3 };
    let passage = Passage { sentence, negatives: vec![2, 1] };
    // Values of 3 floats with vectors of 2: two inputs, two outputs, two negatives.
    let values: Vec<f32> = (0..18).map(|number| (number % 7) as f32 * 0.2 - 0.5).collect();
    let product = |input: usize, output: usize| -> f64 {
        (0..2)
            .map(|at| f64::from(values[3 * input + at]) * f64::from(values[3 * output + at]))
            .sum()
    };
    let minus_ln_s = |x: f64| (1.0 + (-x).exp()).ln();
    let negatives = 5.0 / 2.0;
    let mut expected = 0.0;
    for (input, output) in [(0, 1), (1, 0), (1, 0), (0, 1)] {
        expected += minus_ln_s(product(input, 2 + output));
        // The first negative is word 2, the second of the sentence.
        expected += negatives * if output == 1 { 0.0 } else { minus_ln_s(-product(input, 4)) };
        expected += negatives * minus_ln_s(-product(input, 5));
    }
    let found = passage.loss(&values, (3, 2), 5);
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}
