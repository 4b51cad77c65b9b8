//! libFuzzer entry point of the target `datagrams`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(datagrams);
