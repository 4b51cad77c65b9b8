//! Queries of word vectors: a word, or the three words of an analogy.

use std::borrow::Cow;

use serde_json::Value;

use crate::run::{CheckpointError, TaskError};
use crate::wv::{self, Vectors};

use crate::cli::args::predict::{AskArgs, WvArgs};
use crate::cli::failure::Failure;
use crate::cli::predict::{Answer, Answering, Named, Predicting, named};
use crate::cli::query::{self, Query, Separated};

impl Predicting for WvArgs {
    const TASK: &'static str = "wv";
    const OF_FLAGS: &'static str = "give --word or --analogy";
    const OF_LINE: &'static str = "give a word, or the three words of an analogy";
    const SEPARATED: Separated = Separated::ByTabsOrBlanks;
    type Data = ();
    type Model<'d> = wv::Predictor;

    fn ask(&self) -> &AskArgs {
        &self.ask
    }

    fn query(&self) -> Option<Query> {
        let of = |flags, words: &[String]| Query::of_flags(flags, words.iter().cloned().map(Some));
        match (&self.word, &self.analogy) {
            (Some(word), _) => Some(of(&["--word"], std::slice::from_ref(word))),
            (None, Some(words)) => Some(of(&["--analogy"], words)),
            (None, None) => None,
        }
    }

    fn complete(query: Query) -> Option<Query> {
        matches!(query.fields.as_slice(), [Some(_)] | [Some(_), Some(_), Some(_)]).then_some(query)
    }

    fn open(&self) -> Result<wv::Predictor, Failure> {
        let path = &self.ask.load;
        let predictor = match wv::Predictor::open(path) {
            Ok(predictor) => predictor,
            Err(CheckpointError::Foreign { .. }) => wv::Predictor::new(&Vectors::open(path)?.0),
            Err(error) => return Err(TaskError::Checkpoint(error).into()),
        };
        Ok(predictor.limited_to(self.words.unwrap_or(usize::MAX)))
    }

    fn data(&self, _: &wv::Predictor) -> Result<Option<()>, Failure> {
        Ok(None)
    }

    fn with_data(&self, model: wv::Predictor, _: Option<&()>) -> Result<wv::Predictor, Failure> {
        Ok(model)
    }
}

impl Answering for wv::Predictor {
    fn kind(_: usize) -> &'static str {
        "word"
    }

    fn find(&self, _: usize, asked: &[&[u8]]) -> Vec<Option<usize>> {
        query::places(self.words(), asked, true)
    }

    fn names(&self, _: usize) -> Vec<String> {
        query::texts(self.words())
    }

    fn check(&mut self) -> Result<(), CheckpointError> {
        wv::Predictor::check(self)
    }

    fn answer(&mut self, queries: &[Query], top: usize) -> Result<Vec<Answer>, Failure> {
        let word = |query: &Query, field| query.index(field).unwrap_or_default() as u32;
        let query = |query: &Query| match query.fields.len() {
            1 => wv::Query::Word(word(query, 0)),
            _ => wv::Query::Analogy([0, 1, 2].map(|field| word(query, field))),
        };
        let queries: Vec<wv::Query> = queries.iter().map(query).collect();
        let answers = wv::Predictor::answer(self, &queries, top)?;
        let name = |word: u32| self.words().text(word as usize).map(Cow::into_owned);
        let named = |near: &wv::Neighbour| Named {
            name: name(near.word).unwrap_or_default(),
            score: ("cosine", near.cosine),
            known: None,
        };
        Ok(answers.iter().map(|near| Answer::Names(near.iter().map(named).collect())).collect())
    }

    fn named(query: &Query) -> Vec<(&'static str, Value)> {
        match query.fields.len() {
            1 => named(query, ["word"]),
            _ => vec![("analogy", query.texts().into())],
        }
    }

    fn own(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn note(&self, _: &[Query]) -> Option<String> {
        None
    }
}
