//! libFuzzer entry point of the target `ratings`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(ratings);
