//! libFuzzer entry point of the target `vectors`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(vectors);
