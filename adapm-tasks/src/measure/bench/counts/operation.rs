//! What is done: which operation, on how many keys, over which link.

use std::fmt;
use std::str::FromStr;

use adapm_transport::net::Kind;

use crate::measure::bench::figure::Plan;
use crate::measure::bench::rows::{Access, BATCH, LEN, link_name};

/// An operation, and on what. Its text is its name on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub(super) action: Action,
    /// Keys of a call.
    pub(super) keys: usize,
    /// Elements of a value.
    pub(super) len: usize,
    /// Between nodes, if not within the process.
    pub(super) link: Option<Kind>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Access to keys of this node.
    Local(Access),
    /// Signals that nothing has to follow yet.
    Intent,
    /// Raising the clock.
    Clock,
    /// Access to keys of another node, one call after the other.
    Remote(Access),
    /// Keys go from one node to the other and back.
    Relocation,
    /// Both nodes write what both have a copy of.
    Replicas,
}

/// No operation has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no operation of this name is counted")]
pub struct UnknownOperation;

impl Operation {
    /// All operations of a plan, in the order of the groups that measure their times.
    #[must_use]
    pub fn all(plan: &Plan) -> Vec<Self> {
        let mut all = Vec::new();
        for len in LENS.into_iter().take(if plan.is_quick { 1 } else { LENS.len() }) {
            for keys in [1, BATCH] {
                all.extend(Access::ALL.map(|access| Self::of(Action::Local(access), keys, len, None)));
            }
        }
        all.push(Self::of(Action::Intent, BATCH, LEN, None));
        all.push(Self::of(Action::Clock, 1, LEN, None));
        // All frames are the same over all links; in a hurry one is enough to show what a link adds.
        let kinds = plan.kinds.iter().copied().take(if plan.is_quick { 1 } else { plan.kinds.len() });
        for link in std::iter::once(None).chain(kinds.map(Some)) {
            for keys in [1, BATCH] {
                all.extend(Access::ALL.map(|access| Self::of(Action::Remote(access), keys, LEN, link)));
            }
            all.push(Self::of(Action::Relocation, BATCH, LEN, link));
            all.push(Self::of(Action::Replicas, BATCH, LEN, link));
        }
        all
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn what(&self) -> String {
        let Self { action, keys, len, link } = *self;
        let plural = if keys == 1 { "" } else { "s" };
        match action {
            Action::Local(access) if keys == 1 => format!("{}, single, {len} floats", access.name()),
            Action::Local(access) => format!("{}, {keys} keys a call, {len} floats", access.name()),
            Action::Intent => format!("intent, {keys} keys a call"),
            Action::Clock => "advancing the clock".to_owned(),
            Action::Remote(access) => {
                format!("{}, {keys} remote key{plural}, {}", access.name(), link_name(link))
            }
            Action::Relocation => format!("relocation, {keys} keys a call, {}", link_name(link)),
            Action::Replicas => format!("replicas, both nodes write, {}", link_name(link)),
        }
    }

    /// What counts are divided by.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.action {
            Action::Clock | Action::Remote(_) => "call",
            Action::Local(_) | Action::Intent | Action::Relocation | Action::Replicas => "key",
        }
    }

    /// Whether the number of messages goes by time, and allocations with it: rounds are begun by a timer.
    #[must_use]
    pub const fn goes_by_time(&self) -> bool {
        matches!(self.action, Action::Replicas)
    }

    /// How often to do it so that its counts are those of the operation and not of what happens beside it.
    #[must_use]
    pub const fn times(&self, is_quick: bool) -> u64 {
        let times = match self.action {
            Action::Local(_) | Action::Intent | Action::Clock => 20,
            Action::Remote(_) => 1_000,
            Action::Relocation | Action::Replicas => 20,
        };
        if is_quick { times / 5 } else { times }
    }

    const fn of(action: Action, keys: usize, len: usize, link: Option<Kind>) -> Self {
        Self { action, keys, len, link }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.action {
            Action::Local(Access::Pull) => "pull",
            Action::Local(Access::Push) => "push",
            Action::Intent => "intent",
            Action::Clock => return f.write_str("clock"),
            Action::Remote(Access::Pull) => "remote-pull",
            Action::Remote(Access::Push) => "remote-push",
            Action::Relocation => "relocation",
            Action::Replicas => "replicas",
        };
        write!(f, "{name}-{}x{}", self.keys, self.len)?;
        self.link.map_or(Ok(()), |link| write!(f, "-{}", link.scheme()))
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        Self::all(&Plan::default())
            .into_iter()
            .find(|operation| operation.to_string() == name)
            .ok_or(UnknownOperation)
    }
}

/// Elements of local values.
const LENS: [usize; 2] = [25, 100];
