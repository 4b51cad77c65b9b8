//! Steps of update rules: each gradient counts once, wherever its key is; those of one node are
//! taken one after the other.
//!
//! Gradients are small integers, so that sums of their squares are exact.

use adapm_core::error::OpError;
use adapm_core::update::{AdaGrad, UpdateRule};
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Cluster, Random, System, Worker};

use crate::{Size, channels, keys_at};

type FloatWorker = Worker<f32>;

const RULE: AdaGrad = AdaGrad { learning_rate: 0.1 };
/// Keys of each length.
const KEYS: u64 = 12;
/// Parameters of the first keys, and of the second.
const DIMS: [usize; 2] = [3, 1];

/// Returns a cluster whose keys have parameters of two lengths, 0 at first, and accumulators of 1.
fn cluster(system: System, size: Size) -> Cluster<f32> {
    let layout = Layout::dense(&DIMS.map(|dim| (KEYS, 2 * dim))).expect("a valid layout");
    let builder = Builder::new(layout).nodes(size.0).workers(size.1).channels(channels::draw());
    let builder = builder.system(system).initial(|_, value| {
        let dim = value.len() / 2;
        value[dim..].fill(1.0);
    });
    builder.build().expect("a valid cluster")
}

fn dim(key: Key) -> usize {
    DIMS[(key.0 / KEYS) as usize]
}

/// Returns the value after steps for these gradients, one after the other.
fn stepped(mut value: Vec<f32>, gradients: impl IntoIterator<Item = Vec<f32>>) -> Vec<f32> {
    let mut update = vec![0.0; value.len()];
    for gradient in gradients {
        assert!(RULE.step(&value, &gradient, &mut update));
        value.iter_mut().zip(&update).for_each(|(value, update)| *value += update);
    }
    value
}

fn read(worker: &mut FloatWorker, key: Key) -> Vec<f32> {
    let mut value = vec![0.0; 2 * dim(key)];
    worker.pull(&[key], &mut value).expect("a known key");
    value
}

/// With a pull and a push they would divide by the same sums.
#[test]
fn workers_of_a_node_take_steps_on_a_key_one_after_the_other() {
    let (workers, times, gradient) = (4, 2_000, [1.0, -2.0, 3.0]);
    for system in [System::Adapm, System::Classic] {
        let cluster = cluster(system, Size(1, workers));
        let outcome = cluster.try_run(|mut worker| {
            worker.barrier()?;
            (0..times).try_for_each(|_| worker.update(&[Key(0)], &gradient, &RULE))
        });
        outcome.expect("no failure");
        let mut value = [0.0; 6];
        cluster.read(&[Key(0)], &mut value).expect("the cluster is quiet");
        let all = std::iter::repeat_n(gradient.to_vec(), workers * times);
        assert_eq!(value[..], stepped(vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0], all), "{system}");
    }
}

/// Takes steps for random keys, some of them twice in a call, some announced, some localized.
/// Returns the sum of the squares for each element of each key.
fn take_steps(worker: &mut FloatWorker) -> Result<Vec<Vec<f32>>, OpError> {
    let mut random = Random::new(u64::from(worker.node().0) << 8 | u64::from(worker.id().0));
    let mut squares: Vec<Vec<f32>> = (0..2 * KEYS).map(|key| vec![0.0; dim(Key(key))]).collect();
    for _ in 0..200 {
        let keys: Vec<Key> = (0..5).map(|_| Key(random.below(2 * KEYS))).collect();
        let gradients: Vec<f32> = keys
            .iter()
            .flat_map(|key| 0..dim(*key))
            .map(|_| random.below(9) as f32 - 4.0)
            .collect();
        let mut rest = gradients.iter();
        for key in &keys {
            squares[key.0 as usize]
                .iter_mut()
                .zip(&mut rest)
                .for_each(|(square, gradient)| *square += gradient * gradient);
        }
        match random.below(8) {
            0 => worker.intent(&keys, worker.clock() + 2..worker.clock() + 20)?,
            1 => match worker.localize_async(&keys[..2]) {
                // Not under systems whose main copies stay.
                Err(OpError::Immovable) => {}
                done => drop(done?),
            },
            2 => worker.wait_sync()?,
            _ => {}
        }
        worker.update(&keys, &gradients, &RULE)?;
        worker.advance_clock();
    }
    Ok(squares)
}

#[test]
fn each_gradient_counts_once_under_every_system() {
    for system in System::ALL {
        for size in [Size(1, 2), Size(2, 1), Size(4, 1), Size(2, 2)] {
            let cluster = cluster(system, size);
            let squares = cluster.try_run(|mut worker| take_steps(&mut worker));
            let squares = squares.expect("no failure");
            for key in (0..2 * KEYS).map(Key) {
                let mut value = vec![0.0; 2 * dim(key)];
                cluster.read(&[key], &mut value).expect("the cluster is quiet");
                let (parameter, accumulator) = value.split_at(dim(key));
                for (at, accumulated) in accumulator.iter().enumerate() {
                    let all: f32 = squares.iter().map(|of| of[key.0 as usize][at]).sum();
                    assert_eq!(*accumulated, 1.0 + all, "{key:?}, {system}, {size:?}");
                }
                assert!(parameter.iter().all(|x| x.is_finite() && *x != 0.0), "{parameter:?}");
            }
        }
    }
}

#[test]
fn a_key_that_a_call_has_several_times_takes_its_steps_one_after_the_other() {
    for nodes in [1, 2] {
        let cluster = cluster(System::Classic, Size(nodes, 1));
        let [key] = keys_at(nodes as u16 - 1, nodes);
        let [other] = keys_at(0, nodes);
        let outcome = cluster.run(|mut worker| {
            if worker.node().0 == 0 {
                let mut gradients: Vec<f32> = (1..=9).map(|x| x as f32).collect();
                let keys = if nodes == 1 { [key; 3] } else { [key, other, key] };
                // An operation in flight: its effect comes first.
                drop(worker.push_async(&[key], &[0.0, 0.0, 0.0, 8.0, 8.0, 8.0]).expect("known"));
                worker.update(&keys, &gradients, &RULE).expect("known keys");
                if nodes == 2 {
                    gradients.drain(3..6);
                }
                let start = vec![0.0, 0.0, 0.0, 9.0, 9.0, 9.0];
                let expected = stepped(start, gradients.chunks(3).map(<[f32]>::to_vec));
                assert_eq!(read(&mut worker, key), expected, "{nodes} nodes");
            }
        });
        outcome.expect("no failure");
    }
}

#[test]
fn a_step_that_is_not_finite_is_named_and_left_out_and_the_others_are_taken() {
    let cluster = cluster(System::Classic, Size(2, 1));
    let outcome = cluster.run(|mut worker| {
        if worker.node().0 == 1 {
            return;
        }
        let ([near, near_too], [far, far_too]) = (keys_at(0, 2), keys_at(1, 2));
        let keys = [near, far, near_too, far_too];
        for bad in 0..4 {
            let before = keys.map(|key| read(&mut worker, key));
            let mut gradients = [1.0; 12];
            gradients[3 * bad + 1] = f32::INFINITY;
            let error = OpError::NotFinite { key: keys[bad] };
            assert_eq!(worker.update(&keys, &gradients, &RULE), Err(error));
            for (at, (key, before)) in keys.into_iter().zip(before).enumerate() {
                let taken = (at != bad).then(|| vec![1.0; 3]);
                assert_eq!(read(&mut worker, key), stepped(before, taken), "{at}, {bad} is bad");
            }
        }
    });
    outcome.expect("no failure");
}

#[test]
fn a_step_counts_as_a_pull_and_a_push() {
    let cluster = cluster(System::Classic, Size(2, 1));
    let ([near], [far]) = (keys_at(0, 2), keys_at(1, 2));
    let outcome = cluster.try_run(|mut worker| {
        if worker.node().0 == 0 {
            worker.update(&[near, far, near], &[1.0; 9], &RULE)?;
        }
        Ok::<(), OpError>(())
    });
    outcome.expect("no failure");
    let stats = cluster.stats();
    assert_eq!((stats.local, stats.remote), (4, 2));
}
