//! A small cluster that follows the policy: no push is lost, and hot keys got replicas.

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::Builder;
use plug_in_policy::HotKeys;

#[test]
fn every_push_arrives() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::dense(&[(100, 1)])?;
    let builder = Builder::<i64>::new(layout).nodes(3).workers(2);
    let cluster = builder.policy(HotKeys::new).build()?;
    cluster.try_run(|mut worker| {
        for round in 0..500 {
            let keys = [Key(round % 3), Key(3 + round % 97)];
            let clock = worker.advance_clock();
            worker.intent(&keys, clock..clock + 5)?;
            worker.push(&keys, &[1; 2])?;
        }
        Ok::<(), OpError>(())
    })?;
    let mut sum = 0;
    cluster.visit_main(|_, value| sum += value[0])?;
    assert_eq!(sum, 3 * 2 * 500 * 2);
    let stats = cluster.stats();
    println!("{} replicas set up, {} main copies moved", stats.replicas, stats.relocations);
    Ok(())
}
