//! What the engine does in one situation at a time: a subject a file. One program, as each of
//! several would compile the engine again.

mod behaviour;
mod collectives;
mod delegate;
mod frames;
mod freeze;
mod grants;
mod loss;
mod missing;
mod pace;
mod pieces;
mod populated;
mod take_back;
mod unresponsive;
mod values;
