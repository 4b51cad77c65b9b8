//! Joining: any order, memberships, missing nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::CloseReason;
use adapm_transport::group::{Group, GroupError, Membership, Rendezvous};

use super::{config, each, each_with, file, free_address, join, path};

#[test]
fn the_membership_tells_address_machine_process_and_round_trip() {
    each(3, |group| {
        let membership = group.membership();
        assert_eq!(
            (membership.node(), membership.nodes(), membership.joined()),
            (group.node(), 3, 3)
        );
        assert_eq!((membership.on_this_host(), membership.missing()), (3, Vec::new()));
        for (node, member) in membership.members() {
            let member = member.expect("it has joined");
            assert_eq!(member.pid, std::process::id());
            assert!(member.address.ip().is_loopback() && !member.host.is_empty());
            assert_eq!(member.rtt.is_some(), node != group.node(), "{node} of {}", group.node());
        }
        group.leave(CloseReason::Finished);
    });
}

#[test]
fn nodes_start_in_any_order_and_the_watch_sees_them_come() {
    for address in [false, true] {
        let rendezvous = if address { Rendezvous::Address(free_address()) } else { file() };
        thread::scope(|scope| {
            // Each next one starts when the one before waits: node 0 comes last.
            let (rendezvous, mut threads) = (&rendezvous, Vec::new());
            for node in [2, 1, 0] {
                let (waits, waiting) = std::sync::mpsc::channel();
                threads.push(scope.spawn(move || {
                    let mut seen: Vec<Membership> = Vec::new();
                    let group = Group::join(config(node, 3, rendezvous), &mut |membership| {
                        let _ = waits.send(());
                        seen.push(membership.clone());
                    });
                    let group = group.expect("all join");
                    let joined: Vec<_> = seen.iter().map(Membership::joined).collect();
                    assert!(joined.is_sorted() && joined.last() == Some(&3), "{joined:?}");
                    group.leave(CloseReason::Finished);
                }));
                waiting.recv().expect("it waits");
            }
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }
}

#[test]
fn missing_nodes_are_named_on_all_that_are_there() {
    let rendezvous = Rendezvous::Address(free_address());
    let texts = thread::scope(|scope| {
        let threads = [0, 2].map(|node| {
            let mut config = config(node, 4, &rendezvous);
            config.join_timeout = Duration::from_secs(if node == 0 { 1 } else { 30 });
            scope.spawn(move || join(config).expect_err("two are missing").to_string())
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let expected = format!(
        "2 of 4 nodes joined within 1 s; missing: n1, n3; start them with --rendezvous {rendezvous}"
    );
    assert_eq!(texts, [expected.clone(), expected]);
}

#[test]
fn a_missing_node_0_is_named_with_its_address() {
    let address = free_address();
    let mut settings = config(1, 2, &Rendezvous::Address(address.clone()));
    settings.join_timeout = Duration::from_millis(300);
    let text = join(settings).expect_err("nobody is there").to_string();
    assert!(
        text.starts_with(&format!("node n0 could not be reached at {address} within 0 s: ")),
        "{text}"
    );

    let rendezvous = file();
    let mut settings = config(1, 2, &rendezvous);
    settings.join_timeout = Duration::from_millis(300);
    let text = join(settings).expect_err("nobody is there").to_string();
    assert_eq!(
        text,
        format!(
            "node n0 could not be reached at {rendezvous} within 0 s: node n0 has not written it so far"
        )
    );
}

#[test]
fn the_file_of_an_earlier_run_does_not_lead_astray() {
    // One without a secret belongs to nodes that were given one; one with a secret leads to an
    // address without a listener.
    for secret in [String::new(), "0123456789abcdef".repeat(4)] {
        earlier_run(&secret);
    }
}

fn earlier_run(secret: &str) {
    let rendezvous = file();
    fs::write(path(&rendezvous), format!("{}\n{secret}\n", free_address())).expect("a file");
    fs::set_permissions(path(&rendezvous), fs::Permissions::from_mode(0o600)).expect("it is ours");
    thread::scope(|scope| {
        let (dials, dialing) = std::sync::mpsc::channel();
        let member = |node: u16, dials: std::sync::mpsc::Sender<()>| {
            let rendezvous = &rendezvous;
            scope.spawn(move || {
                let group = Group::join(config(node, 2, rendezvous), &mut |membership| {
                    if node == 0
                        || membership.fault().is_some_and(|fault| fault.starts_with("node n0"))
                    {
                        let _ = dials.send(());
                    }
                });
                group.expect("both join").leave(CloseReason::Finished);
            })
        };
        let early = member(1, dials.clone());
        dialing.recv().expect("it dials in vain");
        let host = member(0, dials);
        early.join().expect("no panic");
        host.join().expect("no panic");
    });
    assert!(!path(&rendezvous).exists(), "node 0 takes the file away");
}

#[test]
fn nodes_that_meet_by_a_file_find_a_secret_there() {
    let rendezvous = file();
    let seen = thread::scope(|scope| {
        let member = |node: u16| {
            let rendezvous = &rendezvous;
            scope.spawn(move || {
                let group = join(config(node, 2, rendezvous)).expect("both join");
                let text = fs::read_to_string(path(rendezvous)).expect("node 0 has written it");
                group.all_gather(&[]).expect("both are there");
                group.leave(CloseReason::Finished);
                text
            })
        };
        let members = [member(0), member(1)];
        members.map(|member| member.join().expect("no panic"))
    });
    let secret = seen[0].split_whitespace().nth(1).expect("a secret behind the address");
    assert!(seen[0] == seen[1] && secret.len() == 64, "{} bytes", secret.len());
    // It was requested, and needs no token.
    let mut open = config(0, 1, &rendezvous);
    assert!(open.is_sealed());
    open.insecure = true;
    assert!(!open.is_sealed());
    let group = join(open).expect("it is alone");
    let text = fs::read_to_string(path(&rendezvous)).expect("node 0 has written it");
    assert_eq!(text.split_whitespace().count(), 1, "{text}");
    group.leave(CloseReason::Finished);
}

#[test]
fn a_member_that_ends_while_others_are_missing_is_named() {
    let rendezvous = file();
    thread::scope(|scope| {
        let mut short = config(1, 3, &rendezvous);
        short.join_timeout = Duration::from_millis(500);
        let short = scope.spawn(move || join(short).expect_err("n2 is missing"));
        let host = scope.spawn(|| join(config(0, 3, &rendezvous)).expect_err("n1 gives up"));
        let (short, host) = (short.join().expect("no panic"), host.join().expect("no panic"));
        assert!(
            matches!(&short, GroupError::Missing { missing, .. } if *missing == [NodeId(2)]),
            "{short}"
        );
        assert_eq!(host.lost().map(|loss| loss.node), Some(NodeId(1)), "{host}");
    });
}

#[test]
fn several_groups_in_one_process_keep_apart() {
    thread::scope(|scope| {
        for group in 0..3_u8 {
            scope.spawn(move || {
                each_with(
                    2,
                    |_| (),
                    |joined| {
                        let joined = joined.expect("both join");
                        assert_eq!(joined.all_gather(&[group]), Ok(vec![vec![group]; 2]));
                        joined.leave(CloseReason::Finished);
                    },
                )
            });
        }
    });
}

#[test]
fn two_that_cannot_be_linked_agree_on_who_is_to_blame() {
    let rendezvous = file();
    thread::scope(|scope| {
        let nodes = [0, 1, 2].map(|node| {
            let mut config = config(node, 3, &rendezvous);
            config.dead_after = Duration::from_secs(2);
            if node > 0 {
                config.join_timeout = Duration::from_secs(1);
            }
            if node == 1 {
                // Node 1 is not there, and node 2 dials that address in vain.
                config.advertise = Some("127.0.0.2".to_owned());
            }
            scope.spawn(move || join(config).expect_err("n1 and n2 have no link"))
        });
        let [host, one, two] = nodes.map(|node| node.join().expect("no panic"));
        assert_eq!(host.lost().map(|loss| loss.node), Some(NodeId(2)), "{host}");
        assert!(matches!(&one, GroupError::Unreached { node: NodeId(2), .. }), "{one}");
        // n0 joins in the verdict, before n2 has learnt of it or after.
        assert!(matches!(&two, GroupError::GivenUp { by } if by.contains(&NodeId(1))), "{two}");
    });
}
