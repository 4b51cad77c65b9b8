//! adapm-runtime.
