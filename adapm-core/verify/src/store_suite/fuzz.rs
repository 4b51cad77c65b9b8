//! Any sequence of calls leaves a store with the same slots as [`ReferenceStore`]: the fuzz form of
//! the store suite.
//!
//! [`store_fuzz`] is the plain function, for libFuzzer and for replaying its findings;
//! [`store_fuzz!`] makes a test of it that needs no fuzzer. Not here: several threads (the suite
//! and its loom form), and memory that a store has to return.
//!
//! [`store_fuzz!`]: crate::store_fuzz

use core::ops::Range;
use std::panic::{self, AssertUnwindSafe};

use adapm_core::id::{Key, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Slot, State};
use adapm_core::store::Store;
use adapm_core::value::Value;

use super::seen::{Seen, all, difference_of_visits, look};
use crate::ReferenceStore;
use crate::arb::Choices;

/// Expands to a test that runs [`store_fuzz`] on generated inputs, and prints the shortest that
/// fails as a line to paste.
///
/// Takes the test's name and the constructor, a function of a [`Layout`]. `ADAPM_FUZZ_INPUTS`
/// (defaults to 10,000) and `ADAPM_FUZZ_SEED` (defaults to 1) ask for more inputs, or others.
///
/// [`store_fuzz`]: crate::store_fuzz()
/// [`Layout`]: adapm_core::Layout
///
/// ```
/// adapm_verify::store_fuzz!(reference, crate::ReferenceStore::<f32>::new);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_fuzz {
    ($test:ident, $make:expr) => {
        $crate::outside_of_models! {
            #[test]
            fn $test() {
                $crate::store_suite::generated_inputs_find_nothing(stringify!($make), |layout| {
                    ($make)(layout)
                });
            }
        }
    };
}

/// Makes the calls chosen by `bytes` on the store of `make` and on the reference. Returns true if a
/// copy was held at least once.
///
/// The calls end with `bytes`; if these end within a call, its remaining choices are zero. So every
/// prefix of an input is an input, too.
///
/// # Panics
/// If a slot differs from the reference's: with the call, the key, and both contents.
pub fn store_fuzz<S>(bytes: &[u8], make: impl Fn(&Layout) -> S) -> bool
where
    S: Store<Value: From<i16>>,
{
    compare(bytes, &make).unwrap_or_else(|difference| panic!("{difference}"))
}

/// Runs [`store_fuzz`] on the inputs of a seed, half of them short.
///
/// # Panics
/// If an input fails, with the shortest one found; `make_text` is the source of the constructor.
/// Also if a variable is not a number.
pub fn generated_inputs_find_nothing<S>(make_text: &str, make: impl Fn(&Layout) -> S)
where
    S: Store<Value: From<i16>>,
{
    let seed = number("ADAPM_FUZZ_SEED", 1);
    let inputs = number("ADAPM_FUZZ_INPUTS", INPUTS);
    let mut deep = 0;
    for at in 0..inputs {
        let bytes = generate(seed, at);
        match verdict(&bytes, &make) {
            Ok(held) => deep += u64::from(held),
            Err(_) => {
                let (bytes, what) = minimise(bytes, &make);
                panic!(
                    "input {at} of seed {seed} fails, in short: {what}\n  again: \
                     crate::store_fuzz(&{bytes:?}, {make_text});"
                );
            }
        }
    }
    // The count shows that something was tested; the test runner captures it unless asked not to.
    eprintln!("{inputs} inputs of seed {seed}, a copy was held in {deep}");
    assert!(
        deep * 2 >= inputs,
        "{deep} of {inputs} inputs hold a copy: the generator has become too tame"
    );
}

/// Does what [`compare`] does; a panic of the store counts as a difference.
fn verdict<S>(bytes: &[u8], make: &impl Fn(&Layout) -> S) -> Result<bool, String>
where
    S: Store<Value: From<i16>>,
{
    panic::catch_unwind(AssertUnwindSafe(|| compare(bytes, make)))
        .unwrap_or_else(|_| Err(String::from("the store panicked, as said above")))
}

/// Returns the shortest failing input found, with its failure: cuts pieces out while that helps.
fn minimise<S>(mut bytes: Vec<u8>, make: &impl Fn(&Layout) -> S) -> (Vec<u8>, String)
where
    S: Store<Value: From<i16>>,
{
    let mut what = verdict(&bytes, make).err().unwrap_or_else(|| String::from("not every time"));
    let mut tries = TRIES_MAX;
    let mut piece = bytes.len() / 2;
    while piece > 0 {
        let (mut start, before) = (0, bytes.len());
        while start + piece <= bytes.len() && tries > 0 {
            let shorter = [&bytes[..start], &bytes[start + piece..]].concat();
            tries -= 1;
            match verdict(&shorter, make) {
                Ok(_) => start += piece,
                Err(difference) => (bytes, what) = (shorter, difference),
            }
        }
        // Pieces of one byte are tried again as long as one of them can be cut.
        if piece > 1 || bytes.len() == before {
            piece /= 2;
        }
    }
    (bytes, what)
}

fn generate(seed: u64, at: u64) -> Vec<u8> {
    let mut choices = Choices::from_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at);
    let bytes_max = if at.is_multiple_of(2) { 64 } else { 512 };
    let mut bytes = vec![0; choices.below(bytes_max) as usize + 16];
    bytes.iter_mut().for_each(|byte| *byte = choices.below(256) as u8);
    bytes
}

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number"))
}

fn compare<S>(bytes: &[u8], make: &impl Fn(&Layout) -> S) -> Result<bool, String>
where
    S: Store<Value: From<i16>>,
{
    let mut choices = Choices::from_bytes(bytes);
    let lens = [choices.below(4) as usize + 1, choices.below(70) as usize + 1];
    let layout = Layout::dense(&[(9, lens[0]), (7, lens[1])]).expect("the layout is legal");
    let pair = Pair {
        reference: ReferenceStore::new(&layout),
        store: make(&layout),
        end: layout.keys().end,
    };
    let mut held = false;
    while !choices.is_exhausted() {
        held |= pair.step(&mut choices)?;
    }
    pair.visit(Key(0)..pair.end)?;
    Ok(held)
}

/// The store under test beside its reference.
struct Pair<S: Store> {
    reference: ReferenceStore<S::Value>,
    store: S,
    end: Key,
}

impl<S: Store<Value: From<i16>>> Pair<S> {
    /// Makes one call to each store, and compares the key. Returns true if the call made a copy.
    fn step(&self, choices: &mut Choices<'_>) -> Result<bool, String> {
        let key = Key(choices.below(self.end.0));
        let choice = choices.below(8);
        let call = match choice {
            0..2 => {
                let with_delta = choices.flag();
                self.reference.reserve(key, with_delta);
                self.store.reserve(key, with_delta);
                format!("reserve({key}, {with_delta})")
            }
            2 => {
                self.reference.release(key);
                self.store.release(key);
                format!("release({key})")
            }
            3 => {
                let to = Key(choices.below(self.end.0 + 1));
                let keys = key.min(to)..key.max(to);
                self.visit(keys.clone())?;
                format!("visit({keys:?})")
            }
            4 => {
                self.reference.prefetch(key);
                self.store.prefetch(key);
                format!("prefetch({key})")
            }
            // Packed states here are arbitrary: pushes only where they fit the slot, as an engine
            // ensures.
            5 if self.reference.with_slot(key, |slot| is_sound(&slot)) => {
                let update: Vec<_> =
                    (1..=self.reference.value_len(key) as i16).map(S::Value::from).collect();
                let expected = self.reference.push(key, &update);
                let pushed = self.store.push(key, &update);
                if pushed != expected {
                    return Err(format!("push to {key} is {pushed:?}, it must be {expected:?}"));
                }
                format!("push to {key}")
            }
            _ => {
                let writing = Writing::new(choices);
                self.reference.with_slot(key, |slot| writing.write(slot));
                self.store.with_slot(key, |slot| writing.write(slot));
                format!("writing to the slot of {key}")
            }
        };
        let expected = self.reference.with_slot(key, Seen::of);
        match look(&self.store, key).difference(&expected) {
            None => Ok(choice < 2),
            Some(difference) => Err(format!("after {call}, {key} has {difference}")),
        }
    }

    fn visit(&self, keys: Range<Key>) -> Result<(), String> {
        let (expected, found) =
            (all(&self.reference, keys.clone()), all(&self.store, keys.clone()));
        difference_of_visits(&keys, &found, &expected).map_or(Ok(()), Err)
    }
}

/// Returns true if the slot's content matches its packed state.
fn is_sound<V: Value>(slot: &Slot<'_, V>) -> bool {
    match slot.packed.state() {
        State::Main => !slot.value.is_empty(),
        State::Replica => !slot.value.is_empty() && !slot.delta.is_empty(),
        State::None | State::Requested | State::Releasing => true,
    }
}

/// A caller's writes to a slot: always the packed state; version, value and delta where a copy is
/// held.
struct Writing {
    packed: PackedState,
    version: Version,
    first: i16,
}

impl Writing {
    fn new(choices: &mut Choices<'_>) -> Self {
        let packed = PackedState::from_bits(if choices.flag() { choices.word() } else { 0 });
        Self { packed, version: Version(choices.number()), first: choices.below(256) as i16 }
    }

    fn write<V: Value + From<i16>>(&self, slot: Slot<'_, V>) {
        *slot.packed = self.packed;
        // The version of an absent copy is not kept by every store.
        if !slot.value.is_empty() {
            *slot.version = self.version;
        }
        for (element, number) in slot.value.iter_mut().chain(slot.delta).zip(self.first..) {
            *element = V::from(number);
        }
    }
}

/// Default number of inputs of one test.
const INPUTS: u64 = 10_000;
/// Number of inputs that are tried on the way to a shorter one.
const TRIES_MAX: usize = 2_000;
