//! Two nodes with a token, and an attacker on the way between them that does not know it: changes,
//! drops, repeats, moves and cuts packets, replays recordings, and inserts packets of its own, at
//! every step of handshakes, first packets and resumes.
//!
//! The claims that must hold against every attack:
//!
//! | claim | checked |
//! | --- | --- |
//! | a sealed connection accepts only packets that its other end has sealed there, in its order | with every packet |
//! | each frame arrives once and in order, as it was sent | with every frame |
//! | the attacker learns no node's identity | with every packet |
//! | no node is refused, blamed or given up: the worst is a connection that ends | with every handshake |
//! | once it is gone, everything arrives | at the end |
//! | a holder of the token that knows all about a node, as members do, does not take its place | now and then |
//!
//! No sockets and no time: the nodes are the state machines of an endpoint.

mod parts;

use core::time::Duration;
use std::collections::VecDeque;
use std::io::Write as _;

use adapm_core::link::{LinkConfig, Seq};
use adapm_core::transport::Frame;
use adapm_core::{Instant, NodeId};
use adapm_verify::rng::Rng;

use self::parts::{frame, introduced, link_of_others, packet_of, postcard_of, secret};
use super::hello::{
    Claim, ClusterId, Dialing, Ending, HandshakeError, Identity, Incarnation, Listening, Message,
    Met, Step,
};
use super::noise::{Channel, Recordings};
use super::packet::{CLEAR_BYTES, Draft, Greeting, Kind, Packet, finish};
use super::peer::{Peer, Recognized};

/// One of both nodes, with its side of the connection if there is one.
struct WireEnd {
    own: Identity,
    peer: Peer,
    recordings: Recordings,
    line: Option<Line>,
    sent: u64,
    received: u64,
}

/// One side of a connection.
struct Line {
    role: Role,
    channel: Channel,
    /// Packets sealed by this side, as they are on the wire.
    sealed: Vec<Vec<u8>>,
    /// Packets of the other side accepted since there are keys.
    believed: usize,
}

enum Role {
    Dialing(Dialing),
    Listening(Listening),
    Attached,
}

/// A typical mistake in links, made around the product's parts: packets are corrected, or made
/// wrong, on their way to them or from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// The header is not associated with the head.
    HeaderUnbound,
    /// A connection has the keys of the one before.
    KeysReused,
    /// A node identifies itself before it knows that the other side has the token.
    IdentityFirst,
    /// A member with the token resumes a link whose secret it does not know.
    LinkUnproved,
    /// Any refusal is accepted, regardless of its sender.
    RumoursBelieved,
}

/// The finding that ends a run early.
type Found = String;

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    tricks: u64,
    connections: u64,
    resumes: u64,
    frames: u64,
    refused: u64,
    impostors: u64,
}

/// The whole scene: node 1 dials node 0.
struct Scene {
    rng: Rng,
    mistake: Option<Mistake>,
    now: Instant,
    ends: [WireEnd; 2],
    /// Packets in flight to node 0 and to node 1.
    ways: [VecDeque<Vec<u8>>; 2],
    /// Everything that was ever in flight, one packet each.
    recorded: Vec<Vec<u8>>,
    tricks_left: u64,
    /// Steps since a packet was in flight.
    silence: u32,
    entropy: u8,
    seen: Seen,
}

impl WireEnd {
    fn new(node: u16) -> Self {
        let own = Identity {
            cluster: ClusterId(CLUSTER),
            node: NodeId(node),
            nodes: 2,
            channel: 0,
            layout_digest: 9,
            incarnation: Incarnation(u64::from(node) + 100),
        };
        let mut config = LinkConfig::with_dead_after(Duration::from_secs(3_600));
        config.packet_bytes = 100;
        let peer = Peer::new(NodeId(1 - node), node == 1, config);
        Self { own, peer, recordings: Recordings::default(), line: None, sent: 0, received: 0 }
    }

    /// Returns the next packet of this side, as it is on the wire.
    fn protect(&mut self, draft: Draft) -> Option<Vec<u8>> {
        let line = self.line.as_mut()?;
        let bytes = line.channel.protect(draft).parts().concat();
        if line.channel.is_sealed() {
            line.sealed.push(bytes.clone());
        }
        Some(bytes)
    }

    fn hang_up(&mut self) {
        if self.line.take().is_some() {
            self.peer.session.handle_down();
        }
    }
}

impl Scene {
    fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        let mut rng = Rng::new(seed);
        let tricks_left = rng.within(1..9) as u64;
        Self {
            rng,
            mistake,
            now: Instant::ZERO,
            ends: [WireEnd::new(0), WireEnd::new(1)],
            ways: [VecDeque::new(), VecDeque::new()],
            recorded: Vec::new(),
            tricks_left,
            silence: 0,
            entropy: 0,
            seen: Seen::default(),
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn run(mut self) -> Result<Seen, Found> {
        for _ in 0..STEPS_MAX {
            self.now = self.now.plus_nanos(1_000_000);
            let is_done = self.tricks_left == 0
                && self.ends.iter().all(|end| end.sent == FRAMES)
                && self.ends[0].received == FRAMES
                && self.ends[1].received == FRAMES;
            if is_done {
                self.seen.frames = 2 * FRAMES;
                return Ok(self.seen);
            }
            self.step()?;
        }
        Err(format!(
            "not everything has arrived: {:?}",
            self.ends.each_ref().map(|end| (end.sent, end.received))
        ))
    }

    /// Makes one random step.
    fn step(&mut self) -> Result<(), Found> {
        if self.ends.iter().all(|end| end.line.is_none()) {
            self.connect();
        }
        for at in 0..2 {
            self.talk(at);
        }
        if self.ends[0].peer.is_heard() && self.rng.chance(1) {
            self.impostor()?;
        }
        if self.tricks_left > 0 && self.rng.chance(12) {
            self.trick();
            self.notice_ends();
        }
        let to = self.rng.within(0..2);
        let to = if self.ways[to].is_empty() { 1 - to } else { to };
        self.silence += 1;
        if self.silence > SILENCE_MAX {
            // Like an endpoint after a handshake timeout, or with a suspected peer.
            self.ends[to].hang_up();
        }
        if let Some(bytes) = self.ways[to].pop_front() {
            self.silence = 0;
            self.arrive(to, &bytes)?;
        }
        self.notice_ends();
        Ok(())
    }

    /// Makes each side notice if the other one has closed.
    fn notice_ends(&mut self) {
        if self.ends.iter().any(|end| end.line.is_none()) {
            self.ends.iter_mut().for_each(WireEnd::hang_up);
            self.ways.iter_mut().for_each(VecDeque::clear);
        }
    }

    fn entropy(&mut self) -> [u8; 32] {
        let mut entropy = [0x33; 32];
        if !self.makes(Mistake::KeysReused) {
            entropy[8..16].copy_from_slice(&self.rng.bits().to_le_bytes());
        }
        // Both sides get different bytes.
        self.entropy ^= 1;
        entropy[16] = self.entropy;
        entropy
    }

    fn connect(&mut self) {
        let [here, there] = [self.entropy(), self.entropy()];
        let reuses_keys = self.makes(Mistake::KeysReused);
        let [listener, dialer] = &mut self.ends;
        if reuses_keys {
            // Otherwise the repeated key would be detected before.
            listener.recordings = Recordings::default();
        }
        let to = (listener.own.node, dialer.peer.incarnation, dialer.peer.link.clone());
        let (dialing, open) =
            Dialing::new(dialer.own, Some(&secret()), to, dialer.peer.session.expects(), here);
        let listening = Listening::new(listener.own, Some(secret()), there);
        let line = |role| {
            Some(Line { role, channel: Channel::default(), sealed: Vec::new(), believed: 0 })
        };
        (listener.line, dialer.line) =
            (line(Role::Listening(listening)), line(Role::Dialing(dialing)));
        self.seen.connections += 1;
        self.silence = 0;
        self.say(1, open);
    }

    /// Sends a step of the handshake from that side.
    fn say(&mut self, at: usize, message: Message) {
        let bytes = self.ends[at].protect(message.into_draft());
        self.put(at, bytes);
    }

    /// Writes the session's packets of that side.
    fn talk(&mut self, at: usize) {
        let end = &mut self.ends[at];
        if end.sent < FRAMES && self.rng.chance(30) {
            let mut frame = frame(end.own.node, end.sent);
            if end.peer.session.send(&mut frame).is_ok() {
                end.sent += 1;
            }
        }
        while self.ends[at].line.as_ref().is_some_and(|line| matches!(line.role, Role::Attached))
            && let Some((header, content)) = self.ends[at].peer.session.poll_packet(self.now)
        {
            let bytes = self.ends[at].protect(Draft::link(header, content));
            self.put(at, bytes);
        }
    }

    /// Puts packets of that side in flight.
    fn put(&mut self, from: usize, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.recorded.push(bytes.clone());
            self.ways[1 - from].push_back(bytes);
        }
    }

    /// Delivers bytes to that side: one packet, several, or a part of one.
    fn arrive(&mut self, to: usize, bytes: &[u8]) -> Result<(), Found> {
        if bytes
            .windows(8)
            .any(|part| part == CLUSTER.to_le_bytes() || part == postcard_of(CLUSTER))
        {
            return Err("anybody can read who the nodes are".into());
        }
        let Some(packet) = packet_of(bytes) else {
            // Not a packet of this protocol, or a part of one: nothing after it makes sense.
            self.ends[to].hang_up();
            return Ok(());
        };
        let Some(line) = &self.ends[to].line else { return Ok(()) };
        let (number, is_sealed) = (line.believed, line.channel.is_sealed());
        let sealed =
            self.ends[1 - to].line.as_ref().and_then(|line| line.sealed.get(number)).cloned();
        let shown = match &sealed {
            // Its header is corrected: it is not looked at.
            Some(sealed)
                if self.makes(Mistake::HeaderUnbound)
                    && sealed[CLEAR_BYTES..] == bytes[CLEAR_BYTES..] =>
            {
                packet_of(sealed).expect("it was sealed here")
            }
            _ => packet.clone(),
        };
        let Some(line) = &mut self.ends[to].line else { return Ok(()) };
        let Ok(believed) = line.channel.believe(shown) else {
            self.ends[to].hang_up();
            return Ok(());
        };
        if is_sealed {
            line.believed += 1;
            if sealed.and_then(|sealed| packet_of(&sealed)) != Some(packet) {
                return Err(format!(
                    "packet {number} of a connection is not what was sealed there"
                ));
            }
        }
        self.hear(to, believed, is_sealed)
    }

    fn hear(&mut self, to: usize, packet: Packet, is_sealed: bool) -> Result<(), Found> {
        let Some(line) = &mut self.ends[to].line else { return Ok(()) };
        let bytes = &packet.frame.head;
        let step = match (&mut line.role, packet.kind) {
            (Role::Attached, Kind::Link(_)) => return self.serve(to, packet),
            (Role::Dialing(dialing), Kind::Greeting(greeting)) => dialing.handle(greeting, bytes),
            (Role::Listening(listening), Kind::Greeting(greeting)) => {
                listening.handle(greeting, bytes, &mut self.ends[to].recordings)
            }
            _ => {
                self.ends[to].hang_up();
                return Ok(());
            }
        };
        let step = match step {
            Err(Ending::Theirs { refusal, .. }) if self.makes(Mistake::RumoursBelieved) => {
                Err(Ending::Theirs { refusal, is_sure: true })
            }
            Ok(Step::Open { last, channel, first }) if self.makes(Mistake::IdentityFirst) => {
                Ok(Step::Open { last: last.or(first), channel, first: None })
            }
            step => step,
        };
        match step {
            Ok(Step::Open { last, channel, first }) => {
                last.into_iter().for_each(|message| self.say(to, message));
                if let Some(line) = &mut self.ends[to].line {
                    line.channel = channel;
                }
                first.into_iter().for_each(|message| self.say(to, message));
                Ok(())
            }
            Ok(Step::Met(met)) => self.meet(to, &met),
            Err(
                Ending::Ours { is_sure: true, refusal } | Ending::Theirs { is_sure: true, refusal },
            ) if to == 1 || is_sealed => Err(format!("a node is sure of a refusal: {refusal}")),
            Err(_) => {
                self.seen.refused += 1;
                self.ends[to].hang_up();
                Ok(())
            }
        }
    }

    fn meet(&mut self, at: usize, met: &Met) -> Result<(), Found> {
        let now = self.now;
        let end = &mut self.ends[at];
        let recognized = end.peer.recognize(met);
        if !matches!(recognized, Recognized::Unmet | Recognized::Same) {
            return Err(format!("a node is not recognized: {recognized:?}"));
        }
        self.seen.resumes += u64::from(recognized == Recognized::Same);
        end.peer.session.handle_down();
        let expects = end.peer.session.expects();
        let Some(line) = &mut end.line else { return Ok(()) };
        let welcome = match &line.role {
            Role::Listening(listening) => {
                Some(listening.accept(expects, end.peer.common_link(met)))
            }
            _ => None,
        };
        end.peer.note_met(met);
        line.role = Role::Attached;
        if let Err(error) = end.peer.session.handle_up(now, met.expects) {
            return Err(format!("a node is blamed: {error}"));
        }
        welcome.into_iter().for_each(|message| self.say(at, message));
        Ok(())
    }

    fn serve(&mut self, to: usize, mut packet: Packet) -> Result<(), Found> {
        let Kind::Link(kind) = packet.kind else { return Ok(()) };
        let now = self.now;
        let end = &mut self.ends[to];
        end.peer.note_heard();
        let Packet { seq, ack, wants_ack, .. } = packet;
        let header = adapm_core::link::Header { kind, seq, ack, wants_ack };
        let mut out = Frame::default();
        let arrival = end.peer.session.handle_packet(now, header, &mut packet.frame, &mut out);
        match arrival {
            Ok(adapm_core::link::Arrival::Deliver) => {
                if out != frame(end.peer.node, end.received) {
                    return Err(format!("frame {} is not what was sent", end.received));
                }
                end.received += 1;
            }
            Ok(_) => {}
            Err(error) => return Err(format!("a node is blamed: {error}")),
        }
        while end.peer.session.poll_event().is_some() {}
        Ok(())
    }

    /// Makes the attacker act.
    fn trick(&mut self) {
        let to = self.rng.within(0..2);
        let under_way = self.ways[to].len();
        let trick = self.rng.within(0..9);
        if under_way == 0 && trick < 5 {
            return;
        }
        self.tricks_left -= 1;
        self.seen.tricks += 1;
        let at = self.rng.within(0..under_way.max(1));
        let way = &mut self.ways[to];
        match trick {
            0 | 1 => {
                let byte = self.rng.within(0..way[at].len());
                way[at][byte] ^= 1 << self.rng.within(0..8);
                if trick == 0
                    && let Some(clear) = way[at].first_chunk_mut::<CLEAR_BYTES>()
                {
                    finish(clear);
                }
            }
            2 => drop(way.remove(at)),
            3 => way.insert(at, way[at].clone()),
            4 => way.swap(at, self.rng.within(0..under_way)),
            // A packet sent before, on this connection or another, in either direction.
            5 | 6 if !self.recorded.is_empty() => {
                let recorded = self.recorded[self.rng.within(0..self.recorded.len())].clone();
                if under_way > 0 && trick == 5 {
                    way[at] = recorded;
                } else {
                    way.insert(at.min(under_way), recorded);
                }
            }
            7 => {
                let forged = self.forged();
                self.ways[to].push_front(forged);
            }
            _ => self.ends[to].hang_up(),
        }
    }

    /// Lets a member dial node 0 as node 1, with everything but the secret of the link: with none,
    /// or with that of another.
    fn impostor(&mut self) -> Result<(), Found> {
        let (own, to) = (self.ends[1].own, self.ends[0].own);
        let link = if self.rng.chance(50) { Some(link_of_others()) } else { None };
        let entropy = [self.entropy(), self.entropy()];
        let met = introduced(own, to, link, entropy);
        self.seen.impostors += 1;
        let mut recognized = self.ends[0].peer.recognize(&met);
        if self.makes(Mistake::LinkUnproved) && recognized == Recognized::Other {
            // No proof is asked for.
            recognized = Recognized::Same;
        }
        match recognized {
            Recognized::Other => Ok(()),
            recognized => Err(format!("an impostor is taken for {recognized:?}")),
        }
    }

    /// Returns a packet of the attacker's own, in the clear.
    fn forged(&mut self) -> Vec<u8> {
        let refusals = [
            HandshakeError::GivenUp,
            HandshakeError::Restarted,
            HandshakeError::Layout,
            HandshakeError::Cluster,
            HandshakeError::Malformed,
        ];
        let kinds = [Greeting::Open, Greeting::Opened, Greeting::Hello, Greeting::Welcome];
        let draft = match self.rng.within(0..3) {
            0 => Message::refuse(self.rng.choose(&refusals)).into_draft(),
            1 => {
                let bytes = (0..self.rng.within(0..60)).map(|_| self.rng.bits() as u8).collect();
                Draft::greeting(self.rng.choose(&kinds), bytes)
            }
            _ => {
                let kinds = [
                    adapm_core::link::Kind::Data,
                    adapm_core::link::Kind::Bye,
                    adapm_core::link::Kind::Ack,
                ];
                let (seq, ack) = (self.rng.within(0..20) as u64, self.rng.within(0..20) as u64);
                let frame = Frame { head: vec![0; self.rng.within(0..9)], ..Frame::default() };
                Draft::new(Kind::Link(self.rng.choose(&kinds)), Seq(seq), Seq(ack), frame)
            }
        };
        draft.check().parts().concat()
    }
}

/// Runs the attacker on all `seeds`. Returns the first run that finds something.
fn runs(seeds: core::ops::Range<u64>, mistake: Option<Mistake>) -> Result<Seen, (u64, Found)> {
    let mut all = Seen::default();
    for seed in seeds {
        let seen = Scene::new(seed, mistake).run().map_err(|found| (seed, found))?;
        all.tricks += seen.tricks;
        all.connections += seen.connections;
        all.resumes += seen.resumes;
        all.frames += seen.frames;
        all.refused += seen.refused;
        all.impostors += seen.impostors;
    }
    Ok(all)
}

#[test]
fn whoever_is_on_the_way_costs_time_and_nothing_else() {
    let seen = runs(0..SEEDS, None).unwrap_or_else(|(seed, found)| panic!("seed {seed}: {found}"));
    // Bypasses the capture of the test runner: the counts show in every run.
    let said = format!("{SEEDS} runs with somebody on the way: {seen:?}\n");
    std::io::stdout().write_all(said.as_bytes()).expect("standard output takes a line");
    let per_run = |count: u64| count as f64 / SEEDS as f64;
    let is_test = per_run(seen.tricks) >= 4.0
        && per_run(seen.resumes) >= 1.0
        && per_run(seen.impostors) >= 0.1;
    assert!(is_test, "{seen:?} is none");
}

#[test]
fn a_hello_that_comes_late_does_not_lock_its_node_out() {
    let [mut listener, dialer] = [WireEnd::new(0), WireEnd::new(1)];
    let hello =
        |link, number| introduced(dialer.own, listener.own, link, [[number; 32], [number + 1; 32]]);
    // The node has given up its first attempt, and goes on with its second; then the first one
    // arrives, before anything else.
    let (late, second) = (hello(None, 10), hello(None, 20));
    let link = second
        .claim
        .as_ref()
        .and_then(Claim::begins)
        .expect("it has not met the other one")
        .clone();
    for met in [&second, &late] {
        assert!(matches!(listener.peer.recognize(met), Recognized::Unmet | Recognized::Same));
        listener.peer.note_met(met);
    }
    let again = introduced(dialer.own, listener.own, Some(link.clone()), [[30; 32], [31; 32]]);
    assert_eq!(listener.peer.recognize(&again), Recognized::Same);
    assert_eq!(listener.peer.common_link(&again), Some(&link));
    listener.peer.note_met(&again);
    listener.peer.note_heard();
    // From then on there is one secret, and no new link begins.
    let first = late.claim.as_ref().and_then(Claim::begins).cloned();
    for link in [first, None] {
        let met = introduced(dialer.own, listener.own, link, [[40; 32], [41; 32]]);
        assert_eq!(listener.peer.recognize(&met), Recognized::Other);
    }
}

#[test]
fn mistakes_that_are_easily_made_are_found() {
    for (mistake, found) in [
        (Mistake::HeaderUnbound, "is not what was sealed there"),
        (Mistake::KeysReused, "is not what was sealed there"),
        (Mistake::IdentityFirst, "anybody can read who the nodes are"),
        (Mistake::RumoursBelieved, "a node is sure of a refusal"),
        (Mistake::LinkUnproved, "an impostor is taken for Same"),
    ] {
        let (seed, said) = runs(0..SEEDS, Some(mistake)).expect_err("nothing was found");
        println!("{mistake:?}: seed {seed}");
        assert!(said.contains(found), "{mistake:?}: {said}");
    }
}

/// A cluster id whose bytes stay recognizable in the clear, both as they are and encoded as a
/// number of variable length.
const CLUSTER: u64 = 0x5ec2_e75e_c2e7_5ec3;
const FRAMES: u64 = 12;
const STEPS_MAX: u64 = 20_000;
const SILENCE_MAX: u32 = 100;
const SEEDS: u64 = 10_000;
