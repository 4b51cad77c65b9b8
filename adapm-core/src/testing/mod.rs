//! Lockstep cluster, scenario runner, oracle, reference store and conformance suites.
