//! Bytes that are not those of a node.

use adapm_core::link;
use adapm_core::transport::Frame;
use adapm_transport::net::packet::{Greeting, Kind};
use adapm_verify::rng::Rng;

use crate::sound::SoundNodes;
use crate::stranger::{Stranger, bytes_of, claim};

/// Sends `bytes` to node 0 and closes for writing; the node must end the connection and report
/// `words`.
#[track_caller]
fn refused(bytes: &[u8], words: &str) {
    let sound = SoundNodes::start(4, &[0, 1, 2], |_| {});
    for _ in 0..3 {
        let mut stranger = Stranger::dial(sound.address(0));
        stranger.say(bytes);
        // A refusal of at most one small packet: strangers cannot amplify traffic.
        assert!(stranger.drain() <= 256, "a stranger is told too much");
    }
    let notice = sound.notice(0, words);
    assert!(notice.starts_with("refused 127.0.0.1:"), "{notice}");
    sound.finish(&[]);
}

/// Repeats `bytes` until they are longer than any message allowed to a stranger.
fn much(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().cycle().take(64 << 10).collect()
}

cases! {
    fn random_bytes() {
        let mut rng = Rng::new(5);
        let bytes: Vec<u8> = (0..64 << 10).map(|_| rng.bits() as u8).collect();
        refused(&bytes, NOT_OURS);
    }

    fn a_web_browser() {
        refused(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: curl/8.5.0\r\n\r\n", NOT_OURS);
    }

    fn a_tls_client() {
        let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        hello.extend((0_u8..=255).cycle().take(506));
        refused(&hello, NOT_OURS);
    }

    fn a_zeromq_peer() {
        let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
        greeting.extend(b"NULL");
        greeting.resize(64, 0);
        // The bytes after a greeting that made another parameter server abort: a frame of 2^46
        // bytes.
        greeting.extend([0x02, 0, 0, 0x40, 0, 0, 0, 0, 0]);
        refused(&greeting, NOT_OURS);
    }

    fn a_shell_client() {
        refused(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7\r\n", NOT_OURS);
    }

    fn zeros() {
        refused(&much(&[0]), NOT_OURS);
    }

    fn ones() {
        refused(&much(&[0xff]), NOT_OURS);
    }

    fn a_packet_of_an_unknown_kind() {
        refused(&claim(200, 0, 0), "a packet of unknown kind 200");
    }

    fn a_packet_with_a_wrong_checksum() {
        let frame = Frame { head: vec![7; 40], ..Frame::default() };
        let mut bytes = bytes_of(Kind::Greeting(Greeting::Hello), 0, 0, frame);
        bytes[50] ^= 4;
        refused(&bytes, "a packet arrived corrupt (wrong checksum)");
    }

    fn a_packet_with_a_length_that_was_changed_on_the_way() {
        let frame = Frame { head: vec![7; 40], ..Frame::default() };
        let mut bytes = bytes_of(Kind::Greeting(Greeting::Hello), 0, 0, frame);
        bytes[5] ^= 1;
        refused(&bytes, "a packet arrived corrupt (wrong checksum)");
    }

    fn a_packet_of_the_link_before_any_greeting() {
        let frame = Frame { head: b"values for free".to_vec(), ..Frame::default() };
        let bytes = bytes_of(Kind::Link(link::Kind::Data), 0, 0, frame);
        refused(&bytes, NO_SENSE);
    }

    fn a_heartbeat_before_any_greeting() {
        let bytes = bytes_of(Kind::Link(link::Kind::Heartbeat), 0, 0, Frame::default());
        refused(&bytes, NO_SENSE);
    }

    fn a_header_that_claims_four_gibibytes_of_head() {
        refused(&claim(16, u32::MAX, 0), "a packet claims 4294967295 bytes, 1024 are allowed");
    }

    fn a_header_that_claims_four_gibibytes_of_values() {
        refused(&much(&claim(16, 0, u32::MAX)), "a packet claims 4294967295 bytes, 1024 are allowed");
    }

    fn a_header_whose_lengths_overflow_when_added() {
        refused(&claim(16, u32::MAX, 2), "a packet claims 4294967297 bytes, 1024 are allowed");
    }

    fn a_header_that_claims_a_bit_too_much_for_a_stranger() {
        refused(&claim(16, 1_025, 0), "a packet claims 1025 bytes, 1024 are allowed");
    }

    fn a_greeting_with_values() {
        let mut bytes = claim(16, 0, 64);
        bytes.extend([1; 64]);
        refused(&bytes, "a packet arrived corrupt (wrong checksum)");
    }
}

const NOT_OURS: &str = "the received bytes are not from an adapm node";
const NO_SENSE: &str = "the handshake is invalid: is that an adapm node?";
