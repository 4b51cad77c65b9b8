//! A killed process is named, with its address, by every call that waits for it on the others.

use std::panic;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use adapm_core::error::OpError;
use adapm_core::transport::{CloseReason, Loss};
use adapm_core::{NodeId, WorkerId};
use adapm_runtime::{RunError, Worker};
use adapm_transport::group::{Group, Rendezvous};

use super::{KEYS, builder, channels, join, keys, rendezvous};

type Call = fn(&mut Worker<i64>) -> Result<(), OpError>;

pub(super) const VICTIM: NodeId = NodeId(2);

/// Set for a process that a test starts: its rendezvous.
const VARIABLE: &str = "ADAPM_TEST_VICTIM";

/// Not a test by itself: the process that is killed runs this program with this test alone.
#[test]
fn the_victim() {
    let Some(group) = join_as_victim() else { return };
    let cluster = builder().channels(2).nodes(&group).build().expect("a valid cluster");
    let outcome = cluster.run(|mut worker| {
        worker.barrier().expect("all are there");
        loop {
            if let Err(error) = worker.push(&keys(), &[1; KEYS as usize]) {
                return error;
            }
        }
    });
    panic!("it was to be killed: {outcome:?}");
}

/// Returns the group of a process that a test has started; `None` in the test program itself.
pub(super) fn join_as_victim() -> Option<Arc<Group>> {
    let path = std::env::var(VARIABLE).ok()?;
    Some(join(VICTIM.0, 3, &Rendezvous::File(path.into())))
}

/// Starts this program once more, with that test alone.
pub(super) fn start(test: &str, rendezvous: &Rendezvous) -> Child {
    let Rendezvous::File(path) = rendezvous else { panic!("a file") };
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", test]).env(VARIABLE, path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it can be started again")
}

#[test]
fn every_wait_ends_and_names_the_killed_process_and_its_address() {
    let calls: [(&str, Call); 5] = [
        ("pull", |worker| worker.pull(&keys(), &mut [0; KEYS as usize])),
        ("push", |worker| worker.push(&keys(), &[1; KEYS as usize])),
        ("barrier", Worker::barrier),
        ("quiesce", Worker::quiesce),
        ("wait_sync", Worker::wait_sync),
    ];
    // Each waits for its own dead time.
    thread::scope(|scope| {
        for (name, call) in calls {
            scope.spawn(move || ends_and_names(name, call));
        }
    });
}

/// Kills one of three processes while the others repeat `call`.
fn ends_and_names(name: &str, call: Call) {
    let rendezvous = rendezvous();
    let victim = Mutex::new(start("lost::the_victim", &rendezvous));
    let (killed, victim, rendezvous) = (&AtomicBool::new(false), &victim, &rendezvous);
    // The others count a node that leaves as lost: no node leaves before both have checked.
    let groups = thread::scope(|scope| {
        let survivor = |node| {
            scope.spawn(move || {
                let group = join(node, 3, rendezvous);
                let cluster = builder().channels(2).nodes(&group).build().expect("a valid cluster");
                let outcome = cluster.run(|mut worker| {
                    worker.barrier().expect("all are there");
                    if !killed.swap(true, Ordering::AcqRel) {
                        victim.lock().expect("no panic while it is held").kill().expect("it runs");
                    }
                    let error = loop {
                        if let Err(error) = call(&mut worker) {
                            break error;
                        }
                    };
                    let OpError::PeerLost { node: VICTIM, address: Some(address) } = error else {
                        panic!("{name}: {error}")
                    };
                    assert!(address.ip().is_loopback() && address.port() != 0);
                });
                let error = outcome.expect_err("a node is lost");
                let text = error.to_string();
                let RunError::PeerLost { node: VICTIM, address: Some(address), loss } = error
                else {
                    panic!("{name}: {text}")
                };
                assert!(matches!(loss, Loss::Silent(_) | Loss::Reported(_)), "{name}: {text}");
                assert!(text.starts_with(&format!("node n2 ({address}) was lost: ")), "{text}");
                let same = |error: Option<&RunError>| {
                    matches!(error, Some(RunError::PeerLost { node: VICTIM, .. }))
                };
                assert!(same(cluster.shutdown().err().as_ref()), "{name}");
                let told = group.all_gather(&[]).expect_err("a node is lost");
                assert_eq!(told.lost().map(|loss| loss.node), Some(VICTIM), "{name}");
                group
            })
        };
        [0, 1]
            .map(survivor)
            .map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    });
    groups.iter().for_each(|group| group.leave(CloseReason::Failed));
    victim.lock().expect("no panic").wait().expect("it was killed");
}

#[test]
fn a_process_that_gives_up_its_group_is_named_too() {
    super::each(3, |group| {
        let cluster = builder().nodes(&group).build().expect("a valid cluster");
        let outcome = cluster.run(|mut worker| {
            worker.barrier().expect("all are there");
            if worker.node() == VICTIM {
                group.leave(CloseReason::Failed);
            }
            loop {
                if let Err(error) = worker.quiesce() {
                    return error;
                }
            }
        });
        let error = outcome.expect_err("a node is lost");
        let named = matches!(error, RunError::PeerLost { node: VICTIM, address: Some(_), .. });
        assert!(named || group.node() == VICTIM, "{error}");
    });
}

#[test]
fn a_worker_that_panics_ends_all_processes() {
    let channels = channels::draw();
    let errors = super::each(3, |group| {
        let cluster = builder().workers(2).channels(channels).nodes(&group).build();
        let cluster = cluster.expect("a valid cluster");
        let outcome = cluster.run(|mut worker| {
            worker.barrier().expect("all are there");
            if (worker.node(), worker.id()) == (VICTIM, WorkerId(1)) {
                std::panic::resume_unwind(Box::new("planned"));
            }
            while worker.wait_sync().is_ok() {}
        });
        drop(cluster);
        (outcome.expect_err("a worker panics"), group)
    });
    for (error, group) in &errors {
        if group.node() == VICTIM {
            let worker = WorkerId(1);
            let message = "planned".to_owned();
            assert_eq!(*error, RunError::WorkerPanicked { node: VICTIM, worker, message });
        } else {
            assert!(matches!(error, RunError::PeerLost { node: VICTIM, .. }), "{error}");
        }
    }
    errors.iter().for_each(|(_, group)| group.leave(CloseReason::Failed));
}
