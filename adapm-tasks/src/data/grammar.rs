//! Generated sentences with known analogies.
//!
//! A section has items, and each item two words: its two forms (`country07`, `capital07`). A
//! sentence is about one form of one item: around its word stand words of the item, whichever form
//! it is (`country07_about3`), words of the form, whichever item it is (`capital_like5`), and words
//! that say nothing (`filler012`, the frequency of the `n`th as `1 / n`). So a word means its item
//! and its form and nothing else: what `capital07` is to `country07`, `capital11` is to
//! `country11`, and a model that has learnt all there is answers every question.

use std::io::{self, Write};

use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A section: heading of its questions, its two forms.
struct Section {
    heading: &'static str,
    forms: [&'static str; 2],
}

const SECTIONS: [Section; 4] = [
    Section { heading: "capital", forms: ["country", "capital"] },
    Section { heading: "family", forms: ["uncle", "aunt"] },
    Section { heading: "gram1-plural", forms: ["noun", "nouns"] },
    Section { heading: "gram2-past", forms: ["walk", "walked"] },
];

/// Items of a section.
const ITEMS: usize = 16;
/// Words that go with an item.
const ABOUT: usize = 6;
/// Words that go with a form.
const LIKE: usize = 8;
/// Words that say nothing.
const FILLERS: usize = 200;

/// A place in a sentence.
#[derive(Clone, Copy)]
enum Slot {
    Word,
    About,
    Like,
    Filler,
}

/// Sentences, as their places; each is as likely as any.
const TEMPLATES: [&[Slot]; 4] = {
    use Slot::{About, Filler, Like, Word};
    [
        &[Filler, Like, Word, About, Filler],
        &[About, Like, Word, Filler],
        &[Like, About, Word, Like, About],
        &[Filler, Word, Like, About, Filler, About],
    ]
};

/// Writes `sentences` sentences, one a line; takes a few hundred bytes of memory for any number.
/// The same seed writes the same bytes.
pub(crate) fn write(seed: u64, sentences: u64, mut writer: impl Write) -> io::Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let fillers =
        Zipf::new(FILLERS as f64, 1.0).expect("there are fillers, and the exponent is positive");
    for _ in 0..sentences {
        let section = &SECTIONS[random.random_range(0..SECTIONS.len())];
        let [first, _] = section.forms;
        let form = section.forms[random.random_range(0..2)];
        let item = random.random_range(0..ITEMS);
        let template = TEMPLATES[random.random_range(0..TEMPLATES.len())];
        for (place, slot) in template.iter().enumerate() {
            if place > 0 {
                writer.write_all(b" ")?;
            }
            match slot {
                Slot::Word => write!(writer, "{form}{item:02}")?,
                Slot::About => {
                    write!(writer, "{first}{item:02}_about{}", random.random_range(0..ABOUT))?
                }
                Slot::Like => write!(writer, "{form}_like{}", random.random_range(0..LIKE))?,
                Slot::Filler => write!(writer, "filler{:03}", fillers.sample(&mut random) as u32)?,
            }
        }
        writer.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns the questions that follow from the grammar, in the form of `questions-words.txt`.
pub(crate) fn questions() -> String {
    let mut lines = String::new();
    for Section { heading, forms: [first, second] } in SECTIONS {
        lines.push_str(&format!(": {heading}\n"));
        for a in 0..ITEMS {
            for c in (0..ITEMS).filter(|c| *c != a) {
                lines.push_str(&format!(
                    "{first}{a:02} {second}{a:02} {first}{c:02} {second}{c:02}\n"
                ));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(seed: u64, sentences: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(seed, sentences, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_same_seed_writes_the_same_sentences_and_more_only_follow() {
        assert_eq!(text(5, 300), text(5, 300));
        assert_ne!(text(5, 300), text(6, 300));
        assert!(text(5, 300).starts_with(&text(5, 200)));
        assert!(text(5, 0).is_empty());
    }

    #[test]
    fn every_word_of_every_question_occurs_and_pairs_differ_in_their_form_alone() {
        let text = String::from_utf8(text(1, 20_000)).unwrap();
        let words: HashSet<&str> = text.split_whitespace().collect();
        let questions = questions();
        let asked: Vec<&str> = questions.lines().filter(|line| !line.starts_with(':')).collect();
        assert_eq!(asked.len(), SECTIONS.len() * ITEMS * (ITEMS - 1));
        assert!(asked.iter().all(|line| line.split(' ').count() == 4));
        assert!(asked.iter().flat_map(|line| line.split(' ')).all(|word| words.contains(word)));
        // What stands around both forms of an item is of this item, what stands around a form of
        // this form.
        for line in
            text.lines().filter(|line| line.contains("capital07 ") || line.ends_with("capital07"))
        {
            for word in line.split(' ').filter(|word| !word.starts_with("filler")) {
                assert!(
                    word == "capital07"
                        || word.starts_with("country07_")
                        || word.starts_with("capital_"),
                    "{line}"
                );
            }
        }
    }
}
