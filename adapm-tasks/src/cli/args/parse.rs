//! Values of flags, as they are typed.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Takes one of these names.
pub(super) fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    PossibleValuesParser::new(names.iter().copied()).try_map(|name| name.parse::<T>())
}

/// Takes a number of at least 1.
pub(super) fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number of at least 1")
}

/// Takes a number of epochs, at least 1.
pub(super) fn epochs(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number of at least 1")
}
