//! Values that reveal which pushes they contain: a tag for the last set, then base-4 digits, one
//! for each push of the key.
//!
//! A push adds 4^d in a digit `d` of its own. In a sound value every digit is 0 (absent) or 1; a 2
//! or 3 means that a push was counted twice. 31 digits fit into one element.

use core::fmt;

use adapm_core::id::Key;

/// Digits of one element.
const PER_ELEMENT: usize = 31;

/// The content of a value.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// The last set, counted from 1 per key; 0 is the initial value.
    pub set: u32,
    /// Bit `d` is set if the push with digit `d` is in the value.
    pub pushes: u128,
}

/// A value that no sequence of sets and pushes can make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsound {
    /// The first element is no tag.
    Tag(i64),
    /// The digit has this count.
    Digit(usize, u8),
}

/// Returns the number of pushes that a value of `value_len` elements can distinguish.
#[must_use]
pub fn capacity(value_len: usize) -> usize {
    (value_len.saturating_sub(1) * PER_ELEMENT).min(127)
}

/// Returns the tag of a key's initial value.
#[must_use]
pub fn initial_tag(key: Key) -> i64 {
    -1 - key.0 as i64
}

/// Writes the initial value of `key`.
pub fn initial(key: Key, value: &mut [i64]) {
    value.fill(0);
    value[0] = initial_tag(key);
}

/// Returns the update of the push with digit `digit`.
#[must_use]
pub fn update(value_len: usize, digit: usize) -> Vec<i64> {
    let mut update = vec![0; value_len];
    update[1 + digit / PER_ELEMENT] = 1 << (2 * (digit % PER_ELEMENT));
    update
}

/// Returns the value that set number `set`, counted from 1, writes.
#[must_use]
pub fn set_value(value_len: usize, set: u32) -> Vec<i64> {
    let mut value = vec![0; value_len];
    value[0] = i64::from(set);
    value
}

/// Returns the pushes in the digits after the tag.
///
/// # Errors
/// If a digit is neither 0 nor 1.
pub fn pushes(value: &[i64]) -> Result<u128, Unsound> {
    let mut seen = 0_u128;
    for (element, &digits) in value.iter().skip(1).enumerate() {
        let digits = digits as u64;
        let odd = digits & 0x5555_5555_5555_5555;
        if odd != digits {
            let at = ((digits ^ odd).trailing_zeros() / 2) as usize;
            return Err(Unsound::Digit(element * PER_ELEMENT + at, (digits >> (2 * at) & 3) as u8));
        }
        seen |= u128::from(compress(odd)) << (element * PER_ELEMENT);
    }
    Ok(seen)
}

/// Returns the content of the value of `key`.
///
/// # Errors
/// If no sequence of sets and pushes makes that value.
pub fn seen(key: Key, value: &[i64]) -> Result<Seen, Unsound> {
    let set = match value[0] {
        tag if tag == initial_tag(key) => 0,
        tag => u32::try_from(tag).ok().filter(|set| *set > 0).ok_or(Unsound::Tag(tag))?,
    };
    Ok(Seen { set, pushes: pushes(value)? })
}

/// Gathers every second bit.
fn compress(mut bits: u64) -> u64 {
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) & 0xffff_ffff
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.set {
            0 => f.write_str("initial")?,
            set => write!(f, "s{}", set - 1)?,
        }
        for digit in (0..128).filter(|digit| self.pushes >> digit & 1 == 1) {
            write!(f, " p{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use adapm_core::value::accumulate;

    use super::*;

    #[test]
    fn a_value_tells_its_pushes() {
        let mut value = [0; 4];
        initial(Key(7), &mut value);
        for digit in [0, 30, 31, 92] {
            accumulate(&mut value, &update(4, digit));
        }
        let expected = Seen { set: 0, pushes: 1 | 1 << 30 | 1 << 31 | 1 << 92 };
        assert_eq!(seen(Key(7), &value), Ok(expected));
        accumulate(&mut value, &update(4, 31));
        assert_eq!(seen(Key(7), &value), Err(Unsound::Digit(31, 2)));
    }

    #[test]
    fn a_value_tells_its_set() {
        assert_eq!(seen(Key(1), &set_value(2, 3)), Ok(Seen { set: 3, pushes: 0 }));
        assert_eq!(seen(Key(1), &[-5, 0]), Err(Unsound::Tag(-5)));
    }
}
