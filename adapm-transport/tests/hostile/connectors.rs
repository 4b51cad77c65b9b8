//! The same cases against nodes whose links are carried by tasks of tokio and by ZeroMQ.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use adapm_core::link::Seq;
use adapm_transport::net::Kind;
use adapm_transport::net::packet::HEADER_BYTES;
use adapm_verify::silence::patience;

use crate::floods::{hello, stay};
use crate::sound::SoundNodes;
use crate::stranger::{Stranger, claim, identity};

fn sound(kind: Kind) -> SoundNodes {
    SoundNodes::start(4, &[0, 1, 2], |config| {
        config.kind = kind;
        config.greeting_time = Duration::from_secs(2);
    })
}

/// Sends `bytes` to node 0 over three connections, which it must end, and report `words`.
#[track_caller]
fn refused(kind: Kind, bytes: &[u8], words: &str) {
    let sound = sound(kind);
    let mut strangers = [(); 3].map(|()| Stranger::dial(sound.address(0)));
    for stranger in &mut strangers {
        stranger.say(bytes);
    }
    for stranger in &mut strangers {
        stranger.drain();
    }
    let notice = sound.notice(0, words);
    assert!(notice.starts_with("refused 127.0.0.1:"), "{notice}");
    sound.finish(&[]);
}

/// Opens a thousand connections that send `bytes`, all of which end; the cluster goes on.
fn crowd(kind: Kind, bytes: &[u8]) -> SoundNodes {
    let sound = sound(kind);
    let dial = |_| TcpStream::connect(sound.address(0)).expect("the node listens");
    let mut strangers: Vec<TcpStream> = (0..1_000).map(dial).collect();
    for stranger in &mut strangers {
        // The node may have closed it already.
        let _ = stranger.write_all(bytes);
    }
    sound.goes_on();
    for stranger in &mut strangers {
        stranger.set_read_timeout(Some(patience())).expect("not zero");
        while let Ok(1..) = stranger.read(&mut [0; 512]) {}
    }
    sound
}

/// Returns the first bytes of a sound ZeroMQ peer.
fn zmtp_greeting() -> Vec<u8> {
    let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
    greeting.extend(b"NULL");
    greeting.resize(64, 0);
    greeting
}

/// Returns the bytes of a ZeroMQ peer that introduces itself as a DEALER of this name.
fn zmtp_dealer(name: &[u8]) -> Vec<u8> {
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0".to_vec();
    ready.push(name.len() as u8);
    ready.extend(name);
    let mut bytes = zmtp_greeting();
    bytes.extend([4, ready.len() as u8]);
    bytes.extend(ready);
    bytes
}

/// Returns the header of a frame of any length.
fn zmtp_claim(flags: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![flags | 2];
    bytes.extend(length.to_be_bytes());
    bytes
}

fn after(mut first: Vec<u8>, then: &[u8]) -> Vec<u8> {
    first.extend(then);
    first
}

cases! {
    fn a_large_claim_to_tokio() {
        refused(Kind::Tokio, &claim(16, u32::MAX, u32::MAX), "a packet claims 8589934590 bytes");
    }

    fn a_web_browser_at_tokio() {
        refused(Kind::Tokio, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n", NOT_OURS);
    }

    fn a_thousand_silent_connections_to_tokio() {
        let sound = crowd(Kind::Tokio, b"");
        sound.notice(0, "too many connections");
        let met = Stranger::meet(sound.address(0), identity(3), 0, Seq(0));
        met.expect("there is room for one that belongs here");
        sound.finish(&[]);
    }

    fn connections_that_fill_all_places_of_tokio_and_stay() {
        stay(Kind::Tokio, hello);
    }

    fn connections_that_fill_all_places_of_zeromq_and_stay() {
        stay(Kind::Zmq, |_| Vec::new());
    }

    fn the_same_with_names() {
        stay(Kind::Zmq, |number| zmtp_dealer(&number.to_le_bytes()));
    }

    fn a_frame_that_claims_the_memory_of_the_process() {
        refused(Kind::Zmq, &after(zmtp_greeting(), &zmtp_claim(0, 1 << 46)), "a packet claims 70368744177664 bytes");
    }

    fn the_same_in_a_command() {
        refused(Kind::Zmq, &after(zmtp_greeting(), &zmtp_claim(4, 1 << 46)), "a packet claims 70368744177664 bytes");
    }

    fn the_same_from_a_peer_with_a_name() {
        let bytes = after(zmtp_dealer(b"stranger"), &zmtp_claim(1, u64::MAX));
        refused(Kind::Zmq, &bytes, "a packet claims 18446744073709551615 bytes");
    }

    fn messages_without_end_from_a_peer_with_a_name() {
        // Each part is small, but together they are not: they wait outside until their time is
        // over.
        let part = after(zmtp_claim(1, 1 << 10), &[0; 1 << 10]);
        refused(Kind::Zmq, &after(zmtp_dealer(b"stranger"), &part.repeat(4)), SLOW);
    }

    fn a_message_that_is_no_packet() {
        refused(Kind::Zmq, &after(zmtp_dealer(b"stranger"), b"\x00\x05hello"), NOT_OURS);
    }

    fn a_message_with_a_header_of_zeros() {
        let mut message = vec![1, HEADER_BYTES as u8];
        message.extend([0; HEADER_BYTES]);
        message.extend(b"\x01\x00\x00\x00");
        refused(Kind::Zmq, &after(zmtp_dealer(b"stranger"), &message), NOT_OURS);
    }

    fn a_large_message_before_it_is_known_who_sends_it() {
        // Below the bound for nodes that are known.
        let bytes = after(zmtp_dealer(b"stranger"), &zmtp_claim(0, 10 << 20));
        refused(Kind::Zmq, &after(bytes, &[0; 64 << 10]), SLOW);
    }

    fn a_peer_without_a_name() {
        refused(Kind::Zmq, &zmtp_dealer(b""), NOT_OURS);
    }

    fn a_web_browser_at_zeromq() {
        refused(Kind::Zmq, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n", NOT_OURS);
    }

    fn a_node_that_thinks_it_is_tcp() {
        refused(Kind::Zmq, &claim(16, 700, 0), NOT_OURS);
    }

    fn two_peers_of_one_name() {
        let sound = sound(Kind::Zmq);
        let mut first = Stranger::dial(sound.address(0));
        first.say(&zmtp_dealer(b"stranger"));
        // The socket has answered, so the name is taken.
        let mut greeting = [0; 64];
        first.stream.read_exact(&mut greeting).expect("a greeting");
        first.stream.read_exact(&mut greeting[..2]).expect("an introduction");
        let mut second = Stranger::dial(sound.address(0));
        second.say(&zmtp_dealer(b"stranger"));
        sound.notice(0, NOT_OURS);
        second.drain();
        sound.finish(&[]);
    }

    fn a_thousand_silent_connections_to_zeromq() {
        let sound = crowd(Kind::Zmq, b"");
        sound.notice(0, "timed out");
        sound.finish(&[]);
    }

    fn a_thousand_greetings_to_zeromq() {
        let sound = crowd(Kind::Zmq, &zmtp_greeting());
        sound.notice(0, "timed out");
        sound.finish(&[]);
    }

    fn connections_to_zeromq_that_end_at_once() {
        let sound = sound(Kind::Zmq);
        for _ in 0..1_000 {
            let stream = TcpStream::connect(sound.address(0)).expect("the node listens");
            stream.set_read_timeout(Some(patience())).expect("not zero");
        }
        sound.finish(&[]);
    }
}

const NOT_OURS: &str = "the received bytes are not from an adapm node";
const SLOW: &str = "the handshake took too long";
