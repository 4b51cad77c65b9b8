//! Which flags were given, and by whom: by hand or by a recipe. All others have their default.

use std::collections::BTreeSet;

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The flags that were given.
#[derive(Debug, Default)]
pub(crate) struct Given {
    by_hand: BTreeSet<String>,
    recipe: Option<(String, BTreeSet<String>)>,
}

impl Given {
    /// Those that `matches` found on the command line.
    pub(super) fn by_hand(matches: &ArgMatches) -> Self {
        Self { by_hand: given(matches), recipe: None }
    }

    /// The same with those that a recipe of this name has added, which `matches` found among the others.
    pub(super) fn with_recipe(self, name: &str, matches: &ArgMatches) -> Self {
        let added = given(matches).difference(&self.by_hand).cloned().collect();
        Self { recipe: Some((name.to_owned(), added)), ..self }
    }

    /// Those of `flags` (without dashes) that were given, as `--nodes --workers`; for all that a recipe has added, its name.
    pub(crate) fn among(&self, flags: &[&str]) -> String {
        let by_hand = flags.iter().filter(|flag| self.by_hand.contains(**flag));
        let mut texts: Vec<String> = by_hand.map(|flag| format!("--{flag}")).collect();
        let recipe = self.recipe.as_ref().filter(|(_, added)| flags.iter().any(|flag| added.contains(*flag)));
        texts.extend(recipe.map(|(name, _)| format!("--recipe {name}")));
        texts.join(" ")
    }

    /// Whether one of `flags` was given by hand.
    pub(super) fn has_any(&self, flags: &[&str]) -> bool {
        flags.iter().any(|flag| self.by_hand.contains(*flag))
    }
}

fn given(matches: &ArgMatches) -> BTreeSet<String> {
    let matches = deepest(matches).1;
    let by_hand = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let ids = matches.ids().map(clap::Id::as_str).filter(|id| matches.try_contains_id(id).is_ok());
    ids.filter(|id| by_hand(id)).map(|id| id.replace('_', "-")).collect()
}

/// The words of verb and task, and what was found behind them.
pub(crate) fn deepest(mut matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let mut words = Vec::new();
    while let Some((word, deeper)) = matches.subcommand() {
        words.push(word);
        matches = deeper;
    }
    (words, matches)
}
