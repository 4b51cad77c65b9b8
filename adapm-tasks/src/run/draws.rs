//! What samples are drawn from, by a manager or without one.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::Key;
use adapm_runtime::{Random, Sampling, Scheme};

/// A distribution over a range of keys, whose values are equally long.
#[derive(Clone)]
pub(crate) enum Draws {
    /// Every key is as likely as any other.
    Uniform(Range<Key>),
    /// As a function draws: keys of the range.
    By(Range<Key>, Arc<dyn Fn(&mut Random) -> Key + Send + Sync>),
}

impl Draws {
    /// How a manager samples.
    pub(crate) fn sampling(&self, scheme: Scheme, seed: u64) -> Sampling {
        match self {
            Self::Uniform(keys) => Sampling::uniform(scheme, keys.clone(), seed),
            Self::By(keys, draw) => {
                let draw = Arc::clone(draw);
                Sampling::drawn(scheme, keys.clone(), seed, move |random| draw(random))
            }
        }
    }

    /// The next key.
    pub(crate) fn draw(&self, random: &mut Random) -> Key {
        match self {
            Self::Uniform(keys) => Key(keys.start.0 + random.below(keys.end.0 - keys.start.0)),
            Self::By(_, draw) => draw(random),
        }
    }
}

impl fmt::Debug for Draws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(keys) => f.debug_tuple("Uniform").field(keys).finish(),
            Self::By(keys, _) => f.debug_tuple("By").field(keys).finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_of_the_range_and_as_the_function_says() {
        let mut random = Random::new(1);
        let uniform = Draws::Uniform(Key(3)..Key(5));
        let drawn: Vec<Key> = (0..100).map(|_| uniform.draw(&mut random)).collect();
        let threes = drawn.iter().filter(|key| **key == Key(3)).count();
        assert!((30..70).contains(&threes) && drawn.iter().all(|key| [Key(3), Key(4)].contains(key)));
        let by = Draws::By(Key(0)..Key(9), Arc::new(|random: &mut Random| Key(7 + random.below(1))));
        assert_eq!(by.draw(&mut random), Key(7));
    }
}
