//! The interface of mistakes around an engine.

use adapm_core::clock::Clock;
use adapm_core::engine::Input;
use adapm_core::id::{Key, NodeId};
use adapm_core::policy::SystemPolicy;
use adapm_core::time::Instant;

use super::PlantedStore;
use crate::Recorder;

/// An engine under test.
pub type Engine = adapm_core::engine::Engine<PlantedStore, SystemPolicy>;

/// A mistake around an engine. By default each method changes nothing.
pub(super) trait Mistake: Send {
    /// Changes the clocks of the workers before they are fed.
    fn clocks(&mut self, _clocks: &mut Vec<Clock>) {}

    /// Returns the inputs to feed instead of `input`, in order.
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        vec![input]
    }

    /// Selects the dirty keys for the engine from those that `take` appends.
    fn dirty(&mut self, keys: &mut Vec<Key>, take: &mut dyn FnMut(&mut Vec<Key>)) {
        take(keys);
    }

    /// Handles the refusal of a message of `from`; `is_request`: it was a request of a round.
    fn refused(&mut self, _from: NodeId, _is_request: bool, _said: &mut Recorder<i64>) {}

    /// Returns inputs to feed after the last one.
    fn follow(&mut self, _engine: &Engine) -> Vec<Input<'static, i64>> {
        Vec::new()
    }

    /// Changes the outputs of one input.
    fn leave(&mut self, _engine: &Engine, _said: &mut Recorder<i64>) {}
}
