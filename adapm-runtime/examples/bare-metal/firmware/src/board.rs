//! The MPS2 board with the AN386 image: heap, clock and first UART. The only file of the firmware
//! with registers.
//!
//! The UART (ARM's "APB UART", DDI 0479) holds one byte. Its interrupt moves bytes to a queue, and
//! is off while the queue is full: an emulator then holds the rest back; on a chip bytes are lost,
//! which the line detects.

#![expect(unsafe_code, reason = "registers, and the memory of the heap")]

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use adapm_core::Instant;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{NVIC, SYST};
use cortex_m_rt::exception;
use critical_section::Mutex;
use embedded_alloc::LlffHeap;
use heapless::Deque;
use serial_node::node::Port;

/// The board, once it has started.
pub(crate) struct Board(());

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

/// Milliseconds since the start.
///
/// # Ordering
/// Relaxed: it orders nothing, and there is one core.
static MILLIS: AtomicU32 = AtomicU32::new(0);

type Queue = Deque<u8, 1_024>;

/// Bytes received by the UART.
static RECEIVED: Mutex<RefCell<Queue>> = Mutex::new(RefCell::new(Deque::new()));

/// Gives the heap its memory and starts clock and UART; once, before anything allocates.
pub(crate) fn start() -> Board {
    // SAFETY: `main` calls this once, first: nothing was allocated yet, and no other code has
    // access to that memory.
    unsafe {
        embedded_alloc::init!(HEAP, HEAP_BYTES);
    }
    let mut peripherals = cortex_m::Peripherals::take().expect("the program starts once");
    start_clock(&mut peripherals.SYST);
    write(BAUD_DIVISOR, CLOCK_HZ / BAUD);
    write(CONTROL, CONTROL_SEND | CONTROL_RECEIVE | CONTROL_RECEIVE_INTERRUPT);
    // SAFETY: the handler takes what it shares under critical sections, and none is open here.
    unsafe {
        NVIC::unmask(Uart0Receive);
    }
    Board(())
}

fn start_clock(clock: &mut SYST) {
    clock.set_clock_source(SystClkSource::Core);
    clock.set_reload(CLOCK_HZ / 1_000 - 1);
    clock.clear_current();
    clock.enable_interrupt();
    clock.enable_counter();
}

impl Port for Board {
    fn now(&mut self) -> Instant {
        // Wraps after 49 days; this run takes seconds.
        Instant::from_micros(u64::from(MILLIS.load(Ordering::Relaxed)) * 1_000)
    }

    fn read(&mut self, bytes: &mut Vec<u8>) {
        critical_section::with(|section| {
            let mut received = RECEIVED.borrow_ref_mut(section);
            while let Some(byte) = received.pop_front() {
                bytes.push(byte);
            }
            // With room again, the byte that waits is taken here: its interrupt was cleared before.
            write(CONTROL, CONTROL_SEND | CONTROL_RECEIVE | CONTROL_RECEIVE_INTERRUPT);
            take(&mut received);
        });
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            while read(STATE) & STATE_SEND_FULL != 0 {}
            write(DATA, u32::from(*byte));
        }
    }

    fn idle(&mut self) {
        // The clock interrupts every millisecond.
        cortex_m::asm::wfi();
    }
}

#[exception]
fn SysTick() {
    MILLIS.fetch_add(1, Ordering::Relaxed);
}

/// The handler of all other interrupts, only one of which is unmasked.
#[exception]
unsafe fn DefaultHandler(_interrupt: i16) {
    critical_section::with(|section| take(&mut RECEIVED.borrow_ref_mut(section)));
}

/// Moves bytes received by the UART to the queue, as far as there is room.
fn take(received: &mut Queue) {
    // First: a byte that comes while others are taken must interrupt again.
    write(INTERRUPT_CLEAR, INTERRUPT_RECEIVE);
    while read(STATE) & STATE_RECEIVED != 0 {
        if received.is_full() {
            write(CONTROL, CONTROL_SEND | CONTROL_RECEIVE);
            break;
        }
        let byte = read(DATA) as u8;
        received.push_back(byte).expect("there is room");
    }
}

/// The interrupt of UART 0 for a byte received.
#[derive(Clone, Copy)]
struct Uart0Receive;

// SAFETY: the number is that of the AN386 manual's table of interrupts, and the core has that many.
unsafe impl cortex_m::interrupt::InterruptNumber for Uart0Receive {
    fn number(self) -> u16 {
        0
    }
}

fn read(register: usize) -> u32 {
    // SAFETY: `register` is one of the constants below, all of them registers of 32 bits.
    unsafe { ptr::read_volatile(register as *const u32) }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`; no register of the UART makes the chip write to memory.
    unsafe { ptr::write_volatile(register as *mut u32, value) }
}

const HEAP_BYTES: usize = 64 << 10;
const CLOCK_HZ: u32 = 25_000_000;
const BAUD: u32 = 115_200;

const UART0: usize = 0x4000_4000;
const DATA: usize = UART0;
const STATE: usize = UART0 + 4;
const STATE_SEND_FULL: u32 = 1;
const STATE_RECEIVED: u32 = 2;
const CONTROL: usize = UART0 + 8;
const CONTROL_SEND: u32 = 1;
const CONTROL_RECEIVE: u32 = 2;
const CONTROL_RECEIVE_INTERRUPT: u32 = 8;
const INTERRUPT_CLEAR: usize = UART0 + 12;
const INTERRUPT_RECEIVE: u32 = 2;
const BAUD_DIVISOR: usize = UART0 + 16;
