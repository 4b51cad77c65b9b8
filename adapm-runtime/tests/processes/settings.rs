//! Processes agree on their settings before they start, and learn if one of them cannot start.

use adapm_core::error::OpError;
use adapm_core::transport::CloseReason;
use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{BuildError, Builder, System};

use super::{builder, each};

/// Returns the build errors of all nodes; `adjust` changes the settings of node n1.
fn failures(adjust: impl Fn(Builder<i64>) -> Builder<i64> + Sync) -> Vec<String> {
    failures_beside(|builder| builder, adjust)
}

/// Does the same with settings that `all` changes before.
fn failures_beside(
    all: impl Fn(Builder<i64>) -> Builder<i64> + Sync,
    adjust: impl Fn(Builder<i64>) -> Builder<i64> + Sync,
) -> Vec<String> {
    each(3, |group| {
        let builder = all(builder().workers(2).channels(1));
        let builder = if group.node() == NodeId(1) { adjust(builder) } else { builder };
        let error = builder.nodes(&group).build().map(drop).expect_err("they cannot work together");
        // The group survives: another attempt can follow.
        group.all_gather(&[]).expect("all are there");
        group.leave(CloseReason::Finished);
        error.to_string()
    })
}

#[test]
fn other_settings_are_named_with_the_node_that_has_them() {
    let same = "give all nodes the same settings";
    let texts = failures(|builder| builder.workers(3));
    assert_eq!(texts[0], format!("node n1 has workers: 3, this node has workers: 2: {same}"));
    assert_eq!(texts[1], format!("node n0 has workers: 2, this node has workers: 3: {same}"));
    assert_eq!(texts[2], texts[0]);
    let texts = failures(|builder| builder.workers([2, 1, 2]));
    assert_eq!(texts[0], format!("node n1 has workers: 2,1,2, this node has workers: 2: {same}"));
    let texts = failures(|builder| builder.system(System::Lapse));
    assert_eq!(texts[2], format!("node n1 has system: lapse, this node has system: adapm: {same}"));
    let texts = failures(|builder| builder.channels(2));
    assert_eq!(texts[0], format!("node n1 has channels: 2, this node has channels: 1: {same}"));
    assert_eq!(texts[1], format!("node n0 has channels: 1, this node has channels: 2: {same}"));
    let hot = |builder: Builder<i64>, keys: std::ops::Range<u64>| {
        builder.system(System::Nups).hot_keys(keys.map(Key))
    };
    for (others, of_n1) in [(4, 3..7), (0, 0..3)] {
        let texts = failures_beside(|b| hot(b, 0..others), |b| hot(b, of_n1.clone()));
        let told = format!("node n1 has hot keys: {} (", of_n1.end - of_n1.start);
        let here = format!("this node has hot keys: {others} (");
        assert!(texts[0].starts_with(&told) && texts[0].contains(&here), "{}", texts[0]);
        assert!(texts[2] == texts[0] && texts[0].ends_with(same), "{texts:?}");
    }
    let first: Vec<u16> = vec![0; super::KEYS as usize];
    let texts = failures(|builder| builder.homes(first.clone()));
    assert!(texts[0].starts_with("node n1 has homes: table "), "{}", texts[0]);
    assert!(texts[0].ends_with(&format!(", this node has homes: by hash: {same}")), "{}", texts[0]);
    let texts = failures(|builder| builder.homes(vec![3; super::KEYS as usize]));
    assert_eq!(
        texts[0],
        "node n1 cannot go on: home of key 0 is node n3, which is not in a cluster of 3 nodes"
    );
    let other = Layout::dense(&[(super::KEYS, 2)]).expect("a valid layout");
    let texts = failures(|_| Builder::new(other.clone()).workers(2).channels(1));
    assert!(
        texts[0].starts_with("node n1 has layout: ") && texts[0].ends_with(same),
        "{}",
        texts[0]
    );
}

#[test]
fn a_process_that_cannot_go_on_says_why_to_all() {
    let texts = failures(|builder| builder.workers(0));
    assert_eq!(texts[1], "0 workers per node: use 1 to 65535");
    assert_eq!(texts[0], "node n1 cannot go on: 0 workers per node: use 1 to 65535");
    assert_eq!(texts[2], texts[0]);
}

#[test]
fn channels_that_nobody_has_set_follow_whoever_has() {
    each(3, |group| {
        let told = if group.node() == NodeId(2) { builder().channels(3) } else { builder() };
        let cluster = told.nodes(&group).build().expect("a valid cluster");
        assert_eq!(cluster.link_stats().len(), 3);
        assert_eq!(cluster.run(|worker| worker.node()), Ok(vec![group.node()]));
        cluster.shutdown().expect("no failure");
        group.leave(CloseReason::Finished);
    });
}

#[test]
fn a_panic_in_the_initial_values_of_one_process_ends_all() {
    let errors = each(2, |group| {
        let builder = builder().initial({
            let node = group.node();
            move |_, _| {
                if node == NodeId(1) {
                    std::panic::resume_unwind(Box::new("planned"));
                }
            }
        });
        let error =
            builder.nodes(&group).build().map(drop).expect_err("half of the keys have no value");
        group.leave(CloseReason::Finished);
        error
    });
    let (what, message) = ("the function of initial values".to_owned(), "planned".to_owned());
    let message_of_1 = format!("{what} panicked: {message}");
    assert_eq!(errors[0], BuildError::Process { node: NodeId(1), message: message_of_1 });
    assert_eq!(errors[1], BuildError::Panicked { what, message });
}

#[test]
fn each_process_may_have_a_number_of_workers_of_its_own() {
    let list = [2, 1, 3];
    each(3, |group| {
        let cluster = builder().workers(list).nodes(&group).build().expect("a valid cluster");
        let own = group.node().index();
        let numbers = cluster.try_run(|mut worker| {
            worker.push(&[Key(0)], &[1])?;
            worker.quiesce()?;
            let mut sum = [0];
            worker.pull(&[Key(0)], &mut sum)?;
            assert_eq!((sum, worker.all_workers()), ([6], 6));
            Ok::<_, OpError>(worker.number())
        });
        let first: usize = list[..own].iter().sum();
        assert_eq!(numbers, Ok((first..first + list[own]).collect()));
        cluster.shutdown().expect("no failure");
        group.leave(CloseReason::Finished);
    });
}
