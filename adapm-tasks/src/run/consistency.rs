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
use serde::{Deserialize, Serialize};

use crate::run::error::{Mismatch, TASK, TaskError};
use crate::run::peers::Peers;
use crate::{System, exchange};

/// The description that a process gives of its run; equal on all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunFingerprint {
    data: String,
    /// Names and values, in order.
    settings: Vec<(String, String)>,
    /// Node 0 keeps the parameters.
    checkpoint: bool,
    /// The run was stopped before.
    stopped: bool,
}

/// The flags on which all have agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunFlags {
    /// Node 0 keeps the parameters.
    pub(crate) checkpoint: bool,
    /// The run was stopped before, in one process at least: what processes found does not count.
    pub(crate) stopped: bool,
}

impl RunFingerprint {
    /// Returns the fingerprint of a run of `task`. `data` is a text that differs for different
    /// data; `checkpoint` is true if the run keeps the parameters, and counts on node 0 only. The
    /// cluster and the settings are what has to be equal on all nodes, by name.
    pub(crate) fn new<'a>(
        task: &str,
        data: String,
        checkpoint: bool,
        (system, nodes, workers): (Option<System>, usize, Option<usize>),
        settings: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Self {
        let first = [
            ("program", env!("CARGO_PKG_VERSION").to_owned()),
            (TASK, task.to_owned()),
            ("system", system.map_or("none", System::name).to_owned()),
            ("nodes", nodes.to_string()),
            ("workers", or_default(workers)),
        ];
        let settings = first.into_iter().chain(settings);
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).collect();
        Self { data, settings, checkpoint, stopped: false }
    }

    /// Returns the same run, with what this process has found before; it has to be equal unless one
    /// of them was stopped at it.
    pub(crate) fn found(mut self, found: String, stopped: bool) -> Self {
        self.settings.push((FOUND.to_owned(), found));
        Self { stopped, ..self }
    }
}

/// The choices of a configuration that have to be equal on all nodes, by the names of its fields:
/// as they are, or as the expression after `=>`. All fields are named, so that a new one cannot be
/// forgotten; those after `beside` are compared elsewhere, or may differ between processes.
macro_rules! equal {
    ($config:ident: $kind:ident { $($field:ident $(=> $value:expr)?),+ } beside $($other:ident),+) => {{
        let $kind { $($field,)+ $($other: _),+ } = $config;
        [$((stringify!($field), $crate::run::consistency::equal!(@ $field $(, $value)?))),+]
    }};
    (@ $field:ident) => { $field.to_string() };
    (@ $field:ident, $value:expr) => {{
        let _ = $field;
        $value
    }};
}
pub(crate) use equal;

/// Returns a choice that may be left to the program, as text for the other processes.
pub(crate) fn or_default(choice: Option<impl fmt::Display>) -> String {
    choice.map_or_else(|| "by default".to_owned(), |choice| choice.to_string())
}

/// Checks that all processes mean the same run; the error names one that does not. `own` is an
/// error if this process cannot start. Collective; free if all nodes are in this process.
///
/// # Errors
///
/// A process that differs, or that cannot start.
pub(crate) fn check(
    peers: &Peers<'_>,
    own: Result<RunFingerprint, TaskError>,
) -> Result<RunFlags, TaskError> {
    let fingerprints = peers.share(own)?;
    let settings = |fingerprint: &RunFingerprint| fingerprint.settings.clone();
    // Who runs another program or task may well have other settings.
    let names: Vec<String> = settings(&fingerprints[0]).into_iter().map(|(name, _)| name).collect();
    let stopped = fingerprints.iter().any(|fingerprint| fingerprint.stopped);
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !stopped || *name != FOUND) {
        let value = |fingerprint: &RunFingerprint| match fingerprint.settings.get(index) {
            Some((other, value)) if other == name => value.clone(),
            _ => "none".to_owned(),
        };
        if let Some((node, there, elsewhere)) = odd_one(fingerprints.iter().map(value)) {
            let what = Mismatch::Setting { name: name.clone(), there, elsewhere };
            return Err(TaskError::Mismatch { node, what });
        }
    }
    if let Some((node, there, elsewhere)) =
        odd_one(fingerprints.iter().map(|fingerprint| fingerprint.data.clone()))
    {
        return Err(TaskError::Mismatch { node, what: Mismatch::Data { there, elsewhere } });
    }
    Ok(RunFlags { checkpoint: fingerprints[0].checkpoint, stopped })
}

/// Workers of each node: as `asked` for, else as many as all nodes have cores for. Collective if
/// nodes are processes.
pub(crate) fn workers(
    peers: &Peers<'_>,
    asked: Option<usize>,
    nodes: usize,
) -> Result<usize, TaskError> {
    match (asked, peers.exchange()) {
        (Some(workers), _) => Ok(workers),
        (None, Some(exchange)) => exchange::workers_for_all(exchange),
        (None, None) => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            Ok((cores / nodes).max(1))
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

/// A sum over what was added, in order.
#[derive(Clone, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Over nothing.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a number.
    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds bytes, and how many they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
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
    pub(crate) fn values(&mut self, values: &[f32]) {
        self.word(values.len() as u64);
        for value in values {
            self.word(u64::from(value.to_bits()));
        }
    }

    /// Returns the number.
    pub(crate) fn sum(&self) -> u64 {
        self.0
    }
}

/// The setting of earlier findings.
const FOUND: &str = "found by cross-fitting";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::circle::as_each;

    #[test]
    fn the_process_that_means_another_run_is_named_with_what_differs() {
        let agree_on = |task: &'static str, rate: &'static str, data: &'static str| {
            let opened = move |odd: usize, node: usize| {
                let pick = |other, own| if node == odd { other } else { own };
                let settings = [("seed", "1".to_owned()), ("rate", pick(rate, "0.1").to_owned())];
                RunFingerprint::new(
                    pick(task, "count"),
                    pick(data, "5 keys").to_owned(),
                    node == 0,
                    (None, 1, None),
                    settings,
                )
            };
            let ended = as_each(3, |peers, _| check(peers, Ok(opened(1, peers.node()))));
            ended
                .into_iter()
                .map(|agreed| agreed.map_err(|error| error.to_string()))
                .collect::<Vec<_>>()
        };
        let refused = |text: &str| vec![Err(format!("node n1 has {text}")); 3];
        assert_eq!(
            agree_on("count", "0.1", "5 keys"),
            vec![Ok(RunFlags { checkpoint: true, stopped: false }); 3]
        );
        let expected = refused("rate 0.2, others have 0.1; start all nodes alike");
        assert_eq!(agree_on("count", "0.2", "6 keys"), expected);
        let other = "node n1 runs sum, the others count; start all nodes with the same task";
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
