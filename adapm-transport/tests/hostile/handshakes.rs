//! Handshakes out of turn, replayed, reflected or forged.

use std::io::Read;

use adapm_core::NodeId;
use adapm_core::link::{self, Seq};
use adapm_transport::net::hello::{Dialing, HandshakeError, Identity, Message, TokenFault};
use adapm_transport::net::noise::Recordings;
use adapm_transport::net::packet::{Greeting, Kind};
use adapm_transport::testing::{Heard, Speaker};

use crate::sound::{SoundNodes, token};
use crate::stranger::{Caller, Stranger, bytes_of, fresh, identity, in_the_clear};

fn sound() -> SoundNodes {
    SoundNodes::start(4, &[0, 1, 2], |_| {})
}

/// Starts sound nodes without a token: any peer may claim any identity to them.
fn open_crew() -> SoundNodes {
    SoundNodes::start(4, &[0, 1, 2], |config| config.token = None)
}

/// Returns a node's hello in the clear.
fn hello() -> Vec<u8> {
    let (mut dialing, _) =
        Dialing::new(identity(3), None, (NodeId(0), None, None), Seq(0), fresh());
    match dialing.handle(Greeting::Opened, &[]) {
        Ok(adapm_transport::net::hello::Step::Open { first: Some(hello), .. }) => hello.bytes,
        other => panic!("it has nothing to say: {other:?}"),
    }
}

/// Returns the recording of a sound node's handshake with node 0, cut off after its key and its
/// hello.
fn recorded(sound: &SoundNodes) -> [Vec<u8>; 2] {
    let to = (NodeId(0), None, None);
    let (mut speaker, open) = Speaker::dial(identity(3), Some(&token(1)), to, Seq(0), fresh());
    let mut stranger = Stranger::dial(sound.address(0));
    stranger.say(&open);
    let opened = stranger.hear_any().expect("the node answers");
    let Heard::Say(hello) = speaker.hear(opened, &mut Recordings::default()) else {
        panic!("the node is wrong")
    };
    [open, hello]
}

/// Sends `steps` one after the other, regardless of the answers; then node 0, which has no token,
/// must have refused, and have reported it on both sides.
#[track_caller]
fn makes_no_sense(steps: &[(Greeting, Vec<u8>)]) {
    let sound = open_crew();
    let mut stranger = Stranger::dial(sound.address(0));
    for (greeting, bytes) in steps {
        stranger.greet(*greeting, bytes);
    }
    assert_eq!(stranger.hear_end(), Some(HandshakeError::Malformed));
    sound.notice(0, "the handshake is invalid: is that an adapm node?");
    assert_eq!(sound.foreign_so_far(0), 0);
    sound.finish(&[]);
}

/// Sends `bytes` to node 0 after a right key; the node must end the connection and report why.
#[track_caller]
fn does_not_open(bytes: &[u8]) {
    let sound = sound();
    let to = (NodeId(0), None, None);
    let (_, open) = Speaker::dial(identity(3), Some(&token(1)), to, Seq(0), fresh());
    let mut stranger = Stranger::dial(sound.address(0));
    stranger.say(&open);
    stranger.hear_any().expect("the node answers");
    stranger.say(bytes);
    assert_eq!(stranger.hear_end(), None, "it learns nothing");
    sound.notice(0, "a packet is not the one that the peer sealed");
    assert_eq!(sound.foreign_so_far(0), 0);
    sound.finish(&[]);
}

/// Shakes hands as `identity` with node `to`, which must refuse with `here` and report `there`.
#[track_caller]
fn refused_as(identity: Identity, to: u16, here: &str, there: &str) {
    let sound = sound();
    let Err(refusal) = Stranger::meet(sound.address(to), identity, to, Seq(0)) else {
        panic!("it was believed");
    };
    assert!(refusal.to_string().contains(here), "{refusal}");
    sound.notice(to, there);
    sound.finish(&[]);
}

cases! {
    fn a_key_twice() {
        makes_no_sense(&[(Greeting::Open, vec![]), (Greeting::Open, vec![])]);
    }

    fn a_hello_without_a_key() {
        makes_no_sense(&[(Greeting::Hello, hello())]);
    }

    fn a_welcome_to_one_who_listens() {
        makes_no_sense(&[(Greeting::Open, vec![]), (Greeting::Welcome, vec![0; 80])]);
    }

    fn a_hello_of_random_bytes() {
        makes_no_sense(&[(Greeting::Open, vec![]), (Greeting::Hello, vec![0x85; 90])]);
    }

    fn a_hello_with_something_behind_it() {
        let mut hello = hello();
        hello.push(0);
        makes_no_sense(&[(Greeting::Open, vec![]), (Greeting::Hello, hello)]);
    }

    fn a_hello_cut_short() {
        let mut hello = hello();
        hello.pop();
        makes_no_sense(&[(Greeting::Open, vec![]), (Greeting::Hello, hello)]);
    }

    fn data_instead_of_a_hello() {
        let sound = open_crew();
        let mut stranger = Stranger::dial(sound.address(0));
        stranger.greet(Greeting::Open, &[]);
        stranger.link(link::Kind::Data, 0, 0, b"trust me");
        assert_eq!(stranger.hear_end(), Some(HandshakeError::Malformed));
        sound.notice(0, "the handshake is invalid");
        assert_eq!(sound.foreign_so_far(0), 0);
        sound.finish(&[]);
    }

    fn a_hello_in_the_clear_behind_a_key_that_is_right() {
        let frame = adapm_core::transport::Frame { head: hello(), ..Default::default() };
        does_not_open(&bytes_of(Kind::Greeting(Greeting::Hello), 0, 0, frame));
    }

    fn data_in_the_clear_behind_a_key_that_is_right() {
        let frame = adapm_core::transport::Frame { head: b"trust me".to_vec(), ..Default::default() };
        does_not_open(&bytes_of(Kind::Link(link::Kind::Data), 0, 0, frame));
    }

    fn a_refusal_in_the_clear_behind_a_key_that_is_right() {
        does_not_open(&in_the_clear(Message::refuse(HandshakeError::GivenUp)));
    }

    fn a_hello_that_another_token_has_sealed() {
        let to = (NodeId(0), None, None);
        let (mut speaker, open) = Speaker::dial(identity(3), Some(&token(2)), to, Seq(0), fresh());
        let mut other = Speaker::listen(identity(0), Some(token(2)), fresh());
        let mut recordings = Recordings::default();
        let read = |bytes: &[u8]| {
            let mut reader = adapm_transport::net::packet::PacketReader::new(1 << 10);
            reader.read(&mut &*bytes, &mut Default::default()).expect("sound").expect("whole")
        };
        let Heard::Say(opened) = other.hear(read(&open), &mut recordings) else { panic!("one token") };
        let Heard::Say(hello) = speaker.hear(read(&opened), &mut recordings) else { panic!("one token") };
        does_not_open(&hello);
    }

    fn a_refusal_by_a_stranger_ends_only_its_own_connection() {
        let sound = sound();
        for refusal in [HandshakeError::Layout, HandshakeError::Cluster, HandshakeError::Restarted, HandshakeError::GivenUp] {
            let mut stranger = Stranger::dial(sound.address(0));
            stranger.say(&in_the_clear(Message::refuse(refusal)));
            stranger.hear_end();
        }
        sound.finish(&[]);
    }

    fn a_recorded_handshake_gets_nobody_in_a_thousand_times() {
        let sound = sound();
        let [open, hello] = recorded(&sound);
        for _ in 0..1_000 {
            let mut thief = Stranger::dial(sound.address(0));
            thief.say(&open);
            thief.say(&hello);
            assert_eq!(thief.hear_end(), Some(HandshakeError::Repeated));
        }
        sound.notice(0, "it repeats an earlier handshake, which may have been recorded");
        sound.finish(&[]);
    }

    fn a_recorded_handshake_is_worthless_at_another_node() {
        let sound = sound();
        let [open, hello] = recorded(&sound);
        let mut thief = Stranger::dial(sound.address(1));
        thief.say(&open);
        thief.hear_any().expect("it cannot know");
        thief.say(&hello);
        assert_eq!(thief.hear_end(), None);
        sound.notice(1, "a packet is not the one that the peer sealed");
        sound.finish(&[]);
    }

    fn a_recorded_link_gets_nobody_in() {
        let sound = sound();
        let (mut stranger, _) = Stranger::meet(sound.address(0), identity(3), 0, Seq(0)).expect("it knows the token");
        let frame = adapm_core::transport::Frame { head: b"once".to_vec(), ..Default::default() };
        let packet = stranger.bytes_of(Kind::Link(link::Kind::Data), 0, 0, frame);
        stranger.say(&packet);
        sound.foreign(0, 1);
        stranger.say(&packet);
        stranger.drain();
        let caller = Caller::new(identity(3), 0);
        let mut thief = Stranger::dial(sound.address(0));
        thief.say(&packet);
        thief.hear_end();
        assert!(Stranger::meet_as(sound.address(0), caller).is_err(), "it does not know the link");
        assert_eq!(sound.foreign_so_far(0), 1);
        sound.finish(&[]);
    }

    fn a_key_sent_back_proves_nothing() {
        let sound = sound();
        let to = (NodeId(0), None, None);
        let (_, open) = Speaker::dial(identity(3), Some(&token(1)), to, Seq(0), fresh());
        let mut stranger = Stranger::dial(sound.address(0));
        stranger.say(&open);
        let mut opened = vec![0; 36 + 48];
        stranger.stream.read_exact(&mut opened).expect("the node answers");
        let mut thief = Stranger::dial(sound.address(0));
        thief.greet(Greeting::Open, &opened[36..]);
        assert_eq!(thief.hear_end(), Some(HandshakeError::Token(TokenFault::Differs)));
        sound.notice(0, "the tokens differ");
        sound.finish(&[]);
    }

    fn a_stolen_incarnation_does_not_take_the_place_of_a_living_node_a_thousand_times() {
        let sound = sound();
        let (mut node, met) = Stranger::meet(sound.address(0), identity(3), 0, Seq(0)).expect("it knows the token");
        node.link(link::Kind::Data, 0, 0, b"here");
        sound.foreign(0, 1);
        // All members know its identity and those it has met; the secret of the link they do not
        // know.
        let (_, other) = Stranger::meet(sound.address(1), identity(3), 1, Seq(0)).expect("it knows the token");
        let other = other.claim.and_then(|claim| claim.begins().cloned()).expect("it is new there");
        for turn in 0..1_000 {
            let link = (turn % 2 == 0).then(|| other.clone());
            let caller = Caller { knows: Some(met.incarnation), link, ..Caller::new(identity(3), 0) };
            let refusal = Stranger::meet_as(sound.address(0), caller).err().expect("it does not know the link");
            assert!(matches!(refusal, HandshakeError::NodeTaken { .. }), "{refusal}");
        }
        sound.notice(0, "node id n3 is taken by the process at");
        node.link(link::Kind::Data, 1, 0, b"still here");
        sound.foreign(0, 2);
        sound.finish(&[]);
    }

    fn a_refusal_in_the_clear_changes_nothing_on_a_link() {
        let sound = sound();
        let (mut node, met) = Stranger::meet(sound.address(0), identity(3), 0, Seq(0)).expect("it knows the token");
        node.link(link::Kind::Data, 0, 0, b"here");
        sound.foreign(0, 1);
        node.say(&in_the_clear(Message::refuse(HandshakeError::GivenUp)));
        node.drain();
        let link = met.claim.as_ref().and_then(|claim| claim.begins().cloned());
        let caller = Caller { knows: Some(met.incarnation), link, ..Caller::new(identity(3), 0) };
        let (mut node, again) = Stranger::meet_as(sound.address(0), caller).expect("it knows the link");
        assert_eq!(again.expects, Seq(1));
        node.link(link::Kind::Data, 1, 0, b"still here");
        sound.foreign(0, 2);
        sound.finish(&[]);
    }

    fn one_who_knows_the_token_but_has_a_lower_id_and_dials() {
        refused_as(identity(0), 1, "the handshake is invalid", "the handshake is invalid");
    }

    fn one_who_says_that_it_is_the_node_it_dials() {
        refused_as(identity(1), 1, "node id n1 is taken", "node id n1 is taken");
    }

    fn one_whose_node_id_is_out_of_range() {
        let id = "there is no node n9 in a cluster of 4: node ids are 0 to 3";
        refused_as(identity(9), 0, id, id);
    }

    fn one_who_knows_the_token_and_takes_the_id_of_a_node_that_is_up() {
        refused_as(identity(2), 0, "node id n2 is taken by the process at", "node id n2 is taken by the process at");
    }

    fn one_of_another_cluster_learns_nothing_but_that() {
        let stranger = Identity { cluster: adapm_transport::net::hello::ClusterId(9), nodes: 7, ..identity(9) };
        refused_as(stranger, 0, "it belongs to another cluster", "it belongs to another cluster");
    }
}
