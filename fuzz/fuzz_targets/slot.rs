//! libFuzzer entry point of the target `slot`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(slot);
