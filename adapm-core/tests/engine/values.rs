//! The value suite on types that break one law each: its report names the law and the elements.

use std::panic::{self, AssertUnwindSafe};

use adapm_core::Value;
use adapm_verify::rng::Rng;
use adapm_verify::{value_suite, value_suite as suite};

/// Declares an element of 8 bytes with this sum.
macro_rules! element {
    ($name:ident, $text:literal, |$a:ident, $b:ident| $sum:expr $(, magnitude $magnitude:expr)?) => {
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
        struct $name(i64);

        impl Value for $name {
            const NAME: &'static str = $text;

            fn accumulate(&mut self, update: Self) {
                let ($a, $b) = (self.0, update.0);
                self.0 = $sum;
            }

            $(fn magnitude(self) -> f64 {
                let magnitude: fn(i64) -> f64 = $magnitude;
                magnitude(self.0)
            })?
        }
    };
}

element!(Sound, "saturating", |a, b| a.saturating_add(b).min(1 << 40), magnitude | a | a as f64);
value_suite!(a_sound_type_passes, Sound, |random| Sound(random.number(0..1 << 40) as i64));

element!(Latest, "latest", |a, b| if b == 0 { a } else { b });
element!(Mean, "mean", |a, b| match (a, b) {
    (0, sum) | (sum, 0) => sum,
    (a, b) => a.midpoint(b),
});
element!(Largest, "largest", |a, b| a.max(b));
element!(Signed, "signed", |a, b| a.wrapping_add(b), magnitude | a | a as f64);
element!(Undefined, "undefined", |a, b| a.wrapping_add(b), magnitude | a | 1.0 / a as f64 * 0.0);
element!(Offset, "offset", |a, b| a.wrapping_add(b), magnitude | _ | 1.0);
element!(Borrowed, "f64", |a, b| a.wrapping_add(b));
element!(Nameless, " ", |a, b| a.wrapping_add(b));

/// A product: the default is 1.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
struct Product(i64);

impl Default for Product {
    fn default() -> Self {
        Self(1)
    }
}

impl Value for Product {
    const NAME: &'static str = "product";

    fn accumulate(&mut self, update: Self) {
        self.0 = self.0.wrapping_mul(update.0);
    }
}

/// An element that equals only itself in place, like a handle of something outside of it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Zeroable, bytemuck::Pod)]
struct Handle(i64);

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Value for Handle {
    const NAME: &'static str = "handle";

    fn accumulate(&mut self, update: Self) {
        self.0 = self.0.wrapping_add(update.0);
    }
}

/// A rounded element that does not say so.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
struct Rounded(f32);

impl Value for Rounded {
    const NAME: &'static str = "rounded";

    fn accumulate(&mut self, update: Self) {
        self.0 += update.0;
    }
}

/// A rounded element with errors beyond the last digits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
struct Coarse(f32);

impl Value for Coarse {
    const NAME: &'static str = "coarse";
    const ROUNDS: bool = true;

    fn accumulate(&mut self, update: Self) {
        if self.0 == 0.0 || update.0 == 0.0 {
            self.0 += update.0;
        } else {
            self.0 = ((self.0 + update.0) / 1_000.0).round() * 1_000.0;
        }
    }

    fn magnitude(self) -> f64 {
        f64::from(self.0.abs())
    }
}

/// Returns the text with which the law fails.
fn fault(law: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(law)).expect_err("the law must be broken");
    payload.downcast_ref::<String>().expect("a fault is a text").clone()
}

fn number(random: &mut Rng) -> i64 {
    random.number(0..2_000) as i64 - 1_000
}

#[test]
fn sums_that_do_not_commute_are_named() {
    let text = fault(|| suite::sums_commute(|random| Latest(number(random))));
    assert!(text.contains("latest: sums do not commute: Latest("), "{text}");
}

#[test]
fn sums_that_do_not_associate_are_named() {
    let text = fault(|| suite::sums_associate(|random| Mean(number(random))));
    assert!(text.contains("mean: sums do not associate: (Mean("), "{text}");
}

#[test]
fn sums_that_are_rounded_are_told_to_say_so_and_may_not_be_far_off() {
    let draw = |random: &mut Rng| number(random) as f32 * 1.1;
    let text = fault(|| suite::sums_associate(|random| Rounded(draw(random))));
    assert!(text.contains("rounded: ") && text.contains("say so by `ROUNDS`"), "{text}");
    let text = fault(|| suite::sums_associate(|random| Coarse(draw(random))));
    assert!(text.contains("coarse: sums do not associate: (Coarse("), "{text}");
    suite::sums_associate(draw);
}

#[test]
fn a_neutral_element_that_is_not_zero_bytes_is_named() {
    let text = fault(|| suite::zero_bytes_change_nothing(|random| Largest(number(random))));
    assert!(text.contains("largest: zero bytes change something: a + zero is"), "{text}");
    let text = fault(|| suite::zero_bytes_change_nothing(|random| Product(number(random))));
    assert!(text.contains("product: the default Product(1) is [1, 0"), "{text}");
}

#[test]
fn an_element_that_is_more_than_its_bytes_is_named() {
    let text = fault(|| suite::bytes_make_a_round_trip(|random| Handle(number(random))));
    assert!(text.contains("handle: bytes do not make a round trip: Handle("), "{text}");
}

#[test]
fn magnitudes_that_are_no_sizes_are_named() {
    let text = fault(|| suite::magnitudes_are_sizes(|random| Signed(number(random))));
    assert!(text.contains("signed: magnitude of Signed(-"), "{text}");
    let text = fault(|| suite::magnitudes_are_sizes(|random| Undefined(number(random))));
    assert!(text.contains("undefined: magnitude of ") && text.contains("is NaN"), "{text}");
    let text = fault(|| suite::magnitudes_are_sizes(|random| Offset(number(random))));
    assert!(text.contains("offset: magnitude of the default Offset(0) is 1"), "{text}");
}

#[test]
fn a_name_that_is_another_types_or_none_is_named() {
    let text = fault(|| suite::the_name_is_its_own(|random| Borrowed(number(random))));
    assert!(text.contains("\"f64\"") && text.contains("is that of another type"), "{text}");
    let text = fault(|| suite::the_name_is_its_own(|random| Nameless(number(random))));
    assert!(text.contains("is no line of text"), "{text}");
}
