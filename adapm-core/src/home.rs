//! The home of each key: the node that owns it at first and always knows its owner.
//!
//! | rule | home | cost |
//! | --- | --- | --- |
//! | scale | [`Layout::home`], a hash of the key | nothing; the default |
//! | table | an entry for each key, such as a partition of the training data (HET-GMP §5.2) | 2 bytes a key on every node |
//!
//! All nodes of a cluster have the same map; [`HomeMap::digest`] tells maps apart in handshakes.

use alloc::sync::Arc;
use core::fmt;

use crate::error::ConfigError;
use crate::id::{Key, NodeId};
use crate::layout::{Layout, mix};

/// The home of each key among a number of nodes. Cheap to clone.
///
/// ```
/// use adapm_core::home::HomeMap;
/// use adapm_core::{Key, NodeId};
/// let homes = HomeMap::table(2, [1, 0, 1])?;
/// assert_eq!(homes.home(Key(0)), NodeId(1));
/// assert!(HomeMap::table(2, [0, 2]).is_err(), "there is no n2");
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HomeMap {
    nodes: usize,
    rule: Rule,
}

#[derive(Clone, PartialEq, Eq)]
enum Rule {
    Scale,
    Table(Arc<[u16]>),
}

impl HomeMap {
    /// Returns the map of [`Layout::home`].
    #[must_use]
    pub fn scale(nodes: usize) -> Self {
        Self { nodes, rule: Rule::Scale }
    }

    /// Returns the map with these homes, of the keys from 0 on: one for each key of the layout.
    ///
    /// # Errors
    /// A home that is not among the `nodes`.
    pub fn table(nodes: usize, homes: impl Into<Arc<[u16]>>) -> Result<Self, ConfigError> {
        let homes = homes.into();
        match homes.iter().position(|home| usize::from(*home) >= nodes) {
            None => Ok(Self { nodes, rule: Rule::Table(homes) }),
            Some(at) => {
                Err(ConfigError::Home { key: Key(at as u64), home: NodeId(homes[at]), nodes })
            }
        }
    }

    /// Returns the home of `key`. Of a key behind a table's end that is [`Layout::home`]; an engine
    /// has no such key ([`HomeMap::check`]).
    #[inline]
    #[must_use]
    pub fn home(&self, key: Key) -> NodeId {
        let entry = match &self.rule {
            Rule::Scale => None,
            Rule::Table(homes) => usize::try_from(key.0).ok().and_then(|at| homes.get(at)),
        };
        entry.map_or_else(|| Layout::home(key, self.nodes), |home| NodeId(*home))
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns true if homes are those of [`Layout::home`].
    #[must_use]
    pub fn is_scale(&self) -> bool {
        self.rule == Rule::Scale
    }

    /// Returns a hash of the homes: of the rule and the number of nodes, and of each entry of a
    /// table. Reads the whole table.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let first = mix(self.nodes as u64);
        match &self.rule {
            Rule::Scale => first,
            Rule::Table(homes) => homes
                .iter()
                .fold(mix(first ^ homes.len() as u64), |sum, home| mix(sum ^ u64::from(*home))),
        }
    }

    /// Checks that this is a map of `layout` over `nodes` nodes.
    ///
    /// # Errors
    /// If it is one of another number of nodes or, as a table, of keys.
    pub fn check(&self, layout: &Layout, nodes: usize) -> Result<(), ConfigError> {
        if self.nodes != nodes {
            return Err(ConfigError::HomesOfNodes { given: self.nodes, nodes });
        }
        let keys = layout.keys().end.0;
        match &self.rule {
            Rule::Table(homes) if homes.len() as u64 != keys => {
                Err(ConfigError::HomesOfKeys { given: homes.len() as u64, keys })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for HomeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Scale => write!(f, "homes by hash of {} nodes", self.nodes),
            Rule::Table(homes) => {
                write!(f, "homes by table of {} nodes, {} keys", self.nodes, homes.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_is_what_it_has_always_been() {
        // Digests of the homes of 1,000 keys, computed apart from the formula.
        for (nodes, digest) in (1..).zip(GOLDEN) {
            let homes = HomeMap::scale(nodes);
            let sum = (0..1_000).fold(0, |sum, key| {
                assert_eq!(homes.home(Key(key)), Layout::home(Key(key), nodes), "k{key}");
                mix(sum ^ u64::from(homes.home(Key(key)).0))
            });
            assert_eq!(sum, digest, "{nodes} nodes");
        }
    }

    #[test]
    fn a_table_says_each_home_and_is_told_apart_from_others() {
        let homes: Arc<[u16]> = (0..100).map(|key| (key * key % 7 % 3) as u16).collect();
        let map = HomeMap::table(3, Arc::clone(&homes)).expect("all are nodes");
        for key in 0..100 {
            assert_eq!(map.home(Key(key)), NodeId(homes[key as usize]));
        }
        let mut other = homes.to_vec();
        other.swap(0, 1);
        let others = [
            HomeMap::scale(3),
            HomeMap::scale(4),
            HomeMap::table(4, Arc::clone(&homes)).expect("all are nodes"),
            HomeMap::table(3, other).expect("all are nodes"),
            HomeMap::table(3, &homes[..99]).expect("all are nodes"),
        ];
        for other in others {
            assert_ne!(map.digest(), other.digest(), "{other:?}");
        }
        assert!(HomeMap::scale(3).is_scale() && !map.is_scale());
    }

    #[test]
    fn a_map_of_something_else_is_refused() {
        let layout = Layout::dense(&[(3, 1)]).expect("legal");
        let map = HomeMap::table(2, [0, 1, 1]).expect("all are nodes");
        assert_eq!(map.check(&layout, 2), Ok(()));
        assert_eq!(map.check(&layout, 3), Err(ConfigError::HomesOfNodes { given: 2, nodes: 3 }));
        let longer = Layout::dense(&[(4, 1)]).expect("legal");
        assert_eq!(map.check(&longer, 2), Err(ConfigError::HomesOfKeys { given: 3, keys: 4 }));
        assert_eq!(HomeMap::scale(2).check(&longer, 2), Ok(()));
        assert_eq!(
            HomeMap::table(2, [0, 1, 2]),
            Err(ConfigError::Home { key: Key(2), home: NodeId(2), nodes: 2 })
        );
        assert!(HomeMap::table(0, [0]).is_err());
    }

    const GOLDEN: [u64; 16] = [
        0xa17a_c4d6_0a6b_3f89,
        0xc185_870f_af90_2c94,
        0x559f_00e6_522b_8633,
        0xfc79_ecb1_fada_ddd3,
        0x03da_4097_77af_3958,
        0xbcb9_e1b3_40a4_8bf2,
        0x3499_2267_3ad9_f2cb,
        0x242f_48b6_d273_7353,
        0x5025_edea_de25_2572,
        0x3f75_d3eb_2fb2_1f01,
        0xffbb_5c85_60ec_a789,
        0x9fe9_9d74_e1cd_9c36,
        0xec6c_e793_7868_7ec3,
        0x877e_9574_bae5_5202,
        0xce70_8edb_244a_5813,
        0x6ee0_35f0_efde_63fa,
    ];
}
