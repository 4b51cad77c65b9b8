//! Three machines, some of which cannot reach each other any more: all end with 75, and blame the
//! same one.

use crate::harness::{Ended, Process, folder, ring, skip, train_json};
use crate::machines::Machines;

/// Trains until `cuts` are made, and until all have ended; `None`: this machine cannot play three.
fn partition(name: &str, cuts: &[(usize, usize)]) -> Option<Vec<Ended>> {
    let machines = match Machines::new(3) {
        Ok(machines) => machines,
        Err(reason) => {
            skip(name, &reason);
            return None;
        }
    };
    let data = ring(&folder(name));
    let train = train_json(&data, "1000000");
    let start = |node: usize| {
        let mut command = machines.node(node);
        command.args(&train).args(["--dead-after", "3"]);
        Process::start(&format!("n{node}"), &mut command)
    };
    let nodes: Vec<Process> = (0..3).map(start).collect();
    nodes[0].stdout_lines(3);
    cuts.iter().for_each(|&(from, to)| machines.cut(from, to));
    Some(nodes.into_iter().map(Process::end).collect())
}

/// n0 is never in doubt; `lost` was given up by `by`, and no other node is blamed.
fn is_given_up(ended: &[Ended], lost: usize, by: usize) {
    for (node, ended) in ended.iter().enumerate() {
        assert_eq!(ended.code, Some(75), "n{node}: {ended:?}");
        let error = ended.error();
        if node == lost {
            assert!(error.starts_with("error: this node was given up by "), "{ended:?}");
            assert!(error.contains(&format!("n{by}")), "{ended:?}");
        } else {
            assert!(
                error.starts_with(&format!("error: node n{lost} (10.77.0.")),
                "n{node}: {ended:?}"
            );
        }
    }
}

#[test]
fn two_that_cannot_reach_each_other_agree_on_who_is_given_up() {
    if let Some(ended) = partition("partition_pair", &[(1, 2), (2, 1)]) {
        is_given_up(&ended, 2, 1);
    }
}

#[test]
fn a_node_that_cannot_send_to_another_is_given_up_and_says_so() {
    if let Some(ended) = partition("partition_one_way", &[(1, 0)]) {
        is_given_up(&ended, 1, 0);
    }
}

#[test]
fn a_node_that_reaches_nobody_says_so_and_the_others_name_it() {
    let Some(ended) = partition("partition_alone", &[(0, 2), (2, 0), (1, 2), (2, 1)]) else {
        return;
    };
    assert!(ended.iter().all(|ended| ended.code == Some(75)), "{ended:?}");
    for other in &ended[..2] {
        assert!(other.error().starts_with("error: node n2 (10.77.0.3:"), "{other:?}");
    }
    assert!(
        ended[2].error().contains("this node has lost contact with all 2 others"),
        "{:?}",
        ended[2]
    );
}
