//! The command line as a user meets it: the binary is run, its output and exit code are looked at.
//!
//! Nothing here looks inside; what the figures are is the library's to test.

mod bad_data;
mod bad_input;
mod bad_ratings;
mod bench;
mod clicks;
mod compared;
mod config;
mod data;
mod exports;
mod files;
mod graphs;
mod harness;
mod interrupted;
mod json;
mod launch;
mod messages;
mod models;
mod nodes;
mod out;
mod partitions;
mod predict;
mod refusals;
mod resume;
mod runs;
mod saved;
mod screens;
mod simulate;
mod tasks;
mod terminal;
mod together;
mod traces;
mod trained;
