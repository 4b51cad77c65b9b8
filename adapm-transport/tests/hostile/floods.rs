//! Many connections, slow ones, and ones that end as soon as they are up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::Seq;
use adapm_core::transport::{CloseReason, Frame, Transport};
use adapm_transport::net::hello::{Dialing, HandshakeError, TokenFault};
use adapm_transport::net::{Address, Kind, Net, NetConfig, PeerState};
use adapm_verify::silence::{Silence, patience};
use socket2::SockRef;

use crate::sound::{self, SoundNodes, token};
use crate::stranger::{Caller, Stranger, claim, identity, in_the_clear};

/// Passes about this time without sleeping.
fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}

fn sound(greeting_time: Duration) -> SoundNodes {
    SoundNodes::start(4, &[0, 1, 2], |config| config.greeting_time = greeting_time)
}

/// Returns the first message of a stranger with a wrong token.
pub(crate) fn hello(number: u32) -> Vec<u8> {
    let to = (NodeId(0), None, None);
    let (_, open) = Dialing::new(identity(3), Some(&token(9)), to, Seq(0), [number as u8; 32]);
    in_the_clear(open)
}

/// Fills all places with strangers that send `say`, for as long as the test may last: a node that
/// belongs here still finds one, and existing links survive.
pub(crate) fn stay(kind: Kind, say: fn(u32) -> Vec<u8>) {
    let configure = |config: &mut NetConfig| {
        config.kind = kind;
        config.greeting_time = patience();
    };
    let sound = SoundNodes::start(4, &[0, 1, 2], configure);
    let strangers: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stranger = TcpStream::connect(sound.address(0)).expect("the node listens");
            // The node may have closed it already.
            let _ = stranger.write_all(&say(number));
            stranger
        })
        .collect();
    let mut config = sound::config(3, 4);
    configure(&mut config);
    let mut late = Net::listen(config).expect("loopback has a free port");
    let addresses: Vec<_> =
        (0..3).map(|node| Address::at(kind, sound.address(node))).chain([None]).collect();
    late.connect(&addresses);
    let mut silence = Silence::new();
    while late.peers().any(|peer| peer.state != PeerState::Up) {
        late.recv(Some(Duration::from_millis(1)), &mut Frame::default())
            .expect("nobody is refused");
        assert!(!silence.is_too_long(()), "{:?}", late.peers().collect::<Vec<_>>());
    }
    sound.up(0, 3);
    sound.goes_on();
    assert_eq!(sound.resumed(), 0, "a link has made way for strangers");
    drop(strangers);
    late.leave(CloseReason::Finished);
    sound.finish(&[]);
}

cases! {
    fn a_connection_that_says_nothing() {
        let sound = sound(Duration::from_millis(300));
        let mut stranger = Stranger::dial(sound.address(0));
        assert!(stranger.drain() <= 256);
        sound.notice(0, SLOW);
        sound.finish(&[]);
    }

    fn a_connection_that_says_a_byte_now_and_then() {
        let sound = sound(Duration::from_secs(1));
        let mut stranger = Stranger::dial(sound.address(0));
        let mut said = 0;
        // Each byte comes before the deadline of the one before.
        for byte in claim(16, 900, 0).into_iter().chain([0; 900]) {
            if !stranger.say(&[byte]) {
                break;
            }
            said += 1;
            pause(Duration::from_millis(50));
        }
        assert!(said < 900, "a stranger may take its time");
        sound.notice(0, SLOW);
        sound.finish(&[]);
    }

    fn a_hello_and_then_nothing() {
        let sound = sound(Duration::from_millis(300));
        let to = (NodeId(0), None, None);
        let (_, open) = Dialing::new(identity(3), Some(&token(1)), to, Seq(0), [3; 32]);
        let mut stranger = Stranger::dial(sound.address(0));
        stranger.say(&in_the_clear(open));
        stranger.hear().expect("the node answers");
        stranger.drain();
        sound.notice(0, SLOW);
        sound.finish(&[]);
    }

    fn a_thousand_connections_at_once() {
        let sound = sound(Duration::from_secs(5));
        let mut strangers = Vec::new();
        for _ in 0..1_000 {
            strangers.push(TcpStream::connect(sound.address(0)).expect("the node listens"));
        }
        sound.goes_on();
        sound.notice(0, "too many connections");
        // While the last of them wait there is room for a node that belongs here.
        let met = Stranger::meet(sound.address(0), identity(3), 0, Seq(0));
        assert_eq!(met.expect("there is room").1.node, NodeId(0));
        // All end: most at once, the others at their deadline.
        for stranger in &mut strangers {
            stranger.set_read_timeout(Some(patience())).expect("not zero");
            while let Ok(1..) = stranger.read(&mut [0; 512]) {}
        }
        sound.finish(&[]);
    }

    fn connections_that_fill_all_places_and_stay() {
        stay(Kind::Tcp, |_| Vec::new());
    }

    fn the_same_with_a_key_of_another_token() {
        stay(Kind::Tcp, hello);
    }

    fn the_same_with_half_a_key() {
        stay(Kind::Tcp, |number| hello(number)[..60].to_vec());
    }

    fn connections_that_end_at_once() {
        let sound = sound(Duration::from_secs(5));
        for _ in 0..2_000 {
            drop(TcpStream::connect(sound.address(0)).expect("the node listens"));
        }
        sound.finish(&[]);
    }

    fn connections_that_are_reset_at_once() {
        let sound = sound(Duration::from_secs(5));
        for _ in 0..2_000 {
            let stranger = TcpStream::connect(sound.address(0)).expect("the node listens");
            SockRef::from(&stranger).set_linger(Some(Duration::ZERO)).expect("it is TCP");
        }
        sound.finish(&[]);
    }

    fn connections_that_end_within_a_packet() {
        let sound = sound(Duration::from_secs(5));
        let hello = claim(16, 700, 0);
        for bytes in 1..200 {
            let mut stranger = Stranger::dial(sound.address(0));
            stranger.say(&hello[..bytes.min(hello.len())]);
        }
        sound.notice(0, "the connection was closed within a packet");
        sound.finish(&[]);
    }

    fn guesses_of_the_token() {
        let sound = sound(Duration::from_secs(5));
        for guess in 2..=201 {
            let caller = Caller { token: Some(token(guess)), ..Caller::new(identity(3), 0) };
            let told = Stranger::meet_as(sound.address(0), caller).err();
            assert_eq!(told, Some(HandshakeError::Token(TokenFault::Differs)));
        }
        sound.notice(0, "the tokens differ");
        sound.finish(&[]);
    }
}

const SLOW: &str = "the handshake took too long";
