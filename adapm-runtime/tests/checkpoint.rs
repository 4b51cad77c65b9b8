//! Checkpoints of clusters, written by all workers while they train.
#![cfg(feature = "checkpoint")]

use std::path::PathBuf;

use adapm_runtime::checkpoint::{Checkpoint, Checkpoints};
use adapm_runtime::prelude::*;
use adapm_runtime::tables::{Table, Tables};

const KEYS: u64 = 300;
const ROUNDS: u64 = 3;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("adapm-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tables() -> Tables {
    let rows = Table::new("rows", KEYS - 2, 2).with_state("adagrad", 1);
    let rows = rows.initial(|row, value| value.fill(row as f32));
    Tables::new([rows, Table::new("layer", 2, 5)]).expect("legal")
}

/// Values of all keys, one behind the other.
fn all(tables: &Tables, cluster: &Cluster<f32>) -> Vec<f32> {
    let keys: Vec<Key> = (0..tables.keys()).map(Key).collect();
    let len = |key: &Key| tables.as_slice()[tables.locate(*key).expect("a key").0].row_len();
    let mut values = vec![0.0; keys.iter().map(len).sum()];
    cluster.read(&keys, &mut values).expect("known keys");
    values
}

/// Every worker pushes a 1 to every element of every key, `ROUNDS` times, with a checkpoint
/// between. A checkpoint has what all have pushed before it, and nothing of what they push after
/// it.
#[test]
fn a_checkpoint_is_a_cut_whatever_moves_and_any_number_of_nodes_goes_on_from_it() {
    let tables = tables();
    for system in System::ALL {
        let folder = Folder::new(&format!("cut-{system}"));
        let checkpoints = Checkpoints::new(&folder.0, &tables).expect("few rows");
        let cluster = tables.builder().expect("legal").nodes(3).workers([2, 1, 2]).system(system);
        let hot = (0..KEYS).step_by(3).filter(|_| system.has_hot_keys()).map(Key);
        let cluster = cluster.hot_keys(hot).build().expect("starts");
        let parts = cluster
            .try_run(|mut worker| {
                let lens: Vec<usize> =
                    (0..KEYS).map(|key| if key < KEYS - 2 { 3 } else { 5 }).collect();
                let first = worker.number() as u64;
                for round in 1..=ROUNDS {
                    for key in (0..KEYS).map(|key| (key * 7 + first) % KEYS) {
                        if key % 3 == 0 && system.localizes() {
                            drop(worker.localize_async(&[Key(key)])?);
                        }
                        let clock = worker.clock();
                        worker.intent(&[Key((key + 1) % KEYS)], clock + 1..clock + 3)?;
                        worker.push(&[Key(key)], &vec![1.0; lens[key as usize]])?;
                        worker.advance_clock();
                    }
                    worker.checkpoint(&checkpoints, round, &format!("{{\"round\": {round}}}"))?;
                }
                // Behind the last one: in no checkpoint.
                worker.push(&[Key(0)], &[1.0; 3])?;
                worker.snapshot(Vec::new()).map(|part| part.keys().collect::<Vec<_>>())
            })
            .expect("no failure");
        let mut copied = parts.concat();
        copied.sort_unstable();
        assert!(copied.into_iter().eq((0..KEYS).map(Key)), "each key once under {system}");
        assert_eq!(
            checkpoints.wait().expect("can be written").map(|saved| saved.name),
            Some("step-0000000003".to_owned())
        );
        drop(cluster);
        let names = Checkpoint::list(&folder.0).expect("is there");
        assert_eq!(names.len(), 2, "the last two are kept: {names:?}");
        for path in names {
            let found = Checkpoint::open(&path).expect("can be read");
            found.verify().expect("is as it was written");
            let round: u64 = found.program()[9..10].parse().expect("a number");
            for nodes in [1, 2, 4] {
                let builder = tables.builder().expect("legal").nodes(nodes);
                let read = found.read(&tables, (0, 1), &|_| true).expect("can be read");
                let cluster = builder.restore(&read).build().expect("starts");
                let values = all(&tables, &cluster);
                let pushed = (5 * round) as f32;
                for (at, value) in values.iter().enumerate() {
                    let row = at / 3;
                    let first = if row < KEYS as usize - 2 { row as f32 } else { 0.0 };
                    assert_eq!(
                        *value,
                        first + pushed,
                        "element {at} of round {round} under {system}"
                    );
                }
            }
        }
    }
}

/// A run that is stopped between two checkpoints and goes on from the first ends as one that was
/// not.
#[test]
fn a_run_that_goes_on_ends_with_the_same_bytes_as_one_that_was_not_stopped() {
    let (tables, folder) = (tables(), Folder::new("goes-on"));
    let step = |worker: &mut Worker<f32>, step: u64| {
        let (key, mut row) = (Key(step * 11 % (KEYS - 2)), [0.0; 3]);
        worker.pull(&[key], &mut row)?;
        worker.push(&[key], &row.map(|value| 0.1 * value + step as f32 / 3.0))
    };
    let checkpoints = Checkpoints::new(&folder.0, &tables).expect("few rows");
    let run = |cluster: &Cluster<f32>, steps: std::ops::Range<u64>| {
        cluster
            .try_run(|mut worker| {
                for at in steps.clone() {
                    step(&mut worker, at)?;
                    if at == 99 {
                        worker.checkpoint(&checkpoints, at, "{}")?;
                    }
                }
                Ok::<(), OpError>(())
            })
            .expect("no failure");
        all(&tables, cluster)
    };
    let cluster = || tables.builder().expect("legal");
    let whole = run(&cluster().build().expect("starts"), 0..500);
    checkpoints.wait().expect("can be written");
    let found = Checkpoint::latest(&folder.0).expect("can be read").expect("is there");
    let rows = found.read(&tables, (0, 1), &|_| true).expect("can be read");
    let resumed = run(&cluster().restore(&rows).build().expect("starts"), 100..500);
    assert!(whole.iter().zip(&resumed).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn a_cluster_with_other_keys_than_the_tables_is_refused_and_a_sparse_one_has_no_copy() {
    let (tables, folder) = (tables(), Folder::new("other-keys"));
    let checkpoints = Checkpoints::new(&folder.0, &tables).expect("few rows");
    let layouts = [Layout::dense(&[(KEYS - 3, 3), (2, 5)]), Layout::sparse(&[(u64::MAX / 2, 3)])];
    for layout in layouts.map(|layout| layout.expect("legal")) {
        let is_sparse = layout != Layout::dense(&[(KEYS - 3, 3), (2, 5)]).expect("legal");
        let cluster = adapm_runtime::Builder::<f32>::new(layout).nodes(2).build().expect("starts");
        let refused = cluster.run(|mut worker| {
            assert_eq!(worker.checkpoint(&checkpoints, 1, "{}"), Err(OpError::Layout));
            if is_sparse {
                assert_eq!(worker.snapshot(Vec::new()).map(drop), Err(OpError::Layout));
            }
        });
        refused.expect("no failure");
    }
    assert!(!folder.0.exists(), "nothing is made");
}
