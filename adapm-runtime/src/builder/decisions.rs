//! Who decides about techniques and timing: a system, or a policy of the user's.

use adapm_core::policy::{Policy, System, SystemPolicy};
use adapm_core::{ChannelId, NodeId};

/// Who decides for the engines of a cluster.
pub(super) enum Decisions {
    System(System),
    Custom(Box<dyn Fn(NodeId, ChannelId) -> SystemPolicy>),
}

impl Decisions {
    /// A policy of the user's for each engine.
    pub(super) fn custom<P>(policy: impl Fn(NodeId, ChannelId) -> P + 'static) -> Self
    where
        P: Policy + Send + 'static,
    {
        Self::Custom(Box::new(move |node, channel| Box::new(policy(node, channel)) as SystemPolicy))
    }

    /// The policy of one engine, for nodes of so many workers.
    pub(super) fn policy(&self, node: NodeId, channel: ChannelId, workers: usize) -> SystemPolicy {
        match self {
            Self::System(system) => system.policy(workers),
            Self::Custom(policy) => policy(node, channel),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::System(system) => system.name(),
            Self::Custom(_) => "custom",
        }
    }

    /// Returns true if workers' signals reach the engines of so many nodes: where nothing ever acts on them, they would only pile
    /// up, and on a single node wake an engine that forgets them.
    pub(super) fn heeds_intents(&self, nodes: usize) -> bool {
        let acts = match self {
            Self::System(system) => !matches!(system, System::Classic | System::Lapse | System::Full),
            Self::Custom(_) => true,
        };
        acts && nodes > 1
    }

    /// Returns true if keys are brought to where they are needed by localize, as far as anything brings them.
    pub(super) fn localizes(&self) -> bool {
        matches!(self, Self::System(System::Lapse))
    }

    /// Returns true if every node holds a replica of everything for the whole run.
    pub(super) fn replicates_fully(&self) -> bool {
        matches!(self, Self::System(System::Full))
    }
}
