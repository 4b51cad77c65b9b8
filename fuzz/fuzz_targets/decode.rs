//! libFuzzer entry point of the target `decode`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(decode);
