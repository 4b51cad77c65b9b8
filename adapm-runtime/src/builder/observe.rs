//! Who is told of single events.

use adapm_core::observe::Observe;
use adapm_core::{ChannelId, NodeId, Value};

use super::{Builder, Decisions};
use crate::trace::{TraceHead, Tracer};

type MakeObserver = Box<dyn Fn(NodeId, ChannelId) -> Box<dyn Observe + Send>>;

/// At most one kind of observer, with one for each engine.
#[derive(Default)]
pub(super) struct Watchers {
    observer: Option<MakeObserver>,
    tracer: Option<Tracer>,
}

impl Watchers {
    pub(super) fn observer_of(&self, node: NodeId, channel: ChannelId) -> Option<Box<dyn Observe + Send>> {
        self.observer.as_ref().map(|observer| observer(node, channel))
    }
}

impl<V: Value, S> Builder<V, S> {
    /// Tells an observer of your own, one for each engine, of single events: on the engine's thread, which it must not hold up.
    /// Takes the place of an earlier observer and of [`Builder::trace`].
    #[must_use]
    pub fn observe<O>(mut self, observer: impl Fn(NodeId, ChannelId) -> O + 'static) -> Self
    where
        O: Observe + Send + 'static,
    {
        let boxed: MakeObserver = Box::new(move |node, channel| Box::new(observer(node, channel)));
        self.watchers = Watchers { observer: Some(boxed), tracer: None };
        self
    }

    /// Writes what happens to the keys of `tracer`; end the file with [`Tracer::finish`] when the cluster has run. Takes the
    /// place of [`Builder::observe`].
    #[must_use]
    pub fn trace(mut self, tracer: &Tracer) -> Self {
        let writer = tracer.clone();
        let boxed: MakeObserver = Box::new(move |node, _| writer.observer(node));
        self.watchers = Watchers { observer: Some(boxed), tracer: Some(tracer.clone()) };
        self
    }

    /// Begins the file, if there is one; `member` is this process's node in a group, and the number of the group's run.
    pub(super) fn begin_trace(&self, member: Option<(NodeId, u64)>) {
        let Some(tracer) = &self.watchers.tracer else { return };
        let system = match &self.decisions {
            Decisions::System(system) => system.name(),
            Decisions::Custom(_) => "custom",
        };
        let origin = TraceHead::wall_clock();
        // Processes without a group know nothing of each other's runs.
        let (part, run) = member.map_or((self.only, 0), |(node, run)| (Some(node), run));
        tracer.begin(&TraceHead { nodes: self.nodes, part, run, system: system.to_owned(), origin });
    }
}
