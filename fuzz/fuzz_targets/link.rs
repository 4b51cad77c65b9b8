//! libFuzzer entry point of the target `link`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::link(bytes);
});
