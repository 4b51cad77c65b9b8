//! The folder of a run's checkpoints: whose it is, and what is in it to go on from.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapm_core::Key;
use adapm_runtime::checkpoint::{Checkpoint, Owner, Restored};
use adapm_runtime::tables::Tables;

use super::error::ResumeError;
use super::record::{Record, Seat, State, order_of};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::observer::Resumption;
use crate::run::peers::Peers;
use crate::run::queue::Round;
use crate::run::task::{FiguresOf, Task};

/// Where a run has its checkpoints, and whether it goes on from the last one there.
#[derive(Clone, Debug)]
pub struct CheckpointFolder {
    /// The folder of the run; checkpoints are in a folder of their own in it.
    run: PathBuf,
    start: Start,
    /// Seconds between two checkpoints, if they are not to follow from what one costs.
    interval: Option<f64>,
}

/// How a run begins. Where nodes are processes, node 0's choice counts.
#[derive(Clone, Debug)]
enum Start {
    /// From the beginning.
    New,
    /// From the last checkpoint, or that of a name.
    Resume(Option<String>),
    /// From the last checkpoint, if there is one.
    Either,
}

/// A folder of checkpoints that is this run's.
pub(crate) struct Opened {
    path: PathBuf,
    /// Held as long as the run; on node 0.
    _owner: Option<Owner>,
    interval: Option<f64>,
    found: Option<(Checkpoint, Record)>,
}

/// What a run goes on from.
pub(crate) struct Resumed<F> {
    checkpoint: PathBuf,
    /// All parameters that are at home in this process, until they are taken.
    rows: Mutex<Option<Restored>>,
    /// Those of the best epoch, if there is one, for each worker here that has not taken them.
    best: Mutex<Vec<Restored>>,
    pub(crate) state: State<F>,
    pub(crate) chosen: Option<u32>,
    /// True if the workers are others, and have no places in the data.
    has_others: bool,
    /// Examples of the epoch that are done again, or left out.
    again: u64,
    left_out: u64,
}

impl CheckpointFolder {
    fn of(run: &Path, start: Start) -> Self {
        let interval = std::env::var(INTERVAL).ok().and_then(|text| text.parse().ok());
        Self { run: run.to_path_buf(), start, interval }
    }

    /// Returns the folder of checkpoints in that of a run that begins.
    #[must_use]
    pub fn new(run: &Path) -> Self {
        Self::of(run, Start::New)
    }

    /// Returns that of a run that goes on from its last checkpoint, or from the one of a name.
    #[must_use]
    pub fn resumed(run: &Path, name: Option<&str>) -> Self {
        Self::of(run, Start::Resume(name.map(str::to_owned)))
    }

    /// Returns that of a run that goes on if it has a checkpoint, and begins if it has none.
    #[must_use]
    pub fn begun_or_resumed(run: &Path) -> Self {
        Self::of(run, Start::Either)
    }

    /// Returns the same with so many seconds between two checkpoints.
    #[cfg(test)]
    pub(crate) fn every(self, seconds: f64) -> Self {
        Self { interval: Some(seconds), ..self }
    }

    /// Opens the folder: on node 0 locks it and makes it ready, elsewhere checks that it is the
    /// same one. Collective.
    ///
    /// # Errors
    ///
    /// A folder that another run uses, that cannot be written, or that is not shared; a run that
    /// cannot go on there.
    pub(crate) fn open(
        &self,
        peers: &Peers<'_>,
        fingerprint: &RunFingerprint,
    ) -> Result<Opened, TaskError> {
        let path = self.run.join(CHECKPOINTS);
        let mut taken = None;
        let told = if peers.node() == 0 {
            let (owner, from) = self.take(&path, fingerprint)?;
            let told = (owner.sign().to_owned(), from.map(|from| from.name().to_owned()));
            taken = Some(owner);
            Some(told)
        } else {
            None
        };
        let (sign, name) = peers.share(Ok(told))?.into_iter().flatten().next().unwrap_or_default();
        let is_seen = if Owner::is_at(&path, &sign) {
            Ok(())
        } else {
            Err(ResumeError::NotShared(path.clone(), host()))
        };
        let find = |name: &String| self.find(&path.join(name), fingerprint);
        let found = is_seen.and_then(|()| name.as_ref().map(find).transpose());
        // All go on from the same one, or all end.
        peers.share(found.as_ref().map(drop).map_err(|error| TaskError::from(error.clone())))?;
        Ok(Opened { path, _owner: taken, interval: self.interval, found: found? })
    }

    /// Takes the folder for this run; returns the checkpoint to go on from.
    fn take(
        &self,
        path: &Path,
        fingerprint: &RunFingerprint,
    ) -> Result<(Owner, Option<Checkpoint>), ResumeError> {
        let latest = || Checkpoint::latest(path);
        let from = match &self.start {
            Start::New => None,
            Start::Either => latest()?,
            Start::Resume(Some(name)) => Some(Checkpoint::open(&path.join(name))?),
            Start::Resume(None) => {
                Some(latest()?.ok_or_else(|| ResumeError::None(self.run.clone()))?)
            }
        };
        // What is refused changes nothing.
        from.as_ref().map_or(Ok(()), |from| self.find(from.folder(), fingerprint).map(drop))?;
        Ok((Owner::take(path, from.as_ref())?, from))
    }

    /// Opens a checkpoint to go on from, which has to be one of this run.
    fn find(
        &self,
        path: &Path,
        fingerprint: &RunFingerprint,
    ) -> Result<(Checkpoint, Record), ResumeError> {
        let found = Checkpoint::open(path)?;
        let record: Record = serde_json::from_str(&found.program())
            .map_err(|_| ResumeError::Version(found.folder().to_path_buf()))?;
        self.check(&record, fingerprint)?;
        Ok((found, record))
    }

    /// Checks that this is the run that the record is of.
    fn check(&self, record: &Record, fingerprint: &RunFingerprint) -> Result<(), ResumeError> {
        let other = |what: &str, there: &str, here: &str| {
            let [what, there, here] = [what, there, here].map(str::to_owned);
            Err(ResumeError::Other { path: self.run.clone(), what, there, here })
        };
        if record.task != fingerprint.task() {
            return other("task", &record.task, fingerprint.task());
        }
        let before = |name: &str| record.settings.iter().find(|(other, _)| other == name);
        for (name, here) in fingerprint.settings() {
            let there = before(name).map_or("none", |(_, there)| there);
            if there != here && !MAY_CHANGE.contains(&name.as_str()) {
                return other(&format!("--{}", name.replace('_', "-")), there, here);
            }
        }
        if record.data != fingerprint.data() {
            return other("data", &record.data, fingerprint.data());
        }
        Ok(())
    }
}

impl Opened {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Seconds between checkpoints, if a test has set them.
    pub(crate) fn interval(&self) -> Option<f64> {
        self.interval
    }

    /// Returns the epoch of the best parameters that are saved.
    pub(crate) fn saved_best(&self) -> Option<u32> {
        self.found.as_ref().and_then(|(_, record)| record.chosen)
    }

    /// Returns the step and the epoch of the checkpoint; those of a run that begins.
    pub(crate) fn step_and_epoch(&self) -> (u64, u32) {
        self.found.as_ref().map_or((0, 1), |(_, record)| (record.step, record.epoch))
    }

    /// Reads what this process goes on from; `None` if the run begins. `homes`: of keys, if they
    /// are not by hash.
    ///
    /// # Errors
    ///
    /// A checkpoint that is damaged, or of other tables.
    pub(crate) fn read<T: Task>(
        &self,
        task: &T,
        (workers, fingerprint): (&[usize], &RunFingerprint),
        peers: &Peers<'_>,
        homes: Option<&Arc<[u16]>>,
    ) -> Result<Option<Resumed<FiguresOf<T>>>, ResumeError> {
        let Some((found, record)) = &self.found else { return Ok(None) };
        let version = || ResumeError::Version(found.folder().to_path_buf());
        let mut state = record.state::<T::Evaluation>().ok_or_else(version)?;
        let here = (peers.node(), peers.processes());
        let is_own = |key: Key| {
            let home = homes.and_then(|homes| homes.get(usize::try_from(key.0).ok()?));
            home.is_none_or(|home| usize::from(*home) == here.0)
        };
        // Where homes are by hash, what is at home here is one slice.
        let of_tables = |found: &Checkpoint, tables: &Tables, by_hash: bool| {
            let (at, keep): (_, &(dyn Fn(Key) -> bool + Sync)) =
                if by_hash || here.1 == 1 { (here, &|_| true) } else { ((0, 1), &is_own) };
            found.read(tables, at, keep)
        };
        let tables = task.tables();
        let rows = Mutex::new(Some(of_tables(found, &tables, homes.is_none())?));
        let best = record.best_checkpoint.as_ref().map(|name| {
            let best = Checkpoint::open(&self.path.join(name))?;
            of_tables(&best, &tables.parameters(), true)
        });
        let workers_here = if here.1 > 1 { workers[here.0] } else { workers.iter().sum() };
        let best = best.transpose()?.map_or(Vec::new(), |best| vec![best; workers_here]);
        let has_others = record.order != order_of(fingerprint, workers);
        let all: usize = workers.iter().sum();
        let (mut again, mut left_out) = (0, 0);
        if has_others && record.done >= record.examples && record.done > 0 {
            state.end_seats(record.epoch, all, task);
        } else if has_others && 2 * record.done >= record.examples && record.done > 0 {
            left_out = record.examples - record.done;
            state.end_epoch(record.epoch, task.judged().is_some());
            state.seats = vec![Seat::START.at(record.epoch + 1, 0); all];
        } else if has_others {
            again = record.done;
            state.seats = vec![Seat::START.at(record.epoch, 0); all];
        }
        // They are counted from here on.
        state.seats.iter_mut().for_each(|seat| seat.total = 0);
        let (chosen, checkpoint) = (record.chosen, found.folder().to_path_buf());
        let best = Mutex::new(best);
        Ok(Some(Resumed { checkpoint, rows, best, state, chosen, has_others, again, left_out }))
    }
}

impl<F> Resumed<F> {
    /// Takes the parameters, which are needed once.
    pub(crate) fn take_rows(&self) -> Option<Restored> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the parameters of the best epoch, by each worker once; the last frees their memory.
    pub(crate) fn take_best(&self) -> Option<Restored> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns the place where a worker begins, by its number.
    pub(crate) fn seat(&self, number: usize) -> Seat {
        self.state.seats[number]
    }

    /// Returns what is told of it.
    pub(crate) fn told(&self) -> Resumption {
        let name = self.checkpoint.file_name().unwrap_or_default();
        Resumption {
            checkpoint: name.to_string_lossy().into_owned(),
            epoch: self.first().epoch,
            done: self.state.seats.iter().map(|seat| seat.done).sum(),
            has_others: self.has_others,
            again: self.again,
            left_out: self.left_out,
        }
    }

    /// Returns the error of a record that the task does not know.
    pub(crate) fn unknown(&self) -> ResumeError {
        ResumeError::Version(self.checkpoint.clone())
    }

    /// Returns the time of training in the epoch that goes on.
    pub(crate) fn earlier(&self) -> Duration {
        let seconds = if self.has_others { 0.0 } else { self.state.seconds };
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Returns true if no worker has done anything of the epoch that goes on.
    pub(crate) fn begins_epoch(&self) -> bool {
        self.state.seats.iter().all(|seat| (seat.index, seat.batches) == (0, 0))
    }

    /// Returns true if an epoch has ended before all of it was done.
    pub(crate) fn has_left_out(&self) -> bool {
        self.left_out > 0
    }

    /// Returns the first round that any worker has to go through.
    pub(crate) fn first(&self) -> Round {
        let rounds = self.state.seats.iter().map(|seat| (seat.epoch, seat.index));
        let (epoch, index) = rounds.min().unwrap_or((1, 0));
        Round { epoch, index }
    }
}

/// Settings that a run which goes on may have otherwise: none of them says what the parameters are
/// of.
const MAY_CHANGE: [&str; 21] = [
    "program",
    "system",
    "nodes",
    "workers",
    "epochs",
    "epochs of the run",
    "epochs between evaluations",
    "learning_rate",
    "no_eval",
    "valid_every",
    "ahead",
    "inter",
    "patience",
    "rounds_per_second",
    "bound",
    "clock_every",
    "localize_ahead",
    "replicate_factor",
    "replicate",
    "replicate_keys",
    "homes",
];

/// The folder in that of a run.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// The variable that sets the seconds between two checkpoints, for tests.
const INTERVAL: &str = "ADAPM_CHECKPOINT_SECONDS";

/// Returns the name of this host.
fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
