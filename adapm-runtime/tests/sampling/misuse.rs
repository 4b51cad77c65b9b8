//! Misuse of samples is refused, by name, and changes nothing.

use std::sync::Mutex;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, NodeId, WorkerId};
use adapm_runtime::{BuildError, Builder, Sample, Sampling, SamplingError, Scheme, System};

use crate::{KEYS, LEN, WINDOW, cluster, pull};

fn uniform(scheme: Scheme) -> Sampling {
    Sampling::uniform(scheme, Key(0)..Key(KEYS), 3)
}

#[test]
fn more_than_was_prepared_is_refused() {
    for scheme in Scheme::ALL {
        let outcome = cluster(System::Adapm, 1, 1, uniform(scheme).without_replacement()).run(
            |mut worker| {
                let (mut keys, mut values) = ([Key(0); 3], [0; 3 * LEN]);
                let mut sample = worker.prepare_sample(2, WINDOW).expect("sampling is configured");
                let exhausted = OpError::SampleExhausted { left: 2, asked: 3 };
                assert_eq!(worker.pull_sample(&mut sample, &mut keys, &mut values), Err(exhausted));
                let length = OpError::ValueLen { expected: 10, given: 15 };
                assert_eq!(
                    worker.pull_sample(&mut sample, &mut keys[..2], &mut values),
                    Err(length)
                );
                assert_eq!(sample.left(), 2, "an error takes nothing");
                assert_eq!(worker.pull_sample(&mut sample, &mut [], &mut []), Ok(()));
                assert_eq!(
                    worker.pull_sample(&mut sample, &mut keys[..2], &mut values[..10]),
                    Ok(())
                );
                let exhausted = OpError::SampleExhausted { left: 0, asked: 1 };
                assert_eq!(
                    worker.pull_sample(&mut sample, &mut keys[..1], &mut values[..5]),
                    Err(exhausted)
                );
                let window = worker.prepare_sample(1, Clock(3)..Clock(3)).map(drop);
                assert_eq!(window, Err(OpError::Window { start: Clock(3), end: Clock(3) }));
                let many = worker.prepare_sample(201, WINDOW).map(drop);
                assert_eq!(many, Err(OpError::SampleExhausted { left: 200, asked: 201 }));
                let mut handle = worker.intent_handle();
                assert_eq!(
                    handle.prepare_sample(5, WINDOW).expect("sampling is configured").left(),
                    5
                );
                drop(worker);
                assert_eq!(handle.prepare_sample(5, WINDOW).map(drop), Err(OpError::Ended));
            },
        );
        assert_eq!(outcome, Ok(vec![()]), "{scheme}");
    }
}

#[test]
fn a_sample_of_more_keys_than_there_may_be_is_refused() {
    for scheme in Scheme::ALL {
        let outcome = cluster(System::Adapm, 2, 1, uniform(scheme)).run(|mut worker| {
            for asked in [usize::MAX, usize::MAX / 8, Sample::KEYS_MAX + 1] {
                let max = Sample::KEYS_MAX;
                let refused = Err(OpError::SampleSize { asked, max });
                assert_eq!(worker.prepare_sample(asked, WINDOW).map(drop), refused);
                assert_eq!(worker.intent_handle().prepare_sample(asked, WINDOW).map(drop), refused);
            }
            let sample =
                worker.prepare_sample(Sample::KEYS_MAX, WINDOW).expect("as many as there may be");
            assert_eq!(sample.finish(), Sample::KEYS_MAX);
        });
        assert_eq!(outcome, Ok(vec![(); 2]), "{scheme}");
    }
    let text = OpError::SampleSize { asked: 9, max: 8 }.to_string();
    assert_eq!(text, "a sample of 9 keys: prepare at most 8 at a time");
}

#[test]
fn more_keys_than_weigh_something_are_refused_without_replacement() {
    let mut weights = [0.0; KEYS as usize];
    weights[50..60].fill(0.1);
    for scheme in Scheme::ALL {
        let sampling = Sampling::weighted(scheme, Key(0)..Key(KEYS), &weights, 1).expect("weights");
        let outcome =
            cluster(System::Adapm, 1, 1, sampling.without_replacement()).run(|mut worker| {
                let many = worker.prepare_sample(11, WINDOW).map(drop);
                assert_eq!(many, Err(OpError::SampleExhausted { left: 10, asked: 11 }));
                let mut sample = worker.prepare_sample(10, WINDOW).expect("as many as there are");
                let mut keys = pull(&mut worker, &mut sample, 10);
                keys.sort_unstable();
                assert_eq!(keys, (50..60).map(Key).collect::<Vec<_>>(), "{scheme}");
            });
        assert_eq!(outcome, Ok(vec![()]));
    }
}

#[test]
fn a_sample_is_pulled_by_the_worker_it_was_prepared_for_and_by_no_other() {
    for scheme in Scheme::ALL {
        let bring = Mutex::new(None);
        let source = cluster(System::Adapm, 1, 2, uniform(scheme));
        let outcome = source.run(|mut worker| {
            if worker.id() == WorkerId(1) {
                *bring.lock().expect("no panic") =
                    Some(worker.prepare_sample(4, WINDOW).expect("sampling is configured"));
            }
            worker.barrier().expect("no failure");
            if worker.id() == WorkerId(0) {
                refused(&mut worker, &bring);
            }
            worker.barrier().expect("no failure");
        });
        assert_eq!(outcome, Ok(vec![(); 2]));
        // The ids fit and the settings are equal, but the keys belong to another cluster.
        let other = cluster(System::Adapm, 1, 2, uniform(scheme));
        assert_eq!(other.run(|mut worker| refused(&mut worker, &bring)), Ok(vec![(); 2]));
        let none = Builder::<i64>::new(adapm_core::Layout::dense(&[(KEYS, LEN)]).expect("valid"));
        let none = none.build().expect("a valid cluster");
        assert_eq!(none.run(|mut worker| refused(&mut worker, &bring)), Ok(vec![()]));
        assert_eq!(
            bring.into_inner().expect("no panic").map(|sample| sample.finish()),
            Some(4),
            "{scheme}"
        );
    }
}

fn refused(worker: &mut crate::IntWorker, sample: &Mutex<Option<adapm_runtime::Sample>>) {
    let mut sample = sample.lock().expect("no panic");
    let sample = sample.as_mut().expect("a sample was prepared");
    let foreign = OpError::ForeignSample { node: NodeId(0), worker: WorkerId(1) };
    assert_eq!(worker.choose_sample(sample), Err(foreign.clone()));
    assert_eq!(worker.pull_sample(sample, &mut [Key(0)], &mut [0; LEN]), Err(foreign.clone()));
    assert_eq!(sample.left(), 4);
    assert_eq!(
        foreign.to_string(),
        "sample was prepared by worker 1 of node 0 of this or another cluster: pull it there"
    );
}

#[test]
fn pools_that_cannot_be_drawn_are_refused() {
    for (size, reuse) in [(0, 1), (1, 0), (Scheme::POOL_SIZE_MAX + 1, 1)] {
        let layout = adapm_core::Layout::dense(&[(10, 1)]).expect("a valid layout");
        let sampling = Sampling::uniform(Scheme::Pool { size, reuse }, Key(0)..Key(10), 1);
        let error = Builder::<i64>::new(layout).sampling(sampling).build().map(drop);
        assert_eq!(error, Err(BuildError::Sampling(SamplingError::Pool { size, reuse })));
        let text = error.expect_err("refused").to_string();
        assert!(text.contains("use 1 to 16777216 keys, once or more"), "{text}");
    }
}
