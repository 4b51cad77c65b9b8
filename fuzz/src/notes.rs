//! Target `notes`: whatever the other processes of a training run answer, this one ends with a
//! result or an error of one line, and does not panic.
//!
//! The input chooses the exchange (fingerprint, end of a phase, parameters, cores) and
//! the answers: this process's own note, changed or not, or noise. Not here: the group that carries
//! notes (target `group`).

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};

use adapm_tasks::exchange::{self, Exchange};
use adapm_tasks::kge::{Graph, TaskError, TrainConfig};
use adapm_tasks::testing::{check_consistency, conclude, gather};
use adapm_verify::arb::Choices;

/// Exchanges the notes that `bytes` choose. Returns true if all went well or a process was blamed
/// for a readable note.
pub fn notes(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let what = choices.below(8);
    let nodes = 2 + choices.below(3) as usize;
    let node = choices.below(nodes as u64) as usize;
    let config = TrainConfig::default();
    let liars = Liars { node, nodes, bytes: Mutex::new(bytes.iter().skip(5).copied().collect()) };
    let outcome = match what {
        0..3 => check_consistency(&liars, graph(), &config).map(|_| ()),
        3..6 => {
            let (workers, triples) = (1 + choices.below(2) as usize, choices.below(8) as usize);
            conclude(&liars, workers, triples).map(|(_, stats, metrics)| {
                assert!(
                    (0.0..=1.0).contains(&stats.local_share()),
                    "a share of {}",
                    stats.local_share()
                );
                assert!(
                    (0.0..=1.0).contains(&metrics.mrr),
                    "a mean reciprocal rank of {}",
                    metrics.mrr
                );
                assert!(metrics.mrr_pessimistic <= metrics.mrr_optimistic, "ties are won or lost");
            })
        }
        6 => gather(&liars, graph(), 2).map(|gathered| {
            assert_eq!(gathered.is_some(), node == 0, "node 0 alone gets the parameters");
        }),
        _ => exchange::workers_for_all(&liars)
            .map(|workers| assert!(workers > 0, "a node has a worker")),
    };
    match outcome {
        Ok(()) => true,
        Err(error) => {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            !matches!(error, TaskError::Unintelligible { .. })
        }
    }
}

/// The other processes, whose notes are made up one after the other.
struct Liars {
    node: usize,
    nodes: usize,
    bytes: Mutex<VecDeque<u8>>,
}

impl Exchange for Liars {
    fn node(&self) -> usize {
        self.node
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        let mut bytes = self.bytes.lock().expect("one thread");
        let mut byte = || bytes.pop_front().unwrap_or(0);
        let notes = (0..self.nodes)
            .map(|node| if node == self.node { own.to_vec() } else { note(own, &mut byte) })
            .collect();
        Ok(notes)
    }

    fn gather(&self, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>, TaskError> {
        let all = self.all_gather(own)?;
        Ok((self.node == 0).then_some(all))
    }
}

/// Chooses another process's note: `own`, `own` with changes, or noise.
fn note(own: &[u8], byte: &mut impl FnMut() -> u8) -> Vec<u8> {
    let form = byte();
    let mut note = own.to_vec();
    match form & 7 {
        0 | 1 => {}
        2 => note = (0..byte() & 63).map(|_| byte()).collect(),
        _ => {
            for _ in 0..form >> 5 {
                let at = (usize::from(byte()) << 8 | usize::from(byte())) % (note.len() + 1);
                match byte() & 3 {
                    0 => note.truncate(at),
                    1 => note.insert(at, byte()),
                    _ if at < note.len() => note[at] = byte(),
                    _ => note.push(byte()),
                }
            }
        }
    }
    note
}

fn graph() -> &'static Graph {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    GRAPH.get_or_init(|| Graph::families(1, 1))
}
