//! Names for what a cluster stores: tables of rows, each row the value of a key.
//!
//! A row has `dim` parameters, and behind them what an optimizer keeps of them, part by part. So
//! the keys of a cluster are rows of named tables, for checkpoints, other programs and people:
//!
//! ```
//! use adapm_runtime::prelude::*;
//! use adapm_runtime::tables::{Table, Tables};
//!
//! let words = Table::new("words", 1_000, 64).with_state("adagrad", 64).initial(|word, row| {
//!     row[64..].fill(0.1);
//!     row[0] = word as f32;
//! });
//! let tables = Tables::new([words, Table::new("bias", 1, 1_000)])?;
//! assert_eq!(tables.key(1, 0), Some(Key(1_000)));
//! assert_eq!(tables.locate(Key(999)), Some((0, 999)));
//! let cluster = tables.builder()?.nodes(2).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: files of tables (`checkpoint`).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use adapm_core::error::ConfigError;
use adapm_core::{Key, Layout};

use crate::builder::Builder;

/// Rows of one length, with a name.
#[derive(Clone)]
pub struct Table {
    name: Cow<'static, str>,
    rows: u64,
    dim: usize,
    state: Vec<State>,
    initial: Option<InitialRow>,
}

/// What an optimizer keeps of each row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Numbers of it a row.
    pub len: usize,
}

/// A function that writes the initial value of a row over zeros.
type InitialRow = Arc<dyn Fn(u64, &mut [f32]) + Send + Sync>;

impl Table {
    /// Returns a table of `rows` rows of `dim` parameters each, which begin as zeros.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, rows: u64, dim: usize) -> Self {
        Self { name: name.into(), rows, dim, state: Vec::new(), initial: None }
    }

    /// Adds `len` numbers to each row, behind those that it has: the state `name` of an optimizer.
    /// Without an effect if `len` is 0.
    #[must_use]
    pub fn with_state(mut self, name: impl Into<Cow<'static, str>>, len: usize) -> Self {
        if len > 0 {
            self.state.push(State { name: name.into(), len });
        }
        self
    }

    /// Sets the function that writes the initial value of a row `[dim + state]` over zeros: a pure
    /// function, so that any node can call it.
    #[must_use]
    pub fn initial(mut self, initial: impl Fn(u64, &mut [f32]) + Send + Sync + 'static) -> Self {
        self.initial = Some(Arc::new(initial));
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the parameters of a row.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns what an optimizer keeps of a row, in its order.
    #[must_use]
    pub fn state(&self) -> &[State] {
        &self.state
    }

    /// Returns the numbers of a row, parameters and state: the length of a key's value. What is too
    /// much to count is as much as can be counted.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.state.iter().fold(self.dim, |len, state| len.saturating_add(state.len))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, rows, dim, state, .. } = self;
        write!(f, "{name}: {rows} x {dim}")?;
        state.iter().try_for_each(|State { name, len }| write!(f, " + {name} {len}"))
    }
}

/// Two tables are equal if they hold the same: whatever their rows begin with.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let of = |table: &Self| (table.rows, table.dim);
        self.name == other.name && of(self) == of(other) && self.state == other.state
    }
}

/// The tables of a cluster: keys from 0 on are the rows of the first, then those of the second, and
/// so on. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    tables: Arc<[Table]>,
    /// For each table the key behind its last row.
    ends: Arc<[u64]>,
}

/// Tables that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// Two tables, or two states of one, have one name.
    #[error("two tables or states are called {0:?}; give each a name of its own")]
    Twins(String),
    /// A name is empty, or has signs that files and other programs cannot do with.
    #[error(
        "{0:?} is no name of a table or state; use letters, digits, minus, underscore, and full stops between them"
    )]
    Name(String),
}

impl Tables {
    /// Returns these tables, in order.
    ///
    /// # Errors
    /// Names that are not there once, or are none: letters, digits, `-`, `_` and inner `.`.
    pub fn new(tables: impl IntoIterator<Item = Table>) -> Result<Self, TablesError> {
        let tables: Arc<[Table]> = tables.into_iter().collect();
        let full = |table: &Table, name: &str| format!("{}.{name}", table.name);
        let mut names = Vec::new();
        for table in &*tables {
            let states = table.state.iter().map(|state| &state.name);
            let bad = [&table.name].into_iter().chain(states).find(|name| !is_name(name));
            if let Some(name) = bad {
                return Err(TablesError::Name(name.clone().into_owned()));
            }
            names.extend([full(table, KEYS), full(table, ROWS)]);
            names.extend(table.state.iter().map(|state| full(table, &state_of(&state.name))));
        }
        names.sort_unstable();
        if let Some(twins) = names.windows(2).find(|two| two[0] == two[1]) {
            return Err(TablesError::Twins(twins[0].clone()));
        }
        let mut end = 0_u64;
        let ends = tables.iter().map(|table| {
            end = end.saturating_add(table.rows);
            end
        });
        let ends = ends.collect();
        Ok(Self { tables, ends })
    }

    /// Returns the key of a row of the table at place `table`, `None` if there is no such row.
    #[must_use]
    pub fn key(&self, table: usize, row: u64) -> Option<Key> {
        let rows = self.tables.get(table)?.rows;
        (row < rows).then(|| Key(self.ends[table] - rows + row))
    }

    /// Returns the place of a key's table, and its row; `None` if there is no such key.
    #[must_use]
    pub fn locate(&self, key: Key) -> Option<(usize, u64)> {
        let table = self.ends.iter().position(|end| key.0 < *end)?;
        Some((table, key.0 - (self.ends[table] - self.tables[table].rows)))
    }

    /// Returns the key behind the last one of the table at place `table`.
    #[cfg(feature = "checkpoint")]
    pub(crate) fn end(&self, table: usize) -> u64 {
        self.ends[table]
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the tables, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the same tables without what optimizers keep: of each row its first numbers.
    #[must_use]
    pub fn parameters(&self) -> Self {
        let bare = |table: &Table| Table { state: Vec::new(), initial: None, ..table.clone() };
        Self { tables: self.tables.iter().map(bare).collect(), ends: Arc::clone(&self.ends) }
    }

    /// Returns the layout of a cluster with these tables.
    ///
    /// # Errors
    /// No row at all, rows of no or too many numbers, or more rows than can be counted.
    pub fn layout(&self) -> Result<Layout, ConfigError> {
        let extents: Vec<_> = self.tables.iter().map(|t| (t.rows, t.row_len())).collect();
        Layout::dense(&extents)
    }

    /// Returns a builder of a cluster with these tables, whose rows begin as they say.
    ///
    /// # Errors
    /// As [`layout`](Self::layout).
    pub fn builder(&self) -> Result<Builder<f32>, ConfigError> {
        let tables = self.clone();
        Ok(Builder::new(self.layout()?).initial(move |key, row| tables.write_initial(key, row)))
    }

    /// Writes the initial value of a key over zeros.
    pub(crate) fn write_initial(&self, key: Key, value: &mut [f32]) {
        let Some((table, row)) = self.locate(key) else { return };
        if let Some(initial) = &self.tables[table].initial {
            initial(row, value);
        }
    }
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.split('.').all(part)
}

/// Ends of names in files: of the keys of a table, its parameters, and a state.
pub(crate) const KEYS: &str = "keys";
pub(crate) const ROWS: &str = "rows";

pub(crate) fn state_of(name: &str) -> String {
    format!("state.{name}")
}

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    fn tables() -> Tables {
        let words = Table::new("words", 3, 2).with_state("adagrad", 2).with_state("none", 0);
        Tables::new([words, Table::new("none", 0, 9), Table::new("bias", 2, 1)]).expect("legal")
    }

    #[test]
    fn keys_are_the_rows_of_one_table_after_the_other() {
        let tables = tables();
        let places: Vec<_> = (0..6).map(|key| tables.locate(Key(key))).collect();
        let rows = [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)];
        assert_eq!(places, rows.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        for (key, (table, row)) in (0..).zip(rows) {
            assert_eq!(tables.key(table, row), Some(Key(key)));
        }
        assert_eq!([tables.key(0, 3), tables.key(1, 0), tables.key(3, 0)], [None; 3]);
        assert_eq!(tables.keys(), 5);
        let lens = |layout: Layout| [0, 3].map(|key| layout.value_len(Key(key)));
        assert_eq!(tables.layout().map(lens), Ok([Some(4), Some(1)]));
        assert_eq!(tables.parameters().layout().map(lens), Ok([Some(2), Some(1)]));
    }

    #[test]
    fn rows_begin_as_their_table_says() {
        let row = |row: u64, value: &mut [f32]| value.fill(row as f32);
        let tables = Tables::new([Table::new("a", 2, 1), Table::new("b", 3, 2).initial(row)]);
        let cluster = tables.expect("legal").builder().expect("legal").build().expect("starts");
        let mut values = [9.0; 3];
        cluster.read(&[Key(1), Key(4)], &mut values).expect("known keys");
        assert_eq!(values, [0.0, 2.0, 2.0]);
    }

    #[test]
    fn names_are_there_once_and_fit_into_files() {
        let named = |names: &[&'static str]| {
            Tables::new(names.iter().map(|name| Table::new(*name, 1, 1))).map(|_| ())
        };
        assert_eq!(named(&["a", "a.b", "cross.0.w-1"]), Ok(()));
        assert_eq!(named(&["a", "b", "a"]), Err(TablesError::Twins("a.keys".to_owned())));
        for bad in ["", ".", "a.", "a/b", "a b", "\n", "é"] {
            assert_eq!(named(&[bad]), Err(TablesError::Name(bad.to_owned())));
        }
        let twins = Table::new("a", 1, 1).with_state("m", 1).with_state("m", 2);
        assert_eq!(Tables::new([twins]), Err(TablesError::Twins("a.state.m".to_owned())));
        // A table whose rows would be called as the state of another.
        let both = [Table::new("a.state", 1, 1), Table::new("a", 1, 1).with_state("rows", 1)];
        assert_eq!(Tables::new(both), Err(TablesError::Twins("a.state.rows".to_owned())));
    }
}
