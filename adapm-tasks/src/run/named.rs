//! Choices that have names on the command line.

/// A name that is none of the choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known choice; known are {choices}")]
pub struct UnknownChoice {
    pub(crate) choices: &'static str,
}

/// Gives the variants of an enum their names: `name`, `FromStr` and `Display`.
macro_rules! named {
    ($kind:ty, $choices:literal, $($variant:path => $name:literal),+) => {
        impl $kind {
            /// The name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($variant => $name),+ }
            }
        }

        impl std::str::FromStr for $kind {
            type Err = $crate::run::named::UnknownChoice;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name { $($name => Ok($variant),)+ _ => Err($crate::run::named::UnknownChoice { choices: $choices }) }
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use named;
