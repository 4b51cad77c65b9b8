//! Faults of a line of clicks.

/// A fault of a line of clicks. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClickFault {
    /// The label is neither 0 nor 1.
    #[error(
        "'{0}' is no label; give 1 for a click and 0 for none, or name the text of a click in the schema, label=TEXT"
    )]
    Label(Box<str>),
    /// Neither the label of a click nor that of none.
    #[error(
        "'{label}' is neither '{}' nor '{}', the labels until here; give one of two", labels[0], labels[1]
    )]
    ThirdLabel {
        /// The label of the line.
        label: Box<str>,
        /// That of a click, and the other one of the file.
        labels: [Box<str>; 2],
    },
    /// Another number of columns.
    #[error("{found} columns, {expected} are expected; complete or shorten the line")]
    Columns {
        /// Columns of the line.
        found: usize,
        /// Those that it should have.
        expected: usize,
    },
    /// The first line names columns, and not this one of the schema.
    #[error(
        "no column is called {0}, which the schema has; name it in this line, or change --schema"
    )]
    NoColumn(Box<str>),
    /// A word that is none of libsvm's or libffm's form.
    #[error("{}", if *has_fields { "not field:index:value with whole numbers; give all three" } else { "not index:value with a whole number as index; give both" })]
    Index {
        /// True for libffm's form.
        has_fields: bool,
    },
    /// A field beyond those that are supported.
    #[error("fields are numbered below {0}; number them from 0")]
    Field(u32),
    /// A number that is none.
    #[error("not a number; give a decimal number, or nothing where it is missing")]
    NotANumber,
    /// A number that is NaN, infinite, or too large.
    #[error("not a finite number; give one, or nothing where it is missing")]
    NotFinite,
    /// More features than there can be keys.
    #[error("more different features than there are keys; hash them, such as --hash-bits 24")]
    TooManyFeatures,
    /// More examples than can be counted.
    #[error("more than {0} examples; leave some out")]
    TooManyExamples(u32),
    /// A line has no end within reason.
    #[error("a line without end within 1 MiB; give an example a line")]
    LineTooLong,
}
