//! A small cluster over the transport: no push is lost.

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Nodes};

#[test]
fn every_push_arrives() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::dense(&[(100, 1)])?;
    let nodes = Nodes::over(3, |_channel, nodes| plug_in_transport::network(nodes));
    let cluster = Builder::<i64>::new(layout).nodes(nodes).workers(2).channels(2).build()?;
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
    println!("{} messages through channels", cluster.stats().messages_sent);
    Ok(())
}
