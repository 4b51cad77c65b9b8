//! Who decides about techniques and timing: a system, or a policy of the user's.

use adapm_core::policy::{Policy, Supply, System, SystemPolicy};
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

    /// What brings copies to the nodes that use them: a policy of the user's is made once more to
    /// be asked.
    pub(super) fn supply(&self) -> Supply {
        match self {
            Self::System(system) => system.supply(),
            Self::Custom(policy) => policy(NodeId(0), ChannelId(0)).supply(),
        }
    }
}
