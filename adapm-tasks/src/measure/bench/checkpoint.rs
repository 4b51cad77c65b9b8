//! Checkpoints: for how long workers wait, what writing costs those who train meanwhile, and
//! reading beside reading alone.
//!
//! Two nodes, values of 17 floats, and half of the keys owned by the node that is not their home.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_runtime::System;
use adapm_runtime::checkpoint::{Checkpoint, Checkpoints};
use adapm_runtime::tables::{Table, Tables};

use crate::files::floor;
use crate::measure::bench::figure::{self, BenchError, Desk, Figure, Goal, median};
use crate::measure::bench::rows::{BATCH, Floats};

pub(super) fn measure(desk: &mut Desk<'_>) -> Result<(), BenchError> {
    let keys = if desk.plan.is_quick { KEYS / 32 } else { KEYS };
    let bytes = keys as usize * LEN * size_of::<f32>();
    // Main copies, what is known of them, a copy of all, and its order.
    if !desk.has_room("a checkpoint", 5 * bytes / 2) {
        return Ok(());
    }
    let folder = Folder::new()?;
    let tables = Tables::new([Table::new("rows", keys, LEN)]).expect("a name");
    let layout = tables.layout().expect("some keys");
    let checkpoints = Checkpoints::new(&folder.0, &tables).expect("few rows");
    let cluster = adapm_runtime::Builder::<f32>::new(layout).nodes(2).system(System::Lapse);
    let cluster = cluster.initial(|key, value| value.fill(key.0 as f32)).build()?;
    let measured = cluster.run(|worker| train(worker, keys, &checkpoints))?;
    let peak = figure::memory_peak();
    let all: Vec<Measured> = measured.into_iter().collect::<Result<_, _>>()?;
    let first = all.first().expect("a worker");
    let gigabytes = bytes as f64 / 1e9;
    let size = format!("{gigabytes:.1} GB on 2 nodes");
    desk.add(Figure::new(
        format!("a quiesce before a checkpoint, {size}"),
        "ms",
        1e3 * first.quiesce,
    ))?;
    let pause = (first.pause - first.quiesce) / gigabytes;
    let figure = Figure::new(format!("pause of a checkpoint beyond it, {size}"), "s/GB", pause);
    desk.add(figure.towards(Goal::AtMost(0.25)))?;
    let of_first = format!("the same of the first one, into fresh memory, {size}");
    desk.add(Figure::new(of_first, "s/GB", (first.first_pause - first.quiesce) / gigabytes))?;
    let figure =
        Figure::new(format!("pushes of workers while one is written, {size}"), "M/s", first.beside);
    desk.add(figure.beside(first.alone).towards(Goal::AtLeast(0.95 * first.alone)))?;
    // Of both nodes.
    if let (Some(before), Some(peak)) = (first.memory, peak) {
        let share = (before + bytes) as f64;
        let figure = Figure::new(format!("memory at its peak, {size}"), "GB", peak as f64 / 1e9);
        desk.add(figure.beside(share / 1e9).towards(Goal::AtMost(1.05 * share / 1e9)))?;
    }
    drop(cluster);
    checkpoints.wait()?;
    let files = rows_of(&folder.0)?;
    let began = Instant::now();
    floor::write(&folder.0.join("plain"), floor::bytes(&files))?;
    let plain = gigabytes / began.elapsed().as_secs_f64();
    let of_writing = format!("writing a checkpoint while workers wait, {size}");
    desk.add(Figure::new(of_writing, "GB/s", gigabytes / first.writing).beside(plain))?;
    read(desk, &folder.0, &tables, (&files, bytes))
}

/// Reads a checkpoint, and its files alone.
fn read(
    desk: &mut Desk<'_>,
    folder: &Path,
    tables: &Tables,
    (files, bytes): (&[PathBuf], usize),
) -> Result<(), BenchError> {
    let gigabytes = bytes as f64 / 1e9;
    let size = format!("{gigabytes:.1} GB on 2 nodes");
    let (mut ours, mut plain, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..READINGS {
        plain.push(seconds(files, || Ok(files.iter().try_for_each(|file| floor::read(file))?))?);
        kept.push(seconds(files, || Ok(floor::read_into_memory(files)?))?);
        let read = || {
            let found = Checkpoint::latest(folder)?.expect("one was written");
            Ok(found.read(tables, (0, 1), &|_| true)?)
        };
        ours.push(seconds(files, read)?);
    }
    let [ours, plain, kept] = [ours, plain, kept].map(|all| gigabytes / median(all));
    let of_kept = format!("reading its files into memory, cold, {size}");
    desk.add(Figure::new(of_kept, "GB/s", kept).beside(plain))?;
    let figure = Figure::new(format!("reading a checkpoint, cold, {size}"), "GB/s", ours);
    desk.add(figure.beside(plain).towards(Goal::AtLeast(0.8 * plain)))
}

/// Returns how long `read` takes while nothing of the files is in memory.
fn seconds<T>(
    files: &[PathBuf],
    read: impl FnOnce() -> Result<T, BenchError>,
) -> Result<f64, BenchError> {
    floor::drop_cached(files)?;
    let began = Instant::now();
    let kept = read()?;
    let seconds = began.elapsed().as_secs_f64();
    drop(kept);
    Ok(seconds)
}

/// What one worker has measured, in seconds and millions of pushes a second.
struct Measured {
    quiesce: f64,
    pause: f64,
    first_pause: f64,
    alone: f64,
    beside: f64,
    writing: f64,
    /// Bytes of the process before the first checkpoint.
    memory: Option<usize>,
}

/// Takes half of the keys over, and pushes to them with and without a checkpoint being written.
fn train(mut worker: Floats, keys: u64, checkpoints: &Checkpoints) -> Result<Measured, OpError> {
    let own: Vec<Key> = (worker.node().index() as u64..keys).step_by(2).map(Key).collect();
    for keys in own.chunks(BATCH) {
        worker.localize(keys)?;
    }
    let update = vec![1.0; BATCH * LEN];
    // Pushes of a time, or as long as something is written.
    let rate = |worker: &mut Floats, goes_on: &dyn Fn(Duration) -> bool| {
        let (began, mut pushed) = (Instant::now(), 0);
        for keys in own.chunks(BATCH).cycle() {
            if !goes_on(began.elapsed()) {
                break;
            }
            worker.push(keys, &update[..keys.len() * LEN])?;
            pushed += keys.len();
        }
        Ok::<_, OpError>(pushed as f64 / 1e6 / began.elapsed().as_secs_f64())
    };
    let (mut alone, mut beside, mut pauses, mut quiets) = (vec![], vec![], vec![], vec![]);
    let written = || {
        let began = Instant::now();
        while checkpoints.is_busy() {
            thread::sleep(LOOK);
        }
        began.elapsed().as_secs_f64()
    };
    let mut memory = None;
    for step in 0..TURNS {
        worker.barrier()?;
        alone.push(rate(&mut worker, &|time| time < PUSHING)?);
        memory = memory.or_else(figure::memory_resident);
        let began = Instant::now();
        worker.quiesce()?;
        quiets.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        worker.checkpoint(checkpoints, step, "{}")?;
        pauses.push(began.elapsed().as_secs_f64());
        worker.barrier()?;
        beside.push(rate(&mut worker, &|time| time < PUSHING && checkpoints.is_busy())?);
        worker.barrier()?;
        written();
    }
    worker.checkpoint(checkpoints, TURNS, "{}")?;
    worker.barrier()?;
    let writing = written();
    worker.quiesce()?;
    let first_pause = pauses.remove(0);
    let [quiesce, pause, alone, beside] = [quiets, pauses, alone, beside].map(median);
    Ok(Measured { quiesce, pause, first_pause, alone, beside, writing, memory })
}

/// Returns the files of the latest checkpoint.
fn rows_of(folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let found = Checkpoint::latest(folder)?.expect("one was written");
    let files = fs::read_dir(found.folder())?.filter_map(Result::ok).map(|entry| entry.path());
    Ok(files.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect())
}

/// A folder in the working folder, on whose disk runs are kept; goes with the measurement.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let path = std::env::current_dir()?.join(format!(".adapm-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 4 GB of values.
const KEYS: u64 = 60_000_000;
const LEN: usize = 17;
/// Checkpoints that are measured.
const TURNS: u64 = 6;
/// Readings of each way, in turns.
const READINGS: usize = 5;
/// How long workers push, beside a checkpoint or alone.
const PUSHING: Duration = Duration::from_secs(3);
/// How often it is looked whether one is written.
const LOOK: Duration = Duration::from_millis(5);
