//! `kill -9` of each node in turn, at any moment: all others end soon, and say which node was lost
//! and where it was. And of a run that replaces a model: the old or the new one is there, whole.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use adapm_verify::rng::Rng;
use rustix::process::Signal;

use crate::harness::{Process, adapm, folder, nodes, pass, ring, runs, text, train_json};

const NODES: usize = 3;
const DEAD_AFTER: &str = "2";
const TRANSPORTS: [&str; 4] = ["tcp", "tokio", "zmq", "unix"];

/// Returns one run in which `victim` is killed `delay` after training has begun; how long the last
/// survivor took to end.
fn kill_one(run: u64, victim: usize, transport: &str, delay: Duration) -> Duration {
    let folder = folder(&format!("killed_{run}"));
    let data = ring(&folder);
    let flags = train_json(&data, "100000000");
    let processes = ["--transport", transport, "--dead-after", DEAD_AFTER];
    let mut nodes = nodes(&folder, NODES, &[flags.as_slice(), &processes].concat());
    nodes[0].stdout_lines(1);
    pass(delay);
    let killed = nodes.remove(victim);
    killed.signal(Signal::KILL);
    let since = Instant::now();
    let killed = killed.end();
    assert_eq!(killed.code, None, "{killed:?}");
    for node in nodes {
        let ended = node.end();
        let name = format!("run {run}, {transport}, n{victim} killed after {delay:?}: {ended:?}");
        assert_eq!(ended.code, Some(75), "{name}");
        let error = ended.error();
        assert!(error.contains(&format!("n{victim}")) && error.contains("127.0.0.1:"), "{name}");
    }
    since.elapsed()
}

#[test]
fn every_other_node_ends_and_names_the_one_that_was_killed() {
    let runs = runs("ADAPM_KILL_RUNS", 4);
    let mut rng = Rng::new(runs);
    let mut slowest = Duration::ZERO;
    for run in 0..runs {
        let transport = TRANSPORTS[run as usize % TRANSPORTS.len()];
        let delay = Duration::from_millis(rng.within(0..1_000) as u64);
        slowest = slowest.max(kill_one(run, run as usize % NODES, transport, delay));
    }
    println!(
        "counts: {runs} nodes killed; the slowest survivor took {slowest:.1?} with --dead-after {DEAD_AFTER}"
    );
}

/// Returns a run that writes a model which is large enough for that to take a good part of its
/// time.
fn saving(folder: &Path, data: &str, seed: &str, model: &str) -> Process {
    let flags = [
        "train",
        "kge",
        "--data",
        data,
        "--seed",
        seed,
        "--epochs",
        "1",
        "--no-eval",
        "--workers",
        "1",
    ];
    let mut command = adapm();
    command
        .args(flags)
        .args(["--dim", "20000", "--negative-count", "1", "--save", model])
        .current_dir(folder);
    Process::start("saving", &mut command)
}

fn partials(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("it is there").filter_map(Result::ok);
    entries
        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "partial"))
        .count()
}

#[test]
fn a_run_that_replaces_a_model_leaves_the_old_or_the_new_one_whole() {
    let runs = runs("ADAPM_KILL_RUNS", 6);
    let folder = folder("killed_saving");
    let data = ring(&folder);
    let saved = |seed: &str| {
        let began = Instant::now();
        let ended = saving(&folder, &data, seed, seed).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (fs::read(folder.join(seed)).expect("it was saved"), began.elapsed())
    };
    let ((old, _), (new, took)) = (saved("1"), saved("2"));
    assert!(old != new, "another seed gives another model");
    let model = folder.join("model");
    let (mut rng, mut found, mut left) = (Rng::new(runs), [0, 0], 0);
    for run in 0..runs {
        fs::write(&model, &old).expect("a file can be written");
        let process = saving(&folder, &data, "2", text(&model));
        // Within the run, and now and then after its end.
        let delay = took.mul_f64(rng.within(0..1_100) as f64 / 1_000.0);
        pass(delay);
        process.signal(Signal::KILL);
        let ended = process.end();
        let bytes = fs::read(&model).expect("a model is there");
        assert!(
            bytes == old || bytes == new,
            "run {run}, killed after {delay:?}: damaged: {ended:?}"
        );
        found[usize::from(bytes == new)] += 1;
        left += usize::from(partials(&folder) > 0);
        assert!(partials(&folder) <= 1, "run {run}: what the run before has left was removed");
    }
    println!(
        "counts: {runs} runs killed while they replaced a model: {} left the old one, {} the new one; {left} left a \
         partial file",
        found[0], found[1]
    );
    assert_eq!(saving(&folder, &data, "2", text(&model)).end().code, Some(0));
    assert!(fs::read(&model).expect("it was saved") == new && partials(&folder) == 0);
}
