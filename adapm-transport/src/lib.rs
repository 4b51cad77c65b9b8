//! adapm-transport.
