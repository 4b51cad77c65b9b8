//! Picks the widest instruction set of the machine for the inner loops.
//!
//! The loops are the safe, plain ones of [`matrix`](crate::matrix) and of tasks, compiled once per
//! instruction set; their results are the same bits under each, since no multiplication is
//! contracted with an addition.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set is unsafe to call without it"
)]

use crate::matrix::{Left, Panels, exponentiate_lanes, multiply_blocks};
use crate::mf::kernel::{Cells, Rule, train_lanes};
use crate::optim::AdaGrad;
use crate::wv::blocks::{self, Blocks, Scratch};
use crate::wv::kernel::{Rows, Work, descend_plain};

/// [`matrix::multiply`](crate::matrix::multiply) with the machine's instructions.
pub(crate) fn multiply(
    left: Left<'_>,
    right: &Panels,
    product: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { multiply_avx512(left, right, product, scratch) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { multiply_avx2(left, right, product, scratch) };
        }
    }
    multiply_blocks::<2>(left, right, product, scratch);
}

/// [`matrix::exponentiate`](crate::matrix::exponentiate) with the machine's instructions.
pub(crate) fn exponentiate(values: &mut [f32], max: f32) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { exponentiate_avx512(values, max) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { exponentiate_avx2(values, max) };
        }
    }
    exponentiate_lanes(values, max)
}

/// [`AdaGrad::update_among`] with the machine's instructions; whether all it wrote are finite
/// numbers.
pub(crate) fn adagrad(
    rule: AdaGrad,
    steps: f32,
    value: &[f32],
    gradient: &[f32],
    update: &mut [f32],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { adagrad_avx512(rule, steps, value, gradient, update) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { adagrad_avx2(rule, steps, value, gradient, update) };
        }
    }
    rule.update_lanes(steps, value, gradient, update)
}

/// [`Rule::train`] with the machine's instructions.
pub(crate) fn factorize(rule: Rule, cells: Cells<'_>) -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { factorize_avx512(rule, cells) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { factorize_avx2(rule, cells) };
        }
    }
    train_lanes(rule, cells)
}

/// [`kernel::descend`](crate::wv::kernel::descend) with the machine's instructions.
pub(crate) fn descend<const ADAGRAD: bool>(work: &Work<'_>, rows: &mut Rows<'_>) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { descend_avx512::<ADAGRAD>(work, rows) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { descend_avx2::<ADAGRAD>(work, rows) };
        }
    }
    descend_plain::<ADAGRAD>(work, rows);
}

/// [`blocks::descend`](crate::wv::blocks::descend) with the machine's instructions.
pub(crate) fn descend_blocks<const ADAGRAD: bool>(
    work: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { descend_blocks_avx512::<ADAGRAD>(work, rows, scratch) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { descend_blocks_avx2::<ADAGRAD>(work, rows, scratch) };
        }
    }
    blocks::descend_plain::<ADAGRAD>(work, rows, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn multiply_avx512(left: Left<'_>, right: &Panels, product: &mut [f32], scratch: &mut Vec<f32>) {
    multiply_blocks::<4>(left, right, product, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_avx2(left: Left<'_>, right: &Panels, product: &mut [f32], scratch: &mut Vec<f32>) {
    multiply_blocks::<4>(left, right, product, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn exponentiate_avx512(values: &mut [f32], max: f32) -> f32 {
    exponentiate_lanes(values, max)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn exponentiate_avx2(values: &mut [f32], max: f32) -> f32 {
    exponentiate_lanes(values, max)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn adagrad_avx512(
    rule: AdaGrad,
    steps: f32,
    value: &[f32],
    gradient: &[f32],
    update: &mut [f32],
) -> bool {
    rule.update_lanes(steps, value, gradient, update)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn adagrad_avx2(
    rule: AdaGrad,
    steps: f32,
    value: &[f32],
    gradient: &[f32],
    update: &mut [f32],
) -> bool {
    rule.update_lanes(steps, value, gradient, update)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn factorize_avx512(rule: Rule, cells: Cells<'_>) -> f64 {
    train_lanes(rule, cells)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn factorize_avx2(rule: Rule, cells: Cells<'_>) -> f64 {
    train_lanes(rule, cells)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn descend_avx512<const ADAGRAD: bool>(work: &Work<'_>, rows: &mut Rows<'_>) {
    descend_plain::<ADAGRAD>(work, rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn descend_avx2<const ADAGRAD: bool>(work: &Work<'_>, rows: &mut Rows<'_>) {
    descend_plain::<ADAGRAD>(work, rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn descend_blocks_avx512<const ADAGRAD: bool>(
    work: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    blocks::descend_plain::<ADAGRAD>(work, rows, scratch);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn descend_blocks_avx2<const ADAGRAD: bool>(
    work: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    blocks::descend_plain::<ADAGRAD>(work, rows, scratch);
}
