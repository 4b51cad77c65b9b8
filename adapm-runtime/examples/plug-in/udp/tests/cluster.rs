//! A cluster over UDP sockets whose datagrams get lost, repeated and reordered: its values are
//! those of the same cluster over TCP, and within one process.

use std::error::Error;
use std::sync::{Arc, Mutex};

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Nodes};
use adapm_transport::net::{self, Kind};
use adapm_verify::{FaultCounts, FaultRates, Faulty};
use plug_in_udp::{Exit, network, network_through};

const KEYS: u64 = 100;
const ROUNDS: u64 = 300;
const RATES: FaultRates = FaultRates { lost: 5, repeated: 5, reordered: 5, cut: 1 };

#[test]
fn a_bad_network_changes_no_value() -> Result<(), Box<dyn Error>> {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let all_counts = Arc::clone(&counts);
    let exit = move |seed: u64| -> Exit {
        let mut network = Faulty::new(RATES, seed);
        let counts = Arc::clone(&all_counts);
        let at = counts.lock().expect("no panic").len();
        counts.lock().expect("no panic").push(FaultCounts::default());
        Box::new(move |to, datagram| {
            let passed = network.pass(to, datagram);
            counts.lock().expect("no panic")[at] = network.counts();
            passed
        })
    };
    let over_tcp = values(Nodes::over(3, |_, nodes| {
        net::network(nodes, Kind::Tcp).expect("this machine listens")
    }))?;
    let over_udp = values(Nodes::over(3, |_, nodes| network(nodes)))?;
    let lossy = values(Nodes::over(3, move |channel, nodes| {
        network_through(nodes, |node| exit(u64::from(node.0) + 10 * u64::from(channel.0)))
    }))?;
    let in_one_process = values(Nodes::from(3))?;
    let expected: Vec<i64> = (0..KEYS).map(expected).collect();
    assert_eq!(lossy, expected);
    assert!(in_one_process == expected && over_tcp == expected && over_udp == expected);

    let counts = counts.lock().expect("no panic");
    let sum = |count: fn(&FaultCounts) -> u64| counts.iter().map(count).sum::<u64>();
    let (datagrams, lost) = (sum(|counts| counts.datagrams), sum(|counts| counts.lost));
    let (repeated, reordered) = (sum(|counts| counts.repeated), sum(|counts| counts.reordered));
    println!(
        "{datagrams} datagrams: {lost} lost, {repeated} repeated, {reordered} reordered; the sum of \
         all values is {} on each transport",
        expected.iter().sum::<i64>()
    );
    assert!(lost > 10 && repeated > 10 && reordered > 10, "the network has become tame");
    Ok(())
}

/// All values after every worker has pushed, with intents, over `nodes`.
fn values(nodes: Nodes) -> Result<Vec<i64>, Box<dyn Error>> {
    let layout = Layout::dense(&[(KEYS, 1)])?;
    let cluster = Builder::<i64>::new(layout).nodes(nodes).workers(2).channels(2).build()?;
    cluster.try_run(|mut worker| {
        for round in 0..ROUNDS {
            let keys = [Key(round % 3), Key(3 + round % (KEYS - 3))];
            let clock = worker.advance_clock();
            worker.intent(&keys, clock..clock + 5)?;
            worker.push(&keys, &[round as i64, 1])?;
        }
        Ok::<(), OpError>(())
    })?;
    let mut values = vec![0; KEYS as usize];
    cluster.visit_main(|key, value| values[key.0 as usize] = value[0])?;
    Ok(values)
}

/// What six workers have pushed to one key.
fn expected(key: u64) -> i64 {
    let sum: u64 = if key < 3 {
        (0..ROUNDS).filter(|round| round % 3 == key).sum()
    } else {
        (0..ROUNDS).filter(|round| 3 + round % (KEYS - 3) == key).count() as u64
    };
    6 * sum as i64
}
