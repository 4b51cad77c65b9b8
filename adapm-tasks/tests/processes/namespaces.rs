//! Two machines on a link of 200 Mbit/s.

use crate::harness::{Process, folder, lacks, ring, skip, train_json};
use crate::launchers::is_one_run;
use crate::machines::Machines;

#[test]
fn two_machines_on_a_slow_link_train_together() {
    if let Some(reason) = lacks(&["tc"], true) {
        return skip("namespaces", &reason);
    }
    let machines = match Machines::new(2) {
        Ok(machines) => machines,
        Err(reason) => return skip("namespaces", &reason),
    };
    for machine in 0..2 {
        let limit = [
            "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "200mbit", "burst", "64kb",
        ];
        if let Err(reason) =
            machines.run(machine, &[limit.as_slice(), &["latency", "50ms"]].concat())
        {
            return skip("namespaces", &reason);
        }
    }
    let folder = folder("namespaces");
    let data = ring(&folder);
    let train = train_json(&data, "300");
    // Node 1 first: any order will do.
    let other = Process::start("n1", machines.node(1).args(&train));
    let first = Process::start("n0", machines.node(0).args(&train));
    let line = first.stderr_line("10.77.0.2:");
    assert!(line.contains("n1"), "{line}");
    let ended = first.end();
    is_one_run(&ended, 2, 300);
    let other = other.end();
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), ""), "{other:?}");
}
