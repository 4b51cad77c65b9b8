//! What goes wrong in a simulation: a plan of faults, and links that break and resume.

mod carry;
mod end;
mod faulty;
mod link;
mod plan;
mod way;

pub use faulty::{Faulty, LinkEvent};
pub use plan::{Fault, Plan, When};
