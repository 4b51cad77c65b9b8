//! Queries of a factorization: row and column, or a row whose columns are asked for.

use serde_json::Value;

use crate::mf::{self, RatingId, Ratings};
use crate::run::{CheckpointError, TaskError};

use crate::cli::args::predict::{AskArgs, MfArgs};
use crate::cli::failure::Failure;
use crate::cli::input;
use crate::cli::predict::{Answer, Answering, Named, Predicting, named, number};
use crate::cli::query::{Query, Separated};

impl Predicting for MfArgs {
    const TASK: &'static str = "mf";
    const OF_FLAGS: &'static str = "give --row, and --column for one cell";
    const OF_LINE: &'static str = "give a row and a column between a tab, or a row alone";
    const SEPARATED: Separated = Separated::ByTabs;
    type Data = Ratings;
    type Model<'d> = mf::Predictor<'d>;

    fn ask(&self) -> &AskArgs {
        &self.ask
    }

    fn query(&self) -> Option<Query> {
        let fields = [&self.row, &self.column];
        let is_any = fields.iter().any(|field| field.is_some());
        is_any.then(|| Query::of_flags(&["--row", "--column"], fields.map(Clone::clone)))
    }

    fn complete(mut query: Query) -> Option<Query> {
        if query.fields.len() == 1 {
            query.fields.push(None);
        }
        matches!(query.fields.as_slice(), [Some(_), _]).then_some(query)
    }

    fn open(&self) -> Result<mf::Predictor<'static>, Failure> {
        let predictor = mf::Predictor::open(&self.ask.load).map_err(TaskError::Checkpoint)?;
        Ok(predictor.with_rated(self.known).clipped(self.clip))
    }

    fn data(&self, _: &mf::Predictor<'_>) -> Result<Option<Ratings>, Failure> {
        let Some(name) = &self.data else { return Ok(None) };
        let path = input::locate(Self::TASK, name)?;
        Ok(Some(Ratings::load(&path).map_err(TaskError::Data)?))
    }

    fn with_data<'d>(
        &self,
        model: mf::Predictor<'static>,
        ratings: Option<&'d Ratings>,
    ) -> Result<mf::Predictor<'d>, Failure> {
        Ok(match ratings {
            Some(ratings) => model.with_ratings(ratings),
            None => model,
        })
    }
}

impl Answering for mf::Predictor<'_> {
    fn kind(field: usize) -> &'static str {
        if field == 0 { "row" } else { "column" }
    }

    fn find(&self, field: usize, asked: &[&[u8]]) -> Vec<Option<usize>> {
        let find = |name: &&[u8]| {
            let id = RatingId::of(str::from_utf8(name).ok()?);
            if field == 0 { self.row(id) } else { self.column(id) }
        };
        asked.iter().map(find).collect()
    }

    fn names(&self, field: usize) -> Vec<String> {
        let ids: Box<dyn Iterator<Item = RatingId<'_>>> = match field {
            0 => Box::new((0..self.rows()).filter_map(|row| self.row_id(row))),
            _ => Box::new((0..self.columns()).filter_map(|column| self.column_id(column))),
        };
        ids.map(|id| id.to_string()).collect()
    }

    fn check(&mut self) -> Result<(), CheckpointError> {
        mf::Predictor::check(self)
    }

    fn answer(&mut self, queries: &[Query], top: usize) -> Result<Vec<Answer>, Failure> {
        let row = |query: &Query| query.index(0).unwrap_or_default();
        let cell = |query: &Query| Some((row(query), query.index(1)?));
        let cells: Vec<(usize, usize)> = queries.iter().filter_map(cell).collect();
        let rows: Vec<usize> =
            queries.iter().filter(|query| cell(query).is_none()).map(row).collect();
        let mut values = self.predict(&cells)?.into_iter();
        let mut columns = self.top_columns(&rows, top)?.into_iter();
        let known = |is_rated: bool| Value::from(self.ratings().map(|_| is_rated));
        let named = |candidate: &mf::Candidate| Named {
            name: self.column_id(candidate.column).map(|id| id.to_string()).unwrap_or_default(),
            score: ("value", candidate.value as f32),
            known: Some(known(candidate.is_rated)),
        };
        let mut answer = |query: &Query| match cell(query) {
            Some(_) => {
                let value = values.next().unwrap_or(f64::NAN);
                Answer::Figures(vec![("value", number(value as f32))])
            }
            None => Answer::Names(columns.next().iter().flatten().map(named).collect()),
        };
        Ok(queries.iter().map(&mut answer).collect())
    }

    fn named(query: &Query) -> Vec<(&'static str, Value)> {
        named(query, ["row", "column"])
    }

    fn own(&self) -> Vec<(&'static str, Value)> {
        vec![("data", self.ratings().map(|ratings| ratings.source().to_string()).into())]
    }

    fn note(&self, queries: &[Query]) -> Option<String> {
        let has_lists = queries.iter().any(|query| query.fields[1].is_none());
        (has_lists && self.ratings().is_none()).then(|| {
            "without --data columns that a row has already are among its answers".to_owned()
        })
    }
}
