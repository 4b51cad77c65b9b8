//! A node of an adapm cluster on a Cortex-M4: engine, fixed store and link session on the chip, the
//! other node at the far end of the UART.
//!
//! Ends by semihosting: exit code 0 if every sum was right.

#![no_std]
#![no_main]

extern crate alloc;

mod board;

use alloc::sync::Arc;
use core::panic::PanicInfo;
use core::time::Duration;

use adapm_core::NodeId;
use adapm_store::fixed::{self, FixedStore};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, heprintln};
use serial_node::line::{End, Line};
use serial_node::node::SerialNode;
use serial_node::task;

/// The parameters: `.bss` has room for all of them, or linking fails.
type Parameters =
    FixedStore<i64, { fixed::keys_of(task::EXTENTS) }, { fixed::elements_of(task::EXTENTS) }>;

#[entry]
fn main() -> ! {
    let board = board::start();
    match work(board) {
        Ok(()) => debug::exit(debug::EXIT_SUCCESS),
        Err(error) => {
            heprintln!("firmware: {}", error);
            debug::exit(debug::EXIT_FAILURE);
        }
    }
    // An emulator has ended here; a chip waits for its debugger.
    loop {
        cortex_m::asm::wfi();
    }
}

fn work(board: board::Board) -> Result<(), alloc::string::String> {
    let store =
        cortex_m::singleton!(: Parameters = Parameters::new()).expect("the program starts once");
    store.lay_out(&task::layout()).map_err(|error| alloc::format!("{error}"))?;
    let line = Line::new(End::Answering, task::terms(), DEAD_AFTER);
    let parts = (task::layout(), &*store, Arc::new(task::initial) as _);
    let node = SerialNode::new(NodeId(1), parts, (board, line));
    match node.and_then(|mut node| task::run(&mut node)) {
        Ok(0) => Ok(()),
        Ok(wrong) => Err(alloc::format!("{wrong} keys have a wrong sum")),
        Err(error) => Err(alloc::format!("{error}")),
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    heprintln!("firmware: {}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}

const DEAD_AFTER: Duration = Duration::from_secs(20);
