//! Handshakes out of turn, replayed, reflected or forged.

use adapm_core::NodeId;
use adapm_core::link::{self, Seq};
use adapm_transport::net::hello::{Dialing, Identity, Message, Refusal, Step, TokenFault};
use adapm_transport::net::packet::{Greeting, Kind};

use crate::crew::{Crew, token};
use crate::stranger::{Stranger, identity};

fn crew() -> Crew {
    Crew::start(4, &[0, 1, 2], |_| {})
}

/// A hello that is right, and the machine that goes on with it.
fn hello(identity: Identity) -> (Dialing, Message) {
    Dialing::new(identity, Some(token(1)), NodeId(0), None, Seq(0), [4; 32])
}

/// Shakes hands with node 0 up to the proof, which is not sent: who says so, its hello, its proof.
fn recorded(crew: &Crew) -> (Stranger, Message, Message) {
    let (mut dialing, hello) = hello(identity(3));
    let mut stranger = Stranger::dial(crew.address(0));
    stranger.greet(hello.greeting, &hello.bytes);
    let welcome = stranger.hear().expect("the node says who it is");
    let Ok(Step::Send(proof)) = dialing.handle(Greeting::Welcome, &welcome.frame.head) else {
        panic!("the node proves itself");
    };
    (stranger, hello, proof)
}

/// Repeats what was recorded to `node`, which must refuse it, and tell both.
#[track_caller]
fn proves_nothing(crew: &Crew, node: u16, hello: &Message, proof: &Message) {
    let mut thief = Stranger::dial(crew.address(node));
    thief.greet(hello.greeting, &hello.bytes);
    thief.hear().expect("the node says who it is");
    thief.greet(proof.greeting, &proof.bytes);
    assert_eq!(thief.hear_end(), Some(Refusal::Token(TokenFault::Differs)));
    crew.notice(node, "the tokens differ");
}

/// Says `steps` one after the other, whatever is answered; then node 0 must have refused, and tell both.
#[track_caller]
fn makes_no_sense(steps: &[(Greeting, Vec<u8>)]) {
    let crew = crew();
    let mut stranger = Stranger::dial(crew.address(0));
    for (greeting, bytes) in steps {
        stranger.greet(*greeting, bytes);
    }
    assert_eq!(stranger.hear_end(), Some(Refusal::Malformed));
    crew.notice(0, "the handshake makes no sense: is that an adapm node?");
    assert_eq!(crew.foreign_so_far(0), 0);
    crew.finish(&[]);
}

/// Shakes hands as `identity` with node `to`, which must refuse with `there` and tell it as `here`.
#[track_caller]
fn refused_as(identity: Identity, to: u16, here: &str, there: &str) {
    let crew = crew();
    let Err(refusal) = Stranger::meet(crew.address(to), identity, to, Seq(0)) else {
        panic!("it was believed");
    };
    assert!(refusal.to_string().contains(here), "{refusal}");
    crew.notice(to, there);
    crew.finish(&[]);
}

cases! {
    fn hello_twice() {
        let hello = hello(identity(3)).1.bytes;
        makes_no_sense(&[(Greeting::Hello, hello.clone()), (Greeting::Hello, hello)]);
    }

    fn a_proof_without_hello() {
        let mut mark = vec![1];
        mark.extend([7; 32]);
        makes_no_sense(&[(Greeting::Proof, mark)]);
    }

    fn a_welcome_to_one_who_listens() {
        makes_no_sense(&[(Greeting::Welcome, vec![0; 80])]);
    }

    fn ready_before_anything_was_proven() {
        let hello = hello(identity(3)).1.bytes;
        makes_no_sense(&[(Greeting::Hello, hello), (Greeting::Ready, vec![0])]);
    }

    fn a_hello_of_random_bytes() {
        makes_no_sense(&[(Greeting::Hello, vec![0x85; 90])]);
    }

    fn a_hello_with_something_behind_it() {
        let mut hello = hello(identity(3)).1.bytes;
        hello.push(0);
        makes_no_sense(&[(Greeting::Hello, hello)]);
    }

    fn a_hello_cut_short() {
        let mut hello = hello(identity(3)).1.bytes;
        hello.pop();
        makes_no_sense(&[(Greeting::Hello, hello)]);
    }

    fn data_before_the_proof() {
        let crew = crew();
        let (_, hello) = hello(identity(3));
        let mut stranger = Stranger::dial(crew.address(0));
        stranger.greet(hello.greeting, &hello.bytes);
        stranger.link(link::Kind::Data, 0, 0, b"trust me");
        assert_eq!(stranger.hear_end(), Some(Refusal::Malformed));
        crew.notice(0, "the handshake makes no sense");
        assert_eq!(crew.foreign_so_far(0), 0);
        crew.finish(&[]);
    }

    fn data_together_with_the_proof_is_not_taken_before_the_node_is_ready() {
        // The proof is wrong, and what comes with it in the same segment must not count.
        let crew = crew();
        let (_, hello) = hello(identity(3));
        let mut stranger = Stranger::dial(crew.address(0));
        stranger.greet(hello.greeting, &hello.bytes);
        stranger.hear().expect("the node says who it is");
        stranger.greet(Greeting::Proof, &[&[1_u8][..], &[5; 32]].concat());
        stranger.link(link::Kind::Data, 0, 0, b"trust me");
        assert_eq!(stranger.hear_end(), Some(Refusal::Token(TokenFault::Differs)));
        assert_eq!(crew.foreign_so_far(0), 0);
        crew.finish(&[]);
    }

    fn a_refusal_by_a_stranger_ends_only_its_own_connection() {
        let crew = crew();
        for refusal in [Refusal::Layout, Refusal::Cluster, Refusal::Restarted] {
            let mut stranger = Stranger::dial(crew.address(0));
            let message = Message::refuse(refusal);
            stranger.greet(message.greeting, &message.bytes);
            stranger.hear_end();
        }
        crew.finish(&[]);
    }

    fn a_recorded_handshake_proves_nothing_the_second_time() {
        let crew = crew();
        let (mut stranger, hello, proof) = recorded(&crew);
        stranger.greet(proof.greeting, &proof.bytes);
        let ready = stranger.hear().expect("the node believes it");
        assert_eq!(ready.kind, Kind::Greeting(Greeting::Ready));

        proves_nothing(&crew, 0, &hello, &proof);
        // The one that was recorded goes on.
        stranger.link(link::Kind::Data, 0, 0, b"still here");
        crew.foreign(0, 1);
        crew.finish(&[]);
    }

    fn a_recorded_handshake_is_worthless_at_another_node() {
        let crew = crew();
        let (_stranger, hello, proof) = recorded(&crew);
        proves_nothing(&crew, 1, &hello, &proof);
        crew.finish(&[]);
    }

    fn a_mark_sent_back_proves_nothing() {
        let crew = crew();
        let (_, hello) = hello(identity(3));
        let mut stranger = Stranger::dial(crew.address(0));
        stranger.greet(hello.greeting, &hello.bytes);
        let welcome = stranger.hear().expect("the node says who it is");
        // The node's own mark is the first thing in its welcome.
        stranger.greet(Greeting::Proof, &welcome.frame.head[..33]);
        assert_eq!(stranger.hear_end(), Some(Refusal::Token(TokenFault::Differs)));
        crew.notice(0, "the tokens differ");
        crew.finish(&[]);
    }

    fn one_who_knows_the_token_but_has_a_lower_id_and_dials() {
        refused_as(identity(0), 1, "the handshake makes no sense", "the handshake makes no sense");
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
