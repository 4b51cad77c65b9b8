//! The flags that were given, by hand or by a recipe; all others have their default. And the values
//! of all of them.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use crate::cli::config::{self, ConfigFile};

/// The flags that were given.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// With its last value, as it was typed.
    by_hand: BTreeMap<String, String>,
    recipe: Option<(String, BTreeSet<String>)>,
    config: Option<ConfigFile>,
    /// The command, whose flags they are.
    command: Command,
    /// The value of each flag, given or not.
    settings: Settings,
}

/// The value of each flag: a number, true or false, a text, or a list of them if there are several.
pub(crate) type Settings = BTreeMap<String, Value>;

impl Given {
    /// Those that `matches` found on the command line.
    pub(crate) fn by_hand(matches: &ArgMatches, command: &Command) -> Self {
        let (words, flags) = deepest(matches);
        let find = |command: &Command, word: &&str| command.find_subcommand(word).cloned();
        let command = words.iter().try_fold(command.clone(), |command, word| find(&command, word));
        let command = command.unwrap_or_default();
        let settings = settings(flags, &command);
        Self { by_hand: typed(flags), recipe: None, config: None, command, settings }
    }

    /// Returns the same with those that a recipe of this name and a file have added, which
    /// `matches` found among the others.
    pub(crate) fn with_added(
        self,
        recipe: Option<&str>,
        config: Option<ConfigFile>,
        matches: &ArgMatches,
    ) -> Self {
        let (_, flags) = deepest(matches);
        let is_of_recipe = |flag: &String| {
            let is_of_file = config.as_ref().is_some_and(|config| config.has_any(&[flag]));
            !self.by_hand.contains_key(flag) && !is_of_file
        };
        let added = || typed(flags).into_keys().filter(is_of_recipe).collect();
        let recipe = recipe.map(|name| (name.to_owned(), added()));
        Self { recipe, config, settings: settings(flags, &self.command), ..self }
    }

    /// Those of `flags` (without dashes) that were given, as `--nodes --workers`; for all that a
    /// file or a recipe has added, its name.
    pub(crate) fn among(&self, flags: &[&str]) -> String {
        let by_hand = flags.iter().filter(|flag| self.by_hand.contains_key(**flag));
        let mut texts: Vec<String> = by_hand.map(|flag| format!("--{flag}")).collect();
        let recipe = self
            .recipe
            .as_ref()
            .filter(|(_, added)| flags.iter().any(|flag| added.contains(*flag)));
        let is_of_file = |config: &&ConfigFile| {
            flags.iter().any(|flag| !self.by_hand.contains_key(*flag) && config.has_any(&[flag]))
        };
        let config = self.config.as_ref().filter(is_of_file);
        texts.extend(config.map(|config| format!("--config {}", config.path().display())));
        texts.extend(recipe.map(|(name, _)| format!("--recipe {name}")));
        texts.join(" ")
    }

    /// Returns the settings that repeat the run: the value of each flag but those that say where
    /// its processes are.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns them as a file of settings for this task.
    pub(crate) fn to_toml(&self, task: &str) -> String {
        self.to_toml_without(&[], task)
    }

    /// Returns them as such a file, but for `flags`.
    pub(crate) fn to_toml_without(&self, flags: &[&str], task: &str) -> String {
        let mut settings = self.settings.clone();
        settings.retain(|flag, _| !flags.contains(&flag.as_str()));
        config::to_toml(task, &settings, &self.command)
    }

    /// Returns the command whose flags they are.
    pub(crate) fn command(&self) -> &Command {
        &self.command
    }

    /// Returns the flags of the command that choose data.
    pub(crate) fn data_flags(&self) -> Vec<&str> {
        data_flags(&self.command).collect()
    }

    /// Returns what a file says of data and does not count, as others are given by hand: `valid and
    /// test of run.toml`.
    pub(crate) fn left_out(&self) -> Option<String> {
        let config = self.config.as_ref().filter(|config| !config.left_out().is_empty())?;
        Some(format!("{} of {}", config.left_out().join(" and "), config.path().display()))
    }

    /// Returns true if one of `flags` was given by hand.
    pub(crate) fn has_any(&self, flags: &[&str]) -> bool {
        flags.iter().any(|flag| self.by_hand.contains_key(*flag))
    }

    /// Returns true if a flag was given by hand, or a file or a recipe has given it another value
    /// than it has by itself. A file of a run has all flags.
    pub(crate) fn is_chosen(&self, flag: &str) -> bool {
        let differs = |value: &Value| !self.is_usual(flag, value);
        self.has_any(&[flag]) || self.settings.get(flag).is_some_and(differs)
    }

    /// Returns the settings that have another value than by default, but for `flags`, as words of a
    /// command line.
    pub(crate) fn chosen_words(&self, flags: &[&str]) -> Vec<String> {
        let is_own =
            |flag: &str| config::has_setting(&self.command, flag) && !flags.contains(&flag);
        let settings = self
            .settings
            .iter()
            .filter(|(flag, value)| is_own(flag) && !self.is_usual(flag, value));
        settings.flat_map(|(flag, value)| words(flag, value)).collect()
    }

    /// Returns true if a flag that is not given has this value.
    fn is_usual(&self, flag: &str, found: &Value) -> bool {
        let is_flag = |other: &&Arg| other.get_long() == Some(flag);
        let Some(flag) = self.command.get_arguments().find(is_flag) else { return false };
        let words = flag.get_default_values().iter().map(|word| word.to_string_lossy());
        let mut usual: Vec<Value> = words.map(|word| value(&word, is_path(flag))).collect();
        match usual.pop() {
            None => *found == Value::Bool(false),
            Some(last) if usual.is_empty() => *found == last,
            Some(last) => *found == Value::Array([usual, vec![last]].concat()),
        }
    }

    /// Returns the flags that were given by hand, with their values, but for those of `others`.
    pub(crate) fn words(&self, others: &[&str]) -> String {
        let is_flag =
            |name: &str| self.command.get_arguments().any(|flag| flag.get_long() == Some(name));
        let is_own = |flag: &str| is_flag(flag) && !others.contains(&flag);
        let own = self.by_hand.iter().filter(|(flag, _)| is_own(flag));
        let words = own.map(|(flag, value)| format!("--{flag} {value}").trim_end().to_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the flag that sets a field of the library's configurations, and the value that was
    /// typed after it, else its place in a file, else `value`.
    pub(crate) fn flag_of(&self, field: &str, value: &str) -> String {
        let flag = field.replace('_', "-");
        let in_file = || self.config.as_ref().and_then(|config| config.setting(&flag));
        match self.by_hand.get(&flag) {
            Some(typed) => format!("--{flag} {typed}"),
            None => in_file().unwrap_or_else(|| format!("--{flag} {value}")),
        }
    }
}

/// Returns the flags that were given, each with its last value as it was typed.
fn typed(matches: &ArgMatches) -> BTreeMap<String, String> {
    let by_hand = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let ids = matches.ids().map(clap::Id::as_str).filter(|id| matches.try_contains_id(id).is_ok());
    let value = |id: &str| matches.try_get_raw(id).ok().flatten().and_then(Iterator::last);
    let typed =
        |id: &str| value(id).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    ids.filter(|id| by_hand(id)).map(|id| (id.replace('_', "-"), typed(id))).collect()
}

fn settings(matches: &ArgMatches, command: &Command) -> Settings {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let flags = command.get_arguments().filter_map(|flag| {
        // What is hidden is nothing that people set.
        let name = flag.get_long().filter(|_| !flag.is_hide_set())?;
        let id = flag.get_id().as_str();
        Some((name, id, is_path(flag))).filter(|_| !PLACES.contains(&name))
    });
    let flags: Vec<(&str, &str, bool)> = flags.collect();
    let data: Vec<&str> = data_flags(command).collect();
    // What data is generated by is no setting of data that is read.
    let reads = flags.iter().any(|(name, id, _)| *name == "data" && is_given(id));
    let counts =
        |(name, id, _): &&(&str, &str, bool)| !reads || is_given(id) || !data.contains(name);
    let valued = flags.iter().filter(counts).filter_map(|(name, id, is_path)| {
        let mut values: Vec<Value> =
            matches.get_raw(id)?.map(|raw| value(&raw.to_string_lossy(), *is_path)).collect();
        let value = if values.len() == 1 { values.pop()? } else { Value::Array(values) };
        Some(((*name).to_owned(), value))
    });
    valued.collect()
}

/// Returns a setting as words of a command line.
fn words(flag: &str, value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = match value {
        Value::Bool(true) => None,
        Value::Array(values) => Some(values.iter().map(text).collect::<Vec<_>>().join(",")),
        value => Some(text(value)),
    };
    [Some(format!("--{flag}")), value].into_iter().flatten().collect()
}

fn is_path(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// Returns a word of the command line as JSON says it; a path is a text also if it looks like a
/// number.
fn value(word: &str, is_path: bool) -> Value {
    if is_path {
        return Value::from(word);
    }
    let number =
        || word.parse::<u64>().map(Value::from).or_else(|_| word.parse::<f64>().map(Value::from));
    match word {
        "true" | "false" => Value::from(word == "true"),
        // What is no finite number is `null` to JSON.
        _ => number().ok().filter(|value| !value.is_null()).unwrap_or_else(|| Value::from(word)),
    }
}

/// Returns the flags of a command that choose data: those under the heading Data. With such a flag
/// a recipe chooses no data.
fn data_flags(command: &Command) -> impl Iterator<Item = &str> {
    let is_data = |flag: &&Arg| flag.get_help_heading() == Some(DATA_HEADING);
    command.get_arguments().filter(is_data).filter_map(Arg::get_long)
}

const DATA_HEADING: &str = "Data";

/// Flags that say where the processes of a run are, how results are printed, and where settings
/// are.
const PLACES: [&str; 8] =
    ["node", "rendezvous", "bind", "advertise", "token-file", "json", "config", "print-config"];

/// Returns the words of verb and task, and the matches of the flags after them.
pub(crate) fn deepest(mut matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let mut words = Vec::new();
    while let Some((word, deeper)) = matches.subcommand() {
        words.push(word);
        matches = deeper;
    }
    (words, matches)
}
