//! Decorators for the authors of transports and drivers: around a transport that works, one finds
//! frames that go astray, the others let it misbehave, by a seed.

mod faulty;
mod numbered;
mod shaky;

pub use faulty::{FaultCounts, FaultRates, Faulty};
pub use numbered::{Numbered, NumberedError};
pub use shaky::{ShakeRates, Shaky};
