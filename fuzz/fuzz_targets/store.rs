//! libFuzzer entry point of the target `store`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(store);
