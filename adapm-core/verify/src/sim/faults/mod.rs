//! Faults of a simulation: a plan of them, and links that break and resume.

mod carry;
mod end;
mod event;
mod faulty;
mod link;
mod plan;
mod way;

pub use event::LinkEvent;
pub use faulty::FaultyLinks;
pub use plan::{Fault, Plan, When};
