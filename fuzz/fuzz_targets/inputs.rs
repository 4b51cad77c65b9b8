//! libFuzzer entry point of the target `inputs`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(inputs);
