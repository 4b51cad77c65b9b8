//! The command `adapm` ([`adapm_tasks::cli`]), and how it allocates.

use std::process::ExitCode;

// Threads free what others have allocated: loaders and workers, engines and transports. Here they
// do not wait for each other.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    adapm_tasks::cli::main()
}
