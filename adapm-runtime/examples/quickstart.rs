//! Two nodes with two workers each move 1,000 vectors to a target: the smallest complete program.
//!
//! `cargo run -p adapm-runtime --example quickstart`

use adapm_runtime::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1,000 parameters of 4 elements each; every node is home of half of them.
    let cluster = Builder::<f32>::new(Layout::dense(&[(1_000, 4)])?)
        .nodes(2)
        .workers(2)
        .system(System::Adapm)
        .initial(|_, value| value.fill(0.5))
        .build()?;

    // One thread per worker of every node; results come back in the order of (node, worker).
    let errors = cluster.try_run(|mut worker| {
        let mut random = Random::new(u64::from(worker.node().0 * 2 + worker.id().0));
        let mut batches: Vec<Vec<Key>> = Vec::new();
        let mut values = [0.0; 8 * 4];
        let mut error = 0.0;
        for batch in 0..2_000 {
            // Signal the accesses of the batch 200 clocks ahead, then work on this one.
            let mut ahead: Vec<Key> = (0..8).map(|_| Key(random.below(1_000))).collect();
            ahead.sort_unstable();
            let clock = worker.clock();
            worker.intent(&ahead, clock + 200..clock + 201)?;
            batches.push(ahead);
            worker.advance_clock();
            let Some(keys) = batch_of(&batches, batch) else { continue };

            worker.pull(keys, &mut values)?;
            error = values.iter().map(|value| (value - 2.0_f32).abs()).sum::<f32>() / 32.0;
            let updates = values.map(|value| 0.05 * (2.0 - value));
            worker.push(keys, &updates)?;
        }
        worker.quiesce()?;
        Ok::<f32, OpError>(error)
    })?;
    println!("error of the last batch, by worker: {errors:.3?}");

    let stats = cluster.stats();
    println!("local accesses: {:.1} %", 100.0 * stats.local_share());
    println!("relocations: {}, replicas: {}", stats.relocations, stats.replicas);
    println!("{} messages, {} bytes", stats.messages_sent, stats.bytes_sent);
    let mut sum = 0.0;
    cluster.visit_main(|_, value| sum += value[0])?;
    println!("mean of all parameters: {:.3}", sum / 1_000.0);
    Ok(cluster.shutdown()?)
}

/// Returns the batch that was announced 200 clocks ago.
fn batch_of(batches: &[Vec<Key>], batch: usize) -> Option<&[Key]> {
    batch.checked_sub(200).map(|announced| batches[announced].as_slice())
}
