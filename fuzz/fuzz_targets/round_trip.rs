//! libFuzzer entry point of the target `round_trip`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(round_trip);
