//! Elements of your own: counters of 32 bits that stop at their end instead of wrapping around.
//!
//! A push may be added to others on its way to its key. For any way and any such sums, the value
//! must end as if all pushes were added one after the other. Test a new type with
//! `adapm_verify::value_suite!`. `cargo run -p adapm-runtime --example custom_value`

use adapm_runtime::prelude::*;

/// A counter that stays at its largest value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
struct Saturating(u32);

impl Value for Saturating {
    const NAME: &'static str = "saturating u32";

    fn accumulate(&mut self, update: Self) {
        self.0 = self.0.saturating_add(update.0);
    }

    fn magnitude(self) -> f64 {
        f64::from(self.0)
    }
}

adapm_verify::value_suite!(saturating, Saturating, |random| {
    // Counts of all sizes: few would meet the end else, or all of them.
    let bits = random.bits();
    Saturating((bits as u32) >> (bits >> 59))
});

const NODES: usize = 3;
const WORKERS: usize = 2;
const KEYS: u64 = 50;
const STEPS: u64 = 400;

/// What a worker pushes in one of its steps: to the first keys so much that they reach the end.
fn update(node: NodeId, worker: WorkerId, step: u64) -> (Key, Saturating) {
    let mut random = Random::new(u64::from(node.0) << 32 | u64::from(worker.0) << 16 | step);
    let key = random.below(KEYS);
    (Key(key), Saturating((random.below(1 << 29) >> key.min(28)) as u32))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::dense(&[(KEYS, 1)])?;
    let cluster = Builder::<Saturating>::new(layout).nodes(NODES).workers(WORKERS).build()?;
    cluster.try_run(|mut worker| {
        for step in 0..STEPS {
            let (key, count) = update(worker.node(), worker.id(), step);
            let clock = worker.advance_clock();
            worker.intent(&[key], clock..clock + 5)?;
            worker.push(&[key], &[count])?;
        }
        Ok::<(), OpError>(())
    })?;

    let mut expected = [Saturating(0); KEYS as usize];
    for node in (0..NODES as u16).map(NodeId) {
        for worker in (0..WORKERS as u16).map(WorkerId) {
            for (key, count) in (0..STEPS).map(|step| update(node, worker, step)) {
                expected[key.0 as usize].accumulate(count);
            }
        }
    }
    let mut full = 0;
    cluster.visit_main(|key, value| {
        assert_eq!(value[0], expected[key.0 as usize], "key {key}");
        full += u32::from(value[0] == Saturating(u32::MAX));
    })?;
    let stats = cluster.stats();
    println!("{KEYS} counters as if one worker had counted, {full} of them full");
    println!("{} replicas set up, {} main copies moved", stats.replicas, stats.relocations);
    Ok(())
}
