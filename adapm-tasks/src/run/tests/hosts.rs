//! Runs whose hosts have a folder each for their checkpoints: they go on as one that was not
//! stopped, or all processes say which files are missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use adapm_core::Key;
use adapm_runtime::System;
use adapm_runtime::checkpoint::{
    Checkpoint, CheckpointError, Keeps, Part, Place, Save, Saved, Writer,
};

use super::count::{BLOCKS, Count, Figures, SAMPLED, Stopper};
use super::{EPOCHS, SETTINGS};
use crate::run::checkpoints::CheckpointFolder;
use crate::run::circle::places;
use crate::run::config::Keep;
use crate::run::error::TaskError;
use crate::run::harness::{Ended, NODES, WORKERS, open_each, train_each_in};
use crate::run::observer::{NoProgress, Observer};
use crate::run::peers::Peers;
use crate::run::topology;

/// The folders of two hosts, of which one has the first and the last process; they go with the
/// test.
struct Hosts(PathBuf);

/// The host of each process.
const HOST: [&str; NODES] = ["ann", "bob", "ann"];
const HOSTS: [&str; 2] = ["ann", "bob"];

impl Hosts {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("adapm-hosts-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn each(&self, folder: impl Fn(&Path) -> CheckpointFolder) -> Vec<CheckpointFolder> {
        HOST.iter().map(|host| folder(&self.0.join(host))).collect()
    }

    fn begun(&self, every: f64) -> Vec<CheckpointFolder> {
        self.each(|run| CheckpointFolder::new(run).apart().every(every))
    }

    fn resumed(&self, every: f64) -> Vec<CheckpointFolder> {
        self.each(|run| CheckpointFolder::resumed(run, None).every(every))
    }

    fn checkpoints(&self, host: &str) -> PathBuf {
        self.0.join(host).join("checkpoints")
    }

    /// Complete checkpoints of all parameters on a host.
    fn complete(&self, host: &str) -> Vec<String> {
        let found = Checkpoint::list(&self.checkpoints(host)).expect("is there");
        let names = found.iter().filter_map(|path| path.file_name()?.to_str());
        names.filter(|name| name.starts_with("step")).map(str::to_owned).collect()
    }

    fn latest(&self, host: &str) -> String {
        let latest = Checkpoint::latest(&self.checkpoints(host)).expect("can be read");
        latest.expect("is there").name().to_owned()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Counts, best in the second epoch.
fn task() -> Count {
    Count { target: Some(400.0), ..Count::new(NODES * WORKERS) }
}

fn train(folders: &[CheckpointFolder], system: System, task: &Count) -> Vec<Ended<Figures>> {
    train_observed(folders, system, task, [&NoProgress; NODES])
}

fn train_observed(
    folders: &[CheckpointFolder],
    system: System,
    task: &Count,
    observers: [&dyn Observer<Figures>; NODES],
) -> Vec<Ended<Figures>> {
    let never = AtomicBool::new(false);
    let stop = task.stopper.as_ref().map_or(&never, |stopper| &stopper.flag);
    let with = (Keep::Best, system);
    train_each_in(folders, with, &[task; NODES], SETTINGS, &observers, &[stop; NODES])
}

/// Values of blocks as process `node` has them in the end, and how many samples were drawn.
fn outcome(ended: &[Ended<Figures>]) -> impl PartialEq + std::fmt::Debug + use<> {
    let of = |process: &Ended<Figures>| {
        let epochs = process.epochs.iter();
        let epochs = epochs.map(|epoch| (epoch.epoch, epoch.loss, epoch.examples, epoch.valid));
        (epochs.collect::<Vec<_>>(), process.chosen, process.best)
    };
    let values: Vec<f32> = ended
        .iter()
        .flat_map(|process| process.outcome.as_ref().expect("trained"))
        .flatten()
        .copied()
        .collect();
    assert_eq!(values.len() as u64, BLOCKS + SAMPLED);
    (ended.iter().map(of).collect::<Vec<_>>(), values.iter().sum::<f32>())
}

/// Opens the folders, and returns the errors of all processes.
fn refused(folders: &[CheckpointFolder], workers: &[usize]) -> Vec<String> {
    let places = places(folders.len());
    let peers: Vec<Peers<'_>> = places.iter().map(|place| Peers::among(place)).collect();
    let opened = open_each(folders, &task(), (&peers, workers));
    opened
        .into_iter()
        .map(|opened| opened.map(drop).expect_err("it is refused").to_string())
        .collect()
}

#[test]
fn a_run_that_is_stopped_again_and_again_ends_as_one_that_was_not() {
    for system in [System::Adapm, System::Lapse, System::Full] {
        let whole = train(&[], system, &task());
        for batches in [23, 61] {
            let hosts = Hosts::new(&format!("stopped-{system}-{batches}"));
            let stopped = || Count { stopper: Some(Stopper::after(batches)), ..task() };
            let mut ended = train(&hosts.begun(0.01), system, &stopped());
            let mut runs = 1;
            while ended[0].epochs.len() < EPOCHS as usize || ended[0].epochs[3].valid.is_none() {
                ended = train(&hosts.resumed(0.01), system, &stopped());
                runs += 1;
                assert!(runs < 200, "it never ends");
            }
            assert!(runs > 1, "it was stopped");
            assert_eq!(outcome(&ended), outcome(&whole), "{system} {batches}");
            let [ann, bob] = HOSTS.map(|host| hosts.latest(host));
            assert_eq!(ann, bob, "the last one is complete on both");
        }
    }
}

#[test]
fn a_run_that_fails_goes_on_from_what_both_hosts_have() {
    let (hosts, system) = (Hosts::new("fails"), System::Adapm);
    let whole = train(&[], system, &task());
    // Stopped before, as what is written while it trains may come too late.
    let stopped = Count { stopper: Some(Stopper::after(7)), ..task() };
    train(&hosts.begun(1e9), system, &stopped);
    let fails = Count { diverges: Some(WORKERS), ..task() };
    let ended = train(&hosts.resumed(0.0), system, &fails);
    assert!(ended.iter().all(|process| process.outcome.is_err()), "node 1 diverges");
    for host in HOSTS {
        assert!(!hosts.complete(host).is_empty(), "{host}");
    }
    let on = train(&hosts.resumed(1e9), system, &task());
    assert_eq!(outcome(&on), outcome(&whole));
}

/// A run that has ended goes on for nothing: its parameters are those of the checkpoint to the bit,
/// though a process has read some that have their home elsewhere.
#[test]
fn what_is_handed_over_is_what_was_written() {
    for system in [System::Adapm, System::Lapse, System::Full] {
        hand_over(system);
    }
}

fn hand_over(system: System) {
    let hosts = Hosts::new(&format!("bits-{system}"));
    let task = Count { target: None, rate: Some(0.1), ..task() };
    let bits = |ended: Vec<Ended<Figures>>| -> Vec<Vec<u32>> {
        let parts = ended.into_iter().flat_map(|process| process.outcome.expect("trained"));
        parts.map(|part| part.into_iter().map(f32::to_bits).collect()).collect()
    };
    let before = bits(train(&hosts.begun(1e9), system, &task));
    let mut read = vec![Vec::new(); NODES];
    for (part, host) in HOST.iter().enumerate() {
        let path = hosts.checkpoints(host).join(hosts.latest(host));
        let found = Checkpoint::open(&path).expect("can be read");
        assert_eq!((found.is_apart(), found.parts(), found.verify()), (true, NODES, Ok(())));
        let rows = found.read_part(part, found.tables(), &|_| true).expect("it is here");
        let len = |key: u64| if key < BLOCKS { 2 } else { 1 };
        let is_here = |key: &u64| rows.write(Key(*key), &mut vec![0.0; len(*key)]);
        read[part].extend((0..BLOCKS + SAMPLED).filter(is_here));
    }
    let mut all = read.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..BLOCKS + SAMPLED), "each is in one file: {read:?}");
    let is_home = |part: usize, key: u64| topology::home(Key(key), NODES) == part;
    let is_away = |(part, keys): (usize, &Vec<u64>)| keys.iter().any(|key| !is_home(part, *key));
    let any_away = read.iter().enumerate().any(is_away);
    assert_eq!(any_away, system != System::Full, "{system}: {read:?}");
    assert_eq!(bits(train(&hosts.resumed(1e9), system, &task)), before);
}

/// Takes the folder of its host away after so many checkpoints, and puts a file in its place.
struct Full {
    checkpoints: PathBuf,
    left: Mutex<u32>,
    failures: Mutex<Vec<String>>,
}

impl Full {
    fn aside(&self) -> PathBuf {
        self.checkpoints.with_extension("aside")
    }
}

impl Observer<Figures> for Full {
    fn checkpointed(&self, outcome: &Result<Saved, CheckpointError>, _: f64) {
        let mut left = self.left.lock().expect("nobody panics");
        match outcome {
            Err(error) => self.failures.lock().expect("nobody panics").push(error.to_string()),
            Ok(_) if *left == 1 => {
                fs::rename(&self.checkpoints, self.aside()).expect("can be moved");
                fs::write(&self.checkpoints, "full").expect("can be written");
                *left = 0;
            }
            Ok(_) => *left = left.saturating_sub(1),
        }
    }
}

#[test]
fn the_last_that_both_hosts_have_stays_however_often_one_of_them_fails() {
    // How often it fails depends on how fast others train meanwhile: each has twice as much to do.
    assert!((0..10).any(|turn| fails_on_one_host(turn) > 1), "once at most, in each of ten runs");
}

/// Returns how often it failed.
fn fails_on_one_host(turn: u32) -> usize {
    let (hosts, system) = (Hosts::new(&format!("full-{turn}")), System::Adapm);
    let task = Count { batches: 5 << turn, ..task() };
    let whole = train(&[], system, &task);
    let full = Full {
        checkpoints: hosts.checkpoints("bob"),
        left: Mutex::new(2),
        failures: Mutex::default(),
    };
    let observers: [&dyn Observer<Figures>; NODES] = [&NoProgress, &full, &NoProgress];
    let ended = train_observed(&hosts.begun(0.0), system, &task, observers);
    assert_eq!(outcome(&ended), outcome(&whole), "training goes on");
    let failures = full.failures.lock().expect("nobody panics");
    assert!(failures.iter().all(|error| !error.contains('\n')), "{failures:?}");
    if failures.is_empty() {
        return 0;
    }
    fs::remove_file(&full.checkpoints).expect("is there");
    fs::rename(full.aside(), &full.checkpoints).expect("can be moved");
    let [ann, bob] = HOSTS.map(|host| hosts.complete(host));
    let both: Vec<_> = ann.iter().filter(|name| bob.contains(name)).collect();
    assert!(!both.is_empty(), "ann has {ann:?}, bob {bob:?}");
    // Not one for each failure.
    assert!(ann.len() <= 3, "{ann:?} after {} failures", failures.len());
    let on = train(&hosts.resumed(1e9), system, &task);
    assert_eq!(outcome(&on), outcome(&whole));
    failures.len()
}

#[test]
fn what_is_missing_is_said_by_all_in_one_line() {
    let (hosts, system) = (Hosts::new("missing"), System::Adapm);
    let stopped = Count { stopper: Some(Stopper::after(50)), ..task() };
    train(&hosts.begun(1e9), system, &stopped);
    let name = hosts.latest("ann");
    let workers = [WORKERS; NODES];
    let all = |folders: &[CheckpointFolder], workers: &[usize]| {
        // Each names its own folder.
        let errors = refused(folders, workers);
        let of = |error: &String| error.split_once(": ").expect("a folder").1.to_owned();
        assert!(errors.iter().all(|error| of(error) == of(&errors[0])), "{errors:?}");
        assert!(!errors[0].contains('\n'), "{errors:?}");
        of(&errors[0])
    };
    let missing = format!("of {name} files are missing: ");
    // Swapped.
    let swapped: Vec<_> = ["bob", "ann", "bob"]
        .map(|host| CheckpointFolder::resumed(&hosts.0.join(host), None))
        .to_vec();
    let error = all(&swapped, &workers);
    let of = |node: usize| error.contains(&format!("node {node} on "));
    assert!(error.contains(&missing) && of(0) && of(1) && of(2), "{error}");
    assert!(error.contains("(has the files of others); start each node where"), "{error}");
    // Other seats.
    let error = all(&hosts.resumed(1e9), &[WORKERS, WORKERS, WORKERS + 1]);
    assert!(error.contains("3 processes (workers 2,2,2, hosts "), "{error}");
    let error = all(&hosts.resumed(1e9)[..2], &workers[..2]);
    assert!(error.contains("this one has 2 processes (workers 2,2, hosts "), "{error}");
    let error = all(&hosts.resumed(1e9)[..1], &[WORKERS; NODES]);
    assert!(error.contains("this one has 1 process (workers 2,2,2, hosts "), "{error}");
    // A folder that is gone; by its name, too.
    fs::remove_dir_all(hosts.checkpoints("bob")).expect("can be removed");
    let named = hosts.each(|run| CheckpointFolder::resumed(run, Some(&name)));
    for folders in [hosts.resumed(1e9), named] {
        let error = all(&folders, &workers);
        assert!(error.contains(&format!("{missing}node 1 on ")), "{error}");
        assert!(error.contains("(has none of it)") && !error.contains("node 0 on"), "{error}");
    }
    // What was complete everywhere is not begun anew by a start after a failure.
    let either = hosts.each(|run| CheckpointFolder::begun_or_resumed(run).apart());
    assert!(all(&either, &workers).contains(&missing));
    assert_eq!(hosts.complete("ann").len(), 1, "what is refused changes nothing");
    // Hosts that are to share one folder.
    let shared = hosts.each(CheckpointFolder::new);
    let errors = refused(&shared, &workers);
    assert!(errors[1].contains("not the folder that node 0 writes to, on host "), "{errors:?}");
    let other = TaskError::Elsewhere { node: adapm_core::NodeId(1), reason: errors[1].clone() };
    assert_eq!([&errors[0], &errors[2]], [&other.to_string(); 2]);
}

/// Writes the parameters of the best epoch again, without one row: returns its process and its key.
fn forget(path: &Path) -> (usize, Key) {
    let found = Checkpoint::open(path).expect("can be read");
    let (tables, folder) = (found.tables().clone(), path.parent().expect("it has one"));
    let of = |part: usize| {
        let rows = found.read_part(part, &tables, &|_| true).expect("it is here");
        let own = (0..tables.keys()).map(Key).filter(|key| rows.has(*key));
        let value = |key: Key| {
            let mut value = [-1.0];
            assert!(rows.write(key, &mut value));
            (key, value[0])
        };
        (part, own.map(value).collect::<Vec<_>>())
    };
    let mut parts: Vec<_> = found.here().into_iter().map(of).collect();
    let (part, rows) = parts.iter_mut().find(|(_, rows)| !rows.is_empty()).expect("some rows");
    let lost = (*part, rows.pop().expect("not empty").0);
    fs::remove_dir_all(path).expect("can be removed");
    let writer = |(part, rows): (usize, Vec<(Key, f32)>)| {
        let place = Place { part, parts: found.parts(), workers: 1 };
        let writer = Writer::among(folder, place, found.here());
        let (name, tables, program) = (found.name().to_owned(), tables.clone(), found.program());
        let (needs, keeps) = (Vec::new(), Keeps::All);
        let save = Save { name, tables, needs, program, keeps, is_awaited: true };
        let (keys, values): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        writer.submit(0, &save, Part::new(keys, values));
        writer
    };
    let writers: Vec<Writer> = parts.into_iter().map(writer).collect();
    for writer in writers {
        writer.wait();
        writer.take_outcome().expect("it ended").expect("can be written");
    }
    lost
}

#[test]
fn best_parameters_without_a_row_are_refused_before_training() {
    let (hosts, workers) = (Hosts::new("best"), [WORKERS; NODES]);
    train(&hosts.begun(1e9), System::Adapm, &task());
    let of_ann = hosts.checkpoints("ann");
    let latest = Checkpoint::open(&of_ann.join(hosts.latest("ann"))).expect("can be read");
    let best = of_ann.join(&latest.needs()[0]);
    let (process, lost) = forget(&best);
    let (table, row) = latest.tables().locate(lost).expect("a key of the run");
    let table = latest.tables().as_slice()[table].name();
    let places = places(NODES);
    let peers: Vec<Peers<'_>> = places.iter().map(|place| Peers::among(place)).collect();
    let opened = open_each(&hosts.resumed(1e9), &task(), (&peers, &workers));
    for (node, opened) in opened.into_iter().enumerate() {
        let error = opened.err().map(|error| error.to_string());
        assert_eq!(error.is_some(), node == process, "node {node}: {error:?}");
        let what = format!("lack row {row} of table {table}; go on from another checkpoint");
        let is_right =
            |error: String| error.starts_with(&*best.to_string_lossy()) && error.contains(&what);
        assert!(error.is_none_or(is_right), "{what} on node {node}");
    }
}

#[test]
fn hosts_that_share_one_folder_after_all_have_whole_checkpoints() {
    let (hosts, system) = (Hosts::new("shared"), System::Adapm);
    let whole = train(&[], system, &task());
    let one = hosts.0.join("ann");
    let begun = vec![CheckpointFolder::new(&one).apart().every(0.01); NODES];
    let stopped = Count { stopper: Some(Stopper::after(50)), ..task() };
    train(&begun, system, &stopped);
    let found = Checkpoint::latest(&hosts.checkpoints("ann")).expect("can be read");
    let found = found.expect("is there");
    assert_eq!((found.is_apart(), found.here().len()), (false, NODES));
    let resumed = vec![CheckpointFolder::resumed(&one, None).every(0.01); NODES];
    assert_eq!(outcome(&train(&resumed, system, &task())), outcome(&whole));
}
