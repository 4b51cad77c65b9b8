//! libFuzzer entry point of the target `triples`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(triples);
