//! libFuzzer entry point of the target `cluster`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::cluster(bytes);
});
