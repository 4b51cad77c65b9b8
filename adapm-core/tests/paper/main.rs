//! One test per claim of the papers on which the protocol rests, one file per section, named after
//! the claim.
//!
//! Every test drives a lockstep cluster, so all invariants are checked after every step besides.

mod adapm_3;
mod adapm_4_1;
mod adapm_4_2;
mod adapm_a_3;
mod adapm_b_1;
mod adapm_b_1_2;
mod adapm_b_2;
mod het_gmp_5;
mod lapse_3_2;
mod lapse_3_3;
mod lapse_3_4;
mod lapse_3_5;
mod nups_3;
mod play;
