//! Parts in two folders: each has its own rows, and what both have stays readable.

use super::*;
use crate::checkpoint::writer::Saved;

/// The folder of each part, where the second one is elsewhere.
const APART: [usize; 3] = [0, 1, 0];

/// Returns the writers of three parts in two folders.
fn writers_of(folders: [&Path; 2]) -> Vec<(Place, Writer)> {
    let here = |folder: usize| (0..3).filter(|part| APART[*part] == folder).collect();
    let of = |part: usize| {
        let place = Place { part, parts: 3, workers: 2 };
        (place, Writer::among(folders[APART[part]], place, here(APART[part])))
    };
    (0..3).map(of).collect()
}

/// Submits checkpoint `step`, beside which that of step `latest` stays, and returns how all ended.
fn save_by(
    writers: &[(Place, Writer)],
    tables: &Tables,
    step: u64,
    latest: Option<u64>,
) -> Vec<Result<Saved, CheckpointError>> {
    let latest = latest.map(|step| format!("step-{step:08}"));
    let keeps = Keeps::Only { latest, others: Vec::new() };
    let save = Save { keeps, ..save(tables, step) };
    writers.iter().for_each(|(place, writer)| submit(writer, *place, &save, step));
    let ended = writers.iter().map(|(_, writer)| {
        writer.wait();
        writer.take_outcome().expect("it ended")
    });
    ended.collect()
}

/// Writes checkpoint `step` by three parts in two folders, which is known there.
pub(super) fn write(folders: [&Path; 2], tables: &Tables, step: u64, latest: Option<u64>) {
    let writers = writers_of(folders);
    let _owners = folders.map(take);
    let ended = save_by(&writers, tables, step, latest);
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    for (_, writer) in &writers {
        writer.complete(&format!("step-{step:08}")).expect("can be written");
    }
}

#[test]
fn parts_in_two_folders_have_their_own_rows_and_no_folder_has_all() {
    let tables = tables(1_000);
    let (ann, bob) = (Folder::new("ann"), Folder::new("bob"));
    write([&ann.0, &bob.0], &tables, 7, None);
    let [first, second] = [&ann, &bob].map(|folder| latest(&folder.0));
    assert_eq!((first.here(), second.here()), (vec![0, 2], vec![1]));
    let mut rows = 0;
    for (part, folder) in APART.into_iter().enumerate() {
        let (found, other) = if folder == 0 { (&first, &second) } else { (&second, &first) };
        assert_eq!((found.parts(), found.is_apart(), found.verify()), (3, true, Ok(())));
        let read = found.read_part(part, &tables, &|_| true).expect("is here");
        let own = found.rows_of(part).expect("is here");
        assert_eq!(own.iter().sum::<u64>(), read.rows());
        rows += read.rows();
        for key in (0..tables.keys()).map(Key) {
            let expected = value(&tables, key, 7);
            let mut value = vec![-1.0; expected.len()];
            let is_own = Layout::home(key, 3).index() == part;
            assert_eq!(read.write(key, &mut value), is_own);
            assert!(!is_own || value == expected, "{key:?}");
        }
        assert!(other.rows_of(part).is_none());
        let error = other.read_part(part, &tables, &|_| true).expect_err("is elsewhere");
        assert!(error.to_string().contains(&format!("part {part} of 3 is in")), "{error}");
        found.read(&tables, (0, 1), &|_| true).expect_err("a row that is not there is not read");
    }
    assert_eq!(rows, tables.keys());
}

#[test]
fn the_last_that_all_folders_have_stays_however_often_one_of_them_fails() {
    let tables = tables(20);
    let (ann, bob) = (Folder::new("stays"), Folder::new("fails"));
    let folders = [&*ann.0, &*bob.0];
    write(folders, &tables, 1, None);
    let mut writers = writers_of(folders);
    let full = |folder: &Path| {
        let (fails_at, kind, calls) = (0, io::ErrorKind::StorageFull, Arc::default());
        let disk = Box::new(Faulty { calls, fails_at, kind, is_dead: true });
        let place = Place { part: 1, parts: 3, workers: 2 };
        (place, Writer::by(folder, (place, vec![1]), disk, Duration::from_millis(50)))
    };
    let of = |step: u64| format!("step-{step:08}");
    writers[1] = full(&bob.0);
    for step in 2..6 {
        let ended = save_by(&writers, &tables, step, Some(1));
        assert_eq!(ended.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!((names(&ann.0), names(&bob.0)), (vec![of(1), of(step)], vec![of(1)]));
    }
    // Bob can write again; what only Ann has is of no use.
    writers = writers_of(folders);
    for (step, last) in [(6, 1), (7, 6), (8, 7)] {
        let ended = save_by(&writers, &tables, step, Some(last));
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        for folder in folders {
            assert_eq!(names(folder), [of(last), of(step)]);
            assert_eq!(latest(folder).name(), of(last));
        }
    }
    // One that is being written elsewhere stays, too, and what any of them needs.
    let best = Save { name: "best-1".to_owned(), keeps: Keeps::All, ..save(&tables, 8) };
    let needs = vec![best.name.clone()];
    let keeps = Keeps::Only { latest: Some(of(7)), others: vec![of(8), of(99)] };
    let next = Save { keeps, needs, ..save(&tables, 9) };
    for (place, writer) in &writers {
        submit(writer, *place, &best, 8);
        submit(writer, *place, &next, 9);
    }
    writers.iter().for_each(|(_, writer)| writer.wait());
    let kept = ["best-1".to_owned(), of(7), of(8), of(9)];
    assert_eq!(folders.map(names), [kept.clone(), kept]);
}

#[test]
fn whatever_call_fails_what_all_folders_have_stays_readable() {
    let tables = tables(20);
    let fails = |is_dead: bool, fails_at: usize| {
        let (ann, bob) = (Folder::new("call-ann"), Folder::new("call-bob"));
        let folders = [&*ann.0, &*bob.0];
        write(folders, &tables, 1, None);
        write(folders, &tables, 2, Some(1));
        let (calls, kind) = (Arc::new(AtomicUsize::new(0)), io::ErrorKind::StorageFull);
        let disk = Box::new(Faulty { calls: Arc::clone(&calls), fails_at, kind, is_dead });
        let mut writers = writers_of(folders);
        let place = writers[0].0;
        let by = Writer::by(&ann.0, (place, vec![0, 2]), disk, Duration::from_millis(50));
        writers[0] = (place, by);
        let ended = save_by(&writers, &tables, 3, Some(2));
        assert!(ended[1].is_ok(), "{ended:?}");
        let [ann, bob] = folders.map(names);
        let all: Vec<_> = ann.iter().filter(|name| bob.contains(name)).collect();
        assert_eq!(all[0], "step-00000002", "{ann:?}, {bob:?}");
        // Who says that it is complete has it.
        assert!(ended[0].is_err() || all.len() == 2, "{ann:?}, {bob:?}");
        calls.load(Ordering::Relaxed) > fails_at
    };
    for is_dead in [false, true] {
        let calls = (0..200).take_while(|at| fails(is_dead, *at)).count();
        assert!((10..100).contains(&calls), "{calls} calls");
    }
}
