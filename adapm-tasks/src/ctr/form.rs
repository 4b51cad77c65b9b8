//! The forms of lines: Criteo's, libsvm's, libffm's, and tables with a schema.
//!
//! | form | a line | fields |
//! | --- | --- | --- |
//! | Criteo | label, 13 whole numbers, 26 names, between tabs; any but the label may be empty | the columns |
//! | libsvm | label, then `index:value` | one, of all indices |
//! | libffm | label, then `field:index:value` | those of the line |
//! | table | columns between commas, tabs or semicolons, maybe with a line of names | columns of the schema |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::data::ClickFault;
use crate::data::lines;

/// The form of a file's lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Form {
    #[default]
    Criteo,
    Svm,
    Ffm,
    Table(Schema),
}

/// What becomes of columns of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numeric {
    /// Features: a number up to 2 is one by itself, of a larger one the squared logarithm, rounded
    /// down (as the winners of Criteo's contest did).
    #[default]
    Bucket,
    /// Inputs of the network: the logarithm of one more than the number, negative for negative
    /// ones, scaled to mean 0 and deviation 1.
    Dense,
}

/// The columns of a table, in order: `age:num,job:cat,id:skip,income:label=>50K`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Schema {
    columns: Vec<(String, Kind)>,
}

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// 1 for a click and 0 for none; or this text for a click and another for none.
    Label(Option<String>),
    Category,
    Number,
    Skipped,
}

/// A schema that is none, or lacks something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// A column without kind, or of a kind that there is not.
    #[error(
        "column '{0}' of the schema: give name:label, name:label=TEXT, name:num, name:cat or name:skip"
    )]
    Column(String),
    /// No label, or several.
    #[error("the schema has {0} labels; give one, such as income:label=>50K")]
    Labels(usize),
    /// Neither a number nor a category.
    #[error("the schema has no feature; give name:cat or name:num")]
    Nothing,
}

/// What is in a line. Used again by the next one.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) label: bool,
    /// Bytes of all names.
    text: Vec<u8>,
    /// Field, end of the name in `text`, and value.
    features: Vec<(u32, usize, f32)>,
    /// Numbers; NaN: missing.
    pub(crate) numbers: Vec<f32>,
    /// The text of no click in this file, once there was one, if a schema says that of a click.
    no_click: Option<Vec<u8>>,
}

/// Where the columns of a file are, for a table that names them in its first line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Places {
    /// The place of each column of the schema; empty: in order.
    places: Vec<usize>,
    /// Columns of the file, if the first line names them.
    named: Option<usize>,
    separator: u8,
    /// Lines may lack a label: what they say of it does not matter.
    may_lack_label: bool,
    /// Lines have no column of a label, as the first one has none.
    lacks_label: bool,
}

impl Form {
    /// Determines the form by the first line; a schema says that it is a table.
    pub(crate) fn detect(first: &[u8], schema: Option<&Schema>) -> Option<Self> {
        if let Some(schema) = schema {
            return Some(Self::Table(schema.clone()));
        }
        if first.iter().filter(|byte| **byte == b'\t').count() == CRITEO_COLUMNS - 1 {
            return Some(Self::Criteo);
        }
        let mut words = first.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let label = words.next()?;
        if str::from_utf8(label).ok()?.parse::<f32>().is_err() {
            return None;
        }
        match words.next()?.iter().filter(|byte| **byte == b':').count() {
            1 => Some(Self::Svm),
            2 => Some(Self::Ffm),
            _ => None,
        }
    }

    /// Returns the name of a field.
    pub(crate) fn field(&self, field: usize, numeric: Numeric) -> String {
        match self {
            Self::Criteo if field < NAMES => format!("C{}", field + 1),
            Self::Criteo => format!("I{}", field + 1 - NAMES),
            Self::Svm => "feature".to_owned(),
            Self::Ffm => format!("field {field}"),
            Self::Table(schema) => {
                schema.named(numeric, true).nth(field).unwrap_or_default().to_owned()
            }
        }
    }

    /// Returns the number of fields that each example has; 0 if lines say it.
    pub(crate) fn fields(&self, numeric: Numeric) -> usize {
        match (self, numeric) {
            (Self::Criteo, Numeric::Bucket) => NAMES + INTEGERS,
            (Self::Criteo, Numeric::Dense) => NAMES,
            (Self::Svm, _) => 1,
            (Self::Ffm, _) => 0,
            (Self::Table(schema), numeric) => schema.named(numeric, true).count(),
        }
    }

    /// Returns the names of the numbers of each example.
    pub(crate) fn numbers(&self, numeric: Numeric) -> Vec<String> {
        match (self, numeric) {
            (Self::Criteo, Numeric::Dense) => (1..=INTEGERS).map(|at| format!("I{at}")).collect(),
            (Self::Table(schema), Numeric::Dense) => {
                schema.named(numeric, false).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns where the columns of a file with this first line are, and true if that line is no
    /// example. A file to predict may lack labels.
    ///
    /// # Errors
    ///
    /// Names of which one of the schema is missing.
    pub(crate) fn places(
        &self,
        first: &[u8],
        may_lack_label: bool,
    ) -> Result<(Places, bool), (u64, ClickFault)> {
        let mut places = Places { may_lack_label, ..Places::default() };
        let lacks_label = |columns: usize, all: usize| may_lack_label && columns + 1 == all;
        let Self::Table(schema) = self else {
            let columns = first.split(|byte| *byte == b'\t').count();
            places.lacks_label = *self == Self::Criteo && lacks_label(columns, CRITEO_COLUMNS);
            return Ok((places, false));
        };
        let separators = [b'\t', b';', b','];
        places.separator = separators.into_iter().find(|byte| first.contains(byte)).unwrap_or(b',');
        let names = fields(first, places.separator);
        let is_named = |name: &str| names.iter().any(|(_, other)| other == name.as_bytes());
        let label = schema.label();
        let are_named = || schema.names().all(|name| name == label || is_named(name));
        let is_header = is_named(label) || (may_lack_label && are_named());
        if !is_header {
            places.lacks_label = lacks_label(names.len(), schema.columns.len());
            return Ok((places, false));
        }
        let place = |name: &str| {
            let found = names.iter().position(|(_, other)| other == name.as_bytes());
            // A label that is missing is in no column.
            let found = found.or((may_lack_label && name == label).then_some(usize::MAX));
            found.ok_or_else(|| (1, ClickFault::NoColumn(name.into())))
        };
        places.places = schema.names().map(place).collect::<Result<_, _>>()?;
        places.named = Some(names.len());
        Ok((places, true))
    }

    /// Reads a line; an error comes with the column, from 1.
    pub(crate) fn read(
        &self,
        line: &[u8],
        numeric: Numeric,
        places: &Places,
        into: &mut Line,
    ) -> Result<(), (u64, ClickFault)> {
        into.text.clear();
        into.features.clear();
        into.numbers.clear();
        match self {
            Self::Criteo => criteo(line, numeric, places, into),
            Self::Svm => indices(line, places, into, false),
            Self::Ffm => indices(line, places, into, true),
            Self::Table(schema) => schema.read(line, numeric, places, into),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Criteo => "Criteo's form",
            Self::Svm => "libsvm's form",
            Self::Ffm => "libffm's form",
            Self::Table(_) => "a table",
        })
    }
}

impl Line {
    /// Returns the features: field, name, value.
    pub(crate) fn features(&self) -> impl Iterator<Item = (usize, &[u8], f32)> {
        let mut start = 0;
        self.features.iter().map(move |(field, end, value)| {
            let name = &self.text[start..*end];
            start = *end;
            (*field as usize, name, *value)
        })
    }

    fn add(&mut self, field: usize, name: &[u8], value: f32) {
        self.text.extend_from_slice(name);
        self.features.push((field as u32, self.text.len(), value));
    }

    /// Returns true if a column says `click`, false if it says the other label of the file.
    fn is_click(
        &mut self,
        click: &str,
        (column, label): &(u64, Vec<u8>),
    ) -> Result<bool, (u64, ClickFault)> {
        // UCI's files of test have a full stop behind each label.
        let label = label.strip_suffix(b".").unwrap_or(label);
        if label == click.as_bytes() {
            return Ok(true);
        }
        let text = |label: &[u8]| String::from_utf8_lossy(label).into();
        if label.is_empty() || label == b"?" {
            return Err((*column, ClickFault::Label(text(label))));
        }
        let no_click = &*self.no_click.get_or_insert_with(|| label.to_vec());
        if label == no_click {
            return Ok(false);
        }
        let (label, labels) = (text(label), [click.into(), text(no_click)]);
        Err((*column, ClickFault::ThirdLabel { label, labels }))
    }

    /// Adds a number, which is the next of the numbers or this field.
    fn add_number(&mut self, number: Option<f64>, field: usize, numeric: Numeric) {
        match (numeric, number) {
            (Numeric::Dense, None) => self.numbers.push(f32::NAN),
            (Numeric::Dense, Some(x)) => self.numbers.push((x.abs().ln_1p().copysign(x)) as f32),
            (Numeric::Bucket, None) => self.add(field, b"missing", 1.0),
            (Numeric::Bucket, Some(x)) => {
                let name = if x > 2.0 {
                    format!("about {:.0}", x.ln().powi(2).floor().sqrt().exp())
                } else {
                    format!("{:.0}", x.floor())
                };
                self.add(field, name.as_bytes(), 1.0);
            }
        }
    }
}

/// Criteo's columns.
fn criteo(
    line: &[u8],
    numeric: Numeric,
    places: &Places,
    into: &mut Line,
) -> Result<(), (u64, ClickFault)> {
    let columns = fields(line, b'\t');
    let (found, expected) = (columns.len(), CRITEO_COLUMNS - usize::from(places.lacks_label));
    if found != expected {
        return Err((1, ClickFault::Columns { found, expected }));
    }
    let (label, columns) = columns.split_at(found - (CRITEO_COLUMNS - 1));
    into.label = label.first().map_or(Ok(false), |label| places.label(label))?;
    for (at, column) in columns[..INTEGERS].iter().enumerate() {
        into.add_number(number(column)?, NAMES + at, numeric);
    }
    for (field, (_, name)) in columns[INTEGERS..].iter().enumerate() {
        // What is missing has no feature, so its field is 0.
        if !name.is_empty() {
            into.add(field, name, 1.0);
        }
    }
    Ok(())
}

/// `index:value` words, or `field:index:value` ones.
fn indices(
    line: &[u8],
    places: &Places,
    into: &mut Line,
    has_fields: bool,
) -> Result<(), (u64, ClickFault)> {
    let mut at = 0;
    let mut is_first = true;
    for word in line.split(u8::is_ascii_whitespace) {
        let column = at as u64 + 1;
        at += word.len() + 1;
        if word.is_empty() {
            continue;
        }
        let is_label = !(places.may_lack_label && word.contains(&b':'));
        if std::mem::replace(&mut is_first, false) && is_label {
            // libsvm's files say -1 for 0.
            let word = if matches!(word, b"-1" | b"-1.0") { b"0" } else { word };
            into.label = places.label(&(column, word.to_vec()))?;
            continue;
        }
        let fault = || (column, ClickFault::Index { has_fields });
        let mut parts = word.split(|byte| *byte == b':');
        let field = if has_fields { parts.next() } else { Some(&b"0"[..]) };
        let (Some(field), Some(index), Some(value), None) =
            (field, parts.next(), parts.next(), parts.next())
        else {
            return Err(fault());
        };
        let whole = |part: &[u8]| str::from_utf8(part).ok()?.parse::<u32>().ok();
        let (field, index) = whole(field).zip(whole(index)).ok_or_else(fault)?;
        if field >= FIELDS_MAX {
            return Err((column, ClickFault::Field(FIELDS_MAX)));
        }
        let value = number(&(column, value.to_vec()))?.ok_or_else(fault)?;
        into.add(field as usize, index.to_string().as_bytes(), value as f32);
    }
    if is_first && !places.may_lack_label {
        return Err((1, ClickFault::Label("".into())));
    }
    Ok(())
}

impl Schema {
    /// Returns the names of the columns of features, or of numbers.
    fn named(&self, numeric: Numeric, features: bool) -> impl Iterator<Item = &str> {
        let is_wanted = move |kind: &Kind| match kind {
            Kind::Category => features,
            Kind::Number => features == (numeric == Numeric::Bucket),
            Kind::Label(_) | Kind::Skipped => false,
        };
        let wanted = self.columns.iter().filter(move |(_, kind)| is_wanted(kind));
        wanted.map(|(name, _)| name.as_str())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the name of the label.
    fn label(&self) -> &str {
        let label = self.columns.iter().find(|(_, kind)| matches!(kind, Kind::Label(_)));
        label.map_or("", |(name, _)| name)
    }

    fn read(
        &self,
        line: &[u8],
        numeric: Numeric,
        places: &Places,
        into: &mut Line,
    ) -> Result<(), (u64, ClickFault)> {
        let mut columns = fields(line, places.separator);
        let in_order = self.columns.len() - usize::from(places.lacks_label);
        let (found, expected) = (columns.len(), places.named.unwrap_or(in_order));
        if found != expected {
            return Err((1, ClickFault::Columns { found, expected }));
        }
        if places.lacks_label {
            let is_label = |(_, kind): &(String, Kind)| matches!(kind, Kind::Label(_));
            let at = self.columns.iter().position(is_label).unwrap_or(0);
            columns.insert(at, (1, Vec::new()));
        }
        let missing = (1, Vec::new());
        let mut field = 0;
        for (at, (_, kind)) in self.columns.iter().enumerate() {
            let place = places.places.get(at).copied().unwrap_or(at);
            let column = columns.get(place).unwrap_or(&missing);
            match kind {
                Kind::Label(_) if places.may_lack_label => into.label = false,
                Kind::Label(None) => into.label = places.label(column)?,
                Kind::Label(Some(text)) => into.label = into.is_click(text, column)?,
                Kind::Category => {
                    into.add(field, &column.1, 1.0);
                    field += 1;
                }
                Kind::Number => {
                    into.add_number(number(column)?, field, numeric);
                    field += usize::from(numeric == Numeric::Bucket);
                }
                Kind::Skipped => {}
            }
        }
        Ok(())
    }
}

impl FromStr for Schema {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let column = |text: &str| {
            let fault = || SchemaError::Column(text.trim().to_owned());
            let (name, kind) = text.split_once(':').ok_or_else(fault)?;
            let (name, kind) = (name.trim(), kind.trim());
            let kind = match kind.split_once('=') {
                Some(("label", text)) if !text.is_empty() => Kind::Label(Some(text.to_owned())),
                Some(_) => return Err(fault()),
                None => match kind {
                    "label" => Kind::Label(None),
                    "num" => Kind::Number,
                    "cat" => Kind::Category,
                    "skip" => Kind::Skipped,
                    _ => return Err(fault()),
                },
            };
            if name.is_empty() { Err(fault()) } else { Ok((name.to_owned(), kind)) }
        };
        let columns = text.split([',', '\n']).filter(|column| !column.trim().is_empty());
        let schema = Self { columns: columns.map(column).collect::<Result<_, _>>()? };
        let of = |is: fn(&Kind) -> bool| schema.columns.iter().filter(|(_, kind)| is(kind)).count();
        match of(|kind| matches!(kind, Kind::Label(_))) {
            1 if of(|kind| matches!(kind, Kind::Category | Kind::Number)) == 0 => {
                Err(SchemaError::Nothing)
            }
            1 => Ok(schema),
            labels => Err(SchemaError::Labels(labels)),
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = |(name, kind): &(String, Kind)| match kind {
            Kind::Label(None) => format!("{name}:label"),
            Kind::Label(Some(text)) => format!("{name}:label={text}"),
            Kind::Category => format!("{name}:cat"),
            Kind::Number => format!("{name}:num"),
            Kind::Skipped => format!("{name}:skip"),
        };
        f.write_str(&self.columns.iter().map(column).collect::<Vec<_>>().join(","))
    }
}

impl TryFrom<String> for Schema {
    type Error = SchemaError;

    fn try_from(text: String) -> Result<Self, SchemaError> {
        text.parse()
    }
}

impl From<Schema> for String {
    fn from(schema: Schema) -> Self {
        schema.to_string()
    }
}

/// Returns the fields of a line without the blanks around them, each with its column from 1.
fn fields(line: &[u8], separator: u8) -> Vec<(u64, Vec<u8>)> {
    if separator != b'\t' && line.contains(&b'"') {
        let fields = lines::csv_fields(line, separator);
        // Quotes are gone, so the place of a field in the line is not known.
        return fields.into_iter().map(|field| (1, field.trim_ascii().to_vec())).collect();
    }
    let mut start = 0;
    let fields = line.split(|byte| *byte == separator).map(|field| {
        let column = start as u64 + 1;
        start += field.len() + 1;
        (column, field.trim_ascii().to_vec())
    });
    fields.collect()
}

impl Places {
    fn label(&self, (column, text): &(u64, Vec<u8>)) -> Result<bool, (u64, ClickFault)> {
        match text.as_slice() {
            _ if self.may_lack_label => Ok(false),
            b"1" | b"+1" | b"1.0" => Ok(true),
            b"0" | b"0.0" => Ok(false),
            other => Err((*column, ClickFault::Label(String::from_utf8_lossy(other).into()))),
        }
    }
}

/// Returns a number; `None` if there is none.
fn number((column, text): &(u64, Vec<u8>)) -> Result<Option<f64>, (u64, ClickFault)> {
    if text.is_empty() || text == b"?" {
        return Ok(None);
    }
    let number: Option<f64> = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let is_sound = |number: &f64| (*number as f32).is_finite();
    match number {
        Some(number) if is_sound(&number) => Ok(Some(number)),
        Some(_) => Err((*column, ClickFault::NotFinite)),
        None => Err((*column, ClickFault::NotANumber)),
    }
}

crate::run::config::named!(Numeric, Numeric::Bucket => "bucket", Numeric::Dense => "dense");

/// Columns of Criteo's files.
const INTEGERS: usize = 13;
/// Columns of a line with its label.
const CRITEO_COLUMNS: usize = 1 + INTEGERS + NAMES;
const NAMES: usize = 26;
/// Fields of libffm's form that are supported.
const FIELDS_MAX: u32 = 4096;

#[cfg(test)]
mod tests;
