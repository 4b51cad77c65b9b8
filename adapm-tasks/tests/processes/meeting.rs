//! Names that come late, mean several addresses or the wrong one; ports that lead back; addresses
//! of IPv6.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{
    Ended, Process, TOKEN, binary, clean, folder, member, ring, skip, text, train, train_json,
};
use crate::machines::Machines;

/// Returns two machines `a` and `b`, on which names mean what `hosts` say.
fn machines(name: &str, hosts: [&str; 2]) -> Option<Machines> {
    let made = Machines::new(2).and_then(|machines| {
        for (machine, hosts) in hosts.into_iter().enumerate() {
            machines.names_on(machine, &format!("127.0.0.1 localhost\n{hosts}\n"))?;
        }
        Ok(machines)
    });
    made.inspect_err(|reason| skip(name, reason)).ok()
}

fn start(machines: &Machines, name: &str, node: usize, rendezvous: &str, timeout: &str) -> Process {
    let data = ring(&folder(&format!("{name}_{node}")));
    let mut command = machines.node_at(node, rendezvous);
    command.args(train_json(&data, "1"));
    Process::start(&format!("n{node}"), command.args(["--join-timeout", timeout]))
}

fn have_met(ended: [Ended; 2]) {
    for ended in ended {
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn the_name_of_node_0_may_come_late_even_to_itself() {
    let Some(machines) = machines("name_late", ["", "10.77.0.1 a"]) else { return };
    let nodes = [0, 1].map(|node| start(&machines, "name_late", node, "a:4157", "60"));
    nodes[0].stderr_line("`a:4157` cannot be used as an address: the host is unknown");
    machines.names_on(0, "127.0.0.1 localhost\n10.77.0.1 a\n").expect("it could be written before");
    have_met(nodes.map(Process::end));
}

#[test]
fn all_addresses_of_a_name_are_tried() {
    // The first one is n1's own, where no process listens.
    let Some(machines) = machines("name_twice", ["10.77.0.1 a", "10.77.0.9 a\n10.77.0.1 a"]) else {
        return;
    };
    machines.add_address(1, "10.77.0.9");
    let nodes = [0, 1].map(|node| start(&machines, "name_twice", node, "a:4157", "60"));
    have_met(nodes.map(Process::end));
}

#[test]
fn an_address_that_only_one_machine_has_is_named_with_the_flag_that_helps() {
    let Some(machines) = machines("name_loopback", ["127.0.1.1 a", "10.77.0.1 a"]) else { return };
    let nodes = [0, 1].map(|node| start(&machines, "name_loopback", node, "a:4157", "3"));
    let [first, other] = nodes.map(Process::end);
    assert_eq!((first.code, other.code), (Some(75), Some(75)), "{first:?}, {other:?}");
    assert!(
        first.error().contains("`a:4157` means 127.0.1.1 here, which no other machine reaches"),
        "{first:?}"
    );
    assert!(first.error().contains("--bind"), "{first:?}");
    // With that flag they meet.
    let other = start(&machines, "name_bound", 1, "a:4157", "60");
    let data = ring(&folder("name_bound_0"));
    let mut command = machines.node_at(0, "a:4157");
    command.args(train_json(&data, "1"));
    let first = Process::start("n0", command.args(["--bind", "10.77.0.1"]));
    have_met([first.end(), other.end()]);
}

#[test]
fn a_node_that_finds_itself_where_node_0_is_to_be_makes_way() {
    let Some(machines) = machines("self_connect", ["", ""]) else { return };
    // Few ports to listen at and to connect from, and one of them is where the nodes meet: without
    // care n1 takes it itself.
    let range = ["sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40003"];
    if let Err(reason) = machines.run(0, &range) {
        return skip("self_connect", &reason);
    }
    let node = |node: usize| {
        let data = ring(&folder(&format!("self_connect_{node}")));
        let mut command = machines.adapm(0);
        command.args(train_json(&data, "1"));
        command.args([
            "--node",
            &node.to_string(),
            "--nodes",
            "2",
            "--rendezvous",
            "127.0.0.1:40001",
        ]);
        Process::start(&format!("n{node}"), &mut command)
    };
    let other = node(1);
    other.stderr_line("node n0 was not reached so far: Connection refused");
    have_met([node(0).end(), other.end()]);
}

#[test]
fn hosts_of_a_launch_may_be_addresses_of_ipv6() {
    let Some(machines) = machines("hosts_ipv6", ["", ""]) else { return };
    let folder = folder("hosts_ipv6");
    let data = ring(&folder);
    // A stand-in for ssh that takes addresses without brackets, as ssh does, and runs everything
    // here.
    let ssh = folder.join("ssh");
    fs::write(
        &ssh,
        "#!/bin/sh\n[ \"$4\" = -- ] || exit 99\n[ \"$5\" = fd77::1 ] || exit 98\nexec sh -c \"$6\"\n",
    )
    .expect("a file can be written");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).expect("it is ours");
    for hosts in ["fd77::1,fd77::1", "[fd77::1],[fd77::1]"] {
        let mut command = machines.adapm(0);
        command.env("ADAPM_SSH", text(&ssh)).env_remove("ADAPM_TOKEN");
        command.args(["launch", "--hosts", hosts, "--remote-program", binary(), "--"]);
        command.args(train_json(&data, "1"));
        let ended = Process::start("launch", &mut command).end();
        assert_eq!(ended.code, Some(0), "{hosts}: {ended:?}");
        assert!(ended.stderr.contains("[fd77::1]:4157"), "{hosts}: {ended:?}");
    }
}

#[test]
fn connections_that_were_refused_are_named_at_once_and_counted_in_the_last_table() {
    let folder = folder("refused");
    let data = ring(&folder);
    let train = train(&data, "1");
    let first = Process::start("n0", member(&folder, 0, 2).args(&train));
    first.stderr_line("waiting for n1");
    let address = fs::read_to_string(folder.join("rendezvous")).expect("node 0 waits there");
    let knock = |request: &str| {
        let mut stream = TcpStream::connect(address.trim()).expect("node 0 listens");
        stream.write_all(request.as_bytes()).expect("it takes a request");
        // Node 0 does not answer a client of another protocol, and hangs up.
        let _ = stream.read_to_end(&mut Vec::new());
    };
    knock("GET / HTTP/1.1\r\nHost: a machine of another kind\r\n\r\n");
    let line = first.stderr_line("refused 127.0.0.1:");
    assert!(line.contains("adapm"), "{line}");
    // A process with another secret receives the reason, and node 0 names it, too.
    let mut stranger = member(&folder, 1, 2);
    stranger.env("ADAPM_TOKEN", TOKEN.replace('5', "6")).args(&train).args(["--join-timeout", "1"]);
    let stranger = stranger.output().expect("the binary runs");
    assert_eq!(stranger.status.code(), Some(75), "{stranger:?}");
    assert!(
        String::from_utf8_lossy(&stranger.stderr).contains("the tokens differ"),
        "{stranger:?}"
    );
    first.stderr_line("the tokens differ");
    let other = Process::start("n1", member(&folder, 1, 2).args(&train));
    let ended = first.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let row =
        ended.stdout.lines().find(|line| line.contains("refused  ")).unwrap_or_default().to_owned();
    assert!(row.contains(" connections; the last: refused 127.0.0.1:"), "{ended:?}");
    let count = row.split_whitespace().find_map(|word| word.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count >= 2), "{ended:?}");
    assert_eq!(other.end().code, Some(0));
}

#[test]
fn a_node_that_may_open_too_few_files_says_so_and_blames_nobody() {
    let folder = folder("few_files");
    let data = ring(&folder);
    let train = train(&data, "1");
    for limit in [12, 14, 16] {
        let _ = fs::remove_file(folder.join("rendezvous"));
        let limited = member(&folder, 0, 4);
        let mut shell = clean(std::process::Command::new("sh"));
        shell.envs(limited.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\""), binary()]);
        let first = Process::start("n0", shell.args(&train).args(["--join-timeout", "4"]));
        let others: Vec<_> = (1..4)
            .map(|node| {
                let mut command = member(&folder, node, 4);
                Process::start(
                    &format!("n{node}"),
                    command.args(&train).args(["--join-timeout", "4"]),
                )
            })
            .collect();
        let first = first.end();
        let others: Vec<Ended> = others.into_iter().map(Process::end).collect();
        if first.code == Some(0) {
            // Enough for this machine's libraries.
            continue;
        }
        let error = first.error();
        assert!(error.to_lowercase().contains("too many open files"), "{limit}: {first:?}");
        assert!(error.contains("ulimit -n"), "{limit}: {first:?}");
        for (node, other) in (1..).zip(&others) {
            let error = other.error();
            assert!(
                error.starts_with("error: node n0 "),
                "n{node} of {limit}: {other:?}; {first:?}"
            );
        }
    }
}
