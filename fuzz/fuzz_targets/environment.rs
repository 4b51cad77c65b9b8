//! libFuzzer entry point of the target `environment`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(environment);
