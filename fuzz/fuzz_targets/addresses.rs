//! libFuzzer entry point of the target `addresses`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(addresses);
