//! libFuzzer entry point of the target `inputs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::inputs(bytes);
});
