//! Conversion of messages to frames and back: version byte, control part in postcard, raw value
//! block (protocol, "Messages").
//!
//! Decoding is safe for any bytes: no panic, and memory bounded by twice the bytes of the frame and
//! [`SPARE_BYTES`]. An entry may take 8 times its bytes, so large lists are weighed before any
//! memory is allocated.
//!
//! Not here: whether the message makes sense ([`crate::wire::shape`]), and how a transport delimits
//! frames.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use postcard::ser_flavors::Flavor;

use crate::error::DecodeError;
use crate::transport::Frame;
use crate::wire::message::{Body, Message};
use crate::wire::{FRAME_BYTES_MAX, PROTOCOL_VERSION, SPARE_BYTES};

/// Overwrites `frame` with `message`. The value block is moved, not copied; the head reuses the
/// frame's memory.
///
/// Receivers refuse frames above [`FRAME_BYTES_MAX`]: composers of messages must stay below.
///
/// ```
/// use adapm_core::transport::Frame;
/// use adapm_core::wire::{self, Message, message::Body};
/// let mut frame = Frame::default();
/// wire::encode(Message::bare(Body::News), &mut frame);
/// assert_eq!(wire::decode(&mut frame), Ok(Message::bare(Body::News)));
/// ```
pub fn encode(message: Message, frame: &mut Frame) {
    let mut head = mem::take(&mut frame.head);
    head.clear();
    head.push(PROTOCOL_VERSION);
    frame.head = postcard::serialize_with_flavor(&*message.body, Head(head))
        .expect("a control part is made of integers, booleans and lists of known length");
    frame.values = message.values;
    debug_assert!(
        frame.len() <= FRAME_BYTES_MAX,
        "composers of messages keep within the frame bound"
    );
}

/// Returns the size of the head of a frame with this control part, without writing it.
#[must_use]
pub fn head_bytes(body: &Body) -> usize {
    let weight = postcard::serialize_with_flavor(body, Weight(0));
    1 + weight.expect("a control part is made of integers, booleans and lists of known length")
}

/// A counter of bytes that would be written.
struct Weight(usize);

impl Flavor for Weight {
    type Output = usize;

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0 += data.len();
        Ok(())
    }

    fn try_push(&mut self, _data: u8) -> postcard::Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.0)
    }
}

/// A postcard flavour that appends to reused memory; postcard's own allocates.
struct Head(Vec<u8>);

impl Flavor for Head {
    type Output = Vec<u8>;

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        // Most numbers are small, and copies of few bytes cost more than the bytes.
        match *data {
            [one] => self.0.push(one),
            [one, two] => self.0.extend([one, two]),
            _ => self.0.extend_from_slice(data),
        }
        Ok(())
    }

    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.push(data);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Takes the message from `frame`. The value block is moved, not copied; the head's memory stays.
///
/// # Errors
/// If the frame is of another version, above [`FRAME_BYTES_MAX`], cut short, longer than its
/// message, or takes too much memory. The frame is then unchanged.
pub fn decode(frame: &mut Frame) -> Result<Message, DecodeError> {
    let (&version, control) = frame.head.split_first().ok_or(DecodeError::Head)?;
    if version != PROTOCOL_VERSION {
        return Err(DecodeError::Version { given: version });
    }
    if frame.len() > FRAME_BYTES_MAX {
        return Err(DecodeError::TooLarge { bytes: frame.len() });
    }
    let most = 2 * frame.len() + SPARE_BYTES;
    // No byte of a head takes more than 8 of memory.
    if control.len() * 8 > most {
        let needed = weight(control).ok_or(DecodeError::Head)?;
        if needed > most {
            return Err(DecodeError::TooDense { bytes: frame.len(), needed });
        }
    }
    let (body, rest) = postcard::take_from_bytes::<Body>(control).map_err(|_| DecodeError::Head)?;
    if !rest.is_empty() {
        return Err(DecodeError::Trailing);
    }
    frame.head.clear();
    Ok(Message { body: Box::new(body), values: mem::take(&mut frame.values) })
}

/// Returns the bytes of memory that the lists of a message take; `None` if the bytes end early.
fn weight(mut control: &[u8]) -> Option<usize> {
    let kind = usize::try_from(number(&mut control)?).ok()?;
    let Some(fields) = FIELDS.get(kind)? else { return Some(2 * control.len()) };
    let mut weight = 0_usize;
    for &element in *fields {
        let length = number(&mut control)?;
        if element == 0 {
            continue;
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= control.len())?;
        weight += length * usize::from(element);
        // Each element is one number, whose last byte has no high bit.
        let mut left = length;
        while left > 0 {
            let (first, rest) = control.split_first()?;
            control = rest;
            left -= usize::from(*first < 0x80);
        }
    }
    Some(weight)
}

/// Takes a varint off the front.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if *first < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The fields of each kind of message, in the order of [`Body`] and of their bytes in a head: the
/// bytes of memory per element of a list, or 0 for a number, a flag or a node. `None` for kinds
/// without lists, except one of nodes, of two bytes each.
const FIELDS: [Option<&[u8]>; 11] = [
    Some(&[8, 8, 8, 8, 8, 8, 8, 8, 0, 0]),
    Some(&[8, 8, 1, 8, 8, 8, 8, 8, 8, 8, 1, 0, 0]),
    Some(&[8, 8, 1, 8, 8]),
    None,
    Some(&[0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 0, 8]),
    Some(&[8, 8, 8, 8, 8, 8, 0]),
    Some(&[8, 8, 8, 8, 8]),
    Some(&[8, 8, 8]),
    Some(&[8, 8, 2]),
    None,
    None,
];

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::layout::mix;
    use crate::wire::message::{Asked, Barrier, Keys};

    /// The weight equals the memory taken.
    #[test]
    fn the_weight_is_that_of_the_message() {
        let mut seen = [0; FIELDS.len()];
        for seed in 0..30_000 {
            let kind = seed as usize % FIELDS.len();
            // Small numbers are lengths, keys, marks, kinds and nodes alike.
            let rest = (1..100).map(|at| mix(mix(seed) ^ at) % 7 / 3);
            let control: Vec<u8> =
                [kind as u8].into_iter().chain(rest.map(|byte| byte as u8)).collect();
            let Ok((body, rest)) = postcard::take_from_bytes::<Body>(&control) else { continue };
            let control = &control[..control.len() - rest.len()];
            let lists = taken(&body);
            seen[kind] += 1;
            if FIELDS[kind].is_none() {
                // A bound is enough for nodes.
                assert!(weight(control).is_some_and(|weight| lists <= weight), "seed {seed}");
                continue;
            }
            assert_eq!(weight(control), Some(lists), "seed {seed}");
            for cut in 0..control.len() {
                let cut_short = weight(&control[..cut]);
                assert!(cut_short.is_none_or(|weight| weight == lists), "seed {seed} cut to {cut}");
            }
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }

    /// A kind without a row would be weighed wrongly.
    #[test]
    fn every_kind_has_a_row() {
        let is_kind = |kind: usize| {
            let zeros = [kind as u8].into_iter().chain([0; 40]).collect::<Vec<u8>>();
            postcard::take_from_bytes::<Body>(&zeros).is_ok()
        };
        assert!((0..FIELDS.len()).all(is_kind) && !is_kind(FIELDS.len()));
    }

    /// Returns the bytes of the lists of a message.
    fn taken(body: &Body) -> usize {
        let keys = |keys: &Keys| size_of_val(&**keys);
        let asked = |asked: &Asked| keys(&asked.keys) + size_of_val(&*asked.counters);
        let all = |lists: &[&Asked]| lists.iter().map(|list| asked(list)).sum::<usize>();
        let grants = |grants: &crate::wire::message::Grants| {
            let rest = size_of_val(&*grants.kinds) + size_of_val(&*grants.versions);
            asked(&grants.at) + rest + size_of_val(&*grants.tickets)
        };
        match body {
            Body::SyncRequest(request) => {
                let lists = [&request.deltas, &request.sets, &request.releases, &request.renews];
                let lists = lists.map(keys);
                lists.iter().sum::<usize>() + all(&[&request.intents, &request.localizes])
            }
            Body::SyncResponse(response) => {
                let owners = &response.hand_overs;
                let rest = size_of_val(&*owners.versions) + size_of_val(&*owners.with_value);
                let refreshes = keys(&response.refreshes) + size_of_val(&*response.versions);
                grants(&response.grants) + refreshes + asked(&owners.at) + rest
            }
            Body::Grant(each) => grants(each),
            Body::Forward(forward) => {
                let operation = &forward.operation;
                let operations = all(&[&operation.pulls, &operation.pushes, &operation.sets]);
                all(&[&forward.intents, &forward.localizes])
                    + operations
                    + size_of_val(&*forward.tickets)
            }
            Body::Operation(operation) => {
                all(&[&operation.pulls, &operation.pushes, &operation.sets])
            }
            Body::Answer(answer) => {
                all(&[&answer.pulls, &answer.done]) + size_of_val(&*answer.tickets)
            }
            Body::Retry(retry) => {
                keys(&retry.intents) + keys(&retry.operations) + size_of_val(&*retry.tickets)
            }
            Body::Residence(residence) => asked(&residence.at) + size_of_val(&*residence.owners),
            Body::Barrier(Barrier::Missing { nodes, .. }) => size_of_val(&**nodes),
            Body::News | Body::Barrier(_) | Body::Quiesce(_) => 0,
        }
    }

    /// Frames full of the smallest entries, of every kind that has lists.
    #[test]
    fn frames_full_of_small_entries_are_refused() {
        let bytes = 4 << 20;
        for (kind, fields) in (0..).zip(FIELDS).filter_map(|(kind, fields)| Some((kind, fields?))) {
            let lead = fields.iter().take_while(|element| **element == 0).count();
            let mut head = alloc::vec![PROTOCOL_VERSION, kind];
            head.extend(core::iter::repeat_n(0, lead));
            let mut head = postcard::to_extend(&(bytes as u64), head).expect("a vector takes all");
            head.extend(core::iter::repeat_n(0, bytes + 20));
            let mut frame = Frame { head, ..Frame::default() };
            let given = frame.len();
            assert_eq!(
                decode(&mut frame),
                Err(DecodeError::TooDense { bytes: given, needed: 8 * bytes })
            );
            // With values for the entries, it is as it should be.
            frame.values.resize(3 * bytes);
            assert_ne!(
                decode(&mut frame),
                Err(DecodeError::TooDense { bytes: 4 * bytes, needed: 8 * bytes })
            );
        }
    }
}
