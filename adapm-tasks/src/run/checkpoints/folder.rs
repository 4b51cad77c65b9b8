//! The folder of a run's checkpoints: whose it is, and what is in it to go on from.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adapm_core::Key;
use adapm_runtime::checkpoint::{Checkpoint, CheckpointError, Owner, Restored, Sign};
use adapm_runtime::tables::{Table, Tables};
use serde::{Deserialize, Serialize};

use super::error::ResumeError;
use super::hosts::{Found, Told, lacking, newest_of_all};
use super::record::{Record, Seat, State, order_of};
use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::observer::Resumption;
use crate::run::peers::Peers;
use crate::run::queue::Round;
use crate::run::task::{FiguresOf, Task};
use crate::run::topology::is_here;

/// Where a run has its checkpoints, and whether it goes on from the last one there.
#[derive(Clone, Debug)]
pub struct CheckpointFolder {
    /// The folder of the run; checkpoints are in a folder of their own in it.
    run: PathBuf,
    start: Start,
    /// Each host may have one of this name for itself.
    is_apart: bool,
    /// Seconds between two checkpoints, if they are not to follow from what one costs.
    interval: Option<f64>,
}

/// How a run begins. Where nodes are processes, node 0's choice counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// This process, and those that share the folder with it, ascending.
    process: usize,
    here: Vec<usize>,
    /// The host of each process.
    hosts: Vec<String>,
    /// What distinguishes this start of the run from others.
    start: String,
    /// Held as long as the run, by the first of them.
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
    /// All that this process has read, for each worker here that has not handed its part over; and
    /// true if workers do that.
    elsewhere: Mutex<Vec<Restored>>,
    is_apart: bool,
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
        Self { run: run.to_path_buf(), start, is_apart: false, interval }
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

    /// Returns the same where each host may have a folder of this name for itself.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Checks that a checkpoint can have all rows of these tables.
    pub(crate) fn check_rows(&self, tables: &Tables) -> Result<(), ResumeError> {
        Ok(Checkpoint::check_rows(&self.run.join(CHECKPOINTS), tables)?)
    }

    /// Opens the folder: finds out which processes share it, of which the first locks it and makes
    /// it ready, and where all go on. Collective.
    ///
    /// # Errors
    ///
    /// A folder that another run uses, that cannot be written, or that is not shared where it has
    /// to be; a run that cannot go on there.
    pub(crate) fn open(
        &self,
        peers: &Peers<'_>,
        (workers, fingerprint): (&[usize], &RunFingerprint),
    ) -> Result<Opened, TaskError> {
        let (path, node) = (self.run.join(CHECKPOINTS), peers.node());
        let makes = !matches!(self.start, Start::Resume(_));
        let sign = Sign::leave(&path, node, makes).map_err(ResumeError::from);
        let name = |sign: &Option<Sign>| sign.as_ref().map(|sign| sign.name().to_owned());
        let own = sign.as_ref().map(|sign| (name(sign), (self.start.clone(), self.is_apart)));
        let own = own.map_err(|error| error.clone().into());
        let (signs, of_each): (Vec<_>, Vec<_>) = peers.share(own)?.into_iter().unzip();
        let (start, is_apart) = of_each.into_iter().next().expect("each has told something");
        let of_first = &Self { start, is_apart, ..self.clone() };
        let is_seen =
            |process: &usize| signs[*process].as_ref().is_some_and(|sign| Sign::is_in(&path, sign));
        let here: Vec<usize> = (0..signs.len()).filter(is_seen).collect();
        let told = of_first.look(&path, node, (here.clone(), signs.len()));
        let all = peers.share(told.map_err(TaskError::from))?;
        let find = |name: &String| -> Result<_, ResumeError> {
            let (found, record) = self.find(&path.join(name), fingerprint)?;
            check_rows(&found, &all)?;
            Ok((found, record))
        };
        let from = of_first.choose(&all, node, workers);
        let found = from.and_then(|name| name.as_ref().map(find).transpose());
        // What is refused changes nothing: all go on from the same one, or all end.
        peers.share(found.as_ref().map(drop).map_err(|error| error.clone().into()))?;
        let found = found?;
        let leads = here.first() == Some(&node);
        let owner = leads.then(|| Owner::take(&path)).transpose().map_err(ResumeError::from);
        peers.share(owner.as_ref().map(drop).map_err(|error| error.clone().into()))?;
        let (owner, from) = (owner?, found.as_ref().map(|(found, _)| found));
        let begun = owner.as_ref().map_or(Ok(()), |owner| owner.begin(from));
        peers.share(begun.map_err(|error| ResumeError::from(error).into()))?;
        let start = signs.into_iter().flatten().next().unwrap_or_default();
        let hosts = all.into_iter().map(|told| told.host).collect();
        let (interval, _owner) = (self.interval, owner);
        Ok(Opened { path, process: node, here, hosts, start, _owner, interval, found })
    }

    /// Looks what there is to go on from in the folder of a process, which some of so many share.
    fn look(
        &self,
        path: &Path,
        node: usize,
        (seen, processes): (Vec<usize>, usize),
    ) -> Result<Told, ResumeError> {
        let of_all = seen.len() == processes;
        let has_latest = !matches!(Checkpoint::latest(path), Ok(None));
        let all: Vec<Checkpoint> = match &self.start {
            Start::New => Vec::new(),
            Start::Resume(Some(name)) if !of_all && !path.join(name).exists() => Vec::new(),
            Start::Resume(Some(name)) => vec![Checkpoint::open(&path.join(name))?],
            Start::Either | Start::Resume(None) if of_all => {
                Checkpoint::latest(path)?.into_iter().collect()
            }
            // Where folders differ, the latest one of a folder need not be complete in all.
            Start::Either | Start::Resume(None) => {
                let names = complete_in(path).map_err(|error| CheckpointError::of(path, &error))?;
                let open = |name: String| Checkpoint::open(&path.join(name));
                names.into_iter().map(open).collect::<Result<_, _>>()?
            }
        };
        let found = all.iter().map(|found| Ok(Found::of(found, &Self::record_of(found)?, node)));
        Ok(Told {
            host: host(),
            seen,
            has_latest,
            found: found.collect::<Result<_, ResumeError>>()?,
        })
    }

    /// Chooses the checkpoint to go on from, by what all processes have told: the same in all.
    fn choose(
        &self,
        all: &[Told],
        node: usize,
        workers: &[usize],
    ) -> Result<Option<String>, ResumeError> {
        let (is_one, is_apart) = (Told::is_one_folder(all), Told::is_apart(all));
        let resumes = matches!(self.start, Start::Resume(_));
        if resumes && !is_apart && (all[0].seen.is_empty() || Told::have_none(all)) {
            return Err(ResumeError::None(self.run.clone()));
        }
        let other = || ResumeError::NotShared(self.run.join(CHECKPOINTS), host());
        if !is_one && !is_apart && !self.is_apart {
            // Who sees not what the first has written is named; else all are.
            let is_blind = |told: &Told| !told.seen.contains(&0);
            let is_named = is_blind(&all[node]) || !all.iter().any(is_blind);
            return if is_named { Err(other()) } else { Ok(None) };
        }
        if !Told::are_folders(all, resumes) {
            return Err(other());
        }
        let found = if is_one && !is_apart {
            all[0].newest()
        } else {
            match newest_of_all(&self.run, all, workers) {
                // Nothing was ever complete in all folders.
                Err(_) if matches!(self.start, Start::Either) && !Told::has_latest(all) => None,
                newest => newest?,
            }
        };
        match &self.start {
            Start::Resume(_) if found.is_none() => Err(ResumeError::None(self.run.clone())),
            _ => Ok(found),
        }
    }

    /// Opens a checkpoint to go on from, which has to be one of this run.
    fn find(
        &self,
        path: &Path,
        fingerprint: &RunFingerprint,
    ) -> Result<(Checkpoint, Record), ResumeError> {
        let found = Checkpoint::open(path)?;
        let record = Self::record_of(&found)?;
        self.check(&record, fingerprint)?;
        Ok((found, record))
    }

    fn record_of(found: &Checkpoint) -> Result<Record, ResumeError> {
        serde_json::from_str(&found.program())
            .map_err(|_| ResumeError::Version(found.folder().to_path_buf()))
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

    /// Returns the processes that share the folder, ascending.
    pub(crate) fn here(&self) -> &[usize] {
        &self.here
    }

    /// Returns true if this process is the first of them.
    pub(crate) fn leads(&self) -> bool {
        self.here.first() == Some(&self.process)
    }

    /// Returns the host of each process, if not all share one folder.
    pub(crate) fn hosts_apart(&self) -> Option<&[String]> {
        (self.here.len() < self.hosts.len()).then_some(&self.hosts)
    }

    /// Returns what distinguishes this start of the run from others.
    pub(crate) fn start(&self) -> &str {
        &self.start
    }

    /// Returns the name of the checkpoint gone on from, and how many could not be written before.
    pub(crate) fn from(&self) -> Option<(&str, u32)> {
        self.found.as_ref().map(|(found, record)| (found.name(), record.failures))
    }

    /// Returns the checkpoints of the run that are complete in the folder.
    pub(crate) fn complete(&self) -> Vec<String> {
        complete_in(&self.path).unwrap_or_default()
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
    /// A checkpoint that is damaged, of other tables, or without all of the best parameters.
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
        // Where homes are by hash, what is at home here is one slice. Of folders apart each process
        // has the file that it wrote itself, with keys that have their home elsewhere.
        let is_apart = found.is_apart();
        let of_tables = |found: &Checkpoint, tables: &Tables, by_hash: bool| {
            if is_apart {
                return found.read_part(here.0, tables, &|_| true);
            }
            let (at, keep): (_, &(dyn Fn(Key) -> bool + Sync)) =
                if by_hash || here.1 == 1 { (here, &|_| true) } else { ((0, 1), &is_own) };
            found.read(tables, at, keep)
        };
        let tables = task.tables();
        let rows = of_tables(found, &tables, homes.is_none())?;
        let best = record.best_checkpoint.as_ref().map(|name| {
            let best = Checkpoint::open(&self.path.join(name))?;
            let rows = of_tables(&best, &tables.parameters(), true)?;
            check_best(best.folder(), &rows, &tables, here).map(|()| rows)
        });
        let workers_here = if here.1 > 1 { workers[here.0] } else { workers.iter().sum() };
        let best = best.transpose()?.map_or(Vec::new(), |best| vec![best; workers_here]);
        let elsewhere = if is_apart { vec![rows.clone(); workers_here] } else { Vec::new() };
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
        let [best, elsewhere] = [best, elsewhere].map(Mutex::new);
        Ok(Some(Resumed {
            checkpoint,
            rows: Mutex::new(Some(rows)),
            best,
            elsewhere,
            is_apart,
            state,
            chosen,
            has_others,
            again,
            left_out,
        }))
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

    /// Takes the parameters of which this process has some that have their home elsewhere, by each
    /// worker once; the last frees their memory.
    pub(crate) fn take_elsewhere(&self) -> Option<Restored> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns true if workers hand parameters over before they train: in all processes.
    pub(crate) fn hands_over(&self) -> bool {
        self.is_apart
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

/// Checks that the files of all processes together have all rows of a checkpoint, if hosts have a
/// folder each.
fn check_rows(found: &Checkpoint, all: &[Told]) -> Result<(), ResumeError> {
    let tables = found.tables().as_slice();
    let rows: Vec<u64> = tables.iter().map(Table::rows).collect();
    let lacking = if found.is_apart() { lacking(all, found.name(), &rows) } else { None };
    lacking.map_or(Ok(()), |(at, found_rows)| {
        Err(ResumeError::Rows {
            path: found.folder().to_path_buf(),
            table: tables[at].name().to_owned(),
            found: found_rows,
            rows: rows[at],
        })
    })
}

/// Checks that the best parameters that a process has read are all that its workers take: those of
/// keys that have their home in it, by hash.
fn check_best(
    path: &Path,
    best: &Restored,
    tables: &Tables,
    (process, processes): (usize, usize),
) -> Result<(), ResumeError> {
    let mut own = (0..tables.keys()).map(Key).filter(|key| is_here(*key, process, processes));
    let missing = own.find(|key| !best.has(*key)).and_then(|key| tables.locate(key));
    missing.map_or(Ok(()), |(at, row)| {
        let table = tables.as_slice()[at].name().to_owned();
        Err(ResumeError::BestLacks { path: path.to_path_buf(), table, row })
    })
}

/// Returns the names of the checkpoints of a run that are complete in a folder; none if it cannot
/// be read.
fn complete_in(path: &Path) -> io::Result<Vec<String>> {
    let found = match Checkpoint::list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let names = found.iter().filter_map(|path| path.file_name()?.to_str());
    Ok(names.filter(|name| name.starts_with(STEP)).map(str::to_owned).collect())
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

/// What the names of checkpoints begin with that a run goes on from.
pub(super) const STEP: &str = "step-";
/// The folder in that of a run.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// The variable that sets the seconds between two checkpoints, for tests.
const INTERVAL: &str = "ADAPM_CHECKPOINT_SECONDS";

/// Returns the name of this host.
pub(crate) fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
