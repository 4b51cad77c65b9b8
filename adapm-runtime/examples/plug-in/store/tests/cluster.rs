//! A small cluster that keeps its values in the store: no push is lost.
#![cfg(not(adapm_loom))]

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::Builder;
use plug_in_store::MutexStore;

#[test]
fn every_push_arrives() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::dense(&[(100, 4)])?;
    let builder = Builder::<i64>::new(layout).nodes(3).workers(2);
    let cluster = builder.store(|layout, _node| MutexStore::<i64>::new(layout)).build()?;
    cluster.try_run(|mut worker| {
        for round in 0..200 {
            let keys = [Key(round % 10), Key(10 + round % 90)];
            let clock = worker.advance_clock();
            worker.intent(&keys, clock..clock + 5)?;
            worker.push(&keys, &[1; 8])?;
        }
        Ok::<(), OpError>(())
    })?;
    let mut sum = 0;
    cluster.visit_main(|_, value| sum += value.iter().sum::<i64>())?;
    assert_eq!(sum, 3 * 2 * 200 * 8);
    Ok(())
}
