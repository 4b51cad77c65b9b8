//! libFuzzer entry point of the target `slot`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adapm_fuzz::slot(bytes);
});
