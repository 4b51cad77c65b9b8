//! Several machines, as far as the network can tell: namespaces on one bridge.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{TOKEN, binary, clean, lacks};

/// Namespaces at 10.77.0.1 and fd77::1 and so on, and the bridge between them; removed when
/// dropped.
pub(crate) struct Machines {
    names: Vec<String>,
    bridge: String,
}

impl Machines {
    /// So many machines; or why this one cannot play them.
    pub(crate) fn new(count: usize) -> Result<Self, String> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        if let Some(reason) = lacks(&["ip"], true) {
            return Err(reason);
        }
        let made = format!("{:x}{:x}", id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = (0..count).map(|node| format!("adapm-{made}-{node}")).collect();
        let machines = Self { names, bridge: format!("adapm-{made}-bridge") };
        machines.build(&made)?;
        Ok(machines)
    }

    fn build(&self, made: &str) -> Result<(), String> {
        ip(&["netns", "add", &self.bridge])?;
        ip(&["-n", &self.bridge, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &self.bridge, "link", "set", "bridge", "up"])?;
        for (node, name) in self.names.iter().enumerate() {
            // Names of links have at most 15 bytes.
            let [here, there] = ["a", "b"].map(|end| format!("{end}{made}{node}"));
            ip(&["netns", "add", name])?;
            ip(&[
                "link",
                "add",
                &here,
                "netns",
                name,
                "type",
                "veth",
                "peer",
                "name",
                &there,
                "netns",
                &self.bridge,
            ])?;
            ip(&["-n", &self.bridge, "link", "set", &there, "master", "bridge", "up"])?;
            ip(&["-n", name, "link", "set", &here, "name", "eth0"])?;
            ip(&["-n", name, "address", "add", &format!("{}/24", address(node)), "dev", "eth0"])?;
            let address6 = format!("fd77::{}/64", node + 1);
            // A machine without IPv6 fails in the tests that need it.
            let _ = ip(&["-n", name, "-6", "address", "add", &address6, "dev", "eth0", "nodad"]);
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// Returns the program on a machine.
    pub(crate) fn adapm(&self, machine: usize) -> Command {
        let mut command = clean(Command::new("ip"));
        command.args(["netns", "exec", &self.names[machine], binary()]).env("ADAPM_TOKEN", TOKEN);
        command
    }

    /// Node `machine` of a cluster of all machines that meets at `rendezvous`.
    pub(crate) fn node_at(&self, machine: usize, rendezvous: &str) -> Command {
        let mut command = self.adapm(machine);
        command
            .env("ADAPM_NODE", machine.to_string())
            .env("ADAPM_NODES", self.names.len().to_string());
        command.env("ADAPM_RENDEZVOUS", rendezvous);
        command
    }

    /// [`Machines::node_at`] the first machine, by its address.
    pub(crate) fn node(&self, machine: usize) -> Command {
        // The port is one of a machine where nothing else listens.
        self.node_at(machine, "10.77.0.1:4157")
    }

    /// Drops all packets from machine `from` to machine `to`.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        let route = format!("{}/32", address(to));
        ip(&["-n", &self.names[from], "route", "add", "blackhole", &route])
            .expect("a route can be added");
    }

    /// Runs `command` on a machine.
    pub(crate) fn run(&self, machine: usize, command: &[&str]) -> Result<(), String> {
        ip(&[&["netns", "exec", &self.names[machine]], command].concat())
    }

    /// Gives a machine a further address.
    pub(crate) fn add_address(&self, machine: usize, address: &str) {
        ip(&[
            "-n",
            &self.names[machine],
            "address",
            "add",
            &format!("{address}/24"),
            "dev",
            "eth0",
        ])
        .expect("an address can be added");
    }

    /// Sets the meaning of names on a machine.
    pub(crate) fn names_on(&self, machine: usize, hosts: &str) -> Result<(), String> {
        let folder = self.files_of(machine);
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("hosts"), hosts))
            // No name server is asked: one that is not there costs seconds.
            .and_then(|()| {
                fs::write(
                    folder.join("resolv.conf"),
                    "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
                )
            });
        written.map_err(|error| format!("{}: {error}", folder.display()))
    }

    /// Returns the folder where `ip netns exec` looks for files that take the place of those in
    /// `/etc`.
    fn files_of(&self, machine: usize) -> PathBuf {
        PathBuf::from("/etc/netns").join(&self.names[machine])
    }
}

/// Returns the address of a machine.
pub(crate) fn address(machine: usize) -> String {
    format!("10.77.0.{}", machine + 1)
}

impl Drop for Machines {
    fn drop(&mut self) {
        for (machine, name) in self.names.iter().enumerate() {
            let _ = ip(&["netns", "delete", name]);
            let _ = fs::remove_dir_all(self.files_of(machine));
        }
        let _ = ip(&["netns", "delete", &self.bridge]);
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
