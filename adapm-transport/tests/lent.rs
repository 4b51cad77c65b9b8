//! A program may lend its runtime, which serves the whole process: hence a test binary of its own.

#![cfg(feature = "tokio")]

use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Received, Transport};
use adapm_transport::net::{Kind, Net, network};
use adapm_transport::tokio::{AlreadyLent, lend};
use adapm_verify::silence::Silence;

#[test]
fn links_run_on_the_runtime_that_was_lent() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("the system has threads");
    assert_eq!(lend(runtime.handle().clone()), Ok(()));
    assert_eq!(lend(runtime.handle().clone()), Err(AlreadyLent));
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    // Endpoints may be opened from within a runtime, too.
    let _entered = runtime.enter();
    let ends = network(2, Kind::Tokio).expect("this machine has a loopback address");
    let [mut here, mut there] = <[Net; 2]>::try_from(ends).expect("two endpoints");
    let mut frame = Frame { head: vec![1, 2, 3], ..Frame::default() };
    here.send(NodeId(1), &mut frame).expect("there is room for one frame");
    let mut silence = Silence::new();
    let short = Some(Duration::from_millis(1));
    while there.recv(short, &mut frame) != Ok(Received::Frame(NodeId(0))) {
        assert!(!silence.is_too_long(()), "the frame does not come");
        here.recv(short, &mut Frame::default()).expect("the link works");
    }
    assert_eq!(frame.head, [1, 2, 3]);
    assert!(runtime.metrics().num_alive_tasks() >= 4, "the link is carried elsewhere");
}
