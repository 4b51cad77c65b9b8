//! Before the first step: that all processes mean the same run.
//!
//! Everything that has to be equal crosses once, as text where it is short, so that the one that
//! differs can be named.
//!
//! Data cross as a [`Digest`], a number that differs between data that differ: FNV-1a over words of
//! 64 bits, which finds differences, not malice.
//!
//! Not here: the checksum of a file ([`crate::run::file`]), which is over bytes.

use std::collections::BTreeMap;
use std::fmt;

use adapm_core::NodeId;
use adapm_runtime::Workers;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exchange;
use crate::run::config::{ClusterConfig, Config, Keep};
use crate::run::error::{Mismatch, TASK, TaskError};
use crate::run::flags::name_of;
use crate::run::peers::Peers;

/// The description that a process gives of its run; equal on all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunFingerprint {
    data: String,
    /// Names and values, in order.
    settings: Vec<(String, String)>,
    /// Parameters that node 0 keeps.
    keep: Keep,
}

impl RunFingerprint {
    /// Returns the fingerprint of training the task `name`. `data` is a text that differs for
    /// different data.
    pub(crate) fn of_training(name: &str, data: String, config: &impl Config) -> Self {
        let verb = format!("train {name}");
        let partition = config.run().partition.as_ref();
        let partition = partition.map(|partition| format!("{:016x}", partition.digest()));
        Self::of(verb, data, config.cluster(), config, config.run().keep)
            .with("homes", partition.unwrap_or_else(|| "none".to_owned()))
    }

    /// Returns the fingerprint of evaluating parameters of the task `name`, with the settings that
    /// only evaluations of this task have.
    pub(crate) fn of_evaluation(
        name: &str,
        data: String,
        cluster: &ClusterConfig,
        settings: &impl Serialize,
    ) -> Self {
        Self::of(format!("evaluate {name}"), data, cluster, settings, Keep::Nothing)
    }

    /// Returns one of a run in a test.
    #[cfg(test)]
    pub(crate) fn of_test() -> Self {
        let first = Self { data: "data".to_owned(), settings: Vec::new(), keep: Keep::Best };
        first.with(TASK, "train count").with("seed", "1")
    }

    fn of(
        task: String,
        data: String,
        cluster: &ClusterConfig,
        settings: &impl Serialize,
        keep: Keep,
    ) -> Self {
        let first = Self { data, settings: Vec::new(), keep }
            .with("program", env!("CARGO_PKG_VERSION"))
            .with(TASK, task)
            .with("system", name_of(cluster.system))
            .with("workers", or_default(cluster.workers.as_ref()));
        settings_of(settings).into_iter().fold(first, |fingerprint, (name, value)| {
            let is_known = ["system", "nodes", "workers"].contains(&name.as_str());
            if is_known { fingerprint } else { fingerprint.with(&name, value) }
        })
    }

    /// Returns what differs for different data.
    pub(crate) fn data(&self) -> &str {
        &self.data
    }

    /// Returns names and values, in order.
    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Returns what is done: `train kge`.
    pub(crate) fn task(&self) -> &str {
        let task = self.settings.iter().find(|(name, _)| name == TASK);
        task.map_or("", |(_, task)| task)
    }

    /// Returns the same, with one more setting.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.settings.push((name.to_owned(), value.into()));
        self
    }
}

/// Returns the fields of settings by name, each as text; those that are left to the program say so.
pub(crate) fn settings_of(settings: &impl Serialize) -> Vec<(String, String)> {
    // By way of a text, in which a number has the digits that it was given with.
    let text = serde_json::to_string(settings).unwrap_or_default();
    let Ok(Value::Object(fields)) = serde_json::from_str(&text) else {
        return vec![("settings".to_owned(), text)];
    };
    let text = |value| match value {
        Value::Null => or_default(None::<String>),
        Value::String(text) => text,
        other => other.to_string(),
    };
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// Returns a choice that may be left to the program, as text for the other processes.
pub(crate) fn or_default(choice: Option<impl fmt::Display>) -> String {
    choice.map_or_else(|| "by default".to_owned(), |choice| choice.to_string())
}

/// Checks that all processes mean the same run; the error names one that does not. `own` is an
/// error if this process cannot start. Returns what node 0 keeps. Collective; free if all nodes
/// are in this process.
///
/// # Errors
///
/// A process that differs, or that cannot start.
pub(crate) fn check(
    peers: &Peers<'_>,
    own: Result<RunFingerprint, TaskError>,
) -> Result<Keep, TaskError> {
    let fingerprints = peers.share(own)?;
    let counts = fingerprints.iter().map(|fingerprint| fingerprint.settings.len().to_string());
    // Who runs another program or task may well have other settings.
    for (index, (name, _)) in fingerprints[0].settings.iter().enumerate() {
        let value = |fingerprint: &RunFingerprint| match fingerprint.settings.get(index) {
            Some((other, value)) if other == name => value.clone(),
            _ => "none".to_owned(),
        };
        check_equal(name, fingerprints.iter().map(value))?;
    }
    check_equal("number of settings", counts)?;
    if let Some((node, there, elsewhere)) =
        odd_one(fingerprints.iter().map(|fingerprint| fingerprint.data.clone()))
    {
        return Err(TaskError::Mismatch { node, what: Mismatch::Data { there, elsewhere } });
    }
    Ok(fingerprints[0].keep)
}

/// Checks that all processes have found the same before they train, unless one of them was stopped
/// at it; returns true if one was. Collective.
///
/// # Errors
///
/// A process that has found something else.
pub(crate) fn check_found(
    peers: &Peers<'_>,
    name: &str,
    found: String,
    stopped: bool,
) -> Result<bool, TaskError> {
    let all = peers.share(Ok((found, stopped)))?;
    let stopped = all.iter().any(|(_, stopped)| *stopped);
    if !stopped {
        check_equal(name, all.into_iter().map(|(found, _)| found))?;
    }
    Ok(stopped)
}

/// Checks that the values of a setting are equal, in the order of nodes.
fn check_equal(name: &str, values: impl Iterator<Item = String>) -> Result<(), TaskError> {
    let Some((node, there, elsewhere)) = odd_one(values) else { return Ok(()) };
    let what = Mismatch::Setting { name: name.to_owned(), there, elsewhere };
    Err(TaskError::Mismatch { node, what })
}

/// Workers of each node: as `asked` for, else as many as all nodes have cores for. Collective if
/// nodes are processes.
pub(crate) fn workers(
    peers: &Peers<'_>,
    asked: Option<&Workers>,
    nodes: usize,
) -> Result<Vec<usize>, TaskError> {
    match (asked, peers.exchange()) {
        (Some(workers), _) => Ok(workers.of_each(nodes)),
        (None, Some(exchange)) => Ok(vec![exchange::workers_for_all(exchange)?; nodes]),
        (None, None) => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Ok(vec![(cores / nodes).max(1); nodes])
        }
    }
}

/// Returns the first node whose value is not the most frequent one, its value, and that one. Of
/// equally frequent ones, that of the lowest node counts.
fn odd_one(values: impl Iterator<Item = String>) -> Option<(NodeId, String, String)> {
    let values: Vec<String> = values.collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in &values {
        *counts.entry(value).or_default() += 1;
    }
    let most = counts.values().max()?;
    let usual = values.iter().find(|value| counts.get(value.as_str()) == Some(most))?;
    let odd = values.iter().position(|value| value != usual)?;
    Some((NodeId(u16::try_from(odd).unwrap_or(u16::MAX)), values[odd].clone(), usual.clone()))
}

/// A number that differs between data that differ: of what was added, in order.
#[derive(Clone, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// Over nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Returns the number of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> u64 {
        let mut digest = Self::new();
        digest.bytes(bytes);
        digest.sum()
    }

    /// Adds a number.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.word(u64::from(*byte));
        }
    }

    /// Adds values, and how many they are.
    pub fn values(&mut self, values: &[f32]) {
        self.word(values.len() as u64);
        for value in values {
            self.word(u64::from(value.to_bits()));
        }
    }

    /// Returns the number.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::circle::as_each;

    #[test]
    fn the_process_that_means_another_run_is_named_with_what_differs() {
        let agree_on = |task: &'static str, rate: &'static str, data: &'static str| {
            let opened = move |odd: usize, node: usize| {
                let pick = |other, own| if node == odd { other } else { own };
                RunFingerprint::of_evaluation(
                    pick(task, "count"),
                    pick(data, "5 keys").to_owned(),
                    &ClusterConfig::default(),
                    &BTreeMap::from([("rate", pick(rate, "0.1"))]),
                )
            };
            let ended = as_each(3, |peers, _| check(peers, Ok(opened(1, peers.node()))));
            ended
                .into_iter()
                .map(|agreed| agreed.map_err(|error| error.to_string()))
                .collect::<Vec<_>>()
        };
        let refused = |text: &str| vec![Err(format!("node n1 has {text}")); 3];
        assert_eq!(agree_on("count", "0.1", "5 keys"), vec![Ok(Keep::Nothing); 3]);
        let expected = refused("rate 0.2, others have 0.1; start all nodes alike");
        assert_eq!(agree_on("count", "0.2", "6 keys"), expected);
        let other = "node n1 runs evaluate sum, the others evaluate count; start all nodes with the same task";
        assert_eq!(agree_on("sum", "0.2", "5 keys"), vec![Err(other.to_owned()); 3]);
        let expected =
            refused("other data: 6 keys, others have 5 keys; give all nodes the same data");
        assert_eq!(agree_on("count", "0.1", "6 keys"), expected);
    }

    #[test]
    fn what_others_say_stays_in_one_line() {
        let what = |text: &str| Mismatch::Setting {
            name: text.to_owned(),
            there: text.to_owned(),
            elsewhere: text.to_owned(),
        };
        let error = TaskError::Mismatch { node: NodeId(1), what: what("a\n\u{1b}[2J") };
        let told = "a\\n\\u{1b}[2J";
        let expected =
            format!("node n1 has {told} {told}, others have {told}; start all nodes alike");
        assert_eq!(error.to_string(), expected);
        let error = TaskError::Elsewhere { node: NodeId(2), reason: "b\r".to_owned() };
        assert_eq!(error.to_string(), "node n2 failed: b\\r");
    }
}
