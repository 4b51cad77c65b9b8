//! libFuzzer entry point of the target `notes`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(notes);
