//! Generated clicks, of which it is known how well they can be predicted.
//!
//! ```text
//!   logit = bias + sum over fields of w[f, v]         v: the feature of field f, by Zipf's law
//!           + sum over two pairs of fields of <u[f, v], u[g, v']>
//! ```
//!
//! Weights and vectors have mean 0 under that law, so the pairs are nothing to a linear model; they
//! are larger for frequent features, as rare ones can be learnt from too few examples.

use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal, Zipf};

use crate::ctr::encoder::{Encoder, Field};
use crate::ctr::examples::{Examples, Feature, Gathered, HELD_FEATURES_MAX};
use crate::data::bytes;
use crate::metric::{Auc, ClickMetrics};
use crate::run::config::whole;
use crate::run::{Digest, TaskError, generator};

/// Sizes of generated clicks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SyntheticConfig {
    /// The seed of all that is drawn.
    pub seed: u64,
    /// Examples to train on.
    pub examples: u64,
    /// Examples to report on; half as many are there to select on.
    pub test_examples: u64,
    /// Features of all 26 fields; the first field has a quarter of them, each next one three
    /// quarters of the one before.
    pub features: u64,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self { seed: 1, examples: 1_000_000, test_examples: 50_000, features: 200_000 }
    }
}

/// The best that is possible on generated examples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Optimum {
    /// By the probabilities that labels were drawn with (Bayes).
    pub(crate) best: ClickMetrics,
    /// The AUC of the weights of features alone: what a linear model can reach.
    pub(crate) linear_auc: f64,
}

/// Generated clicks.
pub(crate) struct Generated {
    pub(crate) examples: Examples,
    /// The ends of train, valid and test.
    pub(crate) ends: [usize; 3],
    pub(crate) encoder: Encoder,
    pub(crate) optimum: Optimum,
    pub(crate) digest: u64,
}

/// The model behind generated clicks.
struct Planted {
    fields: Vec<PlantedField>,
}

struct PlantedField {
    law: Zipf<f64>,
    /// Weight of each feature.
    weights: Vec<f32>,
    /// Vector of each feature, scaled for the products of pairs.
    vectors: Vec<[f32; FACTORS]>,
}

/// Generates clicks.
///
/// # Errors
///
/// Sizes that there cannot be, and a temporary file that cannot be read.
pub(crate) fn generate(config: SyntheticConfig) -> Result<Generated, TaskError> {
    whole("examples", config.examples, 1, EXAMPLES_MAX)?;
    whole("test_examples", config.test_examples, 2, EXAMPLES_MAX)?;
    whole("features", config.features, 1_000, FEATURES_MAX)?;
    let planted = Planted::new(config);
    let firsts: Vec<u32> = planted.firsts().collect();
    let (train, test) = (config.examples as usize, config.test_examples as usize);
    let valid = test.div_ceil(2);
    let mut gathered = Gathered::new(0, HELD_FEATURES_MAX);
    let (mut scores, mut linear) = (Vec::with_capacity(test), Vec::with_capacity(test));
    let mut labels = Vec::with_capacity(test);
    for row in 0..train + valid + test {
        let mut random = generator(config.seed, [EXAMPLE, row as u64]);
        let drawn: Vec<usize> =
            planted.fields.iter().map(|field| field.law.sample(&mut random) as usize - 1).collect();
        let (weights, pairs) = planted.logit(&drawn);
        let logit = BIAS + weights + pairs;
        let label = random.random::<f64>() < 1.0 / (1.0 + (-f64::from(logit)).exp());
        let feature = |(field, (value, first)): (usize, (&usize, &u32))| Feature {
            key: first + 1 + *value as u32,
            field: field as u32,
            value: 1.0,
        };
        let features: Vec<Feature> = drawn.iter().zip(&firsts).enumerate().map(feature).collect();
        gathered.push(label, &features, &[]);
        if row >= train + valid {
            scores.push(logit);
            linear.push(weights);
            labels.push(label);
        }
    }
    let temporary = |error| TaskError::Data(bytes::failure(&std::env::temp_dir(), &error));
    let examples = gathered.finish(|_, _| {}, |_| {}).map_err(temporary)?;
    let optimum = Optimum {
        best: ClickMetrics::of(&scores, &labels),
        linear_auc: Auc::of(&linear, labels.iter().copied()).auc,
    };
    let mut digest = Digest::new();
    let sizes = [config.seed, config.examples, config.test_examples, config.features];
    sizes.into_iter().for_each(|size| digest.word(size));
    let ends = [train, train + valid, train + valid + test];
    Ok(Generated { examples, ends, encoder: planted.encoder(), optimum, digest: digest.sum() })
}

impl Planted {
    fn new(config: SyntheticConfig) -> Self {
        let shares: Vec<f64> = (0..FIELDS).map(|field| SHRINK.powi(field as i32)).collect();
        let of_all = config.features as f64 / shares.iter().sum::<f64>();
        let counts = shares.iter().map(|share| ((share * of_all).ceil() as usize).max(2));
        let mut fields: Vec<PlantedField> = counts
            .enumerate()
            .map(|(field, count)| PlantedField::new(config.seed, field, count))
            .collect();
        let mains: f64 = fields.iter().map(PlantedField::variance).sum();
        let scale = (MAIN_VARIANCE / mains).sqrt() as f32;
        for field in &mut fields {
            field.weights.iter_mut().for_each(|weight| *weight *= scale);
        }
        let pairs: f64 = fields
            .chunks(2)
            .map(|pair| (0..FACTORS).map(|k| pair[0].moment(k) * pair[1].moment(k)).sum::<f64>())
            .sum();
        // Both vectors of a product are scaled.
        let scale = (PAIR_VARIANCE / pairs).powf(0.25) as f32;
        for field in &mut fields {
            field.vectors.iter_mut().flatten().for_each(|element| *element *= scale);
        }
        Self { fields }
    }

    /// Returns the parts of a logit of the weights and of the pairs.
    fn logit(&self, drawn: &[usize]) -> (f32, f32) {
        let weights = self.fields.iter().zip(drawn).map(|(field, at)| field.weights[*at]).sum();
        let vectors: Vec<_> =
            self.fields.iter().zip(drawn).map(|(field, at)| field.vectors[*at]).collect();
        let product = |pair: &[[f32; FACTORS]]| {
            pair[0].iter().zip(&pair[1]).map(|(left, right)| left * right).sum::<f32>()
        };
        (weights, vectors.chunks(2).map(product).sum())
    }

    /// Returns the key of each field's rare features, as an encoder has it.
    fn firsts(&self) -> impl Iterator<Item = u32> {
        self.fields.iter().scan(0, |next, field| {
            let first = *next;
            *next += 1 + field.weights.len() as u32;
            Some(first)
        })
    }

    fn encoder(&self) -> Encoder {
        let field = |(at, field): (usize, &PlantedField)| Field {
            name: format!("C{}", at + 1),
            features: (0..field.weights.len()).map(|value| value.to_string()).collect(),
        };
        Encoder {
            fields: self.fields.iter().enumerate().map(field).collect(),
            ..Encoder::default()
        }
    }
}

impl PlantedField {
    fn new(seed: u64, field: usize, count: usize) -> Self {
        let law = Zipf::new(count as f64, EXPONENT).expect("a positive number of features");
        let mut random = generator(seed, [MODEL, field as u64]);
        let is_paired = field >= FIELDS - PAIRED;
        let mut draw = |rank: usize| {
            let normal: f32 = StandardNormal.sample(&mut random);
            normal / (1.0 + rank as f32 / FREQUENT).powf(1.5)
        };
        let weights = (0..count).map(&mut draw).collect();
        let vectors = (0..count)
            .map(|rank| [0; FACTORS].map(|_| if is_paired { draw(rank) } else { 0.0 }))
            .collect();
        let mut planted = Self { law, weights, vectors };
        let mean = planted.mean(|field, rank| f64::from(field.weights[rank])) as f32;
        planted.weights.iter_mut().for_each(|weight| *weight -= mean);
        for k in 0..FACTORS {
            let mean = planted.mean(|field, rank| f64::from(field.vectors[rank][k])) as f32;
            planted.vectors.iter_mut().for_each(|vector| vector[k] -= mean);
        }
        planted
    }

    /// Returns the mean over the law of the field's features.
    fn mean(&self, of: impl Fn(&Self, usize) -> f64) -> f64 {
        let weight = |rank: usize| (rank as f64 + 1.0).powf(-EXPONENT);
        let all: f64 = (0..self.weights.len()).map(weight).sum();
        (0..self.weights.len()).map(|rank| weight(rank) * of(self, rank)).sum::<f64>() / all
    }

    fn variance(&self) -> f64 {
        self.mean(|field, rank| f64::from(field.weights[rank]).powi(2))
    }

    /// Returns the mean square of an element of vectors.
    fn moment(&self, k: usize) -> f64 {
        self.mean(|field, rank| f64::from(field.vectors[rank][k]).powi(2))
    }
}

/// Fields, an even number.
const FIELDS: usize = 26;
/// Features of a field, per feature of the one before.
const SHRINK: f64 = 0.75;
/// The exponent of Zipf's law.
const EXPONENT: f64 = 1.1;
/// Elements of the vectors whose products are summed.
const FACTORS: usize = 2;
/// Fields that are in pairs: the last ones, which have the fewest features.
const PAIRED: usize = 4;
/// The rank from which on the effects of features shrink.
const FREQUENT: f32 = 3.0;
/// The variances of the two parts of logits, and their mean.
const MAIN_VARIANCE: f64 = 1.0;
const PAIR_VARIANCE: f64 = 1.0;
const BIAS: f32 = -1.0;
/// Sizes that are supported.
const EXAMPLES_MAX: u64 = 1 << 31;
const FEATURES_MAX: u64 = 1 << 30;
/// Purposes of generators.
const EXAMPLE: u64 = 1;
const MODEL: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_as_the_task_wants_it_and_a_linear_model_falls_behind() {
        let config = SyntheticConfig { examples: 1_000, ..SyntheticConfig::default() };
        let generated = generate(config).expect("makes sense");
        let Optimum { best, linear_auc } = generated.optimum;
        assert!((0.78..0.84).contains(&best.auc), "{}", best.auc);
        assert!(linear_auc < best.auc - 0.02, "{linear_auc} {}", best.auc);
        assert!((best.calibration - 1.0).abs() < 0.03, "{}", best.calibration);
        assert!(generated.encoder.keys() >= 200_000);
        let of = |row| generated.examples.features(row).iter().map(|feature| feature.key);
        assert!((0..1_000).all(|row| of(row).is_sorted() && of(row).len() == FIELDS));
    }
}
