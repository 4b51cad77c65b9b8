//! Dense layers: forward and backward passes over the rows of a batch, and how their parameters
//! are spread over keys.
//!
//! ```text
//!   values of keys --Chunks--> parameters, one slice --> forward(rows) --> outputs
//!   updates of keys <--Chunks-- gradients, one slice <-- backward(slopes of outputs)
//! ```
//!
//! A matrix is a slice with its rows one after the other. A pass is of one thread: workers are the
//! parallelism. The product of matrices is that of the crate `matrixmultiply`; each backward pass
//! is written by hand and checked by finite differences.

mod chunks;
mod cross;
mod gather;
mod gemm;
mod perceptron;

pub(crate) use chunks::{Chunks, WholeRunIntent};
pub(crate) use cross::{Cross, CrossPass};
pub(crate) use gather::Lists;
pub(crate) use perceptron::{Dropout, Perceptron, PerceptronPass};

/// Adds the product of a number and a vector.
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, vector: &[f32]) {
    sum.iter_mut().zip(vector).for_each(|(sum, element)| *sum += factor * element);
}

/// Returns the inner product of two vectors.
pub(crate) fn inner(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// Gradients compared with differences of the loss, for tests.
#[cfg(test)]
pub(crate) mod checking {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Returns numbers in -1..1.
    pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
    }

    /// Asserts that `gradient` is that of `loss` at `point`: for each element, the difference
    /// quotient is as near as 32-bit numbers allow.
    pub(crate) fn assert_gradient(
        point: &[f32],
        gradient: &[f32],
        mut loss: impl FnMut(&[f32]) -> f64,
    ) {
        assert_eq!(point.len(), gradient.len());
        let mut near = point.to_vec();
        for at in 0..point.len() {
            let mut loss_at = |value| {
                near[at] = value;
                loss(&near)
            };
            let (low, high) = (point[at] - STEP, point[at] + STEP);
            let quotient = (loss_at(high) - loss_at(low)) / f64::from(high - low);
            near[at] = point[at];
            let error = (quotient - f64::from(gradient[at])).abs();
            assert!(error < 2e-3 * (1.0 + quotient.abs()), "{at}: {quotient} {}", gradient[at]);
        }
        assert!(gradient.iter().any(|slope| slope.abs() > 0.01), "a gradient of 0 proves nothing");
    }

    const STEP: f32 = 1.0 / 128.0;
}
