//! Runs what is done to long values with the widest vector instructions of the machine.
//!
//! Additions of slots are plain loops over slices; a program built for any x86-64 adds four `f32` at a time, a machine may add
//! sixteen. The results are the same bits.
#![expect(unsafe_code, reason = "a function compiled for an instruction set is unsafe to call without it")]

/// Runs `f`, and whatever of it is inlined with the machine's instructions.
#[inline(always)]
pub(crate) fn widely<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the instruction set the function is compiled for was detected in the line above.
            return unsafe { avx512(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the instruction set the function is compiled for was detected in the line above.
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
