//! adapm-core.
