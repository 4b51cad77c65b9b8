//! Every successful handshake and every failed one, with the reason on both sides.

use adapm_core::NodeId;
use adapm_core::link::Seq;
use proptest::prelude::*;

use super::*;
use crate::net::noise::{LinkSecret, Recordings};
use crate::net::packet::{Greeting, Incoming, PacketReader, Spares};
use crate::testing::{Heard, Pieces, Speaker};

/// The outcome on the dialing and on the listening side.
type Outcome = (Result<Met, Ending>, Result<Met, Ending>);

fn identity(node: u16) -> Identity {
    Identity {
        cluster: ClusterId(7),
        node: NodeId(node),
        nodes: 4,
        channel: 1,
        layout_digest: 99,
        incarnation: Incarnation(u64::from(node) + 100),
    }
}

fn token(byte: u8) -> Option<Token> {
    Some(crate::testing::token(byte))
}

/// Returns the packet that `bytes` consist of.
fn packet(bytes: &[u8]) -> Incoming {
    let mut reader = PacketReader::new(GREETING_BYTES_MAX);
    let mut source = Pieces::blocking(bytes, vec![usize::MAX]);
    let packet = reader.read(&mut source, &mut Spares::default());
    assert!(!reader.is_within());
    packet.expect("a sound packet").expect("a whole packet")
}

/// Lets node 2 dial node 1.
fn meet(dialer: (Identity, Option<Token>), listener: (Identity, Option<Token>)) -> Outcome {
    let to = (NodeId(1), Some(Incarnation(5)), None);
    meet_with_links(dialer, listener, to, None)
}

/// Like [`meet`], with links known to the dialing and to the listening side.
fn meet_with_links(
    dialer: (Identity, Option<Token>),
    listener: (Identity, Option<Token>),
    to: (NodeId, Option<Incarnation>, Option<LinkSecret>),
    link: Option<&LinkSecret>,
) -> Outcome {
    let (mut dialing, mut said) = Speaker::dial(dialer.0, dialer.1.as_ref(), to, Seq(31), [1; 32]);
    let mut listening = Speaker::listen(listener.0, listener.1, [2; 32]);
    let mut recordings = Recordings::default();
    for _ in 0..2 {
        let (answer, met) = match listening.hear(packet(&said), &mut recordings) {
            Heard::Say(answer) => (answer, None),
            Heard::Met(met) => (listening.accept(Seq(17), link), Some(met)),
            Heard::Ended(ending) => return refused_by(&mut listening, &mut dialing, ending, false),
            Heard::Fault(fault) => panic!("{fault}"),
        };
        said = match dialing.hear(packet(&answer), &mut recordings) {
            Heard::Say(next) => next,
            Heard::Met(here) => return (Ok(here), Ok(met.expect("both or none"))),
            Heard::Ended(ending) => return refused_by(&mut dialing, &mut listening, ending, true),
            Heard::Fault(fault) => panic!("{fault}"),
        };
    }
    panic!("the handshake does not end");
}

/// Makes one side refuse the other.
fn refused_by(one: &mut Speaker, other: &mut Speaker, ending: Ending, is_dialer: bool) -> Outcome {
    let Ending::Ours { refusal, .. } = ending else { panic!("nobody refused: {ending:?}") };
    let told = packet(&one.bytes(Message::refuse(refusal)));
    let Heard::Ended(there) = other.hear(told, &mut Recordings::default()) else {
        panic!("it was refused")
    };
    if is_dialer { (Err(ending), Err(there)) } else { (Err(there), Err(ending)) }
}

/// Returns the one reason of both sides, from the refusing side's view; whether that is the dialing
/// one; and whether the dialing side is sure of it.
fn refused(outcome: Outcome) -> (HandshakeError, bool, bool) {
    let (here, there) = (outcome.0.expect_err("refused"), outcome.1.expect_err("refused"));
    match (here, there) {
        (Ending::Ours { refusal, is_sure }, Ending::Theirs { refusal: told, .. }) => {
            assert_eq!(told, refusal.flipped());
            (refusal, true, is_sure)
        }
        (Ending::Theirs { refusal: told, is_sure }, Ending::Ours { refusal, .. }) => {
            assert_eq!(told, refusal.flipped());
            (refusal, false, is_sure)
        }
        other => panic!("not a refusal that both know of: {other:?}"),
    }
}

/// Returns the secret of the link that begins with a handshake of nodes 2 and 1.
fn link() -> LinkSecret {
    link_of(token(8))
}

fn link_of(token: Option<Token>) -> LinkSecret {
    let (here, there) = meet((identity(2), token.clone()), (identity(1), token));
    let claims = [here, there].map(|met| met.expect("they meet").claim.expect("there is a token"));
    let links = claims.each_ref().map(|claim| claim.begins().expect("there was none").clone());
    assert_eq!(links[0], links[1]);
    links[0].clone()
}

#[test]
fn peers_meet_with_a_token_and_without() {
    for token in [None, token(8)] {
        let (here, there) = meet((identity(2), token.clone()), (identity(1), token.clone()));
        let (here, there) = (here.expect("they meet"), there.expect("they meet"));
        assert_eq!(
            (here.node, here.incarnation, here.expects),
            (NodeId(1), Incarnation(101), Seq(17))
        );
        assert_eq!(
            (there.node, there.incarnation, there.expects),
            (NodeId(2), Incarnation(102), Seq(31))
        );
        assert_eq!((here.knows, there.knows), (None, Some(Incarnation(5))));
        assert_eq!(
            (here.claim.is_some(), there.claim.is_some()),
            (token.is_some(), token.is_some())
        );
    }
}

#[test]
fn tokens_must_be_the_same_on_both_sides() {
    let meet = |here, there| refused(meet((identity(2), here), (identity(1), there)));
    // A side with a token does not trust messages in the clear.
    assert_eq!(
        meet(token(1), token(2)),
        (HandshakeError::Token(TokenFault::Differs), false, false)
    );
    assert_eq!(meet(token(1), None), (HandshakeError::Token(TokenFault::OnlyTheirs), false, false));
    assert_eq!(meet(None, token(1)), (HandshakeError::Token(TokenFault::OnlyOurs), false, true));
}

#[test]
fn what_does_not_belong_together_is_told_to_both() {
    let own = identity(2);
    let cases = [
        (Identity { cluster: ClusterId(8), ..own }, HandshakeError::Cluster),
        (Identity { nodes: 5, ..own }, HandshakeError::Nodes { ours: 4, theirs: 5 }),
        (Identity { channel: 3, ..own }, HandshakeError::Channel { ours: 1, theirs: 3 }),
        (Identity { layout_digest: 1, ..own }, HandshakeError::Layout),
        (
            Identity { node: NodeId(1), ..own },
            HandshakeError::NodeTaken { node: NodeId(1), address: None },
        ),
        (
            Identity { node: NodeId(4), ..own },
            HandshakeError::NodeOutOfRange { node: NodeId(4), nodes: 4 },
        ),
        (Identity { node: NodeId(0), ..own }, HandshakeError::Malformed),
    ];
    for (dialer, expected) in cases {
        for token in [None, token(8)] {
            let outcome = meet((dialer, token.clone()), (identity(1), token));
            assert_eq!(refused(outcome), (expected, false, true));
        }
    }
    let meant = HandshakeError::WrongNode { meant: NodeId(1), found: NodeId(3) };
    // The listening side checks first: a node with a higher id than the dialer's is a wrong one
    // before it is one that may not be dialed.
    assert_eq!(refused(meet((own, None), (identity(3), None))).0, meant);
}

#[test]
fn nothing_is_told_to_one_that_has_proven_nothing() {
    let stranger =
        Identity { nodes: 9, channel: 8, layout_digest: 7, node: NodeId(60), ..identity(2) };
    let (refusal, _, _) = refused(meet((stranger, token(1)), (identity(1), token(2))));
    assert_eq!(refusal, HandshakeError::Token(TokenFault::Differs));
}

#[test]
fn nobody_says_who_it_is_before_the_other_is_known_to_have_the_token() {
    let own = Identity { cluster: ClusterId(0x5ec2_e75e_c2e7_5ec2), ..identity(2) };
    let (mut dialing, open) =
        Speaker::dial(own, token(1).as_ref(), (NodeId(1), None, None), Seq(0), [1; 32]);
    let mut listening = Speaker::listen(Identity { node: NodeId(1), ..own }, token(1), [2; 32]);
    let Heard::Say(opened) = listening.hear(packet(&open), &mut Recordings::default()) else {
        panic!("refused")
    };
    let Heard::Say(hello) = dialing.hear(packet(&opened), &mut Recordings::default()) else {
        panic!("refused")
    };
    let secret = postcard::to_allocvec(&own.cluster).expect("plain data");
    for said in [open, opened, hello] {
        assert!(
            !said.windows(secret.len()).any(|part| part == secret),
            "anybody can read the cluster's id"
        );
    }
}

#[test]
fn a_link_goes_on_with_whoever_knows_its_secret() {
    let (link, both) = (link(), |link| {
        (
            (identity(2), token(8)),
            (identity(1), token(8)),
            (NodeId(1), Some(Incarnation(101)), link),
        )
    });
    let (here, there, to) = both(Some(link.clone()));
    let (here, there) = meet_with_links(here, there, to, Some(&link));
    for met in [here, there] {
        let claim = met.expect("they meet").claim.expect("there is a token");
        assert!(claim.knows(&link) && claim.begins().is_none());
    }
    // A listener that has the token, and has not met this node.
    let (here, there, to) = both(Some(link.clone()));
    let (here, there) = meet_with_links(here, there, to, None);
    assert!(there.expect("a mark").claim.expect("there is a token").knows(&link));
    assert!(!here.expect("said").claim.expect("there is a token").knows(&link));
    // A dialer that has the token, and misinterprets the mark.
    let (here, there, to) = both(Some(link_of(token(9))));
    let (_, there) = meet_with_links(here, there, to, None);
    let claim = there.expect("said").claim.expect("there is a token");
    assert!(!claim.knows(&link) && claim.begins().is_none());
}

#[test]
fn only_the_node_that_was_met_can_say_that_a_link_is_over() {
    let link = link();
    for known in [None, Some(&link)] {
        let to = (NodeId(1), Some(Incarnation(101)), Some(link.clone()));
        let (mut dialing, open) =
            Speaker::dial(identity(2), token(8).as_ref(), to, Seq(0), [1; 32]);
        let mut listening = Listening::new(identity(1), token(8), [2; 32]);
        let open = packet(&open).check().expect("it is in the clear");
        let Ok(Step::Open { last: Some(opened), mut channel, .. }) =
            listening.handle(Greeting::Open, &open.frame.head, &mut Recordings::default())
        else {
            panic!("refused");
        };
        let opened = opened.into_draft().check().parts().concat();
        let Heard::Say(hello) = dialing.hear(packet(&opened), &mut Recordings::default()) else {
            panic!("refused")
        };
        let hello = channel.believe(packet(&hello)).expect("both have the keys");
        let met = listening.handle(Greeting::Hello, &hello.frame.head, &mut Recordings::default());
        assert!(matches!(met, Ok(Step::Met(_))));
        let refuse = channel
            .protect(listening.refuse(HandshakeError::GivenUp, known).into_draft())
            .parts()
            .concat();
        let Heard::Ended(ending) = dialing.hear(packet(&refuse), &mut Recordings::default()) else {
            panic!("it goes on")
        };
        assert_eq!(
            ending,
            Ending::Theirs { refusal: HandshakeError::GivenUp, is_sure: known.is_some() }
        );
    }
}

#[test]
fn a_recorded_key_is_refused_before_it_costs_anything() {
    let (_, open) =
        Dialing::new(identity(2), token(1).as_ref(), (NodeId(1), None, None), Seq(0), [1; 32]);
    let mut recordings = Recordings::default();
    let mut hear = || {
        Listening::new(identity(1), token(1), [2; 32]).handle(
            open.greeting,
            &open.bytes,
            &mut recordings,
        )
    };
    assert!(hear().is_ok());
    assert_eq!(
        hear().err(),
        Some(Ending::Ours { refusal: HandshakeError::Repeated, is_sure: false })
    );
}

#[test]
fn steps_out_of_turn_are_malformed() {
    let malformed = |is_sure| Some(Ending::Ours { refusal: HandshakeError::Malformed, is_sure });
    for token in [None, token(1)] {
        for greeting in [Greeting::Open, Greeting::Hello, Greeting::Welcome] {
            let to = (NodeId(1), None, None);
            let (mut dialing, _) = Dialing::new(identity(2), token.as_ref(), to, Seq(0), [1; 32]);
            assert_eq!(dialing.handle(greeting, &[0]).err(), malformed(token.is_none()));
        }
        for greeting in [Greeting::Opened, Greeting::Hello, Greeting::Welcome] {
            let mut listening = Listening::new(identity(1), token.clone(), [2; 32]);
            let step = listening.handle(greeting, &[0], &mut Recordings::default());
            assert_eq!(step.err(), malformed(token.is_none()));
        }
    }
}

#[test]
fn weak_tokens_are_refused_and_none_is_printed() {
    assert_eq!(Token::new(&[1; 31]).err(), Some(WeakToken::Length { bytes: 31 }));
    assert_eq!(Token::new(&[1; 1025]).err(), Some(WeakToken::Length { bytes: 1025 }));
    let repeated = |word: &[u8]| Token::new(&word.repeat(128)).map_err(|weak| weak.to_string());
    let error = "a token of 7 different bytes: it needs 32 to 1024 bytes, all of them random";
    assert_eq!(repeated(b"abcdefga").err().as_deref(), Some(error));
    let token = repeated(b"abcdefgh").expect("the longest");
    assert_eq!(format!("{token:?}"), "Token(..)");
    assert_eq!(format!("{:?}", link()), "LinkSecret(..)");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 0_usize..3) {
        let greeting = [Greeting::Open, Greeting::Opened, Greeting::Refuse][step];
        let (mut dialing, _) = Dialing::new(identity(2), token(3).as_ref(), (NodeId(1), None, None), Seq(0), [1; 32]);
        prop_assert!(dialing.handle(greeting, &bytes).is_err());
        let mut listening = Listening::new(identity(1), token(3), [2; 32]);
        prop_assert!(listening.handle(greeting, &bytes, &mut Recordings::default()).is_err());
    }
}
