//! Claims about a link session, each a story of its own. Random orders are in `tests/link.rs`.

use core::time::Duration;

use adapm_core::link::{
    Arrival, Event, Header, Kind, LinkConfig, LinkError, Packet, SendRefusal, Seq, Session,
};
use adapm_core::transport::{CloseReason, Frame, Loss, Stall};
use adapm_core::{Instant, NodeId};
use adapm_verify::link::random::CLOSE_REASONS;
use adapm_verify::link::{Broken, End, Pair};

use End::{Dialer, Listener};

type Case = Result<(), Broken>;

const NANO: Duration = Duration::from_nanos(1);

fn config() -> LinkConfig {
    LinkConfig::with_dead_after(Duration::from_secs(1))
}

fn with_window(packets: usize, bytes: usize) -> LinkConfig {
    let mut config = config();
    (config.window_packets, config.window_bytes) = (packets, bytes);
    config
}

/// Creates two ends that have met.
fn met(config: LinkConfig) -> Result<Pair, Broken> {
    let mut pair = Pair::new(config, None);
    pair.settle()?;
    Ok(pair)
}

fn after(time: Duration) -> Instant {
    Instant::from_nanos(u64::try_from(time.as_nanos()).expect("a short time"))
}

fn frame(bytes: usize) -> Frame {
    Frame { head: vec![7; bytes], ..Frame::default() }
}

/// Creates a session whose pipe is up since the origin of time.
fn up(config: LinkConfig) -> Session {
    let mut session = Session::new(config);
    session.handle_up(Instant::ZERO, Seq(0)).expect("nothing was sent");
    session
}

fn take(
    session: &mut Session,
    now: Instant,
    header: Header,
    mut packet: Frame,
) -> Result<Arrival, LinkError> {
    session.handle_packet(now, header, &mut packet, &mut Frame::default())
}

fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn written(session: &mut Session, now: Instant) -> Vec<Packet> {
    std::iter::from_fn(|| session.poll_packet(now)).take(1_000).collect()
}

/// Heartbeats of 0.5 s, suspicion after 2 s, death after 10 s; a shorter life scales the others.
#[test]
fn the_times_are_as_documented() {
    let times = |config: LinkConfig| [config.heartbeat, config.suspect_after, config.dead_after];
    let millis = |times: [u64; 3]| times.map(Duration::from_millis);
    assert_eq!(times(LinkConfig::default()), millis([500, 2_000, 10_000]));
    assert_eq!(times(config()), millis([50, 200, 1_000]));
}

/// A link without traffic carries one heartbeat per end and period, and nothing else.
#[test]
fn an_idle_link_carries_heartbeats_only() -> Case {
    let mut pair = met(config())?;
    let mut beats = 0;
    for _ in 0..200 {
        pair.pass(config().heartbeat / 10)?;
        for end in End::BOTH {
            while pair.write(end)? {
                beats += 1;
            }
            while pair.read(end)? {}
        }
    }
    assert_eq!(beats, 2 * 200 / 10);
    Ok(())
}

/// A silent peer is suspected and dead to the nanosecond, and a suspect that sends again has
/// recovered.
#[test]
fn a_silent_peer_is_suspected_then_dead() {
    let config = config();
    let mut session = up(config);
    let mut told = |time: Duration| {
        session.handle_timeout(after(time));
        events(&mut session)
    };
    assert_eq!(told(config.suspect_after - NANO), []);
    assert_eq!(told(config.suspect_after), [Event::Suspect]);
    assert_eq!(told(config.dead_after - NANO), []);
    session.handle_bytes(after(config.dead_after - NANO));
    assert_eq!(events(&mut session), [Event::Recovered], "part of a packet is a sign of life");
    let again = config.dead_after - NANO;
    let mut told = |time: Duration| {
        session.handle_timeout(after(time));
        events(&mut session)
    };
    assert_eq!(told(again + config.suspect_after), [Event::Suspect]);
    assert_eq!(told(again + config.dead_after), [Event::Dead(Loss::Silent(config.dead_after))]);
    assert_eq!(told(again + 9 * config.dead_after), [], "once");
}

/// A new pipe is no sign of life: a silent peer is dead at the same moment however many pipes came
/// up, and each pipe is found silent after its own time.
#[test]
fn a_new_pipe_is_no_sign_of_life() {
    let config = config();
    let mut session = up(config);
    let step = config.suspect_after;
    for pipe in 1..5 {
        session.handle_timeout(after(step * pipe));
        assert_eq!(events(&mut session), [Event::Suspect], "pipe {pipe}");
        session.handle_up(after(step * pipe), Seq(0)).expect("it stands where it stood");
        assert!(session.is_suspect());
    }
    session.handle_timeout(after(config.dead_after - NANO));
    assert_eq!(events(&mut session), []);
    session.handle_timeout(after(config.dead_after));
    assert_eq!(events(&mut session), [Event::Dead(Loss::Silent(config.dead_after))]);
}

/// A peer that sends on one pipe after the other, but does not receive a packet, is dead after the
/// same time; from the third pipe on it is known which size passes and which does not.
#[test]
fn a_peer_to_which_nothing_gets_through_is_dead() {
    let config = config();
    let mut session = up(config);
    let heartbeat = Header { kind: Kind::Heartbeat, seq: Seq(0), ack: Seq(0), wants_ack: false };
    let mut told = Vec::new();
    session.send(&mut frame(700)).expect("there is room");
    session.send(&mut frame(9_000)).expect("there is room");
    let mut packets: Vec<usize> = Vec::new();
    for pipe in 0..10 {
        let now = after(config.suspect_after / 2 * pipe);
        let stands = Seq(u64::from(pipe > 0));
        session.handle_up(now, stands).expect("the small one has arrived");
        packets.push(written(&mut session, now).len());
        let came = Header { ack: stands, ..heartbeat };
        assert_eq!(take(&mut session, now, came, Frame::default()), Ok(Arrival::Control));
        session.handle_timeout(now);
        told.extend(events(&mut session));
    }
    let stall = |time, pipes| Stall { time, pipes, passed: 700, stuck: 9_000 };
    assert_eq!(told, [Event::Stuck(stall(config.suspect_after * 2, 3))]);
    assert_eq!(packets[0], 2, "both at once");
    session.handle_timeout(after(config.suspect_after / 2 + config.dead_after));
    let stall = stall(config.dead_after, 7);
    assert_eq!(events(&mut session), [Event::Dead(Loss::Stuck(stall))]);
    assert_eq!(
        Loss::Stuck(stall).to_string(),
        "packets up to 700 bytes pass, one of 9.0 KB does not, on 7 connections in a row: check the MTU of the network and of \
         the interfaces on both sides"
    );
}

/// A pipe that swallows what is written, while bytes come from the peer, is replaced once, in time
/// for the next one: what was swallowed is written there, and nobody is given up.
#[test]
fn a_pipe_that_swallows_is_replaced_before_the_peer_is_given_up() {
    let config = config();
    let mut session = up(config);
    session.send(&mut frame(9)).expect("there is room");
    written(&mut session, Instant::ZERO);
    let mut told = |time: Duration| {
        session.handle_bytes(after(time));
        session.handle_timeout(after(time));
        events(&mut session)
    };
    let stalled = config.stalled_after();
    assert_eq!(told(stalled - NANO), []);
    assert_eq!(told(stalled), [Event::Stalled]);
    assert_eq!(told(stalled + config.heartbeat), [], "once");
    let renewed = stalled + 2 * config.heartbeat;
    session.handle_up(after(renewed), Seq(0)).expect("it stands where it stood");
    assert_eq!(written(&mut session, after(renewed)).len(), 1, "the frame again");
    session.handle_up(after(renewed), Seq(1)).expect("the frame has arrived");
    session.handle_bytes(after(2 * config.dead_after));
    session.handle_timeout(after(2 * config.dead_after));
    assert_eq!(events(&mut session), []);
}

/// On a working pipe a peer that never acknowledges is dead as well, for that reason.
#[test]
fn a_peer_that_acknowledges_nothing_is_dead() {
    let config = config();
    let mut session = up(config);
    session.send(&mut frame(9)).expect("there is room");
    written(&mut session, Instant::ZERO);
    for beat in 1..20 {
        session.handle_bytes(after(config.heartbeat * beat));
        session.handle_timeout(after(config.heartbeat * beat));
        let is_stalled = config.heartbeat * beat == config.stalled_after();
        assert_eq!(events(&mut session), if is_stalled { vec![Event::Stalled] } else { vec![] });
    }
    session.handle_bytes(after(config.dead_after));
    session.handle_timeout(after(config.dead_after));
    let stall = Stall { time: config.dead_after, pipes: 0, passed: 0, stuck: 9 };
    assert_eq!(events(&mut session), [Event::Dead(Loss::Stuck(stall))]);
    assert_eq!(Loss::Stuck(stall).to_string(), "it sends, but has acknowledged nothing for 1.0 s");
}

/// A packet whose bytes keep coming without completing it: its sender is alive for the other end,
/// which is dead for its sender, as it acknowledges nothing.
#[test]
fn bytes_are_a_sign_of_life_and_no_progress() -> Case {
    let config = config();
    let mut pair = met(config)?;
    pair.send(Dialer, 20)?;
    while pair.write(Dialer)? {}
    for _ in 0..20 {
        assert!(!pair.side(Dialer).dead);
        pair.pass(config.heartbeat)?;
        pair.trickle(Listener)?;
        while pair.write(Listener)? {}
        while pair.read(Dialer)? {}
    }
    assert!(pair.side(Dialer).dead && !pair.side(Listener).dead);
    Ok(())
}

/// A peer that was stopped for less than the dead time lives on with its first packet on the new
/// pipe: at once.
#[test]
fn a_peer_that_comes_back_in_time_lives() -> Case {
    let mut pair = met(config())?;
    pair.send(Dialer, 20)?;
    pair.pass(config().dead_after - NANO)?;
    pair.cut([0, 0]);
    pair.dial();
    pair.exchange()?;
    pair.pass(config().suspect_after - NANO)?;
    assert!(!pair.side(Dialer).dead && !pair.side(Listener).dead);
    pair.settle()
}

/// Large frames are cut, arrive in parts, and are whole again; a resumed link goes on at the
/// missing part.
#[test]
fn a_resumed_link_goes_on_within_a_frame() -> Case {
    let mut config = config();
    config.packet_bytes = 10;
    for arrived in 0..=6 {
        let mut pair = met(config)?;
        pair.send(Dialer, 55)?;
        for _ in 0..arrived {
            while pair.write(Dialer)? {}
            while pair.read(Listener)? {}
            while pair.write(Listener)? {}
            while pair.read(Dialer)? {}
        }
        let before = pair.side(Listener).session.expects();
        assert_eq!(pair.is_within(Listener), (1..6).contains(&before.0), "{before}");
        pair.cut([0, 0]);
        pair.settle()?;
        assert_eq!(pair.side(Listener).delivered, 1);
        assert_eq!(pair.side(Listener).session.expects(), Seq(6));
    }
    Ok(())
}

/// A link reports its load, piece by piece, so that a slow frame is not taken for silence.
#[test]
fn a_link_tells_what_it_carries() -> Case {
    let mut config = config();
    config.packet_bytes = 10;
    let mut pair = met(config)?;
    pair.send(Dialer, 35)?;
    let ways = |pair: &Pair| [Dialer, Listener].map(|end| pair.side(end).session.way());
    let [here, there] = ways(&pair);
    assert_eq!((here.unacknowledged, there.received), (4, 0));
    while pair.side(Listener).delivered == 0 {
        let before = ways(&pair)[1];
        pair.write(Dialer)?;
        pair.read(Listener)?;
        let [here, there] = ways(&pair);
        assert_eq!(
            (here.unacknowledged, there.received),
            (4 - before.received as usize, before.received + 1)
        );
        while pair.write(Listener)? {}
        while pair.read(Dialer)? {}
    }
    pair.settle()?;
    assert_eq!(ways(&pair)[0].unacknowledged, 0);
    Ok(())
}

/// Data in flight grows with timely acknowledgements, and shrinks when they take an eighth of the
/// dead time: on a pipe of any speed an acknowledgement waits behind less data than that.
#[test]
fn what_is_under_way_follows_the_speed_of_the_pipe() {
    let config = LinkConfig::with_dead_after(Duration::from_secs(10));
    let most = |bytes_a_second: u64, frames: usize| {
        let mut session = up(config);
        for _ in 0..frames {
            session.send(&mut frame(config.window_bytes / frames)).expect("there is room");
        }
        // The peer acknowledges each packet at the moment when the pipe has carried it.
        let (mut arrivals, mut most) = (std::collections::VecDeque::new(), Duration::ZERO);
        let (mut now, mut free) = (Instant::ZERO, Instant::ZERO);
        let nanos = |bytes: usize| bytes as u64 * 1_000_000_000 / bytes_a_second;
        let mut all = 0;
        while session.unacknowledged().0 > 0 && all < 3_000 {
            for (header, content) in written(&mut session, now) {
                let bytes = 64 + content.as_ref().map_or(0, adapm_core::link::Content::len);
                free = free.max(now).plus_nanos(nanos(bytes));
                if content.is_some() {
                    most = most.max(Duration::from_nanos(free.nanos_since(now)));
                    arrivals.push_back((free, header.seq));
                }
            }
            let Some((arrival, seq)) = arrivals.pop_front() else { break };
            now = now.max(arrival);
            let header = Header { kind: Kind::Ack, seq: Seq(0), ack: seq.next(), wants_ack: false };
            assert_eq!(take(&mut session, now, header, Frame::default()), Ok(Arrival::Control));
            session.handle_timeout(now);
            assert_eq!(events(&mut session), []);
            all += 1;
        }
        most
    };
    let slow = most(25_000, 2);
    assert!(slow < config.dead_after / 8, "a packet waits for {slow:?} on a slow pipe");
    let fast = most(1_000_000_000, 2);
    assert!(fast > Duration::from_millis(10), "a fast pipe has {fast:?} under way only");
}

/// A peer that was never met is not declared lost: the session does not decide when to give up
/// waiting for it.
#[test]
fn a_peer_that_was_not_met_is_not_judged() {
    let mut session = Session::new(config());
    session.handle_timeout(after(Duration::from_secs(3_600)));
    assert_eq!((events(&mut session), session.deadline()), (vec![], None));
}

/// A dead peer stays dead: nothing can be sent, no new pipe is accepted, and waiting frames are
/// gone.
#[test]
fn the_dead_do_not_return() {
    let config = with_window(1, 1 << 20);
    let mut session = up(config);
    session.send(&mut frame(9)).expect("there is room");
    assert_eq!(session.send(&mut frame(9)), Err(SendRefusal::Full));
    session.handle_timeout(after(config.dead_after));
    assert_eq!(events(&mut session), [Event::Dead(Loss::Silent(config.dead_after)), Event::Room]);
    assert_eq!(
        session.send(&mut frame(9)),
        Err(SendRefusal::Ended),
        "whoever waited for room learns why"
    );
    assert_eq!(session.unacknowledged(), (0, 0));
    for stands in [Seq(0), Seq(1)] {
        assert_eq!(session.handle_up(after(config.dead_after), stands), Err(LinkError::GivenUp));
    }
    assert!(!LinkError::GivenUp.blames_peer());
    session.close(CloseReason::Lost(NodeId(3)));
    assert_eq!(events(&mut session), [Event::Drained], "nobody is there to receive it");
    assert_eq!((session.poll_packet(after(config.dead_after)), session.deadline()), (None, None));
}

/// At the bound a frame is refused unchanged; room is reported once, when half of the window is
/// free.
#[test]
fn a_full_window_refuses_and_tells_of_room() -> Case {
    let mut pair = met(with_window(4, 1 << 20))?;
    for _ in 0..4 {
        assert!(pair.send(Dialer, 20)?);
    }
    for _ in 0..3 {
        assert!(!pair.send(Dialer, 20)?);
    }
    for (arrived, rooms) in [(1, 0), (2, 1), (3, 1)] {
        pair.write(Dialer)?;
        while pair.read(Listener)? {}
        pair.pass(config().ack_delay)?;
        while pair.write(Listener)? {}
        while pair.read(Dialer)? {}
        assert_eq!((pair.side(Listener).delivered, pair.side(Dialer).rooms), (arrived, rooms));
    }
    assert!(pair.send(Dialer, 20)?);
    pair.settle()
}

/// A frame larger than the window goes alone; nothing else fits beside it.
#[test]
fn a_frame_larger_than_the_window_goes_alone() -> Case {
    let mut pair = met(with_window(9, 100))?;
    assert!(pair.send(Dialer, 500)?);
    assert!(!pair.send(Dialer, 8)?);
    pair.settle()?;
    assert!(pair.send(Dialer, 8)?);
    assert!(!pair.send(Dialer, 500)?, "not beside another");
    pair.settle()?;
    assert_eq!((pair.side(Dialer).rooms, pair.side(Listener).delivered), (2, 2));
    Ok(())
}

/// A goodbye comes after everything sent before, with its reason; its sender learns when it has
/// arrived.
#[test]
fn a_goodbye_comes_last_and_is_confirmed() -> Case {
    for close_reason in CLOSE_REASONS {
        let mut pair = met(config())?;
        for _ in 0..5 {
            pair.send(Dialer, 9)?;
        }
        pair.close(Dialer, close_reason)?;
        pair.close(Dialer, CloseReason::Failed)?;
        assert!(!pair.send(Dialer, 9)?);
        pair.exchange()?;
        let (here, there) = (pair.side(Dialer), pair.side(Listener));
        assert_eq!((there.left, there.delivered, here.drained), (Some(close_reason), 5, true));
        assert!(!pair.send(Listener, 9)?, "nobody is there to read it");
    }
    Ok(())
}

/// A goodbye swallowed by a breaking pipe is sent again on the next one.
#[test]
fn a_goodbye_survives_a_cut() -> Case {
    for keep in 0..4 {
        let mut pair = met(config())?;
        pair.send(Dialer, 9)?;
        pair.send(Dialer, 9)?;
        pair.close(Dialer, CloseReason::Finished)?;
        while pair.write(Dialer)? {}
        pair.cut([0, keep]);
        pair.exchange()?;
        assert_eq!(pair.side(Listener).left.is_some(), keep >= 3);
        pair.settle()?;
        let (here, there) = (pair.side(Dialer), pair.side(Listener));
        assert_eq!(
            (there.left, there.delivered, here.drained),
            (Some(CloseReason::Finished), 2, true)
        );
    }
    Ok(())
}

/// Both ends may say goodbye at once; their earlier frames arrive.
#[test]
fn both_may_leave_at_once() -> Case {
    let mut pair = met(config())?;
    for end in End::BOTH {
        pair.send(end, 9)?;
        pair.close(end, CloseReason::Finished)?;
    }
    pair.settle()?;
    for end in End::BOTH {
        let side = pair.side(end);
        assert_eq!(
            (side.left, side.delivered, side.drained),
            (Some(CloseReason::Finished), 1, true)
        );
    }
    Ok(())
}

/// A peer that has said goodbye is no longer watched: its silence means nothing.
#[test]
fn who_has_left_does_not_die() -> Case {
    let mut pair = met(config())?;
    pair.close(Dialer, CloseReason::Finished)?;
    pair.exchange()?;
    pair.cut([0, 0]);
    pair.exchange()?;
    pair.pass(Duration::from_secs(60))?;
    assert!(!pair.side(Listener).dead);
    assert_eq!(pair.side(Listener).session.deadline(), None);
    Ok(())
}

/// On a new pipe the session continues exactly at the peer's position: arrived packets are not
/// repeated.
#[test]
fn a_resumed_link_repeats_only_what_is_missing() -> Case {
    for arrived in 0..=5 {
        let mut pair = met(config())?;
        for _ in 0..5 {
            pair.send(Dialer, 9)?;
        }
        while pair.write(Dialer)? {}
        pair.cut([0, arrived]);
        while pair.read(Listener)? {}
        assert_eq!(pair.side(Listener).delivered, arrived as u64);
        pair.dial();
        pair.read(Listener)?;
        pair.read(Dialer)?;
        let mut again = 0;
        while pair.write(Dialer)? {
            again += 1;
        }
        assert_eq!(again, (5 - arrived).max(1), "a word at least");
        pair.settle()?;
    }
    Ok(())
}

/// Received packets are acknowledged at once if the peer asks for it, otherwise after the delay,
/// unless an earlier packet carries the acknowledgement.
#[test]
fn acknowledgements_wait_for_a_packet_to_carry_them() {
    let config = with_window(8, 1 << 20);
    let data = |session: &mut Session, seq: u64, wants_ack: bool| {
        let header = Header { kind: Kind::Data, seq: Seq(seq), ack: Seq(0), wants_ack };
        assert_eq!(take(session, Instant::ZERO, header, frame(9)), Ok(Arrival::Deliver));
    };
    let kinds = |session: &mut Session, now: Instant| -> Vec<(Kind, Seq)> {
        written(session, now).into_iter().map(|(header, _)| (header.kind, header.ack)).collect()
    };
    let mut session = up(config);
    assert_eq!(
        kinds(&mut session, Instant::ZERO),
        [(Kind::Ack, Seq(0))],
        "the first word on a pipe"
    );
    data(&mut session, 0, false);
    assert_eq!(session.deadline(), Some(after(config.ack_delay)));
    assert_eq!(kinds(&mut session, after(config.ack_delay - NANO)), []);
    assert_eq!(kinds(&mut session, after(config.ack_delay)), [(Kind::Ack, Seq(1))]);
    data(&mut session, 1, false);
    data(&mut session, 2, true);
    assert_eq!(kinds(&mut session, Instant::ZERO), [(Kind::Ack, Seq(3))], "it was asked for");
    data(&mut session, 3, false);
    session.send(&mut frame(9)).expect("there is room");
    assert_eq!(kinds(&mut session, Instant::ZERO), [(Kind::Data, Seq(4))]);
    assert_eq!(kinds(&mut session, after(config.ack_delay)), [], "it was carried along");
}

/// An acknowledgement is requested once for each quarter of the window.
#[test]
fn acknowledgements_are_asked_for_by_quarters_of_the_window() {
    let mut session = up(with_window(8, 1 << 20));
    let asked: Vec<bool> = (0..8)
        .map(|_| {
            session.send(&mut frame(9)).expect("there is room");
            written(&mut session, Instant::ZERO).iter().any(|(header, _)| header.wants_ack)
        })
        .collect();
    assert_eq!(asked, [false, true].repeat(4));
}

/// Times and windows of zero neither hang nor stop a link.
#[test]
fn bounds_of_zero_are_taken_for_the_least() {
    let mut config = with_window(0, 0);
    (config.heartbeat, config.ack_delay) = (Duration::ZERO, Duration::ZERO);
    let mut session = up(config);
    assert_eq!(session.send(&mut frame(9)), Ok(()));
    assert_eq!(session.send(&mut frame(9)), Err(SendRefusal::Full));
    let kinds: Vec<Kind> =
        written(&mut session, after(NANO)).iter().map(|(header, _)| header.kind).collect();
    assert_eq!(kinds, [Kind::Data]);
    assert!(session.deadline().is_some_and(|deadline| deadline > after(NANO)));
}

/// Errors name the numbers and the party to blame.
#[test]
fn errors_are_one_line_for_a_person() {
    let (expected, given) = (Seq(4), Seq(9));
    let texts = [
        (LinkError::Gap { expected, given }, "packets are missing: s4 was due, s9 came"),
        (
            LinkError::Unsent { next: expected, given },
            "packets before s9 are acknowledged, but none from s4 on was sent",
        ),
        (
            LinkError::Resume { from: Seq(1), to: expected, given },
            "the peer resumes at s9, which is not in s1..=s4",
        ),
        (LinkError::BehindBye, "a packet came after the last one"),
        (LinkError::CloseReason, "a bye gives no valid reason"),
        (LinkError::Part { bytes: 0 }, "an invalid part of a frame came (0 bytes)"),
        (LinkError::Down, "a packet came on a pipe that is not up"),
        (LinkError::GivenUp, "a pipe came up to a peer that was given up before"),
    ];
    for (error, text) in texts {
        assert_eq!(error.to_string(), text);
    }
}
