//! libFuzzer entry point of the target `group`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(group);
