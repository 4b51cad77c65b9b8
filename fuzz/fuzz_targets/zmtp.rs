//! libFuzzer entry point of the target `zmtp`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(zmtp);
