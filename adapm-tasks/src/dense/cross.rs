//! Cross layers (Deep & Cross, Wang et al., ADKDD 2017): each multiplies the inputs by a projection
//! of the layer before, `next = inputs * (layer . w) + b + layer`.

use crate::dense::{add_scaled, inner};

/// Cross layers. The parameters of each are its weights and biases, `[width]` each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cross {
    pub(crate) width: usize,
    pub(crate) layers: usize,
}

/// What a forward pass leaves for the backward one. Used again by the next pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrossPass {
    /// The inputs, and the outputs of each layer.
    levels: Vec<f32>,
    slopes: Vec<f32>,
}

impl CrossPass {
    /// Returns the outputs of the last forward pass, so many floats.
    pub(crate) fn outputs(&self, len: usize) -> &[f32] {
        &self.levels[self.levels.len() - len..]
    }
}

impl Cross {
    /// Returns the number of parameters.
    pub(crate) fn parameters(self) -> usize {
        2 * self.width * self.layers
    }

    /// Computes the outputs of the rows of `inputs`: as many as inputs.
    pub(crate) fn forward<'p>(
        self,
        parameters: &[f32],
        inputs: &[f32],
        pass: &'p mut CrossPass,
    ) -> &'p [f32] {
        let (width, of_level) = (self.width, inputs.len());
        pass.levels.clear();
        pass.levels.extend_from_slice(inputs);
        for layer in parameters.chunks(2 * width) {
            let (weights, biases) = layer.split_at(width);
            let before = pass.levels.len() - of_level;
            for (at, input) in inputs.chunks(width).enumerate() {
                let from = before + at * width;
                let projection = inner(&pass.levels[from..from + width], weights);
                for k in 0..width {
                    let output = input[k] * projection + biases[k] + pass.levels[from + k];
                    pass.levels.push(output);
                }
            }
        }
        pass.outputs(of_level)
    }

    /// Adds the gradients of the parameters to `gradients` and those of the inputs to
    /// `input_slopes`, for these slopes of the outputs of the last forward pass.
    pub(crate) fn backward(
        self,
        parameters: &[f32],
        slopes: &[f32],
        pass: &mut CrossPass,
        gradients: &mut [f32],
        input_slopes: &mut [f32],
    ) {
        let (width, of_level) = (self.width, slopes.len());
        let CrossPass { levels, slopes: current } = pass;
        current.clear();
        current.extend_from_slice(slopes);
        let layers = parameters.chunks(2 * width).zip(gradients.chunks_mut(2 * width));
        for (level, (layer, gradient)) in levels.chunks(of_level).zip(layers).rev() {
            let weights = &layer[..width];
            let (of_weights, of_biases) = gradient.split_at_mut(width);
            let rows = level.chunks(width).zip(levels.chunks(width));
            let slopes = current.chunks_mut(width).zip(input_slopes.chunks_mut(width));
            for ((before, input), (slope, of_input)) in rows.zip(slopes) {
                add_scaled(of_biases, 1.0, slope);
                add_scaled(of_input, inner(before, weights), slope);
                let of_projection = inner(slope, input);
                add_scaled(of_weights, of_projection, before);
                add_scaled(slope, of_projection, weights);
            }
        }
        add_scaled(input_slopes, 1.0, current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::checking::{assert_gradient, random};

    #[test]
    fn gradients_are_those_of_finite_differences() {
        for layers in [1, 3] {
            let cross = Cross { width: 4, layers };
            let (parameters, inputs) = (random(cross.parameters(), 1), random(5 * 4, 2));
            let (slopes, mut pass) = (random(5 * 4, 3), CrossPass::default());
            let loss = |parameters: &[f32], inputs: &[f32]| {
                let mut pass = CrossPass::default();
                f64::from(inner(cross.forward(parameters, inputs, &mut pass), &slopes))
            };
            cross.forward(&parameters, &inputs, &mut pass);
            let (mut gradients, mut input_slopes) = (vec![0.0; parameters.len()], vec![0.0; 20]);
            cross.backward(&parameters, &slopes, &mut pass, &mut gradients, &mut input_slopes);
            assert_gradient(&parameters, &gradients, |parameters| loss(parameters, &inputs));
            assert_gradient(&inputs, &input_slopes, |inputs| loss(&parameters, inputs));
        }
    }

    #[test]
    fn a_layer_is_the_papers_formula() {
        let (cross, mut pass) = (Cross { width: 2, layers: 1 }, CrossPass::default());
        // inputs * (inputs . w) + b + inputs, with inputs . w = 2 * 3 + 5 * 1 = 11.
        let outputs = cross.forward(&[3.0, 1.0, 0.5, -1.0], &[2.0, 5.0], &mut pass);
        assert_eq!(outputs, [22.0 + 0.5 + 2.0, 55.0 - 1.0 + 5.0]);
    }
}
