//! Values of flags as they are typed, and of settings as they are written: by name.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::nearest::nearest;
use crate::{InvalidSystem, System};

/// A system; `None`: plain arrays, one node, one worker, no manager.
pub type Manager = Option<System>;

/// Takes one of these names.
pub fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
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
///
/// # Errors
///
/// Any other word.
pub fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or(AT_LEAST_ONE)
}

/// Takes a number of epochs or the like, at least 1.
///
/// # Errors
///
/// Any other word.
pub fn positive_count(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or(AT_LEAST_ONE)
}

/// Takes a system, with its parameter if it has one, or `none`.
///
/// # Errors
///
/// Any other word, with the system that may have been meant.
pub(crate) fn manager(text: &str) -> Result<Manager, String> {
    if text == NO_MANAGER {
        return Ok(None);
    }
    let system = text.parse().map(Some);
    system.map_err(|error: InvalidSystem| {
        let names = System::ALL.into_iter().map(|system| system.to_string());
        match nearest(text, names.collect()) {
            (Some(near), _) if error == InvalidSystem::Unknown => {
                format!("no such system; did you mean {near}?")
            }
            _ => error.to_string(),
        }
    })
}

/// Returns a system as it is typed, or `none`.
pub(crate) fn name_of(manager: Manager) -> String {
    manager.map_or_else(|| NO_MANAGER.to_owned(), |system| system.to_string())
}

/// The name that stands for plain arrays.
pub(crate) const NO_MANAGER: &str = "none";

/// The heading of the flags that say how a model is trained.
pub const TRAINING: &str = "Training";

/// The names of the sampling schemes.
pub const SCHEMES: &[&str] = &["naive", "preloc", "pool", "local"];

const AT_LEAST_ONE: &str = "give a whole number of at least 1";

/// A [`Manager`] by its name.
pub(crate) mod manager_name {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Manager, name_of};

    pub(crate) fn serialize<S: Serializer>(
        manager: &Manager,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&name_of(*manager))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Manager, D::Error> {
        let name = String::deserialize(deserializer)?;
        super::manager(&name).map_err(D::Error::custom)
    }
}

/// Numbers of workers that may be left to the program: a number, or the text of a list.
pub(crate) mod workers_given {
    use adapm_runtime::Workers;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize, Serialize)]
    #[serde(untagged)]
    enum Given {
        Number(usize),
        List(String),
    }

    pub(crate) fn serialize<S: Serializer>(
        workers: &Option<Workers>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let given = workers.as_ref().map(|workers| match workers.listed() {
            None => Given::Number(workers.all(1)),
            Some(_) => Given::List(workers.to_string()),
        });
        given.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Workers>, D::Error> {
        let workers = Option::<Given>::deserialize(deserializer)?.map(|given| match given {
            Given::Number(number) => Ok(Workers::from(number)),
            Given::List(text) => text.parse(),
        });
        workers.transpose().map_err(D::Error::custom)
    }
}

/// A value as the text that is typed for it.
pub(crate) mod by_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Writes a choice that may be left to the program, by its name.
pub(crate) fn name_if_given<T: std::fmt::Display, S: serde::Serializer>(
    choice: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match choice {
        Some(choice) => serializer.collect_str(choice),
        None => serializer.serialize_none(),
    }
}
