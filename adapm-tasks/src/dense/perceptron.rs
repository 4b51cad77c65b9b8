//! A perceptron of several layers: products with weights, and between them rectified units (ReLU)
//! and dropout.

use crate::dense::add_scaled;
use crate::dense::gemm::{Matrix, multiply};
use crate::run::Tensor;
use crate::simd::{self, Kernel};

/// The widths of a perceptron's layers. Its parameters are, layer by layer, the weights
/// `[inputs x outputs]` and the biases `[outputs]`. All layers but the last are rectified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Perceptron {
    widths: Vec<usize>,
}

/// Dropout of a step: which outputs of hidden layers are 0 follows from these and the place of the
/// output alone, so from no thread and no call before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dropout {
    /// The share of outputs that are 0, below 1; the others are larger in the same measure.
    pub(crate) share: f32,
    /// A number for the step.
    pub(crate) step: u64,
}

/// What a forward pass leaves for the backward one. Used again by the next pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerceptronPass {
    /// Outputs of each layer, after rectification and dropout.
    outputs: Vec<Vec<f32>>,
    /// The factor of outputs that are not 0.
    scale: f32,
    slopes: Vec<f32>,
    next_slopes: Vec<f32>,
}

/// The places of a layer's parameters.
struct Layer {
    inputs: usize,
    outputs: usize,
    weights: usize,
    biases: usize,
    end: usize,
}

impl Perceptron {
    /// Returns one with so many inputs, hidden units and outputs.
    pub(crate) fn new(inputs: usize, hidden: &[usize], outputs: usize) -> Self {
        let hidden = hidden.iter().copied();
        Self { widths: [inputs].into_iter().chain(hidden).chain([outputs]).collect() }
    }

    fn layers(&self) -> impl DoubleEndedIterator<Item = Layer> + ExactSizeIterator {
        let mut weights = 0;
        let layers = self.widths.windows(2).map(|widths| {
            let (inputs, outputs) = (widths[0], widths[1]);
            let biases = weights + inputs * outputs;
            let layer = Layer { inputs, outputs, weights, biases, end: biases + outputs };
            weights = layer.end;
            layer
        });
        layers.collect::<Vec<_>>().into_iter()
    }

    /// Returns the tensors of the parameters, layer by layer: `NAME.1.weights` and so on.
    pub(crate) fn tensors(&self, name: &str) -> Vec<Tensor> {
        let of_layer = |(at, layer): (usize, Layer)| {
            let Layer { inputs, outputs, .. } = layer;
            [("weights", inputs as u64), ("biases", 1)]
                .map(|(kind, rows)| Tensor::new(format!("{name}.{at}.{kind}"), rows, outputs))
        };
        (1..).zip(self.layers()).flat_map(of_layer).collect()
    }

    /// Returns the number of parameters.
    pub(crate) fn parameters(&self) -> usize {
        self.layers().last().map_or(0, |layer| layer.end)
    }

    /// Returns the bound of the initial value of a parameter, which is drawn uniformly from
    /// -bound..bound: `sqrt(6 / inputs)` of a weight (He et al., ICCV 2015), 0 of a bias.
    pub(crate) fn bound(&self, parameter: usize) -> f32 {
        let layer = self.layers().find(|layer| parameter < layer.end);
        layer
            .filter(|layer| parameter < layer.biases)
            .map_or(0.0, |layer| (6.0 / layer.inputs as f32).sqrt())
    }

    /// Computes the outputs of `rows` rows of `inputs`; `dropout` in training.
    pub(crate) fn forward<'p>(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        rows: usize,
        dropout: Option<Dropout>,
        pass: &'p mut PerceptronPass,
    ) -> &'p [f32] {
        let last = self.widths.len() - 2;
        pass.outputs.resize_with(last + 1, Vec::new);
        pass.scale = dropout.map_or(1.0, |dropout| 1.0 / (1.0 - dropout.share));
        for (at, layer) in self.layers().enumerate() {
            let (before, outputs) = pass.outputs.split_at_mut(at);
            let (inputs, outputs) = (before.last().map_or(inputs, Vec::as_slice), &mut outputs[0]);
            outputs.clear();
            let biases = &parameters[layer.biases..layer.end];
            (0..rows).for_each(|_| outputs.extend_from_slice(biases));
            let weights = &parameters[layer.weights..layer.biases];
            multiply(
                Matrix::of_rows(inputs, rows, layer.inputs),
                Matrix::of_rows(weights, layer.inputs, layer.outputs),
                1.0,
                outputs,
            );
            if at < last {
                outputs.iter_mut().for_each(|output| *output = output.max(0.0));
                if let Some(dropout) = dropout {
                    dropout.apply(at, pass.scale, outputs);
                }
            }
        }
        &pass.outputs[last]
    }

    /// Adds the gradients of the parameters to `gradients`, and writes those of the inputs to
    /// `input_slopes`, for these slopes of the outputs of the last forward pass.
    pub(crate) fn backward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        slopes: &[f32],
        pass: &mut PerceptronPass,
        gradients: &mut [f32],
        input_slopes: &mut [f32],
    ) {
        let PerceptronPass { outputs, scale, slopes: current, next_slopes } = pass;
        current.clear();
        current.extend_from_slice(slopes);
        for (at, layer) in self.layers().enumerate().rev() {
            let rows = current.len() / layer.outputs;
            let below = if at == 0 { inputs } else { &outputs[at - 1] };
            let of_outputs = Matrix::of_rows(current, rows, layer.outputs);
            let below_rows = Matrix::of_rows(below, rows, layer.inputs);
            let (weights, biases) =
                gradients[layer.weights..layer.end].split_at_mut(layer.biases - layer.weights);
            multiply(below_rows.transposed(), of_outputs, 1.0, weights);
            current.chunks(layer.outputs).for_each(|row| add_scaled(biases, 1.0, row));
            let weights = &parameters[layer.weights..layer.biases];
            let weights = Matrix::of_rows(weights, layer.inputs, layer.outputs).transposed();
            if at == 0 {
                multiply(of_outputs, weights, 0.0, input_slopes);
                return;
            }
            next_slopes.clear();
            next_slopes.resize(rows * layer.inputs, 0.0);
            multiply(of_outputs, weights, 0.0, next_slopes);
            // An output of 0 was below 0 or dropped: either way it has no slope.
            for (slope, output) in next_slopes.iter_mut().zip(below) {
                *slope *= if *output > 0.0 { *scale } else { 0.0 };
            }
            std::mem::swap(current, next_slopes);
        }
    }
}

impl Dropout {
    /// Returns the factor of what is not 0.
    pub(crate) fn scale(self) -> f32 {
        1.0 / (1.0 - self.share)
    }

    /// Makes some outputs of a layer 0 and multiplies the others by `scale`.
    pub(crate) fn apply(self, layer: usize, scale: f32, outputs: &mut [f32]) {
        let below = (f64::from(self.share) * 2f64.powi(32)) as u64;
        let layer = mix(self.step.wrapping_add((layer as u64) << 56));
        simd::run(Dropping { layer, below, scale, outputs });
    }
}

/// The loop of [`Dropout::apply`], eight draws at a time, each for two outputs.
struct Dropping<'o> {
    layer: u64,
    /// Draws of 32 bits below this make an output 0.
    below: u64,
    scale: f32,
    outputs: &'o mut [f32],
}

impl Kernel for Dropping<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        // Half of the draws go either way: chosen, not branched on.
        let factor = |bits: u64| if bits < self.below { 0.0 } else { self.scale };
        let mut factors = [0.0; 16];
        for (outputs, at) in self.outputs.chunks_mut(16).zip((0..).step_by(8)) {
            for (two, at) in factors.chunks_exact_mut(2).zip(at..) {
                let bits = mix(self.layer ^ at);
                two.copy_from_slice(&[factor(bits >> 32), factor(bits & 0xffff_ffff)]);
            }
            outputs.iter_mut().zip(&factors).for_each(|(output, factor)| *output *= factor);
        }
    }
}

/// Spreads the bits of a counter (the finalizer of Steele et al., OOPSLA 2014).
#[inline(always)]
fn mix(counter: u64) -> u64 {
    let mut bits = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::checking::{assert_gradient, random};
    use crate::dense::inner;

    const ROWS: usize = 6;

    fn loss(
        network: &Perceptron,
        parameters: &[f32],
        inputs: &[f32],
        dropout: Option<Dropout>,
        slopes: &[f32],
    ) -> f64 {
        let mut pass = PerceptronPass::default();
        let outputs = network.forward(parameters, inputs, ROWS, dropout, &mut pass);
        f64::from(inner(outputs, slopes))
    }

    #[test]
    fn gradients_are_those_of_finite_differences_with_and_without_dropout() {
        for hidden in [&[][..], &[7], &[5, 4]] {
            let network = Perceptron::new(3, hidden, 2);
            let (parameters, inputs) = (random(network.parameters(), 1), random(ROWS * 3, 2));
            let slopes = random(ROWS * 2, 3);
            for dropout in [None, Some(Dropout { share: 0.4, step: 9 })] {
                let (mut pass, mut gradients) =
                    (PerceptronPass::default(), vec![0.0; parameters.len()]);
                let mut input_slopes = vec![0.0; inputs.len()];
                network.forward(&parameters, &inputs, ROWS, dropout, &mut pass);
                let (of, to) = (&mut gradients, &mut input_slopes);
                network.backward(&parameters, &inputs, &slopes, &mut pass, of, to);
                assert_gradient(&parameters, &gradients, |parameters| {
                    loss(&network, parameters, &inputs, dropout, &slopes)
                });
                assert_gradient(&inputs, &input_slopes, |inputs| {
                    loss(&network, &parameters, inputs, dropout, &slopes)
                });
            }
        }
    }

    #[test]
    fn dropout_keeps_the_mean_and_follows_from_step_and_place_alone() {
        let dropped = |step, len| {
            let mut outputs = vec![1.0; len];
            Dropout { share: 0.25, step }.apply(1, 4.0 / 3.0, &mut outputs);
            outputs
        };
        let outputs = dropped(5, 20_000);
        let mean = outputs.iter().sum::<f32>() / 20_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(dropped(5, 20_000)[..99], dropped(5, 99));
        assert_ne!(outputs, dropped(6, 20_000));
    }

    #[test]
    fn weights_begin_by_their_inputs_and_biases_at_0() {
        let network = Perceptron::new(6, &[2], 1);
        assert_eq!(network.parameters(), 6 * 2 + 2 + 2 + 1);
        let bounds: Vec<f32> = (0..17).map(|at| network.bound(at)).collect();
        assert_eq!(bounds[..12], [1.0; 12]);
        assert_eq!(bounds[12..], [0.0, 0.0, 3f32.sqrt(), 3f32.sqrt(), 0.0]);
    }
}
