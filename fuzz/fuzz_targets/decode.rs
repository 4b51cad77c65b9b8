//! libFuzzer entry point of the target `decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::decode(bytes);
});
