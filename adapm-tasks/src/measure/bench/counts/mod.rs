//! Operations whose counts repeat: messages and bytes that the runtime counts itself, and a start and an end between which somebody
//! else may count, such as callgrind instructions.
//!
//! Counted is what all nodes, engines and workers do together, from rest to rest, divided by how often it was done. Not here: times.

mod operation;
mod perform;
#[cfg(test)]
mod tests;

pub use operation::{Operation, UnknownOperation};
pub use perform::Sent;
