//! Checkpoints of a run, and a run that goes on from one.
//!
//! ```text
//!   begin: who sees which folder, the first locks it | resume: read own rows, take decisions over
//!   train ... meet (schedule) ... write (adapm_runtime::checkpoint) ... meet ... | end: a last one
//! ```
//!
//! Workers meet at places in the data (`schedule`); there each says how far it is ([`Seat`]), the
//! first workers of all processes exchange that, and all copy their parameters if a checkpoint is
//! due. The parameters of the best epoch are a checkpoint of their own, written once, to which
//! others refer. The manifest has the record of the run (`record`).
//!
//! With the same workers a run goes on where it was: each loader begins at its worker's batch. With
//! others the epoch is gone through again, or left out, whichever is nearer.
//!
//! Where hosts have a folder each (`hosts`), a checkpoint is complete once it is so in all folders.
//! That is known at a meeting, where each process tells what is complete in its own. The newest of
//! all stays everywhere until a newer one is known to be: it is named by the saves that follow.

mod error;
mod folder;
mod hosts;
mod record;
mod schedule;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use adapm_runtime::checkpoint::{Keeps, Part, Place, Save, Saved, Writer};
use adapm_runtime::tables::Tables;

use crate::run::consistency::RunFingerprint;
use crate::run::error::TaskError;
use crate::run::observer::{Observer, Work};
use crate::run::peers::Peers;
use crate::run::queue::Round;
use crate::run::state::RunState;
use crate::run::task::{Evaluation, Task};

pub use error::ResumeError;
pub use folder::CheckpointFolder;
#[cfg(feature = "cli")]
pub(crate) use folder::host;
pub(crate) use folder::{CHECKPOINTS, Resumed};
use folder::{Opened, STEP};
use hosts::newest_everywhere;
pub(crate) use record::{Record, Seat};
pub(crate) use schedule::{Held, Meeting, Pace, Plan};

/// The checkpoints of a run, as the workers of one process write them.
pub(crate) struct Checkpointing {
    writer: Writer,
    tables: Tables,
    fingerprint: RunFingerprint,
    /// Of each node.
    workers: Vec<usize>,
    opened: Opened,
    shared: Mutex<Shared>,
}

/// What the workers of a process share between two barriers.
struct Shared {
    /// Places of the workers of this process.
    seats: Vec<Seat>,
    at_end: Vec<bool>,
    plan: Plan,
    /// What is to be saved now: of the best parameters, if they are new, and of all.
    saves: Option<(Option<Save>, Save)>,
    /// The best epoch whose parameters are saved.
    saved_best: Option<u32>,
    /// The step and the epoch of the last checkpoint, and when it was begun; the step at which this
    /// process began.
    last_step: (u64, u32),
    last: Instant,
    first_step: u64,
    /// Seconds of the last copy, and those that the last write took of each worker.
    pause: f64,
    writing: f64,
    /// When the last meeting was, and the batches of each worker before it.
    met: (Instant, Vec<u64>),
    /// When the running round began, if it began here.
    round: Option<Instant>,
    round_seconds: Vec<Option<f64>>,
    /// A save has failed since the last meeting.
    has_failed: bool,
    /// Saves that have failed since the run began, in any process.
    failures: u32,
    /// Where hosts have a folder each: the newest checkpoint that is complete in all, and the last
    /// one that was begun.
    everywhere: Option<String>,
    begun: Option<String>,
}

impl Checkpointing {
    /// Returns those of a run whose folder is open, with these tables.
    pub(crate) fn new(
        opened: Opened,
        tables: Tables,
        fingerprint: RunFingerprint,
        workers: &[usize],
        peers: &Peers<'_>,
    ) -> Self {
        let processes = peers.processes();
        let here = if processes > 1 { workers[peers.node()] } else { workers.iter().sum() };
        let place = Place { part: peers.node(), parts: processes, workers: here };
        let now = Instant::now();
        let shared = Shared {
            seats: vec![Seat::START; here],
            at_end: vec![false; here],
            plan: Plan::default(),
            saves: None,
            saved_best: opened.saved_best(),
            last_step: opened.step_and_epoch(),
            last: now,
            first_step: opened.step_and_epoch().0,
            pause: 0.0,
            writing: 0.0,
            met: (now, vec![0; here]),
            round: None,
            round_seconds: Vec::new(),
            has_failed: false,
            failures: opened.from().map_or(0, |(_, failures)| failures),
            everywhere: opened.from().map(|(name, _)| name.to_owned()),
            begun: None,
        };
        Self {
            writer: Writer::among(opened.path(), place, opened.here().to_vec()),
            tables,
            fingerprint,
            workers: workers.to_vec(),
            opened,
            shared: Mutex::new(shared),
        }
    }

    /// Notes the place of a worker of this process; `is_at_end`: it has no batch left in the round.
    pub(crate) fn post(&self, worker: usize, seat: Seat, is_at_end: bool) {
        let mut shared = self.shared();
        (shared.seats[worker], shared.at_end[worker]) = (seat, is_at_end);
    }

    /// Returns the first plan of a run that begins at this place.
    pub(crate) fn first_plan(&self, round: Round, batch: u64) -> Plan {
        Plan::first(round, batch, self.opened.interval())
    }

    /// Returns what was decided last: valid between the barriers that follow.
    pub(crate) fn plan(&self) -> Plan {
        self.shared().plan
    }

    /// Notes that the first worker begins a round.
    pub(crate) fn begin_round(&self) {
        self.shared().round = Some(Instant::now());
    }

    /// Notes that the first worker is done with the round of this number; `is_whole`: it was gone
    /// through from its first batch on.
    pub(crate) fn end_round(&self, index: u32, is_whole: bool) {
        let mut shared = self.shared();
        let Some(began) = shared.round.take().filter(|_| is_whole) else { return };
        let index = index as usize;
        if shared.round_seconds.len() <= index {
            shared.round_seconds.resize(index + 1, None);
        }
        shared.round_seconds[index] = Some(began.elapsed().as_secs_f64());
    }

    /// Decides at a meeting in a phase: called by the first worker of each process, between two
    /// barriers. `None`: the run ends, and a last checkpoint is written whatever time it is.
    ///
    /// # Errors
    ///
    /// If the run fails in any process.
    pub(crate) fn decide<T: Task>(
        &self,
        task: &T,
        state: &RunState<'_, T::Evaluation>,
        phase: Option<u64>,
    ) -> Result<(), TaskError> {
        self.shared().plan = Plan::default();
        self.tell(state.observer);
        let own = {
            let shared = self.shared();
            let is_at_end = shared.at_end.iter().all(|at_end| *at_end);
            let is_cut = phase.is_some_and(|phase| state.is_cut(phase));
            (shared.seats.clone(), shared.pace(self, is_cut), is_at_end)
        };
        let all = state.peers.share(Ok(own))?;
        let seats: Vec<Seat> = all.iter().flat_map(|(seats, ..)| seats).copied().collect();
        let paces: Vec<Pace> = all.iter().map(|(_, pace, _)| pace.clone()).collect();
        let mut shared = self.shared();
        shared.has_failed = false;
        if paces.iter().any(|pace| pace.has_failed) {
            // Whatever is missing is written again, by all.
            (shared.saved_best, shared.last_step) = (None, (u64::MAX, 0));
            shared.failures += 1;
        }
        let is_busy = paces.iter().any(|pace| pace.is_busy);
        if !is_busy {
            // What is complete may go again as long as a write may fail.
            let newest = shared.note_complete(paces.iter().filter_map(|p| p.complete.as_deref()));
            // If that fails, the next save says it once more.
            let _ = newest.map(|name| self.writer.complete(name));
        }
        let furthest = seats.iter().max_by_key(|seat| (seat.epoch, seat.index, seat.batches));
        let furthest = furthest.copied().unwrap_or(Seat::START);
        let step = shared.first_step + seats.iter().map(|seat| seat.total).sum::<u64>();
        let epoch = seats.iter().map(|seat| seat.epoch).min().unwrap_or(1);
        let held = Held {
            round: Round { epoch: furthest.epoch, index: furthest.index },
            batch: furthest.batches,
            is_at_end: all.iter().all(|(.., at_end)| *at_end),
            rounds: task.rounds(),
            has_changed: (step, epoch) != shared.last_step,
        };
        shared.plan = match phase {
            Some(_) => Plan::of(&paces, held),
            None => Plan { writes: held.has_changed, next: None },
        };
        if shared.plan.writes {
            let verdicts = state.verdicts();
            let mut record = Record::of(
                &self.fingerprint,
                &self.workers,
                task,
                (seats.clone(), step),
                &verdicts,
            );
            drop(verdicts);
            self.opened.start().clone_into(&mut record.start);
            record.failures = shared.failures;
            record.hosts = self.opened.hosts_apart().map_or(Vec::new(), <[String]>::to_vec);
            let chosen = record.chosen;
            let saves = self.saves(&shared, record, (is_busy, phase.is_none()));
            shared.saved_best = chosen;
            shared.begun = Some(saves.1.name.clone());
            (shared.last_step, shared.last) = ((step, epoch), Instant::now());
            shared.saves = Some(saves);
        }
        let totals = shared.seats.iter().map(|seat| seat.total).collect();
        shared.met = (Instant::now(), totals);
        Ok(())
    }

    /// Returns what is to be saved with this record; `is_busy`: the one before is being written,
    /// `is_awaited`: workers wait for this one.
    fn saves(
        &self,
        shared: &Shared,
        mut record: Record,
        (is_busy, is_awaited): (bool, bool),
    ) -> (Option<Save>, Save) {
        let best_name = |epoch: u32| format!("best-{epoch:06}");
        let is_new = record.chosen.is_some() && record.chosen != shared.saved_best;
        record.best_checkpoint = record.chosen.map(best_name);
        let best = record.chosen.filter(|_| is_new).map(|epoch| Save {
            name: best_name(epoch),
            tables: self.tables.parameters(),
            needs: Vec::new(),
            program: serde_json::json!({"epoch": epoch, "valid": record.best}).to_string(),
            keeps: Keeps::All,
            is_awaited,
        });
        let is_apart = self.opened.hosts_apart().is_some();
        // What is complete in one folder and not in another is of no use any more, unless it is
        // being written.
        let only = || Keeps::Only {
            latest: shared.everywhere.clone(),
            others: shared.begun.clone().into_iter().filter(|_| is_busy).collect(),
        };
        // In the order of time as text, too.
        let mut name = format!("{STEP}{:010}-e{:04}", record.step, record.epoch);
        if is_apart && record.failures > 0 {
            // One of the same name may be complete in some folders, with other keys in its files.
            name += &format!("-r{:04}", record.failures);
        }
        let all = Save {
            name,
            tables: self.tables.clone(),
            needs: record.best_checkpoint.iter().cloned().collect(),
            program: serde_json::to_string(&record).unwrap_or_default(),
            keeps: if is_apart { only() } else { Keeps::Latest },
            is_awaited,
        };
        (best, all)
    }

    /// Returns true if the copy of the best parameters is to be saved, too: between the barriers.
    pub(crate) fn saves_best(&self) -> bool {
        self.shared().saves.as_ref().is_some_and(|(best, _)| best.is_some())
    }

    /// Returns memory for a copy of a worker of this process.
    pub(crate) fn room(&self, worker: usize) -> Vec<f32> {
        self.writer.room(worker)
    }

    /// Gives the copies of a worker of this process to the writer, after all have copied.
    pub(crate) fn submit(&self, worker: usize, best: Option<Part>, all: Part) {
        let Some((best_save, save)) = self.shared().saves.clone() else { return };
        if let (Some(save), Some(best)) = (best_save, best) {
            self.writer.submit(worker, &save, best);
        }
        self.writer.submit(worker, &save, all);
    }

    /// Notes that all have copied, which took so many seconds: by the first worker.
    pub(crate) fn note_pause(&self, seconds: f64) {
        self.shared().pause = seconds;
    }

    /// Waits until nothing is being written here, or another process is lost, whose part would not
    /// come. A run that was `stopped` then does not wait longer than others wait for it.
    pub(crate) fn wait<E: Evaluation>(&self, state: &RunState<'_, E>, stopped: Option<Instant>) {
        let group = state.peers.group();
        let most = group.map_or(DEAD_AFTER, |group| group.dead_after()).mul_f64(STOPPED_SHARE);
        let is_lost = || group.is_some_and(|group| group.failure().is_some());
        while self.writer.is_busy() && !is_lost() {
            if stopped.is_some_and(|stopped| stopped.elapsed() >= most) {
                break;
            }
            state.observer.working(Work::Checkpointing, 1, 1);
            thread::sleep(LOOK);
        }
        self.tell(state.observer);
    }

    /// Notes which checkpoint is complete in all folders, once nothing is written any more: by the
    /// first worker of each process.
    ///
    /// # Errors
    ///
    /// If the run fails in any process.
    pub(crate) fn conclude<F>(
        &self,
        peers: &Peers<'_>,
        observer: &dyn Observer<F>,
    ) -> Result<(), TaskError> {
        let lists = peers.share(Ok(self.complete()))?;
        let mut shared = self.shared();
        shared.note_complete(lists.iter().filter_map(Option::as_deref));
        let pause = shared.pause;
        if let Some(name) =
            shared.everywhere.clone().filter(|_| self.opened.hosts_apart().is_some())
            && let Err(error) = self.writer.complete(&name)
        {
            drop(shared);
            observer.checkpointed(&Err(error), pause);
        }
        Ok(())
    }

    /// Returns what is complete in the folder, if hosts have a folder each and this process is the
    /// first there, which commits for the others.
    fn complete(&self) -> Option<Vec<String>> {
        self.opened.hosts_apart().filter(|_| self.opened.leads()).map(|_| self.opened.complete())
    }

    /// Tells how the last save ended, if one has.
    fn tell<F>(&self, observer: &dyn Observer<F>) {
        let is_busy = self.writer.is_busy();
        let Some(outcome) = self.writer.take_outcome().filter(|_| !is_busy) else { return };
        let mut shared = self.shared();
        match &outcome {
            // It takes turns with workers, where all processors are busy.
            Ok(Saved { processor_seconds, .. }) => {
                shared.writing = *processor_seconds / shared.seats.len() as f64;
            }
            Err(_) => {
                shared.has_failed = true;
                // A disk that is full is not tried all the time.
                shared.writing += FAILED_COST;
            }
        }
        let pause = shared.pause;
        drop(shared);
        observer.checkpointed(&outcome, pause);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Batches of the worker that has done most.
    fn batches(&self) -> u64 {
        self.seats.iter().map(|seat| seat.total).max().unwrap_or(0)
    }

    fn pace(&self, of: &Checkpointing, is_cut: bool) -> Pace {
        let (met, before) = &self.met;
        let since = self.seats.iter().zip(before).map(|(seat, before)| seat.total - before);
        let (seconds, batches) = (met.elapsed().as_secs_f64(), since.max().unwrap_or(0));
        Pace {
            since: self.last.elapsed().as_secs_f64(),
            cost: self.pause + self.writing,
            interval: of.opened.interval(),
            rate: if seconds > 0.0 { batches as f64 / seconds } else { 0.0 },
            batches: self.batches(),
            round_seconds: self.round_seconds.clone(),
            is_busy: of.writer.is_busy(),
            has_failed: self.has_failed,
            is_cut,
            complete: of.complete(),
        }
    }

    /// Notes the newest checkpoint that is complete in all folders. Returns it if it is another one
    /// than before.
    fn note_complete<'a>(&mut self, lists: impl Iterator<Item = &'a [String]>) -> Option<&str> {
        let newest = newest_everywhere(lists).map(str::to_owned);
        let is_newer = newest > self.everywhere;
        if is_newer {
            self.everywhere = newest;
        }
        self.everywhere.as_deref().filter(|_| is_newer)
    }
}

/// How often it is looked whether a last checkpoint is written.
const LOOK: Duration = Duration::from_millis(20);
/// The dead time of a run in one process.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// The share of the dead time for which a run that was stopped waits.
const STOPPED_SHARE: f64 = 0.8;
/// Seconds that a checkpoint which could not be written counts as in addition.
const FAILED_COST: f64 = 0.5;
