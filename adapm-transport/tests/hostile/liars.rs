//! A peer that knows the token and then breaks the protocol. Only it is lost; the cluster goes on.

use std::time::Duration;

use adapm_core::link::{Kind, LinkConfig, Seq};
use adapm_core::transport::{Frame, Loss};
use adapm_transport::net::Token;
use adapm_transport::net::hello::{Claim, HandshakeError, Identity, Incarnation, Met};
use adapm_transport::net::packet::{self, Greeting};
use adapm_verify::silence::Silence;

use crate::sound::{SoundNodes, token};
use crate::stranger::{Caller, Stranger, claim, identity, packet_of_version};

fn sound() -> SoundNodes {
    SoundNodes::start(4, &[0, 1, 2], |_| {})
}

/// Connects the liar, as node 3, on a link with node 0 that goes on at packet `expects` of node 0.
fn liar(sound: &SoundNodes, expects: u64) -> Stranger {
    Stranger::meet(sound.address(0), identity(3), 0, Seq(expects)).expect("it knows the token").0
}

/// Makes the liar do `lie` once; node 0 must count it as lost.
#[track_caller]
fn lost_for(lie: impl Fn(&mut Stranger)) {
    let sound = sound();
    let mut stranger = liar(&sound, 0);
    lie(&mut stranger);
    stranger.drain();
    assert_eq!(sound.loss(0, 3), Loss::Misbehaved);
    sound.finish(&[3]);
}

/// Makes the liar meet node 0 and do `lie` again and again, in vain; node 0 must count it as lost
/// in the end. Nodes have the token, or none.
#[track_caller]
fn lost_in_the_end_for(token: Option<Token>, lie: impl Fn(&mut Stranger)) {
    let sound = SoundNodes::start(4, &[0, 1, 2], |config| config.token.clone_from(&token));
    let mut caller = Caller { token, ..Caller::new(identity(3), 0) };
    for _ in 0..50 {
        let Ok((mut stranger, met)) = Stranger::meet_as(sound.address(0), caller.clone()) else {
            break;
        };
        remember(&mut caller, &met);
        lie(&mut stranger);
        stranger.drain();
    }
    assert_eq!(sound.loss(0, 3), Loss::Misbehaved);
    let Err(refusal) = Stranger::meet_as(sound.address(0), caller) else {
        panic!("a lost node came back");
    };
    assert_eq!(refusal, HandshakeError::GivenUp);
    sound.finish(&[3]);
}

/// Makes the next handshake go on with the link.
fn remember(caller: &mut Caller, met: &Met) {
    caller.knows = Some(met.incarnation);
    if let Some(link) = met.claim.as_ref().and_then(Claim::begins) {
        caller.link = Some(link.clone());
    }
}

/// Brings node 3 back without its state, until node 0 takes its first life for lost; before that,
/// the second may be an impostor.
#[track_caller]
fn comes_back(sound: &SoundNodes, token: Option<Token>) {
    let again = Identity { incarnation: Incarnation(5), ..identity(3) };
    let caller = Caller { token, ..Caller::new(again, 0) };
    let mut silence = Silence::new();
    loop {
        let Err(refusal) = Stranger::meet_as(sound.address(0), caller.clone()) else {
            panic!("it has lost its state");
        };
        if refusal == HandshakeError::Restarted {
            return;
        }
        assert!(matches!(refusal, HandshakeError::NodeTaken { .. }), "{refusal}");
        assert!(!silence.is_too_long(()));
    }
}

/// Sends bytes that no node with the token can have sent: they end the connection and nothing else,
/// as any host on the path can have inserted them. Without a token the node is blamed in the end.
#[track_caller]
fn spoils_the_connection(bytes: &[u8]) {
    let sound = sound();
    let mut caller = Caller::new(identity(3), 0);
    for turn in 0..20 {
        let (mut stranger, met) =
            Stranger::meet_as(sound.address(0), caller.clone()).expect("it knows the link");
        assert_eq!(met.expects, Seq(turn));
        remember(&mut caller, &met);
        stranger.link(Kind::Data, turn, 0, b"sound");
        sound.foreign(0, turn + 1);
        stranger.say(bytes);
        stranger.drain();
    }
    sound.finish(&[]);
    lost_in_the_end_for(None, |stranger| {
        stranger.say(bytes);
    });
}

cases! {
    fn acknowledges_what_was_never_sent() {
        lost_for(|stranger| assert!(stranger.link(Kind::Heartbeat, 0, 5, b"")));
    }

    fn resumes_behind_what_was_sent() {
        let sound = sound();
        let mut stranger = Stranger::meet(sound.address(0), identity(3), 0, Seq(1_000)).expect("it knows the token").0;
        stranger.drain();
        assert_eq!(sound.loss(0, 3), Loss::Misbehaved);
        sound.finish(&[3]);
    }

    fn says_something_behind_its_goodbye() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        stranger.link(Kind::Bye, 0, 0, &[0]);
        stranger.link(Kind::Data, 1, 0, b"one more thing");
        stranger.drain();
        assert_eq!(sound.foreign_so_far(0), 0);
        sound.finish(&[3]);
    }

    fn says_goodbye_without_a_reason() {
        lost_for(|stranger| assert!(stranger.link(Kind::Bye, 0, 0, &[77])));
    }

    fn leaves_packets_out() {
        for token in [Some(token(1)), None] {
            lost_in_the_end_for(token, |stranger| {
                stranger.link(Kind::Data, 3, 0, b"where are the others?");
            });
        }
    }

    fn sends_packets_of_unknown_kinds() {
        spoils_the_connection(&claim(200, 0, 0));
    }

    fn greets_in_the_middle_of_the_link() {
        for token in [Some(token(1)), None] {
            lost_in_the_end_for(token, |stranger| {
                stranger.greet(Greeting::Hello, &[1, 2, 3]);
            });
        }
    }

    fn changes_its_version() {
        spoils_the_connection(&packet_of_version(packet::PROTOCOL_VERSION + 1, Greeting::Hello));
    }

    fn sends_corrupt_packets_only() {
        let mut bytes = claim(0, 5, 0);
        bytes.extend(b"hello");
        spoils_the_connection(&bytes);
    }

    fn claims_frames_above_the_bound() {
        spoils_the_connection(&claim(0, 1, 16 << 20));
    }

    fn claims_four_gibibytes_twice_in_one_frame() {
        spoils_the_connection(&claim(0, u32::MAX, u32::MAX));
    }

    fn claims_a_large_frame_and_never_sends_it() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        stranger.say(&claim(0, 0, 16 << 20));
        stranger.say(&[1; 100]);
        sound.goes_on();
        sound.finish(&[]);
    }

    fn sends_one_corrupt_packet_and_goes_on_on_a_new_connection() {
        let sound = sound();
        let mut caller = Caller::new(identity(3), 0);
        let (mut first, met) = Stranger::meet_as(sound.address(0), caller.clone()).expect("it knows the token");
        remember(&mut caller, &met);
        first.link(Kind::Data, 0, 0, b"first");
        sound.foreign(0, 1);
        let mut bytes = claim(0, 5, 0);
        bytes.extend(b"wrong");
        first.say(&bytes);
        first.drain();
        let (mut second, met) = Stranger::meet_as(sound.address(0), caller).expect("it goes on");
        assert_eq!(met.expects, Seq(1), "the first frame has arrived");
        second.link(Kind::Data, 0, 0, b"first");
        second.link(Kind::Data, 1, 0, b"second");
        sound.foreign(0, 2);
        sound.goes_on();
        assert_eq!(sound.foreign_so_far(0), 2);
        sound.finish(&[]);
    }

    fn breaks_off_within_a_frame_and_goes_on() {
        let sound = sound();
        let mut caller = Caller::new(identity(3), 0);
        for cut in 0..60 {
            let (mut stranger, met) = Stranger::meet_as(sound.address(0), caller.clone()).expect("it goes on");
            remember(&mut caller, &met);
            assert_eq!(met.expects, Seq(cut), "each frame has arrived once");
            stranger.link(Kind::Data, cut, 0, b"whole");
            sound.foreign(0, cut + 1);
            let frame = Frame { head: vec![0; 100], ..Frame::default() };
            let bytes = stranger.bytes_of(packet::Kind::Link(Kind::Data), cut + 1, 0, frame);
            stranger.say(&bytes[..1 + 2 * cut as usize]);
        }
        assert_eq!(sound.foreign_so_far(0), 60);
        sound.finish(&[]);
    }

    fn sends_heartbeats_without_end() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        assert!(stranger.flood(Kind::Heartbeat, (0..100_000).map(|_| 0), b""), "it breaks no rule");
        sound.finish(&[]);
    }

    fn sends_acknowledgements_without_end() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        assert!(stranger.flood(Kind::Ack, (0..100_000).map(|_| 0), b""), "it breaks no rule");
        sound.finish(&[]);
    }

    fn sends_empty_frames_without_end() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        assert!(stranger.flood(Kind::Data, 0..100_000, b""), "it breaks no rule");
        sound.foreign(0, 100_000);
        sound.finish(&[]);
    }

    fn repeats_one_frame_without_end() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        assert!(stranger.flood(Kind::Data, (0..50_000).map(|_| 0), b"again"), "it breaks no rule");
        stranger.link(Kind::Data, 1, 0, b"another");
        sound.foreign(0, 2);
        sound.goes_on();
        assert_eq!(sound.foreign_so_far(0), 2);
        sound.finish(&[]);
    }

    fn carries_heads_in_heartbeats() {
        let sound = sound();
        let mut stranger = liar(&sound, 0);
        for _ in 0..1_000 {
            if !stranger.link(Kind::Heartbeat, 0, 0, &[0; 4_000]) {
                break;
            }
        }
        sound.goes_on();
        assert_eq!(sound.foreign_so_far(0), 0);
        sound.finish(&[3]);
    }

    fn connects_again_and_again() {
        let sound = sound();
        let mut last = None;
        let mut caller = Caller::new(identity(3), 0);
        for _ in 0..300 {
            let (stranger, met) = Stranger::meet_as(sound.address(0), caller.clone()).expect("it goes on");
            remember(&mut caller, &met);
            last = Some(stranger);
        }
        let mut last = last.expect("300 of them");
        last.link(Kind::Data, 0, 0, b"here");
        sound.foreign(0, 1);
        sound.finish(&[]);
    }

    fn falls_silent() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |config| {
            config.link = LinkConfig::with_dead_after(Duration::from_secs(3));
        });
        let _stranger = liar(&sound, 0);
        assert!(matches!(sound.loss(0, 3), Loss::Silent(time) if time >= Duration::from_secs(3)));
        sound.finish(&[3]);
    }

    fn comes_back_without_memory() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |config| {
            config.link = LinkConfig::with_dead_after(Duration::from_secs(3));
        });
        let mut stranger = liar(&sound, 0);
        stranger.link(Kind::Data, 0, 0, b"before");
        sound.foreign(0, 1);
        drop(stranger);
        // Any holder of the token can claim that node 3 was started anew: it is believed to be dead
        // once it is silent for so long.
        comes_back(&sound, Some(token(1)));
        assert!(matches!(sound.loss(0, 3), Loss::Silent(_)));
        sound.finish(&[3]);
    }

    fn comes_back_without_memory_or_token() {
        let sound = SoundNodes::start(4, &[0, 1, 2], |config| config.token = None);
        let caller = Caller { token: None, ..Caller::new(identity(3), 0) };
        let (mut stranger, _) = Stranger::meet_as(sound.address(0), caller).expect("anybody may");
        stranger.link(Kind::Data, 0, 0, b"before");
        sound.foreign(0, 1);
        drop(stranger);
        comes_back(&sound, None);
        assert_eq!(sound.loss(0, 3), Loss::Restarted);
        sound.finish(&[3]);
    }

    fn remembers_a_life_that_the_node_never_had() {
        let sound = sound();
        let caller = Caller { knows: Some(Incarnation(123)), ..Caller::new(identity(3), 0) };
        let Err(refusal) = Stranger::meet_as(sound.address(0), caller) else {
            panic!("node 0 has had one life only");
        };
        assert_eq!(refusal, HandshakeError::Restarted);
        sound.finish(&[3]);
    }
}
