//! libFuzzer entry point of the target `handshake`.

#![cfg_attr(fuzzing, no_main)]

adapm_fuzz::entry_point!(handshake);
