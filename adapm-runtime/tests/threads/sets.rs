//! Sets: the setter reads its own, later pushes add to it, all copies converge to one of them.

use adapm_core::Key;
use adapm_runtime::{Random, System};

use crate::{Size, cluster};

const KEY: Key = Key(9);

#[test]
fn pushes_after_a_set_add_to_it() {
    for system in System::ALL {
        let cluster = cluster(system, Size(4, 2), 36, 2);
        let outcome = cluster.run(|mut worker| {
            let mut random = Random::new(3);
            let number = 2 * i64::from(worker.node().0) + i64::from(worker.id().0);
            let mut value = [0; 2];
            for round in 0..10 {
                let set = [random.below(1_000) as i64, random.below(1_000) as i64];
                if number == round % 8 {
                    worker.set(&[KEY], &set).expect("a known key");
                    worker.pull(&[KEY], &mut value).expect("a known key");
                    assert_eq!(value, set, "the setter reads its own set");
                }
                worker.quiesce().expect("no failure");
                for time in 0..20 {
                    worker.push(&[KEY], &[number, 2 * number]).expect("a known key");
                    let clock = worker.advance_clock();
                    if time % 7 == 0 {
                        worker.intent(&[KEY], clock + 5..clock + 10).expect("a window");
                    }
                }
                worker.quiesce().expect("no failure");
                worker.pull(&[KEY], &mut value).expect("a known key");
                let pushed = 20 * (0..8).sum::<i64>();
                assert_eq!(
                    value,
                    [set[0] + pushed, set[1] + 2 * pushed],
                    "{system}, round {round}"
                );
                worker.barrier().expect("no failure");
            }
        });
        assert_eq!(outcome, Ok(vec![(); 8]));
    }
}

#[test]
fn of_concurrent_sets_one_wins_everywhere() {
    for system in System::ALL {
        let cluster = cluster(system, Size(3, 1), 36, 2);
        let read = cluster.run(|mut worker| {
            let mine = [1 + i64::from(worker.node().0), -1 - i64::from(worker.node().0)];
            let mut seen = Vec::new();
            for _ in 0..20 {
                let clock = worker.advance_clock();
                worker.intent(&[KEY], clock..clock + 2).expect("a window");
                let ticket = worker.set_async(&[KEY], &mine).expect("a known key");
                ticket.wait().expect("no failure");
                worker.quiesce().expect("no failure");
                let mut value = [0; 2];
                worker.pull(&[KEY], &mut value).expect("a known key");
                assert!(
                    (1..=3).contains(&value[0]) && value[1] == -value[0],
                    "one of the sets, whole: {value:?}"
                );
                seen.push(value);
                worker.barrier().expect("no failure");
            }
            seen
        });
        let read = read.expect("no failure");
        assert!(read.iter().all(|seen| *seen == read[0]), "{system}: {read:?}");
    }
}
