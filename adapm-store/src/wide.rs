//! Operations on long values with the widest vector instructions of the machine.
//!
//! Additions of slots are plain loops over slices; a program built for any x86-64 adds four `f32`
//! at a time, a machine may add sixteen. The results are the same bits, except for the payload of a
//! NaN.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a function compiled for an instruction set is unsafe to call without it"
    )
)]

/// Runs `f`, and everything inlined into it, with the machine's instructions.
#[inline(always)]
pub(crate) fn widely<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { avx512(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { avx2(f) };
        }
    }
    f()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use adapm_core::Value;

    use super::*;

    #[test]
    fn all_instruction_sets_add_to_the_same_bits() {
        let odd = [
            -0.0,
            0.0,
            f32::MIN_POSITIVE / 2.0,
            -1e-45,
            f32::MAX,
            f32::INFINITY,
            1.5e-7,
            -3.25,
            1.0e9,
        ];
        for len in 0..70 {
            let values: Vec<f32> = (0..len).map(|i| odd[i % odd.len()] + i as f32 * 0.1).collect();
            let updates: Vec<f32> = (0..len).map(|i| odd[(i * 5 + 2) % odd.len()]).collect();
            let add = |mut sums: Vec<f32>| {
                sums.iter_mut().zip(&updates).for_each(|(sum, update)| sum.accumulate(*update));
                sums.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
            };
            let plain = add(values.clone());
            assert_eq!(widely(|| add(values.clone())), plain);
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the instruction set the function is compiled for was detected in the line
                // above.
                assert_eq!(unsafe { avx2(|| add(values.clone())) }, plain, "AVX2, {len} elements");
            }
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the instruction set the function is compiled for was detected in the line
                // above.
                let wide = unsafe { avx512(|| add(values.clone())) };
                assert_eq!(wide, plain, "AVX-512, {len} elements");
            }
        }
    }
}
