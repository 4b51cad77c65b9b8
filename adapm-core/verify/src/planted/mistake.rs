//! What a mistake may do around an engine.

use adapm_core::clock::Clock;
use adapm_core::engine::Input;
use adapm_core::id::{Key, NodeId};
use adapm_core::policy::SystemPolicy;
use adapm_core::time::Instant;

use super::PlantedStore;
use crate::Recorder;

/// An engine under test.
pub type Engine = adapm_core::engine::Engine<PlantedStore, SystemPolicy>;

/// What a mistake may change. Each method by itself changes nothing.
pub(super) trait Mistake: Send {
    /// The clocks of the workers before they are fed.
    fn clocks(&mut self, _clocks: &mut Vec<Clock>) {}

    /// What is fed instead of `input`, in order.
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        vec![input]
    }

    /// The dirty keys for the engine, of those that `take` appends.
    fn dirty(&mut self, keys: &mut Vec<Key>, take: &mut dyn FnMut(&mut Vec<Key>)) {
        take(keys);
    }

    /// A message of `from` was refused. What is said instead; `is_request`: it was one of a round.
    fn refused(&mut self, _from: NodeId, _is_request: bool, _said: &mut Recorder<i64>) {}

    /// What is fed behind the last input.
    fn follow(&mut self, _engine: &Engine) -> Vec<Input<'static, i64>> {
        Vec::new()
    }

    /// Changes what the engine has said of one input.
    fn leave(&mut self, _engine: &Engine, _said: &mut Recorder<i64>) {}
}
