//! The observers of engines: the user's, or those that write a trace.

use adapm_core::observe::Observe;
use adapm_core::{ChannelId, NodeId};

use crate::trace::{TraceHead, Tracer};

type MakeObserver = Box<dyn Fn(NodeId, ChannelId) -> Box<dyn Observe + Send>>;

/// At most one kind of observer, with one for each engine.
#[derive(Default)]
pub(super) struct Watchers {
    observer: Option<MakeObserver>,
    tracer: Option<Tracer>,
}

impl Watchers {
    /// Uses an observer of the user's for each engine.
    pub(super) fn observers<O>(observer: impl Fn(NodeId, ChannelId) -> O + 'static) -> Self
    where
        O: Observe + Send + 'static,
    {
        Self {
            observer: Some(Box::new(move |node, channel| Box::new(observer(node, channel)))),
            tracer: None,
        }
    }

    /// Uses the observers that write a trace.
    pub(super) fn tracing(tracer: &Tracer) -> Self {
        let writer = tracer.clone();
        Self {
            observer: Some(Box::new(move |node, _| writer.observer(node))),
            tracer: Some(tracer.clone()),
        }
    }

    pub(super) fn observer_of(
        &self,
        node: NodeId,
        channel: ChannelId,
    ) -> Option<Box<dyn Observe + Send>> {
        self.observer.as_ref().map(|observer| observer(node, channel))
    }

    /// Begins the trace, if there is one.
    pub(super) fn begin(&self, head: &TraceHead) {
        self.tracer.iter().for_each(|tracer| tracer.begin(head));
    }
}
