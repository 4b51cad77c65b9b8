//! adapm-store.
