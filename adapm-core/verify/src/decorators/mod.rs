//! Decorators for authors of transports and drivers: one finds frames that a transport loses, the
//! others make a working transport misbehave, by a seed.

mod faulty;
mod numbered;
mod shaky;

pub use faulty::{FaultCounts, FaultRates, Faulty};
pub use numbered::{Numbered, NumberedError};
pub use shaky::{ShakeRates, Shaky};
