//! adapm-tasks.
