//! Every handshake that ends well and every one that does not, with the reason on both sides.

use adapm_core::NodeId;
use adapm_core::link::Seq;
use proptest::prelude::*;

use super::*;
use crate::net::packet::Greeting;

/// How a handshake ended on the dialing and on the listening side.
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

/// Node 2 dials, meaning node 1; `spoil` may change a message on its way.
fn meet(
    dialer: (Identity, Option<Token>),
    listener: (Identity, Option<Token>),
    spoil: impl Fn(&mut Message),
) -> Outcome {
    let knows = Some(Incarnation(5));
    let (mut dialing, mut message) = Dialing::new(dialer.0, dialer.1, NodeId(1), knows, Seq(31), [1; 32]);
    let mut listening = Listening::new(listener.0, listener.1, [2; 32]);
    for _ in 0..4 {
        spoil(&mut message);
        assert!(message.bytes.len() <= GREETING_BYTES_MAX);
        let answer = match listening.handle(message.greeting, &message.bytes) {
            Ok(Step::Send(answer)) => (answer, None),
            Ok(Step::Met(met)) => (Listening::accept(Seq(17)), Some(met)),
            Err(Ending::Ours(refusal)) => {
                let told = Message::refuse(refusal);
                let here = dialing.handle(told.greeting, &told.bytes);
                return (Err(here.expect_err("it was refused")), Err(Ending::Ours(refusal)));
            }
            Err(theirs) => panic!("nobody refused: {theirs:?}"),
        };
        let (mut answer, met) = answer;
        spoil(&mut answer);
        message = match dialing.handle(answer.greeting, &answer.bytes) {
            Ok(Step::Send(next)) => next,
            Ok(Step::Met(here)) => return (Ok(here), Ok(met.expect("both or none"))),
            Err(Ending::Ours(refusal)) => {
                let told = Message::refuse(refusal);
                let there = listening.handle(told.greeting, &told.bytes);
                return (Err(Ending::Ours(refusal)), Err(there.expect_err("it was refused")));
            }
            Err(theirs) => panic!("nobody refused: {theirs:?}"),
        };
    }
    panic!("the handshake does not end");
}

/// The one reason of both sides, as the side sees it that refuses; and whether that is the dialing one.
fn refused(outcome: Outcome) -> (Refusal, bool) {
    match outcome {
        (Err(Ending::Ours(refusal)), Err(Ending::Theirs(told))) => {
            assert_eq!(told, refusal.flipped());
            (refusal, true)
        }
        (Err(Ending::Theirs(told)), Err(Ending::Ours(refusal))) => {
            assert_eq!(told, refusal.flipped());
            (refusal, false)
        }
        other => panic!("not a refusal that both know of: {other:?}"),
    }
}

#[test]
fn peers_meet_with_a_token_and_without() {
    for token in [None, token(8)] {
        let (here, there) = meet((identity(2), token.clone()), (identity(1), token), |_| {});
        let listener = Met { node: NodeId(1), incarnation: Incarnation(101), knows: None, expects: Seq(17) };
        let dialer = Met {
            node: NodeId(2),
            incarnation: Incarnation(102),
            knows: Some(Incarnation(5)),
            expects: Seq(31),
        };
        assert_eq!((here, there), (Ok(listener), Ok(dialer)));
    }
}

#[test]
fn tokens_must_be_the_same_on_both_sides() {
    let meet = |here, there| refused(meet((identity(2), here), (identity(1), there), |_| {})).0;
    assert_eq!(meet(token(1), token(2)), Refusal::Token(TokenFault::Differs));
    assert_eq!(meet(token(1), None), Refusal::Token(TokenFault::OnlyTheirs));
    assert_eq!(meet(None, token(1)), Refusal::Token(TokenFault::OnlyOurs));
}

#[test]
fn what_does_not_belong_together_is_told_to_both() {
    let own = identity(2);
    let cases = [
        (Identity { cluster: ClusterId(8), ..own }, Refusal::Cluster),
        (Identity { nodes: 5, ..own }, Refusal::Nodes { ours: 5, theirs: 4 }),
        (Identity { channel: 3, ..own }, Refusal::Channel { ours: 3, theirs: 1 }),
        (Identity { layout_digest: 1, ..own }, Refusal::Layout),
        (Identity { node: NodeId(1), ..own }, Refusal::NodeTaken { node: NodeId(1), address: None }),
        (Identity { node: NodeId(4), ..own }, Refusal::NodeOutOfRange { node: NodeId(4), nodes: 4 }),
        (Identity { node: NodeId(0), ..own }, Refusal::Malformed),
    ];
    for (dialer, expected) in cases {
        for token in [None, token(8)] {
            let outcome = meet((dialer, token.clone()), (identity(1), token), |_| {});
            let (refusal, is_dialer) = refused(outcome);
            let seen = if is_dialer { refusal } else { refusal.flipped() };
            assert_eq!(seen, expected);
        }
    }
    let meant = Refusal::WrongNode { meant: NodeId(1), found: NodeId(3) };
    assert_eq!(refused(meet((own, None), (identity(3), None), |_| {})).0, meant);
}

#[test]
fn only_cluster_and_token_are_told_to_one_that_has_proven_nothing() {
    let stranger = Identity { nodes: 9, channel: 8, layout_digest: 7, node: NodeId(60), ..identity(2) };
    let (refusal, _) = refused(meet((stranger, token(1)), (identity(1), token(2)), |_| {}));
    assert_eq!(refusal, Refusal::Token(TokenFault::Differs));
}

#[test]
fn a_listener_believes_no_forged_proof() {
    let forge = |message: &mut Message| {
        if message.greeting == Greeting::Proof {
            message.bytes[9] ^= 1;
        }
    };
    let outcome = meet((identity(2), token(1)), (identity(1), token(1)), forge);
    assert_eq!(refused(outcome), (Refusal::Token(TokenFault::Differs), false));
    let mute = |message: &mut Message| {
        if message.greeting == Greeting::Proof {
            message.bytes = vec![0];
        }
    };
    let outcome = meet((identity(2), token(1)), (identity(1), token(1)), mute);
    assert_eq!(refused(outcome), (Refusal::Token(TokenFault::OnlyOurs), false));
}

#[test]
fn a_mark_sent_back_proves_nothing() {
    let (mut dialing, hello) = Dialing::new(identity(2), token(1), NodeId(1), None, Seq(0), [1; 32]);
    let mut listening = Listening::new(identity(1), token(1), [2; 32]);
    let Ok(Step::Send(welcome)) = listening.handle(hello.greeting, &hello.bytes) else { panic!("refused") };
    let Ok(Step::Send(_)) = dialing.handle(welcome.greeting, &welcome.bytes) else { panic!("refused") };
    // The listener's own mark is the first thing in its welcome.
    let stolen = listening.handle(Greeting::Proof, &welcome.bytes[..33]);
    assert_eq!(stolen, Err(Ending::Ours(Refusal::Token(TokenFault::Differs))));
}

#[test]
fn steps_out_of_turn_are_malformed() {
    let malformed = Err(Ending::Ours(Refusal::Malformed));
    for greeting in [Greeting::Hello, Greeting::Proof, Greeting::Ready] {
        let (mut dialing, _) = Dialing::new(identity(2), None, NodeId(1), None, Seq(0), [1; 32]);
        assert_eq!(dialing.handle(greeting, &[0]), malformed);
    }
    for greeting in [Greeting::Welcome, Greeting::Proof, Greeting::Ready] {
        assert_eq!(Listening::new(identity(1), None, [2; 32]).handle(greeting, &[0]), malformed);
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
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), step in 0_usize..3) {
        let greeting = [Greeting::Hello, Greeting::Welcome, Greeting::Refuse][step];
        let (mut dialing, _) = Dialing::new(identity(2), token(3), NodeId(1), None, Seq(0), [1; 32]);
        prop_assert!(dialing.handle(greeting, &bytes).is_err());
        prop_assert!(Listening::new(identity(1), token(3), [2; 32]).handle(greeting, &bytes).is_err());
    }

    #[test]
    fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), bit in 0_u8..8, step in 0_usize..3) {
        let greeting = [Greeting::Hello, Greeting::Welcome, Greeting::Proof][step];
        let spoil = |message: &mut Message| {
            if message.greeting == greeting {
                let at = at.index(message.bytes.len());
                message.bytes[at] ^= 1 << bit;
            }
        };
        let (here, there) = meet((identity(2), token(1)), (identity(1), token(1)), spoil);
        prop_assert!(here.is_err() && there.is_err());
    }
}
