//! libFuzzer entry point of the target `packets`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(packets);
