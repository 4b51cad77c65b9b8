//! The adapm command line.
fn main() {}
