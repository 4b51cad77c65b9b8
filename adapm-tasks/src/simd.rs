//! Picks the widest instruction set of the machine for the inner loops.
//!
//! A loop is a safe, plain one of [`matrix`](crate::matrix) or of a task, compiled once per
//! instruction set as a [`Kernel`]; its results are the same bits under each, since no
//! multiplication is contracted with an addition.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set is unsafe to call without it"
)]

/// A loop that is compiled once per instruction set, with what it works on.
pub(crate) trait Kernel {
    /// The result of the loop.
    type Output;

    /// Runs the loop; `WIDE` if registers have 256 bits or more. Has to be inlined, as all that it
    /// calls, into the function that is compiled for an instruction set.
    fn run<const WIDE: bool>(self) -> Self::Output;
}

/// Runs a loop with the machine's instructions.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { run_avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line
            // above.
            return unsafe { run_avx2(kernel) };
        }
    }
    kernel.run::<false>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}
