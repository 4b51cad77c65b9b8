//! libFuzzer entry point of the target `traces`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(traces);
