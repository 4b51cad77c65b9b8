//! Who goes first where threads outnumber cores.

/// Lets workers go before this thread, an engine's: a worker that waits for an engine leaves its core, one that computes loses less
/// if messages are handled together in a while than if each takes the core from it.
///
/// On Linux, where a thread has a nice value of its own: 3 more than whoever started it. Elsewhere nothing.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // A matter of speed only.
        let _ = rustix::process::nice(NICE);
    }
}

#[cfg(target_os = "linux")]
const NICE: i32 = 3;
