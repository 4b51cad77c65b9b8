//! An exchange between the threads of a test, each of which plays a process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use adapm_core::NodeId;
use adapm_transport::group::GroupError;

use adapm_transport::threads;

use crate::exchange::Exchange;
use crate::run::error::TaskError;
use crate::run::peers::Peers;

/// One process's place in a circle. Dropping it is what the end of the process is to the others.
#[derive(Debug)]
pub(crate) struct Place {
    node: usize,
    circle: Arc<Circle>,
}

#[derive(Debug)]
struct Circle {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Bytes that each node has given in this round.
    given: Vec<Option<Vec<u8>>>,
    /// Bytes that all gave in the round before.
    complete: Vec<Vec<u8>>,
    rounds: u64,
    gone: Option<NodeId>,
}

/// Returns the places of `nodes` processes.
pub(crate) fn places(nodes: usize) -> Vec<Place> {
    let state = State { given: vec![None; nodes], complete: Vec::new(), rounds: 0, gone: None };
    let circle = Arc::new(Circle { state: Mutex::new(state), changed: Condvar::new() });
    (0..nodes).map(|node| Place { node, circle: Arc::clone(&circle) }).collect()
}

/// Does `work` as each of `nodes` processes and returns what they return, by node.
pub(crate) fn as_each<R: Send>(
    nodes: usize,
    work: impl Fn(&Peers<'_>, &Place) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = places(nodes)
            .into_iter()
            .map(|place| {
                let work = move || work(&Peers::among(&place), &place);
                threads::spawn_scoped(scope, "process", work).expect("a test may have threads")
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("does not panic")).collect()
    })
}

impl Place {
    /// Complete exchanges so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.state().rounds
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.circle.state.lock().expect("nobody panics with the lock")
    }
}

impl Exchange for Place {
    fn node(&self) -> usize {
        self.node
    }

    fn nodes(&self) -> usize {
        self.state().given.len()
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        let mut state = self.state();
        let round = state.rounds;
        assert!(state.given[self.node].replace(bytes.to_vec()).is_none(), "one call at a time");
        if state.given.iter().all(Option::is_some) {
            state.complete = state.given.iter_mut().filter_map(Option::take).collect();
            state.rounds += 1;
            self.circle.changed.notify_all();
        }
        while state.rounds == round {
            if let Some(gone) = state.gone {
                return Err(GroupError::Left { node: gone }.into());
            }
            state = self.circle.changed.wait(state).expect("nobody panics with the lock");
        }
        Ok(state.complete.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.state();
        state.gone.get_or_insert(NodeId(u16::try_from(self.node).expect("few nodes")));
        self.circle.changed.notify_all();
    }
}
