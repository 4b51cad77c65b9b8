//! The laws of [`Value`] as a suite: every law is a function here and a test in the expansion of
//! [`value_suite!`].
//!
//! Not here: faults that the compiler finds, such as a type that is not plain bytes.
//!
//! [`value_suite!`]: crate::value_suite!

use core::any::TypeId;

use adapm_core::value::{Block, Value};

use crate::rng::Rng;

/// Expands to a module of tests that check the laws of an element type.
///
/// Takes the module's name, the type, and a function that draws an element from a
/// [`Rng`](crate::rng::Rng): of all sizes, including those with special sums.
///
/// ```
/// adapm_verify::value_suite!(whole_numbers, i64, |random| random.bits() as i64);
/// adapm_verify::value_suite!(floats, f32, |random| random.number(0..1_000) as f32 - 500.25);
/// # fn main() {}
/// ```
///
/// Each law is checked on 10,000 elements of one seed. A failure names the law and the elements.
#[macro_export]
macro_rules! value_suite {
    ($suite:ident, $value:ty, $draw:expr) => {
        $crate::value_suite!(@ $suite, $value, $draw,
            sums_commute
            sums_associate
            zero_bytes_change_nothing
            bytes_make_a_round_trip
            magnitudes_are_sizes
            the_name_is_its_own
        );
    };
    (@ $suite:ident, $value:ty, $draw:expr, $($law:ident)*) => {
        #[cfg(test)]
        mod $suite {
            #[allow(unused_imports, reason = "type and function may name what is imported around")]
            use super::*;

            $(
                #[test]
                fn $law() {
                    $crate::value_suite::$law::<$value>($draw);
                }
            )*
        }
    };
}

/// Checks that `a + b` is `b + a`: pushes arrive in any order.
pub fn sums_commute<V: Value>(draw: impl Fn(&mut Rng) -> V) {
    for_elements(draw, |[a, b, _]| {
        let (one, other) = (sum(a, b), sum(b, a));
        assert!(
            is_same(one, other),
            "{}: sums do not commute: {a:?} + {b:?} is {one:?}, {b:?} + {a:?} is {other:?}",
            V::NAME
        );
    });
}

/// Checks that `(a + b) + c` is `a + (b + c)`: pushes are added to each other on their way. Where
/// sums are rounded, the magnitudes of both differ by at most a 64th of those of `a`, `b` and `c`
/// together.
pub fn sums_associate<V: Value>(draw: impl Fn(&mut Rng) -> V) {
    for_elements(draw, |[a, b, c]| {
        let (left, right) = (sum(sum(a, b), c), sum(a, sum(b, c)));
        let is_near = || {
            let apart = (left.magnitude() - right.magnitude()).abs();
            let all = a.magnitude() + b.magnitude() + c.magnitude();
            // Beyond the largest element sums are infinite or NaN.
            !apart.is_finite() || apart <= all / 64.0
        };
        assert!(
            is_same(left, right) || V::ROUNDS && is_near(),
            "{}: sums do not associate: ({a:?} + {b:?}) + {c:?} is {left:?}, {a:?} + ({b:?} + \
             {c:?}) is {right:?}{}",
            V::NAME,
            if V::ROUNDS { "" } else { "; if they are rounded, say so by `ROUNDS`" }
        );
    });
}

/// Checks that the default is all zero bytes, and that adding it to an element, or an element to
/// it, gives that element.
pub fn zero_bytes_change_nothing<V: Value>(draw: impl Fn(&mut Rng) -> V) {
    let zero = V::default();
    let bytes = bytes_of(zero);
    assert!(
        bytes.bytes().iter().all(|byte| *byte == 0),
        "{}: the default {zero:?} is {:?}, it must be all zero bytes",
        V::NAME,
        bytes.bytes()
    );
    for_elements(draw, |[a, ..]| {
        for (text, found) in [("a + zero", sum(a, zero)), ("zero + a", sum(zero, a))] {
            assert!(
                is_same(found, a),
                "{}: zero bytes change something: {text} is {found:?} for a = {a:?}",
                V::NAME
            );
        }
    });
}

/// Checks that an element equals the one that another node reads from its bytes, alone and in a
/// list, and that both have equal sums.
pub fn bytes_make_a_round_trip<V: Value>(draw: impl Fn(&mut Rng) -> V) {
    for_elements(draw, |elements| {
        let mut sent = Block::new();
        sent.push(&elements);
        let mut received = Block::new();
        // In pieces, as from a transport.
        let (front, back) = sent.bytes().split_at(sent.len() / 2);
        received.push_bytes(front);
        received.push_bytes(back);
        assert_eq!(received.len_as::<V>(), Some(elements.len()), "{}: elements", V::NAME);
        let there = received.values::<V>();
        for (at, element) in elements.iter().enumerate() {
            let found = &there[at];
            // By reference: an equality may compare addresses.
            assert!(
                found == element || bytes_of(*found) == bytes_of(*element) && !is_itself(element),
                "{}: bytes do not make a round trip: {element:?} arrives as {found:?}, which is \
                 not equal to it",
                V::NAME
            );
        }
        let (here, there) = (sum(elements[0], elements[1]), sum(there[0], there[1]));
        assert!(
            is_same(here, there),
            "{}: bytes do not make a round trip: {:?} + {:?} is {here:?}, and {there:?} where they \
             arrive",
            V::NAME,
            elements[0],
            elements[1]
        );
    });
}

/// Checks that the magnitude of the default is 0, and that none is negative or NaN.
pub fn magnitudes_are_sizes<V: Value>(draw: impl Fn(&mut Rng) -> V) {
    let zero = V::default().magnitude();
    assert!(
        zero == 0.0,
        "{}: magnitude of the default {:?} is {zero}, it must be 0",
        V::NAME,
        V::default()
    );
    for_elements(draw, |[a, ..]| {
        let magnitude = a.magnitude();
        assert!(
            magnitude >= 0.0,
            "{}: magnitude of {a:?} is {magnitude}, it must be 0 or more",
            V::NAME
        );
    });
}

/// Checks that the name is a line of text, and not that of `f32`, `f64` or `i64`: other nodes would
/// take the values for theirs.
pub fn the_name_is_its_own<V: Value>(_draw: impl Fn(&mut Rng) -> V) {
    let name = V::NAME;
    assert!(
        !name.trim().is_empty() && !name.chars().any(char::is_control),
        "the name {name:?} of {} is no line of text",
        core::any::type_name::<V>()
    );
    let shipped = [
        (f32::NAME, TypeId::of::<f32>()),
        (f64::NAME, TypeId::of::<f64>()),
        (i64::NAME, TypeId::of::<i64>()),
    ];
    assert!(
        shipped.iter().all(|(shipped, id)| *shipped != name || *id == TypeId::of::<V>()),
        "the name {name:?} of {} is that of another type",
        core::any::type_name::<V>()
    );
}

/// Calls `check` with elements of one seed, three at a time; the default is among them.
fn for_elements<V: Value>(draw: impl Fn(&mut Rng) -> V, check: impl Fn([V; 3])) {
    let mut random = Rng::new(SEED);
    for at in 0..TRIPLES {
        let mut elements = [(); 3].map(|()| draw(&mut random));
        if let Some(element) = elements.get_mut(at) {
            *element = V::default();
        }
        check(elements);
    }
}

fn sum<V: Value>(mut a: V, b: V) -> V {
    a.accumulate(b);
    a
}

fn bytes_of<V: Value>(element: V) -> Block {
    let mut block = Block::new();
    block.push(&[element]);
    block
}

/// Returns true for equal elements, and for two that do not equal themselves, such as NaN.
fn is_same<V: Value>(a: V, b: V) -> bool {
    a == b || !is_itself(&a) && !is_itself(&b)
}

/// Returns false for an element that does not equal itself, such as NaN.
#[expect(clippy::eq_op, reason = "what is asked for is whether it is equal to itself")]
fn is_itself<V: Value>(element: &V) -> bool {
    element == element
}

const SEED: u64 = 0x5a1e_95a1_7000_0006;
const TRIPLES: usize = if cfg!(miri) { 30 } else { 3_334 };

#[cfg(test)]
mod tests {
    crate::value_suite!(integers, i64, |random| random.bits() as i64);
    crate::value_suite!(floats, f32, |random| f32::from_bits(random.bits() as u32));
    crate::value_suite!(doubles, f64, |random| f64::from_bits(random.bits()));
    crate::value_suite!(even_floats, f32, |random| random.number(0..1_000) as f32 - 500.25);
}
