//! libFuzzer entry point of the target `store`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::store(bytes);
});
