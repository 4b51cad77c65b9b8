//! The settings of a cluster that do not depend on the type of its stores, and what follows from
//! them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use adapm_core::config::NodeConfig;
use adapm_core::engine::Initial;
use adapm_core::error::ConfigError;
use adapm_core::home::HomeMap;
use adapm_core::layout::Layout;
use adapm_core::policy::{Place, Policy, Supply, SystemPolicy};
use adapm_core::{NodeId, Value};

use super::decisions::Decisions;
use super::nodes::Nodes;
use super::watchers::Watchers;
use super::workers::Workers;
use crate::channel::Report;
use crate::failure::Failure;
use crate::hot_keys::{HotKeys, HotSets};
use crate::node_handle::Plan;
use crate::processes::Terms;
use crate::sampling::Sampling;
use crate::trace::TraceHead;

/// Settings that do not depend on the type of stores.
pub(super) struct Settings<V> {
    pub(super) layout: Layout,
    pub(super) nodes: Nodes,
    pub(super) workers: Workers,
    /// `None`: by hash.
    pub(super) homes: Option<Arc<[u16]>>,
    pub(super) channels: Option<usize>,
    pub(super) rounds_per_second: Option<NonZeroU32>,
    pub(super) clocks_per_tick: NonZeroU32,
    pub(super) location_caches: bool,
    pub(super) decisions: Decisions,
    pub(super) hot_keys: HotSets,
    pub(super) initial: Initial<V>,
    pub(super) sampling: Option<Sampling>,
    pub(super) report: Report,
    pub(super) watchers: Watchers,
}

impl<V: Value> Settings<V> {
    /// Returns those of one node with one worker, under the usual system, with values of zero.
    pub(super) fn of(layout: Layout) -> Self {
        Self {
            layout,
            nodes: Nodes::from(1),
            workers: Workers::from(1),
            homes: None,
            channels: None,
            rounds_per_second: None,
            clocks_per_tick: NonZeroU32::MIN,
            location_caches: true,
            decisions: Decisions::default(),
            hot_keys: HotSets::Shared(HotKeys::default()),
            initial: Arc::new(|_, _| {}),
            sampling: None,
            report: Arc::new(|notice| eprintln!("{notice}")),
            watchers: Watchers::default(),
        }
    }

    /// Returns the settings that all processes of a group must share.
    pub(super) fn terms(&self) -> Terms {
        let Decisions { bound, dense, .. } = &self.decisions;
        vec![
            ("keys", self.layout.keys().end.0.to_string()),
            ("layout", format!("{:016x}", self.layout.digest::<V>())),
            ("homes", self.homes_in_words()),
            ("workers", self.workers.to_string()),
            ("system", self.decisions.name()),
            ("bound", bound.map_or_else(|| String::from("none"), |bound| bound.to_string())),
            ("clocks per tick", self.clocks_per_tick.to_string()),
            ("location caches", self.location_caches.to_string()),
            ("hot keys", self.hot_keys.to_string()),
            ("dense keys", format!("{} to {}", dense.start, dense.end)),
            ("sampling", format!("{:?}", self.sampling)),
        ]
    }

    /// Returns the homes of all keys.
    pub(super) fn homes(&self) -> Result<HomeMap, ConfigError> {
        let nodes = self.nodes.count();
        let table = |homes| HomeMap::table(nodes, Arc::clone(homes));
        self.homes.as_ref().map_or_else(|| Ok(HomeMap::scale(nodes)), table)
    }

    /// Tells homes apart in a few words.
    pub(super) fn homes_in_words(&self) -> String {
        let table = self.homes.is_some().then(|| self.homes().ok()).flatten();
        table.map_or("by hash".to_owned(), |homes| format!("table {:016x}", homes.digest()))
    }

    /// Creates an extra policy, for what is the same for all engines.
    pub(super) fn any_policy(&self) -> SystemPolicy {
        let node = NodeId(0);
        let config = NodeConfig::new(node, self.nodes.count(), self.workers.of(node));
        self.decisions.policy(&Place::from(&config))
    }

    /// Returns the mechanism that brings copies to nodes.
    pub(super) fn supply(&self) -> Supply {
        self.any_policy().supply()
    }

    /// Returns the hot keys, with the dense ones where each node has its own.
    pub(super) fn hot_sets(&self) -> HotSets {
        self.hot_keys.under(self.supply(), self.nodes.count(), &self.decisions.dense)
    }

    /// Returns the number of channels that suits this machine.
    pub(super) fn fitting_channels(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if cores <= 4 * self.nodes.on_this_host() { 1 } else { 4 }
    }

    pub(super) fn trace_head(&self) -> TraceHead {
        TraceHead {
            homes: self.homes().expect(CHECKED),
            part: self.nodes.own(),
            // Processes without a group know nothing of each other's runs.
            run: self.nodes.group().map_or(0, |group| group.run()),
            system: self.decisions.name(),
            origin: TraceHead::wall_clock(),
        }
    }

    pub(super) fn plan(&self) -> Plan<V> {
        let group = self.nodes.group();
        Plan {
            layout: self.layout.clone(),
            nodes: self.nodes.count(),
            homes: self.homes().expect(CHECKED),
            workers: self.workers.clone(),
            rounds_per_second: self.rounds_per_second,
            location_caches: self.location_caches,
            initial: Arc::clone(&self.initial),
            sampling: self.sampling.clone().map(Arc::new),
            supply: self.supply(),
            clocks_per_tick: self.any_policy().bound().map(|_| self.clocks_per_tick),
            hot_keys: self.hot_sets(),
            unresponsive_after: group.map(|group| UNRESPONSIVE_DEAD_TIMES * group.dead_after()),
            failure: Arc::new(Failure::default()),
            report: Arc::clone(&self.report),
            origin: Instant::now(),
        }
    }
}

/// What the builder has checked cannot be refused later.
pub(super) const CHECKED: &str = "the builder checked the homes";
/// A node whose link lives is lost if it answers nothing for this multiple of the dead time of
/// silent nodes.
const UNRESPONSIVE_DEAD_TIMES: u32 = 6;
