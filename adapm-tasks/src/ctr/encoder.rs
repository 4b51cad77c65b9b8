//! From words and numbers of a file to keys: a dictionary of the features that train has, or a
//! hash; and what numbers are divided by.
//!
//! | dictionary | hash |
//! | --- | --- |
//! | the keys of a field are one for all that is rare or unknown, then one a feature, in the order in which train has them | a feature has the key that its field and its name hash to, whether train has it or not |

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::ctr::examples::{Feature, Findings};
use crate::ctr::form::{Form, Numeric};
use crate::run::Digest;

/// How the lines of a file become examples, the same for training and for all that a model is
/// asked later. A part of the head of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    /// The form of lines.
    pub(crate) form: Form,
    pub(crate) numeric: Numeric,
    /// Bits of a hash; `None`: there is a dictionary.
    pub(crate) hash_bits: Option<u32>,
    /// Fields of features, in order.
    pub(crate) fields: Vec<Field>,
    /// Columns of numbers, in order.
    pub(crate) numbers: Vec<Scale>,
}

/// A field, with the features that have a key of their own; none if features are hashed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
}

/// A column of numbers: mean and deviation of train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scale {
    pub(crate) name: String,
    pub(crate) mean: f32,
    pub(crate) deviation: f32,
}

impl Scale {
    /// Returns that of a column before its mean and deviation are known.
    pub(crate) fn new(name: String) -> Self {
        Self { name, mean: 0.0, deviation: 1.0 }
    }

    /// Determines mean and deviation of all columns; NaN is missing.
    pub(crate) fn fit(scales: &mut [Self], numbers: &[f32]) {
        let width = scales.len();
        for (at, scale) in scales.iter_mut().enumerate() {
            let of = || numbers.iter().skip(at).step_by(width).filter(|number| !number.is_nan());
            let count = of().count().max(1) as f64;
            let mean = of().map(|number| f64::from(*number)).sum::<f64>() / count;
            let squares = of().map(|number| (f64::from(*number) - mean).powi(2)).sum::<f64>();
            let deviation = (squares / count).sqrt() as f32;
            // A column of one number says nothing.
            scale.deviation = if deviation > 0.0 { deviation } else { 1.0 };
            scale.mean = mean as f32;
        }
    }

    /// Scales all columns; what is missing becomes the mean, 0.
    pub(crate) fn apply(scales: &[Self], numbers: &mut [f32]) {
        for row in numbers.chunks_mut(scales.len().max(1)) {
            for (number, Self { mean, deviation, .. }) in row.iter_mut().zip(scales) {
                *number = if number.is_nan() { 0.0 } else { (*number - mean) / deviation };
            }
        }
    }
}

impl Encoder {
    /// Returns the number of keys of features.
    pub(crate) fn keys(&self) -> u64 {
        match self.hash_bits {
            Some(bits) => 1 << bits,
            None => self.fields.iter().map(|field| 1 + field.features.len() as u64).sum(),
        }
    }

    /// Names the feature of a key.
    pub(crate) fn name_of(&self, mut key: u64) -> String {
        if let Some(bits) = self.hash_bits {
            return format!("features of hash {key:0width$x}", width = bits.div_ceil(4) as usize);
        }
        for Field { name, features } in &self.fields {
            match key.checked_sub(1 + features.len() as u64) {
                Some(rest) => key = rest,
                None if key == 0 => return format!("rare and unknown {name}"),
                None => return format!("{name} {}", features[key as usize - 1]),
            }
        }
        format!("key {key}")
    }

    /// Returns the keys of the fields' features: what is needed to encode.
    pub(crate) fn lookup(&self) -> Lookup {
        let mut next = 0;
        let fields = self.fields.iter().map(|field| {
            let first = next;
            next += 1 + field.features.len() as u32;
            let keys = (first + 1..).zip(&field.features);
            (first, keys.map(|(key, name)| (name.as_bytes().into(), key)).collect())
        });
        Lookup { fields: fields.collect(), hash_bits: self.hash_bits }
    }
}

/// Numbers by name.
type Names = HashMap<Box<[u8]>, u32, RandomState>;

/// Keys by field and name.
#[derive(Debug)]
pub(crate) struct Lookup {
    fields: Vec<(u32, Names)>,
    hash_bits: Option<u32>,
}

impl Lookup {
    /// Returns a feature's key; `None` if there is no such field.
    pub(crate) fn find(&self, field: usize, name: &[u8]) -> Option<u32> {
        let (first, keys) = self.fields.get(field)?;
        Some(match self.hash_bits {
            Some(bits) => hash(field, name, bits),
            None => keys.get(name).copied().unwrap_or(*first),
        })
    }

    /// Returns true if the key is that of all features of the field without one of their own.
    pub(crate) fn is_shared(&self, field: usize, key: u32) -> bool {
        let first = self.fields.get(field).map(|(first, _)| *first);
        self.hash_bits.is_none() && first == Some(key)
    }
}

/// The features of train while it is read, in the order in which they come.
#[derive(Debug)]
pub(crate) struct Dictionary {
    hash_bits: Option<u32>,
    by_name: Vec<Names>,
    /// Field of each feature.
    fields: Vec<u32>,
}

impl Dictionary {
    pub(crate) fn new(hash_bits: Option<u32>) -> Self {
        Self { hash_bits, by_name: Vec::new(), fields: Vec::new() }
    }

    /// Returns the key of a feature if keys are hashed, else a preliminary one; `None` if there are
    /// too many.
    pub(crate) fn add(&mut self, field: usize, name: &[u8]) -> Option<u32> {
        if self.by_name.len() <= field {
            self.by_name.resize_with(field + 1, HashMap::default);
        }
        if let Some(bits) = self.hash_bits {
            return Some(hash(field, name, bits));
        }
        if let Some(number) = self.by_name[field].get(name) {
            return Some(*number);
        }
        // Below the largest number with room for one key more of each field.
        let number = u32::try_from(self.fields.len()).ok().filter(|n| *n < FEATURES_MAX)?;
        self.by_name[field].insert(name.into(), number);
        self.fields.push(field as u32);
        Some(number)
    }

    /// Gives the features that occur in train, the first `train` examples, at least `min_count`
    /// times the keys that they keep, and all others those of their fields. Returns the fields, at
    /// least `wanted`, whose names `name` knows.
    pub(crate) fn settle(
        self,
        min_count: u64,
        wanted: usize,
        (starts, features): (&[u64], &mut [Feature]),
        train: usize,
        name: impl Fn(usize) -> String,
    ) -> (Vec<Field>, Findings) {
        let names = (0..self.by_name.len().max(wanted)).map(name);
        let mut fields: Vec<Field> =
            names.map(|name| Field { name, features: Vec::new() }).collect();
        if self.hash_bits.is_some() {
            return (fields, Findings::default());
        }
        let mut counts = vec![0_u64; self.fields.len()];
        let trained = starts[train] as usize;
        features[..trained].iter().for_each(|feature| counts[feature.key as usize] += 1);
        let mut by_number: BTreeMap<u32, Box<[u8]>> = BTreeMap::new();
        let keeps = |number: u32| counts[number as usize] >= min_count.max(1);
        for names in self.by_name {
            by_number.extend(
                names.into_iter().map(|(name, number)| (number, name)).filter(|(n, _)| keeps(*n)),
            );
        }
        let mut places = vec![None; self.fields.len()];
        for (number, name) in by_number {
            let field = &mut fields[self.fields[number as usize] as usize];
            field.features.push(String::from_utf8_lossy(&name).into_owned());
            places[number as usize] = Some(field.features.len() as u32);
        }
        let mut first = 0;
        let firsts: Vec<u32> = fields
            .iter()
            .map(|field| {
                let own = first;
                first += 1 + field.features.len() as u32;
                own
            })
            .collect();
        let mut findings = Findings::default();
        for (at, feature) in features.iter_mut().enumerate() {
            let number = feature.key as usize;
            if places[number].is_none() {
                let is_unknown = counts[number] == 0;
                let count = if is_unknown { &mut findings.unknown } else { &mut findings.rare };
                *count += u64::from(is_unknown || at < trained);
            }
            feature.key = firsts[feature.field as usize] + places[number].unwrap_or(0);
        }
        (fields, findings)
    }
}

/// Returns the key of a feature among 2^bits.
fn hash(field: usize, name: &[u8], bits: u32) -> u32 {
    let mut digest = Digest::new();
    digest.word(field as u64);
    digest.bytes(name);
    (digest.sum().wrapping_mul(SPREAD) >> (64 - bits)) as u32
}

/// Odd, so that sums that differ stay different; about 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Features that are supported.
const FEATURES_MAX: u32 = u32::MAX - (1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_features_have_keys_and_rare_and_unknown_ones_share_one_a_field() {
        let mut dictionary = Dictionary::new(None);
        let rows = [["a", "x"], ["b", "x"], ["a", "y"], ["c", "z"]];
        let mut features = Vec::new();
        for row in rows {
            for (field, name) in row.into_iter().enumerate() {
                let key = dictionary.add(field, name.as_bytes()).expect("there is room");
                features.push(Feature { key, field: field as u32, value: 1.0 });
            }
        }
        // The last example is not of train.
        let name = |field: usize| ["first", "second"][field].to_owned();
        let all = (&[0, 2, 4, 6, 8][..], features.as_mut_slice());
        let (fields, findings) = dictionary.settle(2, 2, all, 3, name);
        let keys: Vec<u32> = features.iter().map(|feature| feature.key).collect();
        assert_eq!(keys, [1, 3, 0, 3, 1, 2, 0, 2]);
        assert_eq!(findings, Findings { rare: 2, unknown: 2, keyless: 0 });
        let encoder = Encoder { fields, ..Encoder::default() };
        assert_eq!(encoder.keys(), 4);
        let names: Vec<String> = (0..5).map(|key| encoder.name_of(key)).collect();
        let expected =
            ["rare and unknown first", "first a", "rare and unknown second", "second x", "key 0"];
        assert_eq!(names, expected);
        let lookup = encoder.lookup();
        assert_eq!(lookup.find(1, b"x"), Some(3));
        assert_eq!(lookup.find(0, b"x"), Some(0));
        assert_eq!(lookup.find(2, b"x"), None);
    }

    #[test]
    fn hashed_features_have_the_same_key_in_training_and_later() {
        let (mut dictionary, bits) = (Dictionary::new(Some(10)), Some(10));
        let fields = vec![Field::default(); 7];
        let encoder = Encoder { hash_bits: bits, fields, ..Encoder::default() };
        let lookup = encoder.lookup();
        assert_eq!(encoder.keys(), 1024);
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..200 {
            let name = format!("v{number}");
            let key = dictionary.add(number % 7, name.as_bytes()).expect("hashes always have keys");
            assert_eq!(lookup.find(number % 7, name.as_bytes()), Some(key));
            assert!(key < 1024);
            seen.insert(key);
        }
        assert!(seen.len() > 150, "hashes are spread: {}", seen.len());
        // The hash is part of the form of models: it stays as it is.
        assert_eq!(hash(3, b"adapm", 16), HASHED);
    }

    const HASHED: u32 = 28267;
}
