//! The three models: logits of examples, and the gradients of all that they follow from.
//!
//! ```text
//!   features --sum by field--> [e_1 | ... | e_F | numbers] --> perceptron --+
//!            \                          |-- cross layers, or pairs ---------+--> logit
//!             +--weights-----------------------------------------------------+
//! ```
//!
//! The embedding of a field is the sum of those of its features, each times its value: a field may
//! have several features in an example, or none.

use crate::ctr::config::{Model, TrainConfig};
use crate::dense::{Cross, CrossPass, Dropout, Perceptron, PerceptronPass, add_scaled, inner};
use crate::run::Tensor;

/// A model for examples with so many fields and numbers.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    model: Model,
    fields: usize,
    numbers: usize,
    dim: usize,
    perceptron: Perceptron,
    cross: Cross,
}

/// A feature of an example, by the place of its value among those that were pulled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed {
    pub(crate) place: u32,
    pub(crate) field: u32,
    pub(crate) value: f32,
}

/// Examples, and the values of their features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    /// The start of each example's features; one more.
    pub(crate) starts: &'a [u32],
    pub(crate) features: &'a [Placed],
    /// Numbers of all examples, one after the other.
    pub(crate) numbers: &'a [f32],
    /// Values of features: weight, embedding, and maybe more.
    pub(crate) values: &'a [f32],
    /// Floats of each.
    pub(crate) value_len: usize,
}

/// What a forward pass leaves for the backward one. Used again by the next pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    inputs: Vec<f32>,
    input_slopes: Vec<f32>,
    /// Sums of the embeddings of all fields, by example.
    sums: Vec<f32>,
    perceptron: PerceptronPass,
    cross: CrossPass,
    cross_slopes: Vec<f32>,
    logits: Vec<f32>,
}

impl<'a> Rows<'a> {
    fn len(self) -> usize {
        self.starts.len() - 1
    }

    fn features(self, row: usize) -> &'a [Placed] {
        &self.features[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    fn value(self, feature: Placed) -> &'a [f32] {
        &self.values[feature.place as usize * self.value_len..]
    }
}

impl Network {
    /// Returns the model of these settings.
    pub(crate) fn new(config: &TrainConfig, fields: usize, numbers: usize) -> Self {
        let width = fields * config.dim + numbers;
        let layers = if config.model == Model::DeepCross { config.cross_layers } else { 0 };
        Self {
            model: config.model,
            fields,
            numbers,
            dim: config.dim,
            perceptron: Perceptron::new(width, &config.hidden.0, 1),
            cross: Cross { width, layers },
        }
    }

    /// Returns the floats of a feature's weight and embedding.
    pub(crate) fn feature_len(&self) -> usize {
        1 + self.dim
    }

    /// Returns the number of parameters beside those of features: of the perceptron, of the cross
    /// layers, and the weights of what these put out.
    pub(crate) fn parameters(&self) -> usize {
        let outputs = if self.model == Model::DeepCross { self.cross.width } else { 0 };
        self.perceptron.parameters() + self.cross.parameters() + outputs
    }

    /// Returns the tensors of the parameters: of so many features, each its weight and its
    /// embedding, and of the layers.
    pub(crate) fn tensors(&self, features: u64) -> Vec<Tensor> {
        let mut tensors = vec![Tensor::new("features", features, self.feature_len())];
        tensors.extend(self.perceptron.tensors("deep"));
        if self.model == Model::DeepCross {
            let Cross { width, layers } = self.cross;
            let of_layer = |at| {
                ["weights", "biases"]
                    .map(|kind| Tensor::new(format!("cross.{at}.{kind}"), 1, width))
            };
            tensors.extend((1..=layers).flat_map(of_layer));
            tensors.push(Tensor::new("cross.outputs", 1, width));
        }
        tensors
    }

    /// Returns the bound of the initial value of a parameter, which is drawn uniformly.
    pub(crate) fn bound(&self, parameter: usize) -> f32 {
        match parameter.checked_sub(self.perceptron.parameters()) {
            None => self.perceptron.bound(parameter),
            // Biases of cross layers begin at 0; the others are weights of as many inputs.
            Some(at) => {
                let width = self.cross.width;
                let is_bias = at < self.cross.parameters() && at / width % 2 == 1;
                if is_bias { 0.0 } else { (1.0 / width as f32).sqrt() }
            }
        }
    }

    /// Computes the logits of all rows; `dropout` in training.
    pub(crate) fn forward<'p>(
        &self,
        parameters: &[f32],
        rows: Rows<'_>,
        dropout: Option<Dropout>,
        pass: &'p mut Pass,
    ) -> &'p [f32] {
        self.gather(rows, pass);
        let Pass { inputs, logits, .. } = pass;
        let (own, rest) = parameters.split_at(self.perceptron.parameters());
        let deep = self.perceptron.forward(own, inputs, rows.len(), dropout, &mut pass.perceptron);
        logits.iter_mut().zip(deep).for_each(|(logit, deep)| *logit += deep);
        match self.model {
            Model::WideDeep => {}
            Model::DeepCross => {
                let (layers, weights) = rest.split_at(self.cross.parameters());
                let crossed = self.cross.forward(layers, inputs, &mut pass.cross);
                let crossed = crossed.chunks(self.cross.width);
                logits
                    .iter_mut()
                    .zip(crossed)
                    .for_each(|(logit, row)| *logit += inner(row, weights));
            }
            Model::DeepFm => {
                let examples = inputs.chunks(self.cross.width).zip(pass.sums.chunks(self.dim));
                for (logit, (input, sum)) in logits.iter_mut().zip(examples) {
                    let embeddings = &input[..self.fields * self.dim];
                    *logit += 0.5 * (inner(sum, sum) - inner(embeddings, embeddings));
                }
            }
        }
        logits
    }

    /// Lays out the inputs of all rows, and begins their logits with the weights of features.
    fn gather(&self, rows: Rows<'_>, pass: &mut Pass) {
        let (width, dim) = (self.cross.width, self.dim);
        pass.inputs.clear();
        pass.inputs.resize(rows.len() * width, 0.0);
        pass.logits.clear();
        pass.sums.clear();
        for (row, input) in pass.inputs.chunks_mut(width).enumerate() {
            let mut logit = 0.0;
            for feature in rows.features(row) {
                let (value, from) = (rows.value(*feature), feature.field as usize * dim);
                logit += feature.value * value[0];
                add_scaled(&mut input[from..from + dim], feature.value, &value[1..=dim]);
            }
            let (embeddings, numbers) = input.split_at_mut(self.fields * dim);
            numbers.copy_from_slice(&rows.numbers[row * self.numbers..(row + 1) * self.numbers]);
            pass.logits.push(if self.has_weights() { logit } else { 0.0 });
            if self.model == Model::DeepFm {
                let from = pass.sums.len();
                pass.sums.resize(from + dim, 0.0);
                let sum = &mut pass.sums[from..];
                embeddings.chunks(dim).for_each(|embedding| add_scaled(sum, 1.0, embedding));
            }
        }
    }

    /// Returns true if features have weights beside their embeddings.
    pub(crate) fn has_weights(&self) -> bool {
        self.model != Model::DeepCross
    }

    /// Adds the gradients of the parameters to `gradients`, and those of each feature's weight and
    /// embedding to `of_features`, for these slopes of the logits of the last forward pass.
    pub(crate) fn backward(
        &self,
        parameters: &[f32],
        rows: Rows<'_>,
        slopes: &[f32],
        pass: &mut Pass,
        gradients: &mut [f32],
        of_features: &mut [f32],
    ) {
        let Pass { inputs, input_slopes, .. } = pass;
        let width = self.cross.width;
        input_slopes.clear();
        input_slopes.resize(inputs.len(), 0.0);
        let own = self.perceptron.parameters();
        let (of_own, of_rest) = gradients.split_at_mut(own);
        let own_parameters = &parameters[..own];
        let deep = &mut pass.perceptron;
        self.perceptron.backward(own_parameters, inputs, slopes, deep, of_own, input_slopes);
        match self.model {
            Model::WideDeep => {}
            Model::DeepCross => {
                let (layers, weights) = parameters[own..].split_at(self.cross.parameters());
                let (of_layers, of_weights) = of_rest.split_at_mut(self.cross.parameters());
                pass.cross_slopes.clear();
                for (slope, crossed) in
                    slopes.iter().zip(pass.cross.outputs(inputs.len()).chunks(width))
                {
                    add_scaled(of_weights, *slope, crossed);
                    pass.cross_slopes.extend(weights.iter().map(|weight| slope * weight));
                }
                let (slopes, cross) = (&pass.cross_slopes, &mut pass.cross);
                self.cross.backward(layers, slopes, cross, of_layers, input_slopes);
            }
            Model::DeepFm => {
                let examples = inputs.chunks(width).zip(pass.sums.chunks(self.dim));
                let examples = examples.zip(input_slopes.chunks_mut(width)).zip(slopes);
                for (((input, sum), input_slope), slope) in examples {
                    let embeddings = input[..self.fields * self.dim].chunks(self.dim);
                    for (embedding, of) in embeddings.zip(input_slope.chunks_mut(self.dim)) {
                        add_scaled(of, *slope, sum);
                        add_scaled(of, -slope, embedding);
                    }
                }
            }
        }
        self.scatter(rows, slopes, input_slopes, of_features);
    }

    /// Adds the gradients of features, which follow from those of the inputs and of the logits.
    fn scatter(
        &self,
        rows: Rows<'_>,
        slopes: &[f32],
        input_slopes: &[f32],
        of_features: &mut [f32],
    ) {
        let (dim, len) = (self.dim, self.feature_len());
        let weight = if self.has_weights() { 1.0 } else { 0.0 };
        for (row, (slope, input)) in
            slopes.iter().zip(input_slopes.chunks(self.cross.width)).enumerate()
        {
            for feature in rows.features(row) {
                let of = &mut of_features[feature.place as usize * len..][..len];
                of[0] += weight * feature.value * slope;
                let from = feature.field as usize * dim;
                add_scaled(&mut of[1..], feature.value, &input[from..from + dim]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctr::config::Hidden;
    use crate::dense::checking::{assert_gradient, random};

    const FIELDS: usize = 3;
    const NUMBERS: usize = 2;
    const PLACES: usize = 5;
    const DIM: usize = 4;

    fn network(model: Model) -> Network {
        let mut config = TrainConfig { model, dim: DIM, ..TrainConfig::default() };
        (config.hidden, config.cross_layers) = (Hidden(vec![6, 5]), 2);
        Network::new(&config, FIELDS, NUMBERS)
    }

    /// Four examples: with one feature a field, several, a value that is not 1, and none.
    fn features() -> (Vec<u32>, Vec<Placed>) {
        let placed = |place, field, value| Placed { place, field, value };
        let features = vec![
            placed(0, 0, 1.0),
            placed(1, 1, 1.0),
            placed(2, 2, 1.0),
            placed(0, 0, 1.0),
            placed(3, 0, -0.5),
            placed(4, 2, 2.0),
            placed(1, 1, 1.0),
        ];
        (vec![0, 3, 6, 7, 7], features)
    }

    struct Made {
        starts: Vec<u32>,
        features: Vec<Placed>,
        numbers: Vec<f32>,
    }

    impl Made {
        fn rows<'a>(&'a self, values: &'a [f32]) -> Rows<'a> {
            let Self { starts, features, numbers } = self;
            Rows { starts, features, numbers, values, value_len: 1 + DIM }
        }
    }

    #[test]
    fn gradients_of_all_models_are_those_of_finite_differences() {
        for model in [Model::WideDeep, Model::DeepCross, Model::DeepFm] {
            let network = network(model);
            let (starts, features) = features();
            let (numbers, slopes) = (random(4 * NUMBERS, 1), random(4, 2));
            let made = Made { starts, features, numbers };
            let len = network.feature_len();
            let (values, parameters) = (random(PLACES * len, 3), random(network.parameters(), 4));
            let dropout = Some(Dropout { share: 0.3, step: 1 });
            let loss = |parameters: &[f32], values: &[f32]| {
                let mut pass = Pass::default();
                let logits = network.forward(parameters, made.rows(values), dropout, &mut pass);
                f64::from(inner(logits, &slopes))
            };
            let (mut pass, mut gradients) = (Pass::default(), vec![0.0; parameters.len()]);
            let mut of_features = vec![0.0; values.len()];
            network.forward(&parameters, made.rows(&values), dropout, &mut pass);
            let of = &mut gradients;
            network.backward(
                &parameters,
                made.rows(&values),
                &slopes,
                &mut pass,
                of,
                &mut of_features,
            );
            assert_gradient(&parameters, &gradients, |parameters| loss(parameters, &values));
            assert_gradient(&values, &of_features, |values| loss(&parameters, values));
        }
    }

    #[test]
    fn deepfm_adds_the_products_of_all_pairs_of_fields() {
        let [plain, pairs] = [Model::WideDeep, Model::DeepFm].map(network);
        let (starts, features) = features();
        let values = random(PLACES * plain.feature_len(), 5);
        let made = Made { starts, features, numbers: vec![0.0; 4 * NUMBERS] };
        let rows = made.rows(&values);
        let parameters = random(plain.parameters(), 6);
        let [plain, pairs] = [plain, pairs]
            .map(|network| network.forward(&parameters, rows, None, &mut Pass::default()).to_vec());
        let embedding = |place: usize| &values[place * (1 + DIM) + 1..(place + 1) * (1 + DIM)];
        let products = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| inner(embedding(a), embedding(b)));
        let difference = pairs[0] - plain[0];
        assert!((difference - products.iter().sum::<f32>()).abs() < 1e-5, "{difference}");
        assert_eq!(pairs[2..], plain[2..], "one field, or none, has no pair");
    }
}
