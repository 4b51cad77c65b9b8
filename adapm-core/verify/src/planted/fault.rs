//! Hook of a mistake: changes an engine's inputs, its dirty keys, its outputs, and the consequences
//! of its refusals.

use adapm_core::config::NodeConfig;
use adapm_core::driver::Host;
use adapm_core::engine::{Event, Initial, Input};
use adapm_core::error::InputError;
use adapm_core::home::HomeMap;
use adapm_core::id::{Key, NodeId};
use adapm_core::layout::Layout;
use adapm_core::policy::SystemPolicy;
use adapm_core::time::Instant;
use adapm_core::wire::Message;
use adapm_core::wire::message::Body;

use super::mistake::{Engine, Mistake};
use super::policy::{Unnoted, planted};
use super::{Bug, PlantedStore, belief, collective, driver, entries, events, requests, tick};
use crate::Recorder;

/// The driver of an engine under test.
pub type Driver = adapm_core::driver::Driver<PlantedStore, SystemPolicy>;

/// A mistake around one engine.
pub struct Fault {
    mistake: Box<dyn Mistake>,
}

/// Creates an engine without inputs but with its main copies in place, and the mistake around it;
/// `bug` is planted in the store or the policy instead if it belongs there.
///
/// # Panics
/// If the configuration does not fit the layout.
#[must_use]
pub fn engine(
    config: NodeConfig,
    layout: &Layout,
    policy: SystemPolicy,
    initial: Initial<i64>,
    bug: Option<Bug>,
) -> (Engine, Option<Fault>) {
    let mut config = config;
    if bug == Some(Bug::OtherHomes) && config.node == NodeId(0) {
        config.homes = HomeMap::scale(config.nodes);
    }
    let unnoted = Unnoted::default();
    let keys = layout.keys();
    let lags = (keys.start.0..keys.end.0).map(|key| policy.lag(Key(key))).collect();
    let policy = planted(policy, bug, &unnoted);
    let store = PlantedStore::new(layout, bug);
    let engine =
        Engine::new(config, layout.clone(), store, policy, initial).expect("the setup is valid");
    engine.populate();
    let mistake = bug.and_then(|bug| mistake(bug, unnoted, lags));
    (engine, mistake.map(|mistake| Fault { mistake }))
}

/// Returns the mistake of a bug around an engine; `lags` are the changes of each key that a replica
/// may lack.
fn mistake(bug: Bug, unnoted: Unnoted, lags: Vec<u32>) -> Option<Box<dyn Mistake>> {
    requests::mistake(bug, unnoted)
        .or_else(|| entries::mistake(bug))
        .or_else(|| collective::mistake(bug))
        .or_else(|| belief::mistake(bug))
        .or_else(|| driver::mistake(bug))
        .or_else(|| events::mistake(bug))
        .or_else(|| tick::mistake(bug, lags))
}

impl Fault {
    /// Feeds one input through `node`, like [`adapm_core::driver::Driver::feed`].
    ///
    /// # Errors
    /// An invalid input, with the party to blame.
    pub fn feed(
        &mut self,
        node: &mut Driver,
        now: Instant,
        input: Input<'_, i64>,
        host: &mut impl Host<i64>,
    ) -> Result<(), InputError> {
        let mut clocks = Vec::new();
        let input = if let Input::Timeout(given) = input {
            clocks.extend_from_slice(given);
            self.mistake.clocks(&mut clocks);
            Input::Timeout(&clocks)
        } else {
            input
        };
        let mut said = Recorder::default();
        let mut verdict = Ok(());
        for input in self.mistake.enter(node.engine(), now, input) {
            verdict = verdict.and(self.feed_one(node, now, input, host, &mut said));
        }
        loop {
            let behind = self.mistake.follow(node.engine());
            if behind.is_empty() {
                break;
            }
            for input in behind {
                verdict = verdict.and(self.feed_one(node, now, input, host, &mut said));
            }
        }
        self.mistake.leave(node.engine(), &mut said);
        said.sent.into_iter().for_each(|(to, message)| host.transmit(to, message));
        said.events.into_iter().for_each(|event| host.tell(event));
        verdict
    }

    fn feed_one(
        &mut self,
        node: &mut Driver,
        now: Instant,
        input: Input<'_, i64>,
        host: &mut impl Host<i64>,
        said: &mut Recorder<i64>,
    ) -> Result<(), InputError> {
        let sender = match &input {
            Input::Message(from, message) => {
                Some((*from, matches!(*message.body, Body::SyncRequest(_))))
            }
            _ => None,
        };
        let mut around = Around { mistake: &mut *self.mistake, host, said };
        let verdict = node.feed(now, input, &mut around);
        if let (Some((from, is_request)), Err(InputError::Peer(_))) = (sender, &verdict) {
            self.mistake.refused(from, is_request, said);
        }
        verdict
    }
}

/// The host of an engine, with a mistake in between.
struct Around<'a, H> {
    mistake: &'a mut dyn Mistake,
    host: &'a mut H,
    said: &'a mut Recorder<i64>,
}

impl<H: Host<i64>> Host<i64> for Around<'_, H> {
    fn take_dirty(&mut self, keys: &mut Vec<Key>) {
        self.mistake.dirty(keys, &mut |keys| self.host.take_dirty(keys));
    }

    fn transmit(&mut self, to: NodeId, message: Message) {
        self.said.transmit(to, message);
    }

    fn tell(&mut self, event: Event<i64>) {
        self.said.tell(event);
    }
}
