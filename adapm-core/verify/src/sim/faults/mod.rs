//! What goes wrong in a simulation: a plan of faults, and links that break and resume.

mod carry;
mod end;
mod event;
mod faulty;
mod link;
mod plan;
mod way;

pub use event::LinkEvent;
pub use faulty::Faulty;
pub use plan::{Fault, Plan, When};
