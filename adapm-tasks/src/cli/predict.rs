//! The verb `predict`: queries by flags or from a file, answers by a trained model, of which no
//! more is read than they need.
//!
//! ```text
//!   queries --> names in the head of the model --> data, if any --> answers, batch by batch
//! ```
//!
//! What is wrong with a query is found before data are read and before an answer is printed. What
//! is a task's own implements [`Predicting`] and [`Answering`]. Answers are a table for a query by
//! flags, lines of fields between tabs for those of a file, or objects.

use std::path::Path;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::run::{CheckpointError, TaskError};

use crate::cli::args::predict::AskArgs;
use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::progress::Screen;
use crate::cli::query::{self, Query, QueryError, Separated};
use crate::cli::table::{Align, Table};

pub(crate) mod ctr;
pub(crate) mod gnn;
mod kge;
mod mf;
mod wv;

/// A task whose models answer queries on the command line: its flags.
pub(crate) trait Predicting {
    /// The name of the task.
    const TASK: &'static str;
    /// The queries that flags can make, for messages.
    const OF_FLAGS: &'static str;
    /// The queries that a line can make, for messages.
    const OF_LINE: &'static str;
    /// The separation of the fields of a line.
    const SEPARATED: Separated;
    /// What is known beside the model.
    type Data;
    /// An opened model.
    type Model<'d>: Answering;

    /// Returns the flags that all tasks have.
    fn ask(&self) -> &AskArgs;

    /// Returns the query by flags, if any is given.
    fn query(&self) -> Option<Query>;

    /// Brings the fields of a query into their order; `None` if they are no query.
    fn complete(query: Query) -> Option<Query>;

    /// Opens the model.
    fn open(&self) -> Result<Self::Model<'static>, Failure>;

    /// Reads what is known, if that is asked for or the model is of generated data.
    fn data(&self, model: &Self::Model<'_>) -> Result<Option<Self::Data>, Failure>;

    /// Returns the same model with what is known, if anything is.
    fn with_data<'d>(
        &self,
        model: Self::Model<'static>,
        data: Option<&'d Self::Data>,
    ) -> Result<Self::Model<'d>, Failure>;
}

/// An opened model that answers queries.
pub(crate) trait Answering {
    /// Returns the kind of name that a field of such a query is: `entity`.
    fn kind(field: usize) -> &'static str;

    /// Returns the index of each of these names, which are of one field.
    fn find(&self, field: usize, asked: &[&[u8]]) -> Vec<Option<usize>>;

    /// Returns all names of the kind of a field.
    fn names(&self, field: usize) -> Vec<String>;

    /// Reads the whole file and compares its checksum.
    fn check(&mut self) -> Result<(), CheckpointError>;

    /// Answers queries whose names were found.
    fn answer(&mut self, queries: &[Query], top: usize) -> Result<Vec<Answer>, Failure>;

    /// Returns the fields of the object of a query that name it.
    fn named(query: &Query) -> Vec<(&'static str, Value)>;

    /// Returns the remaining fields of each object.
    fn own(&self) -> Vec<(&'static str, Value)>;

    /// Returns what a reader of these answers has to know.
    fn note(&self, queries: &[Query]) -> Option<String>;
}

/// The answer to a query.
pub(crate) enum Answer {
    /// Names, the best first.
    Names(Vec<Named>),
    /// Numbers, by name.
    Figures(Vec<(&'static str, Value)>),
}

/// A name with its score, by the name of that, and what else there is to say of it.
pub(crate) struct Named {
    name: String,
    score: (&'static str, f32),
    /// True if the data has it, null without data; `None` if no data can have it.
    known: Option<Value>,
}

impl Named {
    fn is_known(&self) -> bool {
        self.known == Some(Value::Bool(true))
    }
}

/// Answers what `args` ask for.
pub(crate) fn run<P: Predicting>(args: &P, interrupt: &Interrupt) -> Result<(), Failure> {
    let AskArgs { load, check, queries: file, top, json } = args.ask();
    let output = Output::new(*json);
    let busy = |what: &str| {
        let screen = Screen::new("predict", output, interrupt);
        screen.waiting(what);
        screen
    };
    let mut queries = queries(args)?;
    let screen = busy("reading the model");
    let model = interrupt.hurry(|| {
        let mut model = args.open()?;
        if *check {
            model.check().map_err(TaskError::Checkpoint)?;
        }
        Ok::<_, Failure>(model)
    })?;
    find_names(&mut queries, &model, load)?;
    screen.waiting("reading data");
    let data = interrupt.hurry(|| args.data(&model))?;
    let mut model = args.with_data(model, data.as_ref())?;
    screen.finish()?;
    let note = model.note(&queries);
    for queries in queries.chunks(BATCH) {
        let screen = busy("answering");
        let answers = interrupt.hurry(|| model.answer(queries, *top))?;
        screen.finish()?;
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::Interrupted(code));
        }
        for (query, answer) in queries.iter().zip(&answers) {
            if *json {
                let (named, own) = (P::Model::named(query), model.own());
                output.object(&Object { task: P::TASK, named, own, answer })?;
            } else if file.is_some() {
                output.text(&lines(query, answer))?;
            } else {
                output.text(&table(query, answer, output))?;
            }
        }
    }
    // Lines are for programs, too.
    let output = Output::new(*json || file.is_some());
    note.map_or(Ok(()), |note| output.sentence(&note))
}

/// Returns the queries of the flags or of the file.
fn queries<P: Predicting>(args: &P) -> Result<Vec<Query>, Failure> {
    let queries = match (&args.ask().queries, args.query()) {
        (Some(path), _) => query::read(path, P::SEPARATED).map_err(Failure::Data)?,
        (None, Some(query)) => vec![query],
        (None, None) => return Err(QueryError::Nothing(P::OF_FLAGS).into()),
    };
    let complete = |query: Query| {
        let malformed = query.malformed(P::OF_FLAGS, P::OF_LINE);
        P::complete(query).ok_or_else(|| malformed.into())
    };
    queries.into_iter().map(complete).collect()
}

/// Finds all names of the queries.
fn find_names<M: Answering>(
    queries: &mut [Query],
    model: &M,
    load: &Path,
) -> Result<(), QueryError> {
    for query in &mut *queries {
        query.indices = vec![None; query.fields.len()];
    }
    let fields = queries.iter().map(|query| query.fields.len()).max().unwrap_or(0);
    for field in 0..fields {
        let name = |query: &Query| query.fields.get(field).cloned().flatten();
        let asking: Vec<(usize, Vec<u8>)> =
            queries.iter().enumerate().filter_map(|(at, query)| Some((at, name(query)?))).collect();
        let names: Vec<&[u8]> = asking.iter().map(|(_, name)| name.as_slice()).collect();
        for ((at, _), index) in asking.iter().zip(model.find(field, &names)) {
            queries[*at].indices[field] = index;
        }
    }
    for query in queries {
        let is_unknown =
            |field: &usize| query.fields[*field].is_some() && query.indices[*field].is_none();
        if let Some(field) = (0..query.fields.len()).find(is_unknown) {
            return Err(query.unknown(field, M::kind(field), load, model.names(field)));
        }
    }
    Ok(())
}

/// Renders an answer for people.
fn table(query: &Query, answer: &Answer, output: Output) -> String {
    let heading = output.bold(query.texts().join("  ")).to_string();
    let mut table;
    match answer {
        Answer::Figures(figures) => {
            table = Table::new(&[Align::Left, Align::Right]);
            for (name, value) in figures {
                table.row([name.replace('_', " "), text(value, format::figure)]);
            }
        }
        Answer::Names(names) if names.is_empty() => {
            return format!("{heading}\n  no answer is left\n");
        }
        Answer::Names(names) => {
            table = Table::new(&[Align::Right, Align::Left, Align::Right]).named_by(2);
            let score = names.first().map_or("", |named| named.score.0);
            table.row(["rank", "name", score]);
            for (rank, named) in (1..).zip(names) {
                let score = text(&number(named.score.1), format::figure);
                let known = if named.is_known() { KNOWN } else { "" };
                table.row([format!("{rank}"), named.name.clone(), score, known.to_owned()]);
            }
        }
    }
    format!("{heading}\n{}", table.render())
}

/// Renders an answer for programs, a line a name.
fn lines(query: &Query, answer: &Answer) -> String {
    let line = |fields: Vec<String>| [query.texts(), fields].concat().join("\t") + "\n";
    let digits = |value: &Value| text(value, |value| value.to_string());
    match answer {
        Answer::Figures(figures) => line(figures.iter().map(|(_, value)| digits(value)).collect()),
        Answer::Names(names) => {
            let named = |(rank, named): (usize, &Named)| {
                let (name, score) = (named.name.clone(), digits(&number(named.score.1)));
                let mut fields = vec![rank.to_string(), name, score];
                fields.extend(named.is_known().then(|| KNOWN.to_owned()));
                line(fields)
            };
            (1..).zip(names).map(named).collect()
        }
    }
}

/// Returns a value as text; numbers with a fraction by `fraction`.
fn text(value: &Value, fraction: impl Fn(f64) -> String) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map(fraction).unwrap_or_default()
        }
        Value::Bool(is_so) => (if *is_so { "yes" } else { "no" }).to_owned(),
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}

/// Returns a number with as few digits as it can have and still be read as the same bits; `null` if
/// it is not finite.
fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// The object of a query.
struct Object<'a> {
    task: &'static str,
    named: Vec<(&'static str, Value)>,
    own: Vec<(&'static str, Value)>,
    answer: &'a Answer,
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("task", self.task)?;
        self.named.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        match self.answer {
            Answer::Figures(figures) => {
                figures.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
            }
            Answer::Names(names) => map.serialize_entry("answers", names)?,
        }
        self.own.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry(self.score.0, &number(self.score.1))?;
        self.known.iter().try_for_each(|known| map.serialize_entry(KNOWN, known))?;
        map.end()
    }
}

/// Returns the fields of an object that name a query; `null` is asked for.
fn named<const N: usize>(query: &Query, fields: [&'static str; N]) -> Vec<(&'static str, Value)> {
    let value = |field: usize| match query.fields[field] {
        Some(_) => Value::from(query.text(field)),
        None => Value::Null,
    };
    fields.into_iter().enumerate().map(|(field, name)| (name, value(field))).collect()
}

/// Queries that are answered before their answers are printed.
const BATCH: usize = 256;
/// Marks an answer that the data has.
const KNOWN: &str = "known";
