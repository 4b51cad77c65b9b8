//! Target `group`: whatever the processes of a cluster send to each other's control threads,
//! nothing panics, queues are bounded, an error is one line, and a collective yields the
//! contributed bytes.
//!
//! The input plays all peers of one node: frames of sound messages, of spoiled ones and of noise,
//! and losses, in any order. Not here: links and joining in time.

use core::time::Duration;

use adapm_core::NodeId;
use adapm_core::transport::{Frame, Loss};
use adapm_transport::testing::ControlSide;
use adapm_verify::arb::Choices;

/// Maximum number of messages queued for one peer: the newest table, an info, a stop, a goodbye,
/// and an encoded one.
const WAITING_MAX: usize = 5;

/// Runs the frames that `bytes` choose. Returns true if a collective succeeded or a peer was found
/// out.
pub fn group(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let nodes = 2 + choices.below(3) as usize;
    let node = NodeId(choices.below(nodes as u64) as u16);
    let mut control = ControlSide::new(node, nodes, choices.below(4) != 3);
    let mut begun = 0_u64;
    let mut is_deep = false;
    let mut is_busy = false;
    while !choices.is_exhausted() {
        let result = match choices.below(8) {
            0 if !is_busy => {
                begun += 1;
                is_busy = true;
                let label = LABELS[choices.below(2) as usize];
                control.begin(label, choices.flag(), &vec![7; choices.below(256) as usize])
            }
            1 => {
                let _ = control.take_sent(peer(node, nodes, &mut choices));
                Ok(())
            }
            2 => {
                let of = peer(node, nodes, &mut choices);
                control.lose(of, loss(peer(of, nodes, &mut choices), &mut choices));
                Ok(())
            }
            _ => {
                let from = peer(node, nodes, &mut choices);
                control.hear(from, frame(begun, &mut choices))
            }
        };
        assert!(
            control.waiting_max() <= WAITING_MAX,
            "{} messages wait for a peer",
            control.waiting_max()
        );
        if let Some(parts) = control.take_outcome() {
            assert!(parts.is_empty() || parts.len() == nodes, "a part for each node, or none");
            (is_deep, is_busy) = (true, false);
        }
        for error in result.err().into_iter().chain(control.failure()) {
            assert!(
                !error.to_string().contains(char::is_control),
                "an error is one line: {error:?}"
            );
            is_deep = true;
        }
        if control.failure().is_some() {
            // From here on every call ends with the failure.
            break;
        }
    }
    is_deep
}

fn peer(node: NodeId, nodes: usize, choices: &mut Choices<'_>) -> NodeId {
    let others = nodes as u64 - 1;
    NodeId((u64::from(node.0) + 1 + choices.below(others)).rem_euclid(nodes as u64) as u16)
}

/// Chooses why a node is lost; `by` is a node that may have reported it.
fn loss(by: NodeId, choices: &mut Choices<'_>) -> Loss {
    let losses =
        [Loss::Silent(Duration::from_secs(1)), Loss::Failed, Loss::Reported(by), Loss::GaveUp];
    losses[choices.below(losses.len() as u64) as usize]
}

/// Chooses a message in postcard's form, the number of its kind, then its fields; and bytes.
fn frame(begun: u64, choices: &mut Choices<'_>) -> Frame {
    let mut head = Vec::new();
    let number = (begun + choices.below(3)).saturating_sub(1);
    let mut values = choices.below(256) as usize;
    match choices.below(8) {
        0 => {
            head.extend([0, 0, 127, 0, 0, 1, 10]);
            text(&mut head, choices);
            head.push(7);
        }
        1 => {
            head.push(1);
            head.push(choices.below(6) as u8);
            for _ in 0..choices.below(6) {
                let is_there = choices.below(2) as u8;
                head.push(is_there);
                if is_there == 1 {
                    head.extend([0, 10, 0, 0, 7, 10]);
                    text(&mut head, choices);
                    head.push(9);
                }
            }
        }
        2 => head.extend([2, 1, choices.below(8) as u8, choices.below(128) as u8]),
        3..5 => {
            head.extend([3, number as u8]);
            let label = LABELS[choices.below(2) as usize];
            head.push(label.len() as u8);
            head.extend(label.bytes());
            head.push(choices.below(2) as u8);
            let total = [values as u64, choices.below(1 << 14)][choices.below(2) as usize];
            values = values.min(total as usize);
            varint(&mut head, total);
        }
        5 => head.extend([4, number as u8]),
        6 => head.extend([[5, 6, 8][choices.below(3) as usize], choices.below(256) as u8]),
        _ => head.extend((0..choices.below(32)).map(|_| choices.below(256) as u8)),
    }
    if head.first() == Some(&6) {
        head.truncate(1);
    }
    let mut frame = Frame { head, ..Frame::default() };
    frame.values.resize(values);
    frame
}

/// Appends a host name, sound or not.
fn text(head: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let len = choices.below(128) as u8;
    head.push(len);
    head.extend((0..len).map(|_| choices.below(128) as u8));
}

fn varint(head: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        head.push(number as u8 | 0x80);
        number >>= 7;
    }
    head.push(number as u8);
}

const LABELS: [&str; 2] = ["ranks", "notes"];
