//! Bad input is reported to the caller at once, as a clear error, and changes nothing.

use adapm_core::error::{ConfigError, OpError};
use adapm_core::update::UpdateRule;
use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::{
    BuildError, Builder, Nodes, RunError, Sampling, SamplingError, Scheme, System,
};

use crate::channels;

fn layout(keys: u64) -> Layout {
    Layout::dense(&[(keys, 2)]).expect("a valid layout")
}

fn refusal(builder: Builder<i64>) -> BuildError {
    builder.build().map(drop).expect_err("it cannot work")
}

/// Keeps so many numbers beside a parameter of any length, and adds the gradient to it.
struct Keeps(usize);

impl UpdateRule<i64> for Keeps {
    fn state_len(&self, _dim: usize) -> usize {
        self.0
    }

    fn step(&self, _value: &[i64], gradient: &[i64], update: &mut [i64]) -> bool {
        update[..gradient.len()].copy_from_slice(gradient);
        true
    }
}

#[test]
fn calls_that_cannot_be_done_are_refused_at_once_and_change_nothing() {
    for (nodes, channels) in [1, 2, 1, 2].map(|nodes| (nodes, channels::draw())) {
        let cluster =
            Builder::<i64>::new(layout(10)).nodes(nodes).channels(channels).build().expect("valid");
        let outcome = cluster.run(|mut worker| {
            let all: Vec<Key> = (0..10).map(Key).collect();
            let bad = [Key(0), Key(10)];
            let unknown = || Err(OpError::UnknownKey { key: Key(10), end: Key(10) });
            assert_eq!(worker.pull(&bad, &mut [7; 4]), unknown());
            assert_eq!(worker.push(&bad, &[7; 4]), unknown());
            assert_eq!(worker.set(&bad, &[7; 4]), unknown());
            assert_eq!(worker.update(&bad, &[7; 2], &Keeps(1)), unknown());
            assert_eq!(worker.localize(&bad), unknown());
            assert_eq!(worker.intent(&bad, Clock(0)..Clock(1)), unknown());
            assert_eq!(worker.intent_handle().intent(&bad, Clock(0)..Clock(1)), unknown());
            assert_eq!(worker.intent_handle().localize(&bad), unknown());
            assert_eq!(worker.pull_if_local(Key(u64::MAX), &mut [7; 2]).map(drop), {
                Err(OpError::UnknownKey { key: Key(u64::MAX), end: Key(10) })
            });
            assert_eq!(worker.pull_async(&bad).map(drop), unknown());
            assert_eq!(worker.push_async(&bad, &[7; 4]).map(drop), unknown());
            assert_eq!(worker.set_async(&bad, &[7; 4]).map(drop), unknown());
            assert_eq!(worker.localize_async(&bad).map(drop), unknown());

            let length = |expected, given| Err(OpError::ValueLen { expected, given });
            assert_eq!(worker.pull(&all, &mut [7; 19]), length(20, 19));
            assert_eq!(worker.push(&all, &[7; 21]), length(20, 21));
            assert_eq!(worker.set(&all[..1], &[]), length(2, 0));
            assert_eq!(worker.update(&all, &[7; 11], &Keeps(1)), length(10, 11));
            assert_eq!(worker.update(&all, &[7; 19], &Keeps(0)), length(20, 19));
            let no_rule = OpError::RuleLen { key: Key(3), value_len: 2 };
            assert_eq!(worker.update(&all[3..], &[7; 7], &Keeps(2)), Err(no_rule));
            assert_eq!(worker.push_async(&all, &[7]).map(drop), length(20, 1));
            assert_eq!(worker.pull_if_local(Key(1), &mut [7]).map(drop), length(2, 1));

            for (start, end) in [(5, 5), (5, 4)].map(|(start, end)| (Clock(start), Clock(end))) {
                assert_eq!(worker.intent(&all, start..end), Err(OpError::Window { start, end }));
            }
            assert_eq!(
                worker.prepare_sample(1, Clock(0)..Clock(1)).map(drop),
                Err(OpError::NoSampling)
            );

            worker.quiesce().expect("no failure");
            let mut values = [7; 20];
            assert_eq!(worker.pull(&all, &mut values), Ok(()));
            assert_eq!(values, [0; 20]);
        });
        assert_eq!(outcome, Ok(vec![(); nodes]));
        assert_eq!(cluster.read(&[Key(10)], &mut [0; 2]), {
            Err(RunError::Op(OpError::UnknownKey { key: Key(10), end: Key(10) }))
        });
        assert_eq!(cluster.read(&[Key(1)], &mut [0; 3]), {
            Err(RunError::Op(OpError::ValueLen { expected: 2, given: 3 }))
        });
    }
}

#[test]
fn clusters_that_cannot_work_are_not_built() {
    let new = || Builder::<i64>::new(layout(10));
    let config = |error| BuildError::Config(error);
    assert_eq!(refusal(new().nodes(0)), config(ConfigError::Nodes { nodes: 0 }));
    assert_eq!(refusal(new().workers(0)), config(ConfigError::Workers { workers: 0 }));
    let listed = |list: Vec<usize>| refusal(new().nodes(3).workers(list));
    assert_eq!(refusal(new().nodes(0).workers(vec![])), config(ConfigError::Nodes { nodes: 0 }));
    for given in [0, 2, 4] {
        let error = BuildError::WorkerList { given, nodes: 3 };
        assert_eq!(listed(vec![1; given]), error);
    }
    assert_eq!(
        listed(vec![1; 2]).to_string(),
        "2 numbers of workers for 3 nodes: give one for each, or one number for all"
    );
    assert_eq!(listed(vec![1, 2, 0]), config(ConfigError::Workers { workers: 0 }));
    let many = ConfigError::Workers { workers: 70_000 };
    assert_eq!(listed(vec![1, 70_000, 1]), config(many));
    assert_eq!(refusal(new().channels(0)), config(ConfigError::Channels { channels: 0 }));
    assert_eq!(refusal(new().channels(70_000)), config(ConfigError::Channels { channels: 70_000 }));
    let homes = |homes: &[u16]| refusal(Builder::new(layout(3)).nodes(2).homes(homes));
    let stranger = ConfigError::Home { key: Key(1), home: NodeId(2), nodes: 2 };
    assert_eq!(homes(&[1, 2, 0]), config(stranger));
    assert_eq!(homes(&[1, 0]), config(ConfigError::HomesOfKeys { given: 2, keys: 3 }));
    let crowd = ConfigError::MoreNodesThanKeys { nodes: 11, keys: 10 };
    assert_eq!(refusal(new().nodes(11)), config(crowd));

    let sampling = |start, end| Sampling::uniform(Scheme::Local, Key(start)..Key(end), 0);
    for (start, end) in [(3, 3), (4, 3), (5, 11)] {
        let error = SamplingError::Keys { start: Key(start), end: Key(end), keys_end: Key(10) };
        assert_eq!(refusal(new().sampling(sampling(start, end))), BuildError::Sampling(error));
    }
    let mixed = Layout::dense(&[(4, 2), (4, 3), (4, 2)]).expect("a valid layout");
    let mixed = |start, end| Builder::<i64>::new(mixed.clone()).sampling(sampling(start, end));
    assert_eq!(refusal(mixed(2, 6)), BuildError::Sampling(SamplingError::Lens { key: Key(4) }));
    assert!(mixed(4, 8).build().is_ok());

    let sparse = Layout::sparse(&[(1 << 40, 2)]).expect("a valid layout");
    assert_eq!(refusal(Builder::new(sparse).system(System::Full)), BuildError::SparseFull);
    for (keys, value_len) in [(1 << 62, 1), (u64::MAX, 1 << 20), (1 << 40, 1 << 18)] {
        let vast = Layout::dense(&[(keys, value_len)]).expect("a valid layout");
        let refused = refusal(Builder::new(vast).nodes(2));
        assert!(matches!(refused, BuildError::Memory { .. }), "{refused}");
    }
    let hot = |keys: &[u64]| new().hot_keys(keys.iter().copied().map(Key)).nodes(2);
    let unknown = BuildError::UnknownHotKey { key: Key(11), end: Key(10) };
    assert_eq!(refusal(hot(&[11, 3]).system(System::Nups)), unknown);
    assert_eq!(unknown.to_string(), "hot key 11 is not one of 0..10: give keys of the layout");
    let none = refusal(hot(&[3, 4, 3]).system(System::Lapse));
    assert_eq!(none, BuildError::NoHotKeys { system: "lapse".to_owned(), hot: 2 });
    assert_eq!(
        none.to_string(),
        "2 hot keys for all nodes under system lapse, which has none: use nups or parallax, or leave them out"
    );
    assert!(hot(&[]).system(System::Lapse).build().is_ok());
    let vast = Layout::sparse(&[(1 << 40, 1 << 20)]).expect("a valid layout");
    let vast = Builder::<i64>::new(vast).nodes(2).system(System::Parallax);
    let refused = refusal(vast.hot_keys((0..1 << 20).map(Key)));
    assert!(matches!(refused, BuildError::Memory { .. }), "{refused}");
    let endpoints = BuildError::Endpoints { channel: adapm_core::ChannelId(0), given: 1, nodes: 2 };
    assert_eq!(
        refusal(new().nodes(Nodes::over(2, |_, _| adapm_transport::inproc::network(1)))),
        endpoints
    );
}

#[test]
fn hot_keys_by_node_that_cannot_be_are_refused() {
    let het_gmp = System::HetGmp { staleness: 1 };
    let new = || Builder::<i64>::new(layout(10)).nodes(2);
    let own = |lists: [&[u64]; 2]| {
        new().hot_keys_by_node(lists.map(|keys| keys.iter().copied().map(Key).collect()))
    };
    let unknown = BuildError::UnknownHotKey { key: Key(11), end: Key(10) };
    assert_eq!(refusal(own([&[3], &[11]]).system(het_gmp)), unknown);
    let texts = [
        refusal(own([&[3], &[4]]).nodes(3).system(het_gmp)),
        refusal(own([&[3], &[]]).system(System::Nups)),
    ];
    assert_eq!(
        texts.map(|error| error.to_string()),
        [
            "2 lists of hot keys for 3 nodes: give one for each, or one set for all",
            "hot keys by node under system nups, whose nodes have none of their own: use het-gmp, or leave them out"
        ]
    );
    let shared = refusal(new().hot_keys([Key(3)]).system(het_gmp));
    assert!(matches!(shared, BuildError::NoHotKeys { hot: 1, .. }), "{shared}");
    assert!(own([&[3], &[]]).system(het_gmp).build().is_ok());
    for (start, end) in [(3, 12), (5, 4)] {
        let refused = refusal(new().dense_keys(Key(start)..Key(end)).system(System::Adapm));
        let text =
            format!("dense keys {start}..{end} are not within 0..10: give keys of the layout");
        assert_eq!(refused.to_string(), text);
    }
}

#[test]
fn messages_say_what_and_what_to_do_in_one_line() {
    let errors = [
        refusal(Builder::new(layout(10)).nodes(11)),
        refusal(Builder::new(layout(10)).sampling(Sampling::uniform(
            Scheme::Naive,
            Key(3)..Key(3),
            0,
        ))),
    ];
    let texts = errors.map(|error| error.to_string());
    assert_eq!(texts[0], "11 nodes for 10 keys: use at most as many nodes as keys");
    assert_eq!(
        texts[1],
        "cannot sample from keys 3..3: use a range that is not empty within 0..10"
    );
    let unknown = "adapn".parse::<System>().expect_err("no such system").to_string();
    assert!(System::ALL.iter().all(|system| unknown.contains(system.name())), "{unknown}");
}
