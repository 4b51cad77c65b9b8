//! Links over connections that are cut, split, delayed and corrupted on the way.

mod support;
