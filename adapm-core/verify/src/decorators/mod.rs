//! Decorators for the authors of transports and drivers: they wrap what works and let it
//! misbehave, by a seed.

mod faulty;

pub use faulty::{FaultCounts, FaultRates, Faulty};
