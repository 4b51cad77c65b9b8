//! Nodes that do not belong together are refused with the reason on both sides, without harm to
//! others.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Frame, Loss, Transport};
use adapm_transport::group::{Group, GroupConfig, Rendezvous};
use adapm_transport::net::{Address, ClusterId, Net, NetConfig, Token};

use super::{config, file, free_address, join, path};

fn token(byte: u8) -> Option<Token> {
    Some(adapm_transport::testing::token(byte))
}

/// Lets node 0 of two wait, a stranger with settings of its own come and be refused, and then the
/// true node 1 come.
fn refused(
    host: impl Fn(&mut GroupConfig),
    stranger: impl Fn(&mut GroupConfig),
) -> (String, String) {
    let rendezvous = file();
    let (seen, sees) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let mut settings = config(0, 2, &rendezvous);
        host(&mut settings);
        let waiting = scope.spawn(move || {
            let mut told = 0;
            let group = Group::join(settings, &mut |membership| {
                for refused in &membership.refused()[told..] {
                    seen.send(refused.clone()).expect("the test listens");
                }
                told = membership.refused().len();
            });
            let group = group.expect("the true node comes");
            group.all_gather(&[]).expect("both are there");
            group.leave(CloseReason::Finished);
        });
        let mut settings = config(1, 2, &rendezvous);
        host(&mut settings);
        stranger(&mut settings);
        let theirs = join(settings).expect_err("it does not belong here").to_string();
        let ours = sees.recv().expect("node 0 is told");
        let mut settings = config(1, 2, &rendezvous);
        host(&mut settings);
        let group = join(settings).expect("node 0 still waits");
        group.all_gather(&[]).expect("both are there");
        group.leave(CloseReason::Finished);
        waiting.join().expect("no panic");
        (ours, theirs)
    })
}

/// Checks the texts on both sides: of node 0, and of the stranger.
fn check((ours, theirs): (String, String), reason_here: &str, reason_there: &str) {
    assert!(ours.starts_with("refused 127.0.0.1:") && ours.contains(reason_here), "{ours}");
    assert!(
        theirs.starts_with("node n0 at tcp://127.0.0.1:") && theirs.contains(reason_there),
        "{theirs}"
    );
    assert!(!ours.contains('\n') && !theirs.contains('\n'));
}

/// Like [`check`], for a stranger that has tried until its join timeout.
fn check_late((ours, theirs): (String, String), reason_here: &str, reason_there: &str) {
    assert!(ours.starts_with("refused 127.0.0.1:") && ours.contains(reason_here), "{ours}");
    assert!(theirs.starts_with("node n0 could not be reached at 127.0.0.1:"), "{theirs}");
    assert!(theirs.contains(reason_there), "{theirs}");
}

#[test]
fn another_cluster() {
    let reason = "it belongs to another cluster";
    // That may be an earlier run about to end: it is tried again until the join timeout.
    let stranger = |config: &mut GroupConfig| {
        (config.cluster, config.join_timeout) = (ClusterId(7), Duration::from_millis(300));
    };
    check_late(refused(|_| (), stranger), reason, reason);
}

#[test]
fn another_token() {
    // A node with a token does not trust refusals without proof of the token: any host on the path
    // could end the run.
    let stranger = |config: &mut GroupConfig| {
        (config.token, config.join_timeout) = (token(2), Duration::from_millis(300));
    };
    let texts = refused(|config| config.token = token(1), stranger);
    check_late(texts, "the tokens differ", "the tokens differ");
}

#[test]
fn a_token_on_one_side_only() {
    let without = |config: &mut GroupConfig| (config.token, config.insecure) = (None, true);
    let texts = refused(|config| config.token = token(1), without);
    check(
        texts,
        "the peer has no token, this node has one",
        "the peer has a token, this node has none",
    );
    let stranger = |config: &mut GroupConfig| {
        (config.token, config.join_timeout) = (token(1), Duration::from_millis(300));
    };
    let texts = refused(without, stranger);
    check_late(
        texts,
        "the peer has a token, this node has none",
        "the peer has no token, this node has one",
    );
}

#[test]
fn another_number_of_nodes() {
    let texts = refused(|_| (), |config| config.nodes = 3);
    check(texts, "node counts differ (2 here, 3 there)", "node counts differ (3 here, 2 there)");
}

#[test]
fn a_node_id_that_is_taken() {
    let rendezvous = file();
    thread::scope(|scope| {
        let joined = |node: u16, nodes: usize| {
            let config = config(node, nodes, &rendezvous);
            scope.spawn(move || join(config).expect("all join"))
        };
        let (host, member) = (joined(0, 2), joined(1, 2));
        let (host, member) = (host.join().expect("no panic"), member.join().expect("no panic"));
        // Late strangers receive the reason why they cannot join, and the group goes on.
        let late = join(config(1, 2, &rendezvous)).expect_err("there is a node 1").to_string();
        assert!(late.contains("node id n1 is taken by"), "{late}");
        let work = |group: Group| {
            scope.spawn(move || {
                assert_eq!(group.all_gather(&[5]), Ok(vec![vec![5]; 2]));
                let refused = group.membership().refused().to_vec();
                group.leave(CloseReason::Finished);
                refused
            })
        };
        let (host, member) = (work(host), work(member));
        let refused = host.join().expect("no panic");
        assert!(refused.iter().any(|line| line.contains("node id n1 is taken by")), "{refused:?}");
        assert_eq!(member.join().expect("no panic"), Vec::<String>::new());
    });
}

#[test]
fn garbage_and_silence_keep_nobody_from_joining() {
    let address = free_address();
    let rendezvous = Rendezvous::Address(address.clone());
    thread::scope(|scope| {
        let (seen, sees) = std::sync::mpsc::channel();
        let host = {
            let config = config(0, 2, &rendezvous);
            scope.spawn(move || {
                let group = Group::join(config, &mut |membership| {
                    let _ = seen.send(membership.refused().len());
                });
                group.expect("node 1 comes").leave(CloseReason::Finished);
            })
        };
        sees.recv().expect("it has begun");
        let connect = || loop {
            if let Ok(stream) = TcpStream::connect(&address) {
                return stream;
            }
            thread::yield_now();
        };
        let _silent = connect();
        connect()
            .write_all(b"GET / HTTP/1.1\r\nHost: adapm\r\n\r\n plus enough to fill a header")
            .expect("sent");
        while sees.recv().expect("node 0 is told") == 0 {}
        join(config(1, 2, &rendezvous)).expect("node 0 waits").leave(CloseReason::Finished);
        host.join().expect("no panic");
    });
}

#[test]
fn a_member_that_lies_is_lost_and_named() {
    let rendezvous = file();
    let mut text = Vec::new();
    for head in [vec![0xff; 9], vec![0; 3], Vec::new(), vec![2, 0, 0], vec![6, 7], vec![7, 0, 0]] {
        let error = thread::scope(|scope| {
            let host = scope.spawn(|| {
                let mut host = config(0, 2, &rendezvous);
                host.token = token(1);
                join(host).expect_err("node 1 lies")
            });
            let address = loop {
                if let Ok(text) = std::fs::read_to_string(path(&rendezvous)) {
                    break format!("tcp://{}", text.trim()).parse::<Address>().expect("an address");
                }
                thread::yield_now();
            };
            let mut settings = NetConfig::new(NodeId(1), 2);
            (settings.channel, settings.token) = (u16::MAX, token(1));
            let mut liar = Net::listen(settings).expect("a free port");
            liar.connect(&[Some(address)]);
            liar.send(NodeId(0), &mut Frame { head, ..Frame::default() }).expect("there is room");
            while !host.is_finished() {
                let _ = liar.recv(Some(Duration::from_millis(5)), &mut Frame::default());
            }
            host.join().expect("no panic")
        });
        assert_eq!(
            error.lost().map(|loss| (loss.node, loss.loss)),
            Some((NodeId(1), Loss::Misbehaved))
        );
        text.push(error.to_string());
    }
    assert!(text.iter().all(|text| text.contains("was lost: it broke the protocol")), "{text:?}");
}

#[test]
fn settings_that_cannot_work_are_named_at_once() {
    let text = |config: GroupConfig| join(config).expect_err("it cannot work").to_string();
    let out = text(config(2, 2, &file()));
    assert_eq!(out, "node n2 is not in a cluster of 2 nodes: node ids are 0 to 1");

    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let text_of_taken = text(config(0, 2, &Rendezvous::Address(address.clone())));
    assert!(
        text_of_taken.starts_with(&format!("cannot listen at {address}: it is in use")),
        "{text_of_taken}"
    );

    for (given, node) in [("nowhere", 0), ("nowhere", 1), ("host:port", 1)] {
        let text = text(config(node, 2, &Rendezvous::Address(given.to_owned())));
        assert!(
            text.starts_with(&format!(
                "`{given}` cannot be used as an address: write it as host:port"
            )),
            "{text}"
        );
    }
    // A name may become known later: it is resolved until the join timeout.
    for node in [0, 1] {
        let mut late = config(node, 2, &Rendezvous::Address("nobody.invalid:4157".to_owned()));
        late.join_timeout = Duration::from_millis(200);
        assert!(text(late).starts_with("`nobody.invalid:4157` cannot be used as an address: "));
    }

    let mut exposed = config(0, 2, &Rendezvous::Address(free_address()));
    exposed.bind = Some("0.0.0.0".to_owned());
    let exposed_text = text(exposed.clone());
    assert!(exposed_text.contains("without a token lets anybody join"), "{exposed_text}");
    assert!(exposed_text.contains("--token-file") && exposed_text.contains("--insecure"));

    let folder = Rendezvous::File(std::env::temp_dir());
    let text_of_folder = text(config(1, 2, &folder));
    assert!(
        text_of_folder.starts_with("rendezvous file ")
            && text_of_folder.contains("it cannot be read")
    );
}

#[test]
fn a_node_that_listens_everywhere_advertises_what_it_is_told() {
    let rendezvous = file();
    thread::scope(|scope| {
        for node in 0..2 {
            let mut config = config(node, 2, &rendezvous);
            (config.bind, config.token) = (Some("0.0.0.0".to_owned()), token(3));
            config.advertise = Some("localhost".to_owned());
            scope.spawn(move || {
                let group = join(config).expect("both join");
                let (_, other) = group
                    .membership()
                    .members()
                    .nth(1 - node as usize)
                    .map(|(node, member)| (node, member.cloned()))
                    .expect("a node");
                assert!(other.expect("it has joined").address.ip().is_loopback());
                let net = group.listen(0, 0).expect("a free port");
                assert!(
                    group.address_of(&net).socket().is_some_and(|socket| socket.ip().is_loopback())
                );
                group.leave(CloseReason::Finished);
            });
        }
    });
}
