//! libFuzzer entry point of the target `cluster`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(cluster);
