//! Two machines, as far as the network can tell: two namespaces joined by a link of 200 Mbit/s.

use std::process::{Command, Stdio, id};

use crate::harness::{Process, TOKEN, binary, clean, folder, lacks, ring, skip};
use crate::launchers::is_one_run;

/// Two namespaces and the link between them; removed when dropped.
struct Machines {
    names: [String; 2],
}

impl Machines {
    fn new() -> Result<Self, String> {
        let machines = Self { names: ["a", "b"].map(|name| format!("adapm-{}-{name}", id())) };
        let [a, b] = &machines.names;
        // Names of links have at most 15 bytes.
        let [link_a, link_b] = ["a", "b"].map(|name| format!("ad{}{name}", id()));
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["link", "add", &link_a, "netns", a, "type", "veth", "peer", "name", &link_b, "netns", b])?;
        for (name, link, address) in [(a, &link_a, "10.77.0.1/24"), (b, &link_b, "10.77.0.2/24")] {
            ip(&["-n", name, "address", "add", address, "dev", link])?;
            ip(&["-n", name, "link", "set", link, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            let limit =
                ["tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", "200mbit", "burst", "64kb"];
            ip(&[&["netns", "exec", name], limit.as_slice(), &["latency", "50ms"]].concat())?;
        }
        Ok(machines)
    }

    fn node(&self, node: usize) -> Command {
        let mut command = clean(Command::new("ip"));
        command.args(["netns", "exec", &self.names[node], binary()]);
        command.env("ADAPM_NODE", node.to_string()).env("ADAPM_NODES", "2").env("ADAPM_TOKEN", TOKEN);
        // The port is one of a machine where nothing else listens.
        command.env("ADAPM_RENDEZVOUS", "10.77.0.1:4157");
        command
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output =
        Command::new("ip").args(args).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

#[test]
fn two_machines_on_a_slow_link_train_together() {
    if let Some(reason) = lacks(&["ip", "tc"], true) {
        return skip("namespaces", &reason);
    }
    let machines = match Machines::new() {
        Ok(machines) => machines,
        Err(reason) => return skip("namespaces", &reason),
    };
    let folder = folder("namespaces");
    let data = ring(&folder);
    let train = ["train", "kge", "--data", &data, "--json", "--no-eval", "--dim", "8", "--epochs", "300"];
    // Node 1 first: any order will do.
    let other = Process::start("n1", machines.node(1).args(train).args(["--workers", "1"]));
    let first = Process::start("n0", machines.node(0).args(train).args(["--workers", "1"]));
    let line = first.stderr_line("10.77.0.2:");
    assert!(line.contains("n1"), "{line}");
    let ended = first.end();
    is_one_run(&ended, 2, 300);
    let other = other.end();
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), ""), "{other:?}");
}
