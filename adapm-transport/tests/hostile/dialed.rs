//! Dialed addresses that lead to something else than the expected node: the dialing node reports
//! it, goes on trying where that can help, and the others go on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_transport::net::NetConfig;
use adapm_transport::net::hello::{HandshakeError, Message, TokenFault};
use adapm_transport::net::packet::{Greeting, PROTOCOL_VERSION};

use crate::sound::SoundNodes;
use crate::stranger::{Stranger, claim, identity, in_the_clear, listener, packet_of_version};

/// A listener in place of node 0, which serves each connection by a function, until it is dropped.
struct Impostor {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Impostor {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> Self {
        let listener: TcpListener = listener();
        let address = listener.local_addr().expect("it has one");
        let ends = Arc::new(AtomicBool::new(false));
        let for_thread = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if for_thread.load(Ordering::Relaxed) {
                    return;
                }
                let serve = serve.clone();
                // Detached: the process ends with the case.
                thread::spawn(move || serve(stream));
            }
        });
        Self { address, ends, thread: Some(thread) }
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the sound nodes 1, 2 and 3 of four, which dial an impostor as node 0. They must report
/// `words`.
#[track_caller]
fn troubled(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static, words: &str) {
    let impostor = Impostor::start(serve);
    let configure = |config: &mut NetConfig| {
        config.greeting_time = Duration::from_millis(500);
    };
    let sound = SoundNodes::start_with(4, &[1, 2, 3], configure, &[(0, impostor.address)]);
    for node in [1, 2, 3] {
        sound.fault(node, 0, words);
    }
    sound.finish(&[]);
}

/// Sends `bytes` at once, and then reads until the node hangs up.
fn says(bytes: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + Clone + 'static {
    move |mut stream| {
        let _ = stream.write_all(bytes);
        while let Ok(1..) = stream.read(&mut [0; 4096]) {}
    }
}

cases! {
    fn a_web_server() {
        troubled(
            says(b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            "the received bytes are not from an adapm node",
        );
    }

    fn a_shell_server() {
        troubled(says(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7\r\n"), "the received bytes are not from an adapm node");
    }

    fn one_who_hangs_up() {
        // Once it has read: an end with unread bytes is a reset to the other side, which reports
        // other words.
        let hang_up = |mut stream: TcpStream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.shutdown(Shutdown::Write);
            while let Ok(1..) = stream.read(&mut [0; 4096]) {}
        };
        troubled(hang_up, "the connection was closed");
    }

    fn one_who_says_nothing() {
        troubled(says(b""), "the handshake took too long");
    }

    fn an_echo() {
        troubled(
            |mut stream| {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    let _ = stream.write_all(&piece[..count]);
                }
            },
            "the handshake is invalid: is that an adapm node?",
        );
    }

    fn one_who_claims_a_large_welcome() {
        let serve = |mut stream: TcpStream| {
            let _ = stream.write_all(&claim(17, 1 << 20, 0));
            while let Ok(1..) = stream.read(&mut [0; 4096]) {}
        };
        troubled(serve, "a packet claims 1048576 bytes, 1024 are allowed");
    }

    fn one_who_talks_without_end() {
        let serve = |mut stream: TcpStream| while stream.write_all(&[0x61; 64 << 10]).is_ok() {};
        troubled(serve, "the received bytes are not from an adapm node");
    }

    fn one_who_refuses_without_the_token() {
        // No node trusts it: they go on trying.
        for (refusal, words) in [
            (HandshakeError::Layout, "the layouts differ"),
            (HandshakeError::Restarted, "a node was started anew"),
            (HandshakeError::Token(TokenFault::Differs), "the tokens differ"),
        ] {
            let serve = move |stream: TcpStream| {
                let mut stranger = Stranger::of(stream);
                let _ = stranger.hear();
                stranger.say(&in_the_clear(Message::refuse(refusal)));
                stranger.drain();
            };
            troubled(serve, words);
        }
    }

    fn one_who_speaks_another_version() {
        let serve = |stream: TcpStream| {
            let mut stranger = Stranger::of(stream);
            let _ = stranger.hear();
            stranger.say(&packet_of_version(PROTOCOL_VERSION + 1, Greeting::Refuse));
            stranger.drain();
        };
        troubled(serve, "protocol versions differ");
    }

    fn one_who_makes_up_a_key() {
        let serve = |stream: TcpStream| {
            let mut stranger = Stranger::of(stream);
            let _ = stranger.hear();
            stranger.greet(Greeting::Opened, &[7; 48]);
            stranger.hear_end();
        };
        troubled(serve, "the handshake is invalid: is that an adapm node?");
    }

    fn one_who_has_no_key() {
        let serve = |stream: TcpStream| {
            let mut stranger = Stranger::of(stream);
            let _ = stranger.hear();
            stranger.greet(Greeting::Opened, &[]);
            stranger.hear_end();
        };
        troubled(serve, "the handshake is invalid: is that an adapm node?");
    }

    fn one_who_welcomes_before_it_was_asked() {
        let serve = |stream: TcpStream| {
            let mut stranger = Stranger::of(stream);
            stranger.greet(Greeting::Welcome, &[0]);
            stranger.hear_end();
        };
        troubled(serve, "the handshake is invalid: is that an adapm node?");
    }

    fn one_who_cannot_be_reached_yet_and_then_can() {
        // The port is known but has no listener; then node 0 comes up there.
        let free = listener();
        let address = free.local_addr().expect("it has one");
        drop(free);
        let configure = |config: &mut NetConfig| {
            config.link = LinkConfig::with_dead_after(Duration::from_secs(20));
        };
        let sound = SoundNodes::start_with(4, &[1, 2, 3], configure, &[(0, address)]);
        sound.fault(2, 0, "Connection refused");
        let late = TcpListener::bind(address).expect("the port is still free");
        let mut stranger = Stranger::accept(&late);
        let met = stranger.serve(identity(0));
        stranger.welcome();
        let NodeId(node) = met.node;
        sound.up(node, 0);
        sound.finish(&[]);
    }
}
