//! Measurements over the transport between threads, and what does not belong into them.

use std::thread;

use adapm_transport::inproc;

use super::*;

#[test]
fn every_ordered_pair_is_measured_once() {
    let mut ends = inproc::network(3);
    let stop = AtomicBool::new(false);
    let (zero, others) = ends.split_first_mut().expect("three ends");
    let pairs = thread::scope(|scope| {
        let followers: Vec<_> = others
            .iter_mut()
            .map(|end| {
                let node = end.node();
                let stop = &stop;
                scope.spawn(move || {
                    Probe::new(end, node, 3, stop).follow().map_err(|error| error.to_string())
                })
            })
            .collect();
        let mut pairs = Vec::new();
        let mut probe = Probe::new(zero, NodeId(0), 3, &stop);
        let led = probe.lead(Duration::from_millis(2), |from, to, measured| {
            let Measured { rtt_median, rtt_p99, bandwidth } = measured;
            assert!(0.0 < rtt_median && rtt_median <= rtt_p99 && bandwidth > 0.0, "{measured:?}");
            pairs.push((from.0, to.0));
        });
        assert!(led.is_ok(), "{:?}", led.map_err(|error| error.to_string()));
        for follower in followers {
            assert_eq!(follower.join().expect("no panic"), Ok(()));
        }
        pairs
    });
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
}

#[test]
fn a_node_that_does_something_else_is_named() {
    let mut ends = inproc::network(2);
    let stop = AtomicBool::new(false);
    let (zero, others) = ends.split_first_mut().expect("two ends");
    for head in [vec![0xff; 9], vec![], postcard::to_allocvec(&Word::Pong).expect("it fits")] {
        zero.send(NodeId(1), &mut Frame { head, ..Frame::default() }).expect("room");
        let error = Probe::new(&mut others[0], NodeId(1), 2, &stop).follow().expect_err("no word");
        assert!(error.to_string().starts_with("node n0 does not run check-net"), "{error}");
    }
}

#[test]
fn a_word_that_names_no_node_is_refused() {
    let mut ends = inproc::network(2);
    let stop = AtomicBool::new(false);
    let (zero, others) = ends.split_first_mut().expect("two ends");
    for to in [1, 2, 9] {
        let head = postcard::to_allocvec(&Word::Measure(to, 1)).expect("it fits");
        zero.send(NodeId(1), &mut Frame { head, ..Frame::default() }).expect("room");
        assert!(Probe::new(&mut others[0], NodeId(1), 2, &stop).follow().is_err(), "n1 to {to}");
    }
}

#[test]
fn raising_the_flag_ends_it() {
    let mut ends = inproc::network(2);
    let stop = AtomicBool::new(true);
    let ended = Probe::new(&mut ends[0], NodeId(0), 2, &stop).lead(SLICE_MAX, |_, _, _| {});
    assert!(matches!(ended, Err(ProbeError::Stopped)));
}
