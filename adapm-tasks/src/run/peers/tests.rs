//! The errors with which all processes end when one fails, sends nonsense or leaves.

use adapm_transport::group::GroupError;

use super::*;
use crate::run::circle::as_each;
use crate::run::config::ConfigError;

fn diverged(key: u64) -> TaskError {
    TaskError::NotFinite { key, name: format!("key {key}"), step: 7, learning_rate: 0.5 }
}

#[test]
fn all_get_the_notes_of_all_in_order() {
    let shared = as_each(3, |peers, _| {
        let node = peers.node() as u64;
        [peers.share(Ok((node, "first".to_owned()))), peers.share(Ok((node, "second".to_owned())))]
    });
    for [first, second] in shared {
        let messages = |text: &str| (0..3).map(|node| (node, text.to_owned())).collect::<Vec<_>>();
        assert_eq!(first.expect("none fails"), messages("first"));
        assert_eq!(second.expect("none fails"), messages("second"));
    }
    assert_eq!(Peers::alone().share(Ok(5)).expect("does not fail"), [5]);
    assert!(Peers::alone().share::<u8>(Err(diverged(1))).is_err());
}

#[test]
fn a_failure_is_the_last_exchange_of_all() {
    let ended = as_each(3, |peers, place| {
        let own = if peers.node() == 1 { Err(ConfigError::NoWorkers.into()) } else { Ok(()) };
        let first = peers.share(own).expect_err("one failed").to_string();
        // Later exchanges do not wait for any process.
        let again = peers.share(Ok(())).expect_err("all have failed").to_string();
        assert_eq!(
            peers.fail(ConfigError::NoNodes.into()).to_string(),
            ConfigError::NoNodes.to_string()
        );
        (first, again, place.rounds())
    });
    let own = ConfigError::NoWorkers.to_string();
    let elsewhere = format!("node n1 failed: {own}");
    let expected = |text: &str| (text.to_owned(), elsewhere.clone(), 1);
    assert_eq!(ended, [expected(&elsewhere), expected(&own), expected(&elsewhere)]);
}

#[test]
fn training_that_diverged_is_the_same_reason_for_all() {
    let ended = as_each(4, |peers, _| {
        let own = match peers.node() {
            0 => Err(ConfigError::NoWorkers.into()),
            1 => Ok(()),
            node => Err(diverged(node as u64)),
        };
        peers.share(own).expect_err("three failed").to_string()
    });
    assert!(ended.iter().all(|text| *text == diverged(2).to_string()), "{ended:?}");
}

#[test]
fn the_loss_of_a_node_counts_after_what_failed_by_itself() {
    let ended = as_each(4, |peers, _| {
        let own = match peers.node() {
            0 => Err(GroupError::Left { node: NodeId(3) }.into()),
            1 => Ok(()),
            _ => Err(ConfigError::NoWorkers.into()),
        };
        peers.share(own).expect_err("three failed")
    });
    assert!(ended[0].is_loss());
    assert_eq!(ended[1].culprit(), Some(NodeId(2)));
    let lost = as_each(2, |peers, _| match peers.node() {
        0 => peers.share::<()>(Err(GroupError::Left { node: NodeId(3) }.into())),
        _ => peers.share(Ok(())),
    });
    let texts: Vec<_> =
        lost.into_iter().map(|ended| ended.expect_err("n0 has lost one").to_string()).collect();
    assert!(texts[1].starts_with("node n0 failed: ") && texts[1].contains("n3"), "{texts:?}");
}

#[test]
fn a_failure_reaches_those_that_share_something_else() {
    let ended = as_each(2, |peers, _| match peers.node() {
        0 => peers.told_of(|| Err::<(), _>(diverged(3))).expect_err("fails").to_string(),
        _ => peers.share(Ok(vec![(1_u64, "text".to_owned())])).expect_err("n0 fails").to_string(),
    });
    assert_eq!(ended, [diverged(3).to_string(), diverged(3).to_string()]);
}

#[test]
fn a_panic_is_told_and_goes_on() {
    let ended = as_each(2, |peers, _| match peers.node() {
        0 => {
            let caught = panic::catch_unwind(AssertUnwindSafe(|| {
                peers.told_of(|| -> Result<(), TaskError> { panic::panic_any("of the test") })
            }));
            caught
                .expect_err("goes on")
                .downcast_ref::<&str>()
                .map_or_else(String::new, ToString::to_string)
        }
        _ => peers.share(Ok(1)).expect_err("n0 panics").to_string(),
    });
    assert_eq!(
        ended,
        ["of the test".to_owned(), format!("node n0 failed: {}", TaskError::Panicked)]
    );
}

#[test]
fn a_process_that_is_gone_fails_those_that_wait() {
    let ended = as_each(3, |peers, _| match peers.node() {
        2 => String::new(),
        _ => peers.share(Ok(1)).expect_err("n2 is gone").to_string(),
    });
    let gone = TaskError::from(GroupError::Left { node: NodeId(2) }).to_string();
    assert_eq!(ended, [gone.clone(), gone, String::new()]);
}

/// Returns the messages it was created with, regardless of the one that it is given.
struct Liar(Vec<Vec<u8>>);

impl Exchange for Liar {
    fn node(&self) -> usize {
        0
    }

    fn nodes(&self) -> usize {
        2
    }

    fn all_gather(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, TaskError> {
        Ok(self.0.clone())
    }
}

#[test]
fn notes_that_make_no_sense_name_their_node() {
    let message = postcard::to_allocvec(&Told::Message(vec![1_u64, 2])).expect("encodes");
    for second in
        [vec![], vec![9], message[..2].to_vec(), vec![0, 255, 255, 255, 255, 255, 255, 255, 255, 1]]
    {
        let liar = Liar(vec![message.clone(), second]);
        let outcome = Peers::among(&liar).share(Ok(vec![1_u64]));
        let is_named = matches!(&outcome, Err(TaskError::Unintelligible { node: NodeId(1) }));
        assert!(is_named, "{outcome:?}");
    }
    let short = Liar(vec![message]);
    assert!(Peers::among(&short).share(Ok(vec![1_u64])).is_err());
}
