//! The thread of a process that writes checkpoints while training goes on.
//!
//! Parts of a cluster meet in the folder alone: each leaves a report beside its file, and the first
//! of those that see the folder waits for all of them, writes the manifest and commits. A process
//! that dies in between leaves a `.partial`, which the next start removes.
//!
//! Where parts are in several folders, nobody here knows what is complete in the others: a save
//! says what stays ([`Keeps::Only`]), as its program has learnt it.

use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use adapm_transport::threads;

use super::disk::{Disk, Os};
use super::error::{CheckpointError, Fault};
use super::manifest::{self, Apart, FORMAT, LATEST, MANIFEST, Manifest, TableInfo};
use super::part::Part;
use super::rows::{self, FileInfo};
use super::{Checkpoint, PARTIAL};
use crate::tables::Tables;

/// Which part of a cluster a writer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The part: a node, or a process.
    pub part: usize,
    /// Parts of the cluster.
    pub parts: usize,
    /// Workers that copy for this part.
    pub workers: usize,
}

/// What is to be saved, equal for all workers of all parts.
#[derive(Clone, Debug)]
pub struct Save {
    /// The name of the checkpoint: of a folder, without full stops. One of this name that is
    /// complete stays as it is.
    pub name: String,
    /// The tables.
    pub tables: Tables,
    /// Names of other checkpoints of the folder that it refers to: kept as long as it is.
    pub needs: Vec<String>,
    /// What the program adds, as JSON; that of the first part of the folder counts.
    pub program: String,
    /// What stays beside it.
    pub keeps: Keeps,
    /// Workers wait for it, so it does not yield to them. Else it takes what they leave, of busy
    /// processors 1 or 2 %.
    pub is_awaited: bool,
}

/// The checkpoints of a folder that stay when one more is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// All. The new one stays as long as another refers to it.
    All,
    /// The latest one so far. The new one becomes the latest.
    Latest,
    /// These alone, where parts are in several folders: what is complete in one may not be so in
    /// another.
    Only {
        /// The newest one that is complete in all folders, if there is one: it becomes the latest.
        latest: Option<String>,
        /// Others, if they are there.
        others: Vec<String>,
    },
}

/// A save that the first part of a folder has committed, or another part has written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Saved {
    /// The name of the checkpoint.
    pub name: String,
    /// Seconds that this part has written.
    pub seconds: f64,
    /// Seconds of a processor that it took, where the system tells.
    pub processor_seconds: f64,
    /// Bytes that this part has written.
    pub bytes: u64,
}

/// Writes one part of the checkpoints of a folder.
pub struct Writer {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

struct Shared {
    folder: PathBuf,
    place: Place,
    /// The parts that see the folder, ascending.
    here: Vec<usize>,
    disk: Box<dyn Disk>,
    /// How long nothing may move in a folder before its reports count as missing.
    patience: Duration,
    /// Memory of parts that are written, by worker, for the next ones.
    room: Mutex<Vec<Vec<f32>>>,
    /// Nobody waits for it any more: the cluster has failed, or the program ends.
    is_given_up: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Saves for which parts of workers are missing.
    gathering: Vec<(Save, Vec<Option<Part>>)>,
    running: Option<JoinHandle<Outcome>>,
    /// Of the last save that ended.
    outcome: Option<Outcome>,
}

type Outcome = Result<Saved, CheckpointError>;

impl Writer {
    /// Returns the writer of a part into `folder`, which all parts see.
    #[must_use]
    pub fn new(folder: &Path, place: Place) -> Self {
        Self::among(folder, place, (0..place.parts).collect())
    }

    /// Returns the writer of a part into `folder`, which only the parts `here` see, ascending; the
    /// others have folders of their own.
    ///
    /// # Panics
    /// If the part is none of them.
    #[must_use]
    pub fn among(folder: &Path, place: Place, here: Vec<usize>) -> Self {
        assert!(here.contains(&place.part), "part {} is none of {here:?}", place.part);
        Self::by(folder, (place, here), Box::new(Os), PATIENCE)
    }

    pub(super) fn by(
        folder: &Path,
        (place, here): (Place, Vec<usize>),
        disk: Box<dyn Disk>,
        patience: Duration,
    ) -> Self {
        let (folder, is_given_up) = (folder.to_path_buf(), AtomicBool::new(false));
        let room = Mutex::default();
        let shared = Shared { folder, place, here, disk, patience, room, is_given_up };
        Self { shared: Arc::new(shared), state: Mutex::default() }
    }

    /// Takes the part of one of the workers. With that of the last worker the save begins, after
    /// those before it; nobody waits for it.
    ///
    /// # Panics
    /// Keys that are none of the tables, values that are not as long, or more parts than workers;
    /// tables with too many rows ([`Checkpoint::check_rows`]).
    pub fn submit(&self, worker: usize, save: &Save, part: Part) {
        assert!(rows::check(&save.tables).is_ok(), "tables are checked before anything is trained");
        let mut state = self.state();
        let at = state.gathering.iter().position(|(other, _)| other.name == save.name);
        let at = at.unwrap_or_else(|| {
            // One for which a part never came, as its worker has ended.
            if state.gathering.len() == GATHERING_MAX {
                state.gathering.remove(0);
            }
            let parts = (0..self.shared.place.workers).map(|_| None).collect();
            state.gathering.push((save.clone(), parts));
            state.gathering.len() - 1
        });
        state.gathering[at].1[worker] = Some(part);
        if state.gathering[at].1.iter().any(Option::is_none) {
            return;
        }
        let (save, parts) = state.gathering.remove(at);
        let parts: Vec<Part> = parts.into_iter().flatten().collect();
        let (shared, before) = (Arc::clone(&self.shared), state.running.take());
        let work = move || {
            // Training comes first: where it keeps all processors busy, this takes 1 or 2 % of
            // them. Where that is refused, it is as before.
            #[cfg(target_os = "linux")]
            let _ = (!save.is_awaited).then(|| rustix::process::nice(NICE));
            // One after the other: a checkpoint comes after those that it needs.
            let before = before.map(JoinHandle::join);
            let saved = shared.save(&save, &parts);
            shared.keep(&save, parts);
            // The reason why one that it needs is missing says more.
            match before {
                Some(Ok(Err(error))) if saved.is_err() => Err(error),
                _ => saved,
            }
        };
        match threads::spawn("adapm checkpoint", work) {
            Ok(thread) => state.running = Some(thread),
            Err(refusal) => {
                let error = io::Error::other(refusal.to_string());
                state.outcome = Some(Err(CheckpointError::refused(&self.shared.folder)(error)));
            }
        }
    }

    /// Returns the memory of a worker's part that is written, for the values of its next one: a
    /// copy into memory that is fresh from the system takes three times as long.
    #[must_use]
    pub fn room(&self, worker: usize) -> Vec<f32> {
        self.shared.room().get_mut(worker).map(mem::take).unwrap_or_default()
    }

    /// Returns true while a save goes on.
    pub fn is_busy(&self) -> bool {
        let mut state = self.state();
        if state.running.as_ref().is_some_and(JoinHandle::is_finished) {
            state.join();
        }
        state.running.is_some() || !state.gathering.is_empty()
    }

    /// Waits until no save goes on.
    pub fn wait(&self) {
        self.state().join();
    }

    /// Notes that a checkpoint is complete in the folders of all parts: it becomes the latest one.
    /// Does nothing but in the first part of the folder.
    ///
    /// # Errors
    /// Refusals of the operating system; nothing has changed then.
    pub fn complete(&self, name: &str) -> Result<(), CheckpointError> {
        let Shared { folder, disk, .. } = &*self.shared;
        if !self.shared.leads() {
            return Ok(());
        }
        let latest = folder.join(LATEST);
        let replaced = disk.replace(&latest, manifest::latest(name).as_bytes());
        replaced.map_err(CheckpointError::refused(&latest))
    }

    /// Returns how the last save ended, once.
    pub fn take_outcome(&self) -> Option<Result<Saved, CheckpointError>> {
        self.state().outcome.take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn join(&mut self) {
        if let Some(thread) = self.running.take() {
            let panicked = |_| {
                Err(CheckpointError::new(
                    Path::new("a checkpoint"),
                    Fault::Elsewhere("its thread panicked".to_owned()),
                ))
            };
            self.outcome = Some(thread.join().unwrap_or_else(panicked));
        }
    }
}

/// Ends what is being written: a checkpoint whose other parts are missing is not waited for.
impl Drop for Writer {
    fn drop(&mut self) {
        // Relaxed suffices: the thread looks again and again.
        self.shared.is_given_up.store(true, Ordering::Relaxed);
        self.state().join();
    }
}

impl Shared {
    fn room(&self) -> MutexGuard<'_, Vec<Vec<f32>>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the memory of parts; others than the latest are written seldom.
    fn keep(&self, save: &Save, parts: Vec<Part>) {
        if save.keeps != Keeps::All {
            *self.room() = parts.into_iter().map(Part::into_values).collect();
        }
    }

    /// Returns true if this is the first part of the folder, which commits for all of them.
    fn leads(&self) -> bool {
        self.here.first() == Some(&self.place.part)
    }

    fn save(&self, save: &Save, parts: &[Part]) -> Outcome {
        let (began, spent) = (Instant::now(), processor_seconds());
        let partial = self.folder.join(format!("{}.{PARTIAL}", save.name));
        let refused = CheckpointError::refused(&partial);
        let written = self.write_part(save, parts, &partial).map_err(&refused);
        let seconds = began.elapsed().as_secs_f64();
        if !self.leads() {
            if let Err(error) = &written {
                let text = format!("{error}");
                let report = partial.join(format!("{}.{FAILED}", self.name_of(self.place.part)));
                let _ = self.disk.replace(&report, text.as_bytes());
            }
        } else {
            let files = written.clone().and_then(|own| self.reports(&partial, own));
            let commit = |files| self.commit(save, &partial, files).map_err(&refused);
            if let Err(error) = files.and_then(commit) {
                // It would hold room that the next one needs.
                let _ = self.disk.remove_folder(&partial);
                return Err(error);
            }
        }
        let spent = processor_seconds().zip(spent).map(|(now, before)| now - before);
        let processor_seconds = spent.unwrap_or(seconds);
        Ok(Saved { name: save.name.clone(), seconds, processor_seconds, bytes: written?.bytes })
    }

    fn name_of(&self, part: usize) -> String {
        rows::name_of(part, self.place.parts)
    }

    /// Writes the file of this part, then its report, which the first part needs none of.
    fn write_part(&self, save: &Save, parts: &[Part], partial: &Path) -> io::Result<FileInfo> {
        self.disk.make_folder(partial)?;
        let name = self.name_of(self.place.part);
        let info = rows::write(&*self.disk, (partial, &name), &save.tables, parts)?;
        if !self.leads() {
            let report = partial.join(format!("{name}.{REPORT}"));
            self.disk.replace(&report, &serde_json::to_vec(&info)?)?;
        }
        Ok(info)
    }

    /// Waits for the reports of all parts of the folder.
    fn reports(&self, partial: &Path, own: FileInfo) -> Result<Vec<FileInfo>, CheckpointError> {
        let (mut files, mut moved, mut size) = (vec![own], Instant::now(), 0);
        while let Some(part) = self.here.get(files.len()).copied() {
            let name = self.name_of(part);
            let read = |end: &str| fs::read(partial.join(format!("{name}.{end}"))).ok();
            if let Some(info) = read(REPORT).and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                files.push(info);
                continue;
            }
            if let Some(reason) = read(FAILED) {
                let reason = String::from_utf8_lossy(&reason).into_owned();
                return Err(CheckpointError::new(partial, Fault::Elsewhere(reason)));
            }
            let now = size_of_folder(partial);
            if now != size {
                (size, moved) = (now, Instant::now());
            }
            if moved.elapsed() >= self.patience || self.is_given_up.load(Ordering::Relaxed) {
                let parts = self.place.parts;
                return Err(CheckpointError::new(partial, Fault::Missing { part, parts }));
            }
            thread::sleep(LOOK);
        }
        Ok(files)
    }

    /// Makes the save a complete checkpoint of this folder.
    fn commit(&self, save: &Save, partial: &Path, files: Vec<FileInfo>) -> io::Result<()> {
        let is_whole = self.here.len() == self.place.parts;
        for (at, table) in save.tables.as_slice().iter().enumerate() {
            let copied: u64 = files.iter().map(|file| file.rows[at]).sum();
            if copied != table.rows() && (is_whole || copied > table.rows()) {
                let (name, rows) = (table.name(), table.rows());
                let what = format!("{copied} rows of table {name} were copied, it has {rows}");
                return Err(io::Error::other(what));
            }
        }
        let layout = save.tables.layout().map_err(io::Error::other)?;
        let apart = || Apart { here: self.here.clone(), parts: self.place.parts };
        let manifest = Manifest {
            format: FORMAT,
            adapm: env!("CARGO_PKG_VERSION").to_owned(),
            layout: manifest::digest(&layout),
            tables: save.tables.as_slice().iter().map(TableInfo::of).collect(),
            apart: (!is_whole).then(apart),
            files,
            needs: save.needs.clone(),
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            program: serde_json::from_str(&save.program)?,
        };
        let is_missing = |name: &&String| !self.folder.join(name).join(MANIFEST).is_file();
        if let Some(name) = save.needs.iter().find(is_missing) {
            return Err(io::Error::other(format!("{name} is missing, which it needs")));
        }
        for part in &self.here[1..] {
            let _ = self.disk.remove(&partial.join(format!("{}.{REPORT}", self.name_of(*part))));
        }
        self.disk.replace(&partial.join(MANIFEST), &manifest.to_bytes()?)?;
        let folder = self.folder.join(&save.name);
        let was_there = folder.exists();
        if was_there {
            // The same one, which `latest` may name or need.
            self.disk.remove_folder(partial)?;
        } else {
            self.disk.rename(partial, &folder)?;
        }
        let synced = self.disk.sync_folder(&self.folder);
        match &save.keeps {
            Keeps::All => synced,
            Keeps::Latest => synced.and_then(|()| self.become_latest(&save.name, &folder)),
            Keeps::Only { .. } if synced.is_err() && !was_there => {
                // It would count as complete.
                let _ = remove(&*self.disk, &folder);
                synced
            }
            Keeps::Only { latest, others } => {
                self.keep_only(latest.as_deref(), others, &save.name);
                synced
            }
        }
    }

    /// Makes a complete checkpoint the latest one.
    fn become_latest(&self, name: &str, folder: &Path) -> io::Result<()> {
        let before = Checkpoint::latest(&self.folder);
        let latest = manifest::latest(name);
        if let Err(error) = self.disk.replace(&self.folder.join(LATEST), latest.as_bytes()) {
            // It may have taken its name all the same.
            let named = manifest::read_latest(&self.folder);
            if named.is_ok_and(|named| named.as_deref() != Some(folder)) {
                let _ = remove(&*self.disk, folder);
            }
            return Err(error);
        }
        if let (Ok(before), Ok(saved)) = (before, Checkpoint::open(folder)) {
            self.retain(before.into_iter().chain([saved]).collect(), name);
        }
        Ok(())
    }

    /// Keeps these checkpoints and no others, of which one is complete in all folders.
    fn keep_only(&self, latest: Option<&str>, others: &[String], name: &str) {
        if let Some(latest) = latest {
            // Nobody goes on from it because it is said there.
            let text = manifest::latest(latest);
            let _ = self.disk.replace(&self.folder.join(LATEST), text.as_bytes());
        }
        let names = latest.into_iter().chain(others.iter().map(|other| &**other)).chain([name]);
        let there = names.map(|name| self.folder.join(name));
        let there = there.filter(|path| path.join(MANIFEST).is_file());
        // What is damaged may be needed: then nothing goes.
        let kept: Result<_, _> = there.map(|path| Checkpoint::open(&path)).collect();
        if let Ok(kept) = kept {
            self.retain(kept, name);
        }
    }

    /// Removes all complete checkpoints but these. One more is complete: what is too much can go
    /// the next time, too.
    fn retain(&self, kept: Vec<Checkpoint>, name: &str) {
        let _ = retain(&*self.disk, &self.folder, &kept, Unfinished::Before(name));
    }
}

/// What is not complete in a folder, of which some is removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unfinished<'a> {
    /// All: nobody writes there.
    All,
    /// What comes before this one: other parts may be writing what comes after it.
    Before(&'a str),
}

/// Removes all checkpoints of a folder but these and those that they refer to, and what is
/// `unfinished`.
pub(super) fn retain(
    disk: &dyn Disk,
    folder: &Path,
    kept: &[Checkpoint],
    unfinished: Unfinished<'_>,
) -> io::Result<()> {
    let names: Vec<&str> = kept
        .iter()
        .flat_map(|kept| [kept.name()].into_iter().chain(kept.needs().iter().map(|name| &**name)))
        .collect();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_partial = path.extension().is_some_and(|end| end == PARTIAL);
        let goes = match unfinished {
            Unfinished::All if is_partial => true,
            Unfinished::Before(other) if is_partial => kind(name) == kind(other) && name < other,
            _ => path.join(MANIFEST).is_file(),
        };
        if path.is_dir() && goes && !names.contains(&name) {
            remove(disk, &path)?;
        }
    }
    Ok(())
}

/// Removes a checkpoint: the manifest first, as one without files would count as complete.
fn remove(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    // What is not complete has none.
    let _ = disk.remove(&folder.join(MANIFEST));
    disk.remove_folder(folder)
}

/// Returns what a name begins with: names of one kind are in order of time.
pub(super) fn kind(name: &str) -> &str {
    name.split('-').next().unwrap_or_default()
}

/// Seconds for which this thread has run, `None` where the system does not tell.
fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos as f64 / 1e9)
}

fn size_of_folder(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|file| file.len() + 1).sum()
}

/// Ends of the names of reports.
const REPORT: &str = "json";
const FAILED: &str = "failed";
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);
/// By how much a writer is nicer to others than training is: as much as it can be.
#[cfg(target_os = "linux")]
const NICE: i32 = 19;
/// Saves that wait for parts of workers: two are given at once.
const GATHERING_MAX: usize = 4;
