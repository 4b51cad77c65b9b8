//! Queries as they are typed or stand in a file, and the names in them.
//!
//! Not here: what they mean, and their answers ([`predict`](crate::cli::predict)).

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::data::lines::lines;
use crate::data::{DataError, bytes};
use crate::kge::Names;

/// A query: names, or nothing where a name is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) fields: Vec<Option<Vec<u8>>>,
    /// The index of each name in the model.
    pub(crate) indices: Vec<Option<usize>>,
    place: Place,
}

/// The place of a query, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The flags of the fields.
    Flags(&'static [&'static str]),
    /// A line of a file.
    Line(PathBuf, u64),
}

/// How the fields of a line are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separated {
    /// By tabs.
    ByTabs,
    /// By tabs, or by blanks where there is no tab.
    ByTabsOrBlanks,
}

/// A query that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    /// Neither flags nor a file.
    #[error("nothing is asked: {0}, or --queries FILE")]
    Nothing(&'static str),
    /// Flags that are no query together; the queries that there are.
    #[error("{0}")]
    Flags(&'static str),
    /// A line that is no query; the queries that there are.
    #[error("{path}:{line}: {wanted}", path = .0.display(), line = .1, wanted = .2)]
    Line(PathBuf, u64, &'static str),
    /// A name that the model does not have.
    #[error("{0}")]
    Unknown(Box<UnknownName>),
}

/// A name that a model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownName {
    place: Place,
    /// Its place among the fields.
    field: usize,
    /// What it would be a name of.
    kind: &'static str,
    name: String,
    model: PathBuf,
    /// The nearest names, and whether the first may have been meant.
    nearest: Vec<String>,
    is_near: bool,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, field, kind, name, model, nearest, is_near } = self;
        if let Place::Line(path, line) = place {
            write!(f, "{}:{line}: ", path.display())?;
        }
        write!(f, "no {kind} {name} in {}", model.display())?;
        if let Place::Flags(flags) = place {
            // Of one flag with several names, that one.
            write!(f, " ({})", flags.get(*field).or(flags.last()).copied().unwrap_or_default())?;
        }
        match nearest.split_last() {
            None => Ok(()),
            Some((last, [])) if *is_near => write!(f, "; did you mean {last}?"),
            Some((last, first)) if *is_near => {
                write!(f, "; did you mean {} or {last}?", first.join(", "))
            }
            Some(_) => write!(f, "; the nearest names are {}", nearest.join(", ")),
        }
    }
}

impl Query {
    /// Returns a query by flags, one for each field.
    pub(crate) fn of_flags(
        flags: &'static [&'static str],
        fields: impl IntoIterator<Item = Option<String>>,
    ) -> Self {
        let fields = fields.into_iter().map(|field| field.map(String::into_bytes)).collect();
        Self { fields, indices: Vec::new(), place: Place::Flags(flags) }
    }

    /// Returns the error of fields that are no query.
    pub(crate) fn malformed(&self, of_flags: &'static str, of_line: &'static str) -> QueryError {
        match &self.place {
            Place::Flags(_) => QueryError::Flags(of_flags),
            Place::Line(path, line) => QueryError::Line(path.clone(), *line, of_line),
        }
    }

    /// Returns the error of a name that `model` does not have; `names` are those that it has.
    pub(crate) fn unknown(
        &self,
        field: usize,
        kind: &'static str,
        model: &Path,
        names: Vec<String>,
    ) -> QueryError {
        let (name, model) = (self.text(field), model.to_path_buf());
        let (near, mut nearest) = crate::nearest::nearest(&name, names);
        nearest.truncate(NEAREST);
        let (place, is_near) = (self.place.clone(), near.is_some());
        let unknown = UnknownName { place, field, kind, name, model, nearest, is_near };
        QueryError::Unknown(Box::new(unknown))
    }

    /// Returns a field for people, `?` where a name is asked for.
    pub(crate) fn text(&self, field: usize) -> String {
        match self.fields.get(field) {
            Some(Some(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => OPEN.to_owned(),
        }
    }

    /// Returns all fields for people.
    pub(crate) fn texts(&self) -> Vec<String> {
        (0..self.fields.len()).map(|field| self.text(field)).collect()
    }

    /// Returns the index of a field's name, which was found.
    pub(crate) fn index(&self, field: usize) -> Option<usize> {
        self.indices.get(field).copied().flatten()
    }
}

/// Reads the queries of a file, or of stdin if it is called `-`. Blank lines are no queries; a
/// field that is empty or `?` is asked for.
///
/// # Errors
///
/// A file that is missing, unreadable, or no text.
pub(crate) fn read(path: &Path, separated: Separated) -> Result<Vec<Query>, DataError> {
    let is_stdin = path == Path::new("-");
    let text = bytes::read(if is_stdin { Path::new("/dev/stdin") } else { path })?;
    let name = if is_stdin { Path::new("stdin") } else { path };
    Ok(queries_of(&text, name, separated))
}

fn queries_of(text: &[u8], path: &Path, separated: Separated) -> Vec<Query> {
    let query = |(line, text): (u64, &[u8])| {
        let has_tabs = text.contains(&b'\t') || separated == Separated::ByTabs;
        let is_separator = |byte: &u8| if has_tabs { *byte == b'\t' } else { *byte == b' ' };
        let fields = text.split(is_separator).map(<[u8]>::trim_ascii);
        let fields = fields.filter(|field| has_tabs || !field.is_empty());
        let named =
            |field: &[u8]| (!field.is_empty() && field != OPEN.as_bytes()).then(|| field.to_vec());
        let fields = fields.map(named).collect();
        Query { fields, indices: Vec::new(), place: Place::Line(path.to_path_buf(), line) }
    };
    lines(text).map(query).collect()
}

/// Returns the index of each name that is asked for, the first of equal ones, by a pass over the
/// names of a model; if `ignores_case` is true, and one is not there, that of the first name that
/// is the same but for the case of its letters.
pub(crate) fn places(names: &Names, asked: &[&[u8]], ignores_case: bool) -> Vec<Option<usize>> {
    let find = |key: fn(&[u8]) -> Vec<u8>, found: &mut [Option<usize>]| {
        let open = asked.iter().zip(found.iter()).filter(|(_, found)| found.is_none());
        let mut indices: HashMap<Vec<u8>, Option<usize>> =
            open.map(|(name, _)| (key(name), None)).collect();
        if indices.is_empty() {
            return;
        }
        for index in 0..names.len() {
            let name = key(names.bytes(index).unwrap_or_default());
            if let Some(place) = indices.get_mut(&name) {
                place.get_or_insert(index);
            }
        }
        for (name, found) in asked.iter().zip(found) {
            *found = found.or_else(|| indices.get(&key(name)).copied().flatten());
        }
    };
    let mut found = vec![None; asked.len()];
    find(<[u8]>::to_vec, &mut found);
    if ignores_case {
        find(<[u8]>::to_ascii_lowercase, &mut found);
    }
    found
}

/// Returns all names for people.
pub(crate) fn texts(names: &Names) -> Vec<String> {
    (0..names.len()).filter_map(|index| names.text(index)).map(String::from).collect()
}

/// Stands for the name that is asked for.
const OPEN: &str = "?";
/// Names that a message shows.
const NEAREST: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str, separated: Separated) -> Vec<Vec<String>> {
        let queries = queries_of(text.as_bytes(), Path::new("x"), separated);
        queries.iter().map(Query::texts).collect()
    }

    #[test]
    fn fields_stand_between_tabs_or_blanks_and_may_be_open() {
        let text = "New York\tin\t?\r\n\n a  b ? \nc\t\t d \n";
        let expected = vec![vec!["New York", "in", "?"], vec!["a", "b", "?"], vec!["c", "?", "d"]];
        assert_eq!(fields(text, Separated::ByTabsOrBlanks), expected);
        assert_eq!(fields("New York\n7\t8", Separated::ByTabs), [vec!["New York"], vec!["7", "8"]]);
        let queries = queries_of(text.as_bytes(), Path::new("x"), Separated::ByTabs);
        assert_eq!(queries[1].malformed("f", "two").to_string(), "x:3: two");
        assert_eq!(queries[0].fields[2], None);
    }

    #[test]
    fn names_are_found_as_they_are_and_else_whatever_their_case() {
        let mut names = Names::default();
        ["the", "The", "sun", "b", "B", "b"].iter().for_each(|name| names.push(name.as_bytes()));
        let asked: Vec<&[u8]> = vec![b"The", b"SUN", b"b", b"moon", b"tHE"];
        let exact = [Some(1), None, Some(3), None, None];
        assert_eq!(places(&names, &asked, false), exact);
        assert_eq!(places(&names, &asked, true), [Some(1), Some(2), Some(3), None, Some(0)]);
        assert_eq!(places(&names, &[], true), []);
    }

    #[test]
    fn an_unknown_name_is_named_with_its_place_and_the_nearest_names() {
        let names = || ["virus", "bacterium", "fungus"].map(str::to_owned).to_vec();
        let flags = Query::of_flags(&["--head", "--relation"], [Some("virsu".to_owned()), None]);
        assert_eq!(
            flags.unknown(0, "entity", Path::new("m"), names()).to_string(),
            "no entity virsu in m (--head); did you mean virus, bacterium or fungus?"
        );
        let line = &queries_of(b"xyz", Path::new("q.tsv"), Separated::ByTabs)[0];
        assert_eq!(
            line.unknown(0, "word", Path::new("m"), names()[..1].to_vec()).to_string(),
            "q.tsv:1: no word xyz in m; the nearest names are virus"
        );
    }
}
