//! libFuzzer entry point of the target `words`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(words);
