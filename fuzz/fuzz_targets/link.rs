//! libFuzzer entry point of the target `link`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(link);
