//! Operations whose counts repeat: messages and bytes that the runtime counts itself, and a start
//! and an end between which another program may count, such as callgrind instructions.
//!
//! Counted is what all nodes, engines and workers do together, from rest to rest, divided by how
//! often it was done. Not here: times.

use std::str::FromStr;
use std::sync::Barrier;
use std::time::Duration;
use std::{fmt, thread};

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::{Builder, Cluster, Random, System};
use adapm_transport::net::Kind;

use crate::measure::bench::figure::{BenchError, Plan};
use crate::measure::bench::rows::{
    Access, BATCH, Floats, LEN, Rows, first, link_name, pair, settle,
};

#[cfg(test)]
mod tests;

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

/// The action to count.
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
    /// Returns all operations of a plan, in the order of the groups that measure their times.
    #[must_use]
    pub fn all(plan: &Plan) -> Vec<Self> {
        let mut all = Vec::new();
        for len in LENS.into_iter().take(if plan.is_quick { 1 } else { LENS.len() }) {
            for keys in [1, BATCH] {
                all.extend(
                    Access::ALL.map(|access| Self::of(Action::Local(access), keys, len, None)),
                );
            }
        }
        all.push(Self::of(Action::Intent, BATCH, LEN, None));
        all.push(Self::of(Action::Clock, 1, LEN, None));
        // All frames are the same over all links; in a hurry one is enough to show what a link
        // adds.
        let kinds =
            plan.kinds.iter().copied().take(if plan.is_quick { 1 } else { plan.kinds.len() });
        for link in std::iter::once(None).chain(kinds.map(Some)) {
            for keys in [1, BATCH] {
                all.extend(
                    Access::ALL.map(|access| Self::of(Action::Remote(access), keys, LEN, link)),
                );
            }
            all.push(Self::of(Action::Relocation, BATCH, LEN, link));
            all.push(Self::of(Action::Replicas, BATCH, LEN, link));
        }
        all
    }

    /// Describes the operation in a few words.
    #[must_use]
    pub fn what(&self) -> String {
        let Self { action, keys, len, link } = *self;
        let plural = if keys == 1 { "" } else { "s" };
        match action {
            Action::Local(access) if keys == 1 => {
                format!("{}, single, {len} floats", access.name())
            }
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

    /// Names the unit that counts are divided by.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.action {
            Action::Clock | Action::Remote(_) => "call",
            Action::Local(_) | Action::Intent | Action::Relocation | Action::Replicas => "key",
        }
    }

    /// Returns true if the number of messages goes by time, and allocations with it: rounds are
    /// begun by a timer.
    #[must_use]
    pub const fn goes_by_time(&self) -> bool {
        matches!(self.action, Action::Replicas)
    }

    /// Returns the repetitions after which counts are those of the operation and not of what
    /// happens beside it.
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

/// The messages and bytes between nodes while an operation was done so many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Calls or keys, as [`Operation::unit`] says.
    pub units: u64,
    /// Messages, of all nodes.
    pub messages: u64,
    /// Their bytes: heads and values.
    pub bytes: u64,
}

impl Operation {
    /// Does it once to warm up and then so many times, with `mark` before and after these.
    ///
    /// # Errors
    ///
    /// What the machine refuses.
    pub fn perform(&self, times: u64, mark: &(dyn Fn() + Sync)) -> Result<Sent, BenchError> {
        let course = Course { times, mark };
        match self.action {
            Action::Local(access) => self.local(access, course),
            Action::Intent | Action::Clock => self.signals(course),
            Action::Remote(access) => self.remote(access, course),
            Action::Relocation => self.relocation(course),
            Action::Replicas => self.replicas(course),
        }
    }

    fn local(&self, access: Access, course: Course<'_>) -> Result<Sent, BenchError> {
        let builder = Builder::<f32>::new(self.layout(LOCAL_KEYS)).channels(1);
        let cluster = builder.initial(|_, value| value.fill(1.0)).build()?;
        let order = random_keys(LOCAL_KEYS, ACCESSES);
        let work = |mut worker: Floats| {
            let mut rows = Rows::new(&order, self.keys, self.len);
            course.count(&cluster, ACCESSES as u64, || rows.access(access, &mut worker)).map(Some)
        };
        first(cluster.run(work)?)
    }

    fn signals(&self, course: Course<'_>) -> Result<Sent, BenchError> {
        let cluster = Builder::<f32>::new(self.layout(LOCAL_KEYS)).nodes(2).channels(1).build()?;
        let order = random_keys(LOCAL_KEYS, ACCESSES);
        let near = keys_of(NodeId(0), LOCAL_KEYS, 1);
        // Windows so far ahead that none is acted on.
        let start = Clock(1_000_000_000);
        let work = |mut worker: Floats| {
            if worker.node() == NodeId(1) {
                return Ok(None);
            }
            let mut signal = || {
                if self.action == Action::Clock {
                    (0..ACCESSES).for_each(|_| _ = worker.advance_clock());
                    return Ok(());
                }
                let mut calls = order.chunks(self.keys);
                calls.try_for_each(|keys| worker.intent(keys, start..start + 1))?;
                // Is answered when the engine has taken all that was posted before.
                worker.localize(&near)
            };
            course.count(&cluster, ACCESSES as u64, &mut signal).map(Some)
        };
        first(cluster.run(work)?)
    }

    fn remote(&self, access: Access, course: Course<'_>) -> Result<Sent, BenchError> {
        let cluster = pair(self.layout(PAIR_KEYS), self.link)?.system(System::Classic).build()?;
        let far = keys_of(NodeId(1), PAIR_KEYS, self.keys);
        let work = |mut worker: Floats| {
            if worker.node() == NodeId(1) {
                return Ok(None);
            }
            let mut rows = Rows::new(&far, self.keys, self.len);
            course.count(&cluster, 1, || rows.access(access, &mut worker)).map(Some)
        };
        first(cluster.run(work)?)
    }

    /// One call after the other: how many of those under way at once share a message goes by time.
    fn relocation(&self, course: Course<'_>) -> Result<Sent, BenchError> {
        let cluster = pair(self.layout(PAIR_KEYS), self.link)?.system(System::Lapse).build()?;
        let keys: Vec<Key> = (0..PAIR_KEYS).map(Key).collect();
        let gate = Barrier::new(2);
        let work = |mut worker: Floats| {
            let node = worker.node();
            let mut to_and_fro = || {
                for turn in [NodeId(0), NodeId(1)] {
                    if turn == node {
                        keys.chunks(self.keys).try_for_each(|keys| worker.localize(keys))?;
                    }
                    gate.wait();
                }
                Ok(())
            };
            course.count_both(node, &gate, &cluster, &mut to_and_fro)
        };
        first(cluster.run(work)?)
    }

    fn replicas(&self, course: Course<'_>) -> Result<Sent, BenchError> {
        let cluster = pair(self.layout(PAIR_KEYS), self.link)?.build()?;
        let keys: Vec<Key> = (0..PAIR_KEYS).map(Key).collect();
        let update = vec![1.0; BATCH * self.len];
        let gate = Barrier::new(2);
        let work = |mut worker: Floats| {
            let node = worker.node();
            settle(&mut worker, &keys)?;
            let mut exchange = || {
                keys.chunks(self.keys).try_for_each(|keys| worker.push(keys, &update))?;
                gate.wait();
                worker.wait_sync()?;
                gate.wait();
                Ok(())
            };
            course.count_both(node, &gate, &cluster, &mut exchange)
        };
        first(cluster.run(work)?)
    }

    fn layout(&self, keys: u64) -> Layout {
        Layout::dense(&[(keys, self.len)]).expect("few keys, short values")
    }
}

/// The repetitions of an action, with a callback at start and end.
#[derive(Clone, Copy)]
struct Course<'a> {
    times: u64,
    mark: &'a (dyn Fn() + Sync),
}

impl Course<'_> {
    /// Warms up by one step, and counts what is sent by so many more, each of so many units.
    fn count(
        self,
        cluster: &Cluster<f32>,
        units: u64,
        mut step: impl FnMut() -> Result<(), OpError>,
    ) -> Result<Sent, OpError> {
        step()?;
        let before = at_rest(cluster);
        (self.mark)();
        for _ in 0..self.times {
            step()?;
        }
        (self.mark)();
        let after = at_rest(cluster);
        Ok(Sent {
            units: self.times * units,
            messages: after.0 - before.0,
            bytes: after.1 - before.1,
        })
    }

    /// Returns the same of steps that two workers do together, each with all keys; the first counts
    /// for both.
    fn count_both(
        self,
        node: NodeId,
        gate: &Barrier,
        cluster: &Cluster<f32>,
        step: &mut dyn FnMut() -> Result<(), OpError>,
    ) -> Result<Option<Sent>, OpError> {
        // Neither node does more before the other has found everything at rest.
        let mut done = 0;
        let mut in_step = || {
            if done == 1 {
                gate.wait();
            }
            done += 1;
            step()
        };
        let counted = if node == NodeId(0) {
            Some(self.count(cluster, 2 * PAIR_KEYS, in_step)?)
        } else {
            (0..=self.times).try_for_each(|_| in_step())?;
            None
        };
        // The wait keeps the two nodes' ends together: a node that left earlier would report it to
        // the other.
        gate.wait();
        Ok(counted)
    }
}

/// Messages and bytes sent, once nothing is sent any more.
fn at_rest(cluster: &Cluster<f32>) -> (u64, u64) {
    let sent = || {
        let stats = cluster.stats();
        (stats.messages_sent, stats.bytes_sent)
    };
    let (mut latest, mut quiet) = (sent(), 0);
    while quiet < QUIET {
        thread::sleep(LOOK);
        let now = sent();
        quiet = if now == latest { quiet + 1 } else { 0 };
        latest = now;
    }
    latest
}

fn random_keys(keys: u64, count: usize) -> Vec<Key> {
    let mut random = Random::new(1);
    (0..count).map(|_| Key(random.below(keys))).collect()
}

/// Keys whose home is this one of two nodes.
fn keys_of(node: NodeId, keys: u64, count: usize) -> Vec<Key> {
    (0..keys).map(Key).filter(|key| Layout::home(*key, 2) == node).take(count).collect()
}

/// Elements of local values.
const LENS: [usize; 2] = [25, 100];

/// Keys of a cluster whose keys are local, and of two nodes that exchange them.
const LOCAL_KEYS: u64 = 10_000;
const PAIR_KEYS: u64 = 4_000;

/// Keys or calls of a step.
const ACCESSES: usize = 10_000;

/// Looks in a row that must find nothing sent: together far longer than rounds are apart.
const QUIET: u32 = 10;
const LOOK: Duration = Duration::from_millis(2);
