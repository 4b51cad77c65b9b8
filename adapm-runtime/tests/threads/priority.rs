//! Threads of workers have priority over those of engines.

use std::fs;
use std::path::Path;

use adapm_runtime::System;

use crate::{IntWorker, Size, cluster};

/// Returns the name and nice value of a thread; `None` if it has ended.
fn status(thread: &Path) -> Option<(String, i32)> {
    let status = fs::read_to_string(thread.join("stat")).ok()?;
    let (name, rest) = status.split_once('(')?.1.rsplit_once(')')?;
    // Field 19, counted from 1; the third comes after the name.
    Some((name.to_owned(), rest.split_whitespace().nth(16)?.parse().ok()?))
}

#[test]
fn engines_give_way_to_workers() {
    let cluster = cluster(System::Adapm, Size(2, 1), 10, 1);
    let found = cluster.run(|mut worker: IntWorker| {
        worker.barrier().expect("all are there");
        let (_, own) = status(Path::new("/proc/thread-self")).expect("this one has not ended");
        let threads = fs::read_dir("/proc/self/task").expect("a process has threads");
        let all = threads.filter_map(|thread| status(&thread.ok()?.path()));
        // Threads of other tests may be starting.
        let polite =
            |(name, nice): &(String, i32)| name.ends_with(" c0") && *nice == (own + 3).min(19);
        all.filter(polite).count()
    });
    for polite in found.expect("a run") {
        assert!(polite >= 2, "{polite} engines of two");
    }
}
