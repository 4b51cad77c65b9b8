//! libFuzzer entry point of the target `checkpoint`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(checkpoint);
