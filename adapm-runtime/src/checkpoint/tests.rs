//! Checkpoints: what is written is read, on any number of parts; nothing that has changed is read;
//! whatever stops a save, the last complete checkpoint is readable.

mod apart;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adapm_core::{Key, Layout};

use super::disk::{Disk, Os};
use super::writer::{Keeps, Place, Save, Writer};
use super::*;
use crate::tables::{Table, Tables};

/// A folder of a test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("adapm-checkpoint-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Takes a folder, in which this is the latest checkpoint.
fn owned(folder: &Path, latest: Option<&Checkpoint>) -> Result<Owner, CheckpointError> {
    let owner = Owner::take(folder)?;
    owner.begin(latest).map(|()| owner)
}

fn tables(rows: u64) -> Tables {
    let words = Table::new("words", rows, 3).with_state("adagrad", 2).with_state("clock", 1);
    Tables::new([words, Table::new("none", 0, 4), Table::new("bias", 2, 1)]).expect("legal")
}

/// The value of a key in checkpoint `step`.
fn value(tables: &Tables, key: Key, step: u64) -> Vec<f32> {
    let (table, _) = tables.locate(key).expect("a key");
    let len = tables.as_slice()[table].row_len();
    (0..len).map(|at| (1_000 * step + 10 * key.0) as f32 + at as f32).collect()
}

fn part(tables: &Tables, keys: impl Iterator<Item = Key>, step: u64) -> Part {
    let keys: Vec<Key> = keys.collect();
    let values = keys.iter().flat_map(|key| value(tables, *key, step)).collect();
    Part::new(keys, values)
}

fn save(tables: &Tables, step: u64) -> Save {
    let program = format!("{{\"step\":{step}}}");
    let (name, needs) = (format!("step-{step:08}"), Vec::new());
    let tables = tables.clone();
    Save { name, tables, needs, program, keeps: Keeps::Latest, is_awaited: false }
}

/// Submits the parts of two workers for part `place` of a cluster, whose homes are by hash.
fn submit(writer: &Writer, place: Place, save: &Save, step: u64) {
    for worker in 0..place.workers {
        let own = |key: &Key| {
            Layout::home(*key, place.parts).index() == place.part
                && key.0 as usize % place.workers == worker
        };
        let keys = (0..save.tables.keys()).map(Key).filter(own);
        writer.submit(worker, save, part(&save.tables, keys, step));
    }
}

/// Writes checkpoint `step` by so many parts at once.
fn write(folder: &Path, tables: &Tables, parts: usize, step: u64) {
    let places = (0..parts).map(|part| Place { part, parts, workers: 2 });
    let writers: Vec<_> = places.map(|place| (place, Writer::new(folder, place))).collect();
    let _owner = take(folder);
    for (place, writer) in &writers {
        submit(writer, *place, &save(tables, step), step);
    }
    for (_, writer) in &writers {
        writer.wait();
        let saved = writer.take_outcome().expect("one was saved").expect("can be written");
        assert_eq!(saved.name, format!("step-{step:08}"));
    }
}

/// Returns the names of all complete checkpoints of a folder, each of which is as it was written.
fn names(folder: &Path) -> Vec<String> {
    let found = Checkpoint::list(folder).expect("can be read").into_iter().map(|path| {
        let found = Checkpoint::open(&path).expect("complete");
        assert_eq!(found.verify(), Ok(()));
        found.name().to_owned()
    });
    found.collect()
}

/// Takes a folder to go on from its latest checkpoint, if there is one.
fn take(folder: &Path) -> Owner {
    let latest = Checkpoint::latest(folder).expect("can be read");
    owned(folder, latest.as_ref()).expect("can be made")
}

fn latest(folder: &Path) -> Checkpoint {
    Checkpoint::latest(folder).expect("can be read").expect("is there")
}

/// Checks that one of so many nodes reads its rows of checkpoint `step`, and no others.
fn check_read(found: &Checkpoint, tables: &Tables, nodes: usize, step: u64) {
    for node in 0..nodes {
        let read = found.read(tables, (node, nodes), &|_| true).expect("can be read");
        let mut rows = 0;
        for key in (0..tables.keys()).map(Key) {
            let expected = value(tables, key, step);
            let mut found = vec![-1.0; expected.len()];
            let is_here = Layout::home(key, nodes).index() == node;
            assert_eq!(read.write(key, &mut found), is_here, "{key:?} on node {node} of {nodes}");
            assert_eq!(read.has(key), is_here, "{key:?} on node {node} of {nodes}");
            assert_eq!(found, if is_here { expected } else { vec![-1.0; found.len()] });
            rows += u64::from(is_here);
        }
        assert_eq!(read.rows(), rows);
    }
}

#[test]
fn what_some_parts_wrote_any_number_of_nodes_reads() {
    let tables = tables(1_000);
    for parts in [1, 2, 4] {
        let folder = Folder::new(&format!("parts{parts}"));
        write(&folder.0, &tables, parts, 7);
        let found = latest(&folder.0);
        assert_eq!((found.name(), found.parts()), ("step-00000007", parts));
        assert_eq!((found.program(), found.tables()), ("{\"step\":7}".to_owned(), &tables));
        assert_eq!(found.verify(), Ok(()));
        for nodes in [1, 2, 3, 8] {
            check_read(&found, &tables, nodes, 7);
        }
        let third = |key: Key| key.0.is_multiple_of(3);
        let read = found.read(&tables, (0, 1), &third).expect("can be read");
        assert_eq!(read.rows(), 334);
        for key in (0..tables.keys()).map(Key) {
            let expected = value(&tables, key, 7);
            let mut found = vec![-1.0; expected.len()];
            assert_eq!(read.write(key, &mut found), third(key));
            assert!(!third(key) || found == expected, "{key:?}");
        }
    }
}

#[test]
fn a_table_may_have_grown_and_nothing_else() {
    let (folder, old) = (Folder::new("grown"), tables(10));
    write(&folder.0, &old, 1, 1);
    let found = latest(&folder.0);
    let grown = tables(12);
    let read = found.read(&grown, (0, 1), &|_| true).expect("a table that has grown");
    assert_eq!(read.rows(), 12);
    let mut row = [0.0; 6];
    assert!(!read.write(Key(10), &mut row), "a row that no file has");
    let mut bias = [0.0];
    assert!(read.write(Key(12), &mut bias), "the keys of the next table have moved");
    assert_eq!(bias[0], value(&old, Key(10), 1)[0]);
    for node in 0..3 {
        let read = found.read(&grown, (node, 3), &|_| true).expect("a table that has grown");
        for key in [Key(12), Key(13)] {
            let is_here = Layout::home(key, 3).index() == node;
            assert_eq!(read.write(key, &mut bias), is_here, "{key:?} on node {node}");
        }
    }
    let refused = |tables: Tables| found.check(&tables).expect_err("another table").to_string();
    assert!(refused(tables(9)).contains("words: 10 x 3 + adagrad 2 + clock 1, words: 9"));
    let other = Tables::new([Table::new("words", 10, 3), Table::new("none", 0, 4)]);
    assert!(refused(other.expect("legal")).contains("3 tables, 2 are wanted"));
}

#[test]
fn tables_with_too_many_rows_are_refused_before_anything_is_written() {
    let folder = Folder::new("rows");
    let of = |rows| Tables::new([Table::new("few", 1, 1), Table::new("many", rows, 1)]);
    let new = |rows| Checkpoints::new(&folder.0, &of(rows).expect("legal")).map(drop);
    let most = u64::from(u32::MAX);
    assert_eq!(new(most), Ok(()));
    let error = new(most + 1).expect_err("one more").to_string();
    let expected = "table many has 4294967296 rows, a checkpoint can have 4294967295 of a table";
    assert!(error.contains(expected) && error.ends_with("; train without checkpoints"), "{error}");
    assert!(error.starts_with(&*folder.0.to_string_lossy()) && !folder.0.exists(), "{error}");
}

#[test]
fn the_last_two_are_kept_and_what_they_refer_to() {
    let (folder, tables) = (Folder::new("kept"), tables(5));
    let place = Place { part: 0, parts: 1, workers: 2 };
    let writer = Writer::new(&folder.0, place);
    drop(owned(&folder.0, None).expect("can be made"));
    for step in 1..6 {
        let best = format!("best-{}", step / 2);
        if step != 3 {
            let own = Save { name: best.clone(), keeps: Keeps::All, ..save(&tables, step) };
            submit(&writer, place, &own, step);
        }
        let of_step = Save { needs: vec![best], ..save(&tables, step) };
        submit(&writer, place, &of_step, step);
        writer.wait();
        assert!(writer.take_outcome().is_some_and(|outcome| outcome.is_ok()));
    }
    assert_eq!(names(&folder.0), ["best-2", "step-00000004", "step-00000005"]);
    // What a killed run left, and what is not a checkpoint.
    fs::create_dir(folder.0.join("step-00000006.partial")).expect("can be made");
    fs::create_dir(folder.0.join("notes")).expect("can be made");
    drop(take(&folder.0));
    assert_eq!(names(&folder.0), ["best-2", "step-00000004", "step-00000005"]);
    assert!(!folder.0.join("step-00000006.partial").exists() && folder.0.join("notes").exists());
    drop(owned(&folder.0, None).expect("can be removed"));
    assert_eq!(names(&folder.0), [""; 0]);
    assert_eq!(Checkpoint::latest(&folder.0).expect("can be read").map(|_| ()), None);
}

#[test]
fn no_byte_can_change_and_no_end_be_cut_unseen() {
    let tables = tables(40);
    for is_apart in [false, true] {
        let folder = Folder::new(&format!("changed-{is_apart}"));
        if is_apart {
            let other = Folder::new("changed-other");
            apart::write([&folder.0, &other.0], &tables, 3, None);
        } else {
            write(&folder.0, &tables, 2, 3);
        }
        check_damage(&folder.0, &tables, is_apart);
    }
}

/// Checks that every change of a folder's only checkpoint is found: whole, or of parts 0 and 2.
fn check_damage(folder: &Path, tables: &Tables, is_apart: bool) {
    let complete = latest(folder).folder().to_path_buf();
    let mut files: Vec<PathBuf> = fs::read_dir(&complete)
        .expect("is there")
        .map(|entry| entry.expect("is there").path())
        .collect();
    assert_eq!(files.len(), 3, "a manifest and two files of rows: {files:?}");
    files.push(folder.join("latest"));
    let read = || -> Result<(), CheckpointError> {
        let found = Checkpoint::latest(folder)?.ok_or_else(|| {
            CheckpointError::new(folder, Fault::Damaged("there is none".to_owned()))
        })?;
        found.verify()?;
        if is_apart {
            return [0, 2]
                .into_iter()
                .try_for_each(|part| found.read_part(part, tables, &|_| true).map(drop));
        }
        found.read(tables, (0, 1), &|_| true).map(drop)
    };
    assert_eq!(read(), Ok(()));
    for file in &files {
        let whole = fs::read(file).expect("is there");
        let refused = |bytes: &[u8], what: &str| {
            fs::write(file, bytes).expect("can be written");
            let error = read().expect_err(what).to_string();
            let name = file.file_name().expect("has a name").to_string_lossy();
            assert!(error.contains(&*name) && !error.contains('\n'), "{what}: {error}");
            error
        };
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            let error = refused(&changed, &format!("byte {at} of {}", file.display()));
            let is_data = file.extension().is_some_and(|end| end == "safetensors")
                && (500..whole.len() - 4).contains(&at);
            assert!(!is_data || error.contains("header") || error.contains(": tensor "), "{error}");
        }
        for len in 0..whole.len() {
            refused(&whole[..len], &format!("{len} bytes of {}", file.display()));
        }
        refused(&[&*whole, b"\n"].concat(), "a byte more");
        fs::write(file, whole).expect("can be written");
    }
    assert_eq!(read(), Ok(()));
}

/// A disk that fails at one call, or ends the process there: nothing is written from there on.
struct Faulty {
    calls: Arc<AtomicUsize>,
    fails_at: usize,
    kind: io::ErrorKind,
    /// All later calls fail as well.
    is_dead: bool,
}

impl Faulty {
    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let fails = call == self.fails_at || (self.is_dead && call > self.fails_at);
        if fails { Err(self.kind.into()) } else { Ok(()) }
    }
}

impl Disk for Faulty {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| Os.make_folder(path))
    }
    fn create(&self, path: &Path) -> io::Result<File> {
        self.call().and_then(|()| Os.create(path))
    }
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        // A part of it was written.
        self.call().or_else(|error| Os.write(file, &bytes[..bytes.len() / 2]).and(Err(error)))?;
        Os.write(file, bytes)
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.call().and_then(|()| Os.sync(file))
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| Os.sync_folder(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call().and_then(|()| Os.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| Os.remove(path))
    }
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| Os.remove_folder(path))
    }
}

/// Saves checkpoints 1 and 2 well, then 3 on a disk that fails at call `fails_at`; returns true if
/// there are that many calls.
fn fails_at(
    (fails_at, is_dead): (usize, bool),
    kind: io::ErrorKind,
    parts: usize,
    faulty_part: usize,
) -> bool {
    let (folder, tables) =
        (Folder::new(&format!("fails{fails_at}{is_dead}{faulty_part}")), tables(20));
    (1..3).for_each(|step| write(&folder.0, &tables, parts, step));
    let calls = Arc::new(AtomicUsize::new(0));
    let writers: Vec<(Place, Writer)> = (0..parts)
        .map(|part| {
            let place = Place { part, parts, workers: 2 };
            let disk: Box<dyn Disk> = if part == faulty_part {
                Box::new(Faulty { calls: Arc::clone(&calls), fails_at, kind, is_dead })
            } else {
                Box::new(Os)
            };
            let here = (0..parts).collect();
            (place, Writer::by(&folder.0, (place, here), disk, Duration::from_millis(50)))
        })
        .collect();
    for (place, writer) in &writers {
        submit(writer, *place, &save(&tables, 3), 3);
    }
    let outcomes: Vec<_> = writers
        .iter()
        .map(|(_, writer)| {
            writer.wait();
            writer.take_outcome().expect("it ended")
        })
        .collect();
    let found = latest(&folder.0);
    assert_eq!(found.verify(), Ok(()));
    let step = if found.name() == "step-00000003" { 3 } else { 2 };
    check_read(&found, &tables, 3, step);
    let was_met = calls.load(Ordering::Relaxed) > fails_at;
    if !was_met {
        assert!(step == 3 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
    if step == 2 {
        let errors: Vec<String> = outcomes
            .iter()
            .filter_map(|outcome| Some(outcome.as_ref().err()?.to_string()))
            .collect();
        assert!(!errors.is_empty() && errors.iter().all(|error| !error.contains('\n')));
    }
    // The next run goes on in the folder.
    let place = Place { part: 0, parts: 1, workers: 2 };
    let next = Writer::new(&folder.0, place);
    let _owner = take(&folder.0);
    submit(&next, place, &save(&tables, 4), 4);
    next.wait();
    assert!(next.take_outcome().is_some_and(|outcome| outcome.is_ok()));
    check_read(&latest(&folder.0), &tables, 2, 4);
    was_met
}

#[test]
fn whatever_call_fails_or_is_the_last_the_last_complete_checkpoint_is_readable() {
    for (parts, faulty_part) in [(1, 0), (2, 0), (2, 1)] {
        for (is_dead, kind) in [(false, io::ErrorKind::StorageFull), (true, io::ErrorKind::Other)] {
            let met = |at: &usize| fails_at((*at, is_dead), kind, parts, faulty_part);
            let calls = (0..200).take_while(met).count();
            assert!((7..100).contains(&calls), "{calls} calls of part {faulty_part} of {parts}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
    let (folder, tables) = (Folder::new("file"), tables(5));
    fs::write(&folder.0, "no folder").expect("can be written");
    let place = Place { part: 0, parts: 1, workers: 2 };
    let writer = Writer::new(&folder.0.join("checkpoints"), place);
    let taken = owned(&folder.0.join("checkpoints"), None).map(drop);
    let error = taken.expect_err("a file is in its place");
    assert!(error.to_string().contains("not a directory; check it"), "{error}");
    submit(&writer, place, &save(&tables, 1), 1);
    writer.wait();
    assert!(writer.take_outcome().is_some_and(|outcome| outcome.is_err()));
    fs::remove_file(&folder.0).expect("can be removed");
}

#[test]
fn a_folder_is_held_by_one_process_at_a_time() {
    let folder = Folder::new("owner");
    let owner = owned(&folder.0, None).expect("nobody holds it");
    let error = owned(&folder.0, None).map(drop).expect_err("it is held");
    assert!(error.to_string().contains("another run has its checkpoints there; wait"), "{error}");
    drop(owner);
    owned(&folder.0, None).map(drop).expect("it was given back");
}

#[test]
fn a_sign_is_found_in_its_folder_for_a_while_and_nowhere_else() {
    let (folder, other) = (Folder::new("sign"), Folder::new("signs"));
    assert!(Sign::leave(&folder.0, 1, false).expect("is no error").is_none());
    let sign = Sign::leave(&folder.0, 1, true).expect("can be made").expect("is left");
    let again = Sign::leave(&folder.0, 1, false).expect("can be made").expect("is left");
    let name = sign.name().to_owned();
    assert!(Sign::is_in(&folder.0, &name) && !Sign::is_in(&other.0, &name));
    assert_ne!(name, again.name(), "another time");
    drop(sign);
    assert!(!Sign::is_in(&folder.0, &name) && Sign::is_in(&folder.0, again.name()));
    // As if it was killed.
    std::mem::forget(again);
    let _owner = owned(&folder.0, None).expect("nobody holds it");
    let left = fs::read_dir(&folder.0).expect("is there").map(|entry| entry.expect("is there"));
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn an_earlier_checkpoint_is_gone_on_from_as_well() {
    let (folder, tables) = (Folder::new("earlier"), tables(9));
    (1..3).for_each(|step| write(&folder.0, &tables, 1, step));
    // One that only what comes later needs would be another one's, the next time.
    let place = Place { part: 0, parts: 1, workers: 2 };
    let writer = Writer::new(&folder.0, place);
    let best = Save { name: "best-2".to_owned(), keeps: Keeps::All, ..save(&tables, 2) };
    submit(&writer, place, &best, 2);
    writer.wait();
    assert!(folder.0.join("best-2").exists());
    let earlier = Checkpoint::open(&folder.0.join("step-00000001")).expect("it is kept");
    drop(owned(&folder.0, Some(&earlier)).expect("nobody holds it"));
    assert_eq!(latest(&folder.0).name(), "step-00000001");
    check_read(&latest(&folder.0), &tables, 2, 1);
    assert_eq!(Checkpoint::list(&folder.0).expect("is there").len(), 1, "the later one is gone");
}
