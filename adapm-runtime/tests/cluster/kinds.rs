//! A cluster whose nodes use different kinds of links (TCP, Unix sockets, tokio, ZeroMQ) loses no
//! update and counts none twice.

use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Nodes};
use adapm_transport::net::{Kind, network_with};

use crate::channels;

const KINDS: [Kind; 5] = [Kind::Tcp, Kind::Unix, Kind::Tokio, Kind::Zmq, Kind::Tcp];
const KEYS: u64 = 60;
const LENGTH: usize = 8;
const CLOCKS: u64 = 120;

#[test]
fn a_cluster_of_all_kinds_keeps_every_update() {
    let layout = Layout::dense(&[(KEYS, LENGTH)]).expect("a valid layout");
    let nodes = Nodes::over(KINDS.len(), |channel, nodes| {
        let kinds = |config: &mut adapm_transport::net::NetConfig| {
            config.channel = channel.0;
            config.kind = KINDS[config.node.index()];
        };
        network_with(nodes, kinds).expect("this machine has a loopback address")
    });
    let builder = Builder::<i64>::new(layout).nodes(nodes).channels(channels::draw());
    let cluster = builder.build().expect("a valid cluster");
    let pushed = cluster.run(|mut worker| {
        let (first, second) = (u64::from(worker.node().0), u64::from(worker.id().0));
        let mut total = 0;
        for step in 0..CLOCKS {
            // Neighbours share keys, all nodes share a few: some move, some are replicated.
            let keys =
                [(7 * first + step) % KEYS, (11 * second + 3 * step) % KEYS, step % 3].map(Key);
            let keys = if keys[0] == keys[1] || keys[1] == keys[2] || keys[0] == keys[2] {
                &keys[..1]
            } else {
                &keys
            };
            let clock = worker.advance_clock();
            worker.intent(keys, clock..clock + 4).expect("a window");
            let updates = vec![step as i64 + 1; keys.len() * LENGTH];
            worker.push(keys, &updates).expect("known keys");
            total += updates.iter().sum::<i64>();
        }
        total
    });
    let pushed: i64 = pushed.expect("no failure").iter().sum();
    let mut kept = 0;
    cluster.visit_main(|_, value| kept += value.iter().sum::<i64>()).expect("the cluster is quiet");
    assert_eq!(kept, pushed);
    let stats = cluster.stats();
    assert!(
        stats.messages_sent > 100,
        "nodes have hardly talked: {} messages",
        stats.messages_sent
    );
    cluster.shutdown().expect("no failure");
}
