//! The memory needed to decode a frame: at most twice its length plus 1 MiB, for any content.

use adapm_core::error::DecodeError;
use adapm_core::transport::Frame;
use adapm_core::wire::message::{Asked, Body, Keys, Residence, Retry, SyncRequest};
use adapm_core::wire::{self, FRAME_BYTES_MAX, Message, PROTOCOL_VERSION, SPARE_BYTES};
use adapm_core::{Counter, Key, NodeId};
use allocation_counter::measure;

/// Bytes of a message beside its lists: its control part, and the text of an error.
const CONSTANT: u64 = 4_096;

/// Decodes the frame. Returns the outcome and the total bytes allocated, including those freed at
/// once.
fn read(mut frame: Frame) -> (Result<Message, DecodeError>, u64) {
    let mut result = Err(DecodeError::Head);
    let info = measure(|| result = wire::decode(&mut frame));
    (result, info.bytes_total)
}

fn allowed(bytes: usize) -> u64 {
    (2 * bytes + SPARE_BYTES) as u64 + CONSTANT
}

/// Returns the head of a kind of message: numbers, then lists of `len` elements of one byte each,
/// then numbers again.
fn full([kind, numbers, lists, behind]: [usize; 4], len: usize) -> Frame {
    let mut head = vec![PROTOCOL_VERSION, kind as u8];
    head.extend(std::iter::repeat_n(0, numbers));
    for _ in 0..lists {
        length(len, &mut head);
        head.extend(std::iter::repeat_n(0, len));
    }
    head.extend(std::iter::repeat_n(0, behind));
    Frame { head, ..Frame::default() }
}

/// Appends the length of a list in wire format.
fn length(mut len: usize, head: &mut Vec<u8>) {
    while len >= 0x80 {
        head.push(len as u8 | 0x80);
        len >>= 7;
    }
    head.push(len as u8);
}

#[test]
fn frames_full_of_small_entries_take_little_memory() {
    let mut worst = 0.0_f64;
    let mut count = 0;
    // Kinds of messages, each with its numbers before the lists, its lists, and the numbers after
    // them.
    let kinds = [
        [0, 0, 8, 2],
        [1, 0, 11, 2],
        [2, 0, 5, 0],
        [4, 2, 10, 2],
        [5, 0, 6, 1],
        [6, 0, 5, 0],
        [7, 0, 3, 0],
        [8, 0, 3, 0],
    ];
    for message in kinds {
        let [kind, numbers, lists, _] = message;
        for bytes in [100, 10_000, 130_000, 140_000, 1 << 20, 16 << 20] {
            let frame = full(message, bytes / lists);
            let given = frame.len();
            // The same with enough values for the entries.
            let mut paid = frame.clone();
            paid.values.resize((4 * given).min(FRAME_BYTES_MAX - given));
            let (whole, (read_all, taken)) = (paid.len(), read(paid));
            let is_read = 2 * whole + SPARE_BYTES >= 8 * given;
            assert!(
                read_all.is_ok() || !is_read,
                "kind {kind}: {given} of {whole} bytes: {read_all:?}"
            );
            assert!(taken <= allowed(whole), "kind {kind}: {whole} bytes take {taken}");
            if whole > SPARE_BYTES {
                worst = worst.max(taken as f64 / whole as f64);
            }
            assert!(given <= FRAME_BYTES_MAX);
            let (result, taken) = read(frame);
            let most = allowed(given);
            assert!(
                taken <= most,
                "kind {kind}: {given} bytes take {taken}, {most} are allowed: {:?}",
                result.err()
            );
            count += 2;
            // With a list that claims all the rest, and with one that claims more.
            for len in [given / 2, usize::MAX >> 8] {
                let mut claims = full([kind, numbers, 0, 0], 0);
                claims.head.truncate(2 + numbers);
                length(len, &mut claims.head);
                claims.head.resize(given, 0x80);
                let (result, taken) = read(claims);
                assert!(
                    result.is_err() && taken <= most,
                    "kind {kind}: {given} bytes take {taken}: {result:?}"
                );
                count += 1;
            }
        }
    }
    println!(
        "{count} frames read; of those above 1 MiB the worst takes {worst:.2} times its bytes"
    );
}

/// The messages that take the largest share of a frame: as many entries as an engine puts into one,
/// without values.
#[test]
fn the_fullest_messages_of_an_engine_are_read() {
    let keys = |from: u64| Keys((from..from + 30_000).map(Key).collect());
    let asked = |from: u64| Asked { keys: keys(from), counters: vec![Counter(0); 30_000] };
    let owners = vec![NodeId(1); 30_000];
    for body in [
        Body::SyncRequest(SyncRequest { releases: keys(1), ..SyncRequest::default() }),
        Body::SyncRequest(SyncRequest { intents: asked(1), ..SyncRequest::default() }),
        Body::Retry(Retry { intents: keys(1), ..Retry::default() }),
        Body::Residence(Residence { at: asked(1), owners }),
    ] {
        let mut frame = Frame::default();
        wire::encode(Message::bare(body.clone()), &mut frame);
        let most = allowed(frame.len());
        let (result, taken) = read(frame);
        assert_eq!(result, Ok(Message::bare(body)));
        assert!(taken <= most, "{taken} of {most}");
    }
}
