//! Wikipedia text, where `ADAPM_DATA` names a folder that has it.

use std::path::{Path, PathBuf};

use adapm_tasks::data::{DATA_VARIABLE, locate};
use adapm_tasks::wv::{Analogies, Corpus, SectionKind, Text};

/// Returns a file of the folder, `None` (and a line that says so) if it is not there.
fn file(name: &str) -> Option<PathBuf> {
    let file = locate("wv", Path::new(name)).ok();
    if file.is_none() {
        eprintln!("skipped: no {name} under ${DATA_VARIABLE}");
    }
    file
}

#[test]
fn wikipedia_text_has_its_known_vocabulary() {
    let Some(text) = file("enwiki-2018.txt") else { return };
    let corpus = Corpus::count(Text::open(&text).expect("opens"), 5, 2).expect("there are words");
    // gensim counts the same with the same minimum.
    assert_eq!((corpus.vocabulary().len(), corpus.words()), (62_398, 9_302_771));
    assert_eq!(corpus.vocabulary().words().bytes(0), Some(b"the".as_slice()));
}

#[test]
fn the_questions_of_word2vec_have_their_known_sections() {
    let Some(questions) = file("questions-words.txt") else { return };
    let analogies = Analogies::load(&questions).expect("well formed");
    assert_eq!(analogies.len(), 19_544);
    let corpus = Corpus::count(Text::generated(1, 100), 1, 1).expect("there are words");
    let values = vec![0.5; corpus.vocabulary().len()];
    let vectors = adapm_tasks::wv::Vectors::new(corpus.vocabulary().words().clone(), 1, values)
        .expect("fits");
    let report = analogies.evaluate(&vectors, usize::MAX, 1);
    assert_eq!(report.sections.len(), 14);
    assert_eq!(report.of_kind(SectionKind::Semantic).asked, 8869);
    assert_eq!(report.of_kind(SectionKind::Syntactic).asked, 10_675);
    assert_eq!(report.total().seen, 0);
}
