//! Four nodes train with negative samples: the cost of each sampling scheme, and the deviation of
//! its samples from the requested distribution.
//!
//! Each step of a worker reads and updates a batch of keys, some of which are in use far more often
//! than others, and a sample of uniformly drawn keys. Both are prepared 100 steps ahead.
//!
//! `cargo run --release -p adapm-runtime --example sampling`

use std::collections::VecDeque;

use adapm_runtime::prelude::*;

const KEYS: u64 = 10_000;
const NODES: usize = 4;
const STEPS: usize = 2_000;
const AHEAD: usize = 100;
const BATCH: usize = 32;
const SAMPLED: usize = 64;
const LEN: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{NODES} nodes, {KEYS} keys, {STEPS} steps of {BATCH} keys in use and {SAMPLED} sampled ones"
    );
    println!(
        "| system | scheme | sampled keys local | MB sent | distance | of a node | share of keys in use |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for scheme in Scheme::ALL {
        compare(System::Adapm, scheme)?;
    }
    for scheme in [Scheme::Naive, Scheme::Local] {
        compare(System::Classic, scheme)?;
    }
    println!(
        "distance: between drawn and uniform shares, summed over all keys, halved; exact draws have some by chance"
    );
    println!("of a node: the same for what one node sampled, the mean of all");
    println!(
        "share of keys in use: how often the {} keys most in use were sampled, 1 if as often as others",
        KEYS / 100
    );
    Ok(())
}

/// Trains under one scheme and prints its row.
fn compare(system: System, scheme: Scheme) -> Result<(), Box<dyn std::error::Error>> {
    let sampling = Sampling::uniform(scheme, Key(0)..Key(KEYS), 1);
    let cluster = Builder::<f32>::new(Layout::dense(&[(KEYS, LEN)])?)
        .nodes(NODES)
        .system(system)
        .sampling(sampling)
        .build()?;
    let counts = cluster.try_run(train)?;
    let stats: Stats = cluster.stats();
    cluster.shutdown()?;

    let of_nodes = counts.iter().map(|counts| distance(counts)).sum::<f64>() / NODES as f64;
    let all: Vec<u64> =
        (0..KEYS as usize).map(|key| counts.iter().map(|counts| counts[key]).sum()).collect();
    let in_use = &all[..all.len() / 100];
    let share = in_use.iter().sum::<u64>() as f64 / all.iter().sum::<u64>() as f64 * 100.0;
    println!(
        "| {system} | {scheme} | {:.1} % | {:.0} | {:.3} | {of_nodes:.3} | {share:.2} |",
        100.0 * stats.sampled_local as f64 / stats.sampled as f64,
        stats.bytes_sent as f64 / 1e6,
        distance(&all),
    );
    Ok(())
}

/// Trains as one worker. Returns how often it sampled each key.
fn train(mut worker: Worker<f32>) -> Result<Vec<u64>, OpError> {
    let mut counts = vec![0; KEYS as usize];
    let mut random = Random::new(u64::from(worker.node().0));
    let mut prepared: VecDeque<(Vec<Key>, Sample)> = VecDeque::new();
    let (mut keys, mut values) = (vec![Key(0); SAMPLED], vec![0.0; LEN * SAMPLED]);
    for step in 0..STEPS + AHEAD {
        if step < STEPS {
            // The keys that the step AHEAD of this one will use, and its sample.
            let clock = worker.clock() + AHEAD as u64;
            let batch: Vec<Key> =
                (0..BATCH).map(|_| Key((random.unit().powi(3) * KEYS as f64) as u64)).collect();
            worker.intent(&batch, clock..clock + 1)?;
            prepared.push_back((batch, worker.prepare_sample(SAMPLED, clock..clock + 1)?));
        }
        if step >= AHEAD
            && let Some((batch, mut sample)) = prepared.pop_front()
        {
            // One step before its pull, so that chosen keys stay.
            if let Some((_, next)) = prepared.front_mut() {
                worker.choose_sample(next)?;
            }
            let mut used = vec![0.0; LEN * batch.len()];
            worker.pull(&batch, &mut used)?;
            worker.pull_sample(&mut sample, &mut keys, &mut values)?;
            keys.iter().for_each(|key| counts[key.0 as usize] += 1);
            // Learning would happen here.
            worker.push(&batch, &vec![0.01; used.len()])?;
            worker.push(&keys, &vec![-0.01; values.len()])?;
        }
        worker.advance_clock();
    }
    Ok(counts)
}

/// Returns half of the sum of differences between the shares of these counts and equal ones: 0 if
/// they are equal, at most 1.
fn distance(counts: &[u64]) -> f64 {
    let sum = counts.iter().sum::<u64>() as f64;
    let equal = 1.0 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 / sum - equal).abs()).sum::<f64>() / 2.0
}
