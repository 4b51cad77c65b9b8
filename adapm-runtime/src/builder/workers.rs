//! The numbers of workers of the nodes of a cluster: one setting, as they are equal or not.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use adapm_core::NodeId;

/// The number of workers of each node; passed to [`crate::Builder::workers`].
///
/// | made from | |
/// | --- | --- |
/// | a number | each node has as many |
/// | an array or vector | one number for each node, for machines that differ (AdaPM §4.2) |
///
/// ```
/// use adapm_runtime::adapm_core::NodeId;
/// use adapm_runtime::Workers;
///
/// let workers = Workers::from([2, 1, 1]);
/// assert_eq!((workers.of(NodeId(0)), workers.all(2), workers.all(3)), (2, 3, 4));
/// assert_eq!(workers.to_string(), "2,1,1");
/// assert_eq!(Workers::from(2).all(3), 6);
/// assert!(Workers::from([2, 2]).are_equal() && !workers.are_equal());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workers(Numbers);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    Equal(usize),
    Listed(Arc<[usize]>),
}

impl Workers {
    /// Returns the number of workers of a node; 0 behind the end of a list.
    #[must_use]
    pub fn of(&self, node: NodeId) -> usize {
        match &self.0 {
            Numbers::Equal(number) => *number,
            Numbers::Listed(list) => list.get(node.index()).copied().unwrap_or(0),
        }
    }

    /// Returns the number of workers of the first `nodes` nodes: that of the first worker of the
    /// next node among all.
    #[must_use]
    pub fn all(&self, nodes: usize) -> usize {
        match &self.0 {
            Numbers::Equal(number) => number.saturating_mul(nodes),
            Numbers::Listed(list) => list.iter().take(nodes).sum(),
        }
    }

    /// Returns the numbers of workers of the first `nodes` nodes.
    #[must_use]
    pub fn of_each(&self, nodes: usize) -> Vec<usize> {
        let number = |node| self.of(NodeId(u16::try_from(node).unwrap_or(u16::MAX)));
        (0..nodes).map(number).collect()
    }

    /// Returns true if all nodes have as many.
    #[must_use]
    pub fn are_equal(&self) -> bool {
        match &self.0 {
            Numbers::Equal(_) => true,
            Numbers::Listed(list) => list.iter().all(|number| *number == list[0]),
        }
    }

    /// Returns the length of the list, if it is one.
    #[must_use]
    pub fn listed(&self) -> Option<usize> {
        match &self.0 {
            Numbers::Equal(_) => None,
            Numbers::Listed(list) => Some(list.len()),
        }
    }
}

impl From<usize> for Workers {
    fn from(number: usize) -> Self {
        Self(Numbers::Equal(number))
    }
}

impl From<Vec<usize>> for Workers {
    fn from(list: Vec<usize>) -> Self {
        Self(Numbers::Listed(list.into()))
    }
}

impl<const N: usize> From<[usize; N]> for Workers {
    fn from(list: [usize; N]) -> Self {
        Self::from(list.to_vec())
    }
}

/// A text that is no [`Workers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give a whole number of at least 1, or one for each node, such as 2,1,1")]
pub struct InvalidWorkers;

/// As they are printed.
impl FromStr for Workers {
    type Err = InvalidWorkers;

    fn from_str(text: &str) -> Result<Self, InvalidWorkers> {
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
        let list: Option<Vec<usize>> = text.split(',').map(number).collect();
        match list.ok_or(InvalidWorkers)?.as_slice() {
            [number] => Ok(Self::from(*number)),
            list => Ok(Self::from(list.to_vec())),
        }
    }
}

/// As on the command line: `2`, or `2,1,1`.
impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Numbers::Equal(number) => number.fmt(f),
            Numbers::Listed(list) => {
                let numbers: Vec<String> = list.iter().map(usize::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_a_number_or_one_for_each_node() {
        for (text, workers) in [("2", Workers::from(2)), ("2,1,1", Workers::from([2, 1, 1]))] {
            assert_eq!(text.parse(), Ok(workers.clone()));
            assert_eq!(workers.to_string(), text);
        }
        assert_eq!(" 2, 1".parse(), Ok(Workers::from([2, 1])));
        for text in ["", "0", "2,0", "2,", ",", "-1", "two", "2;1", "2.5"] {
            assert_eq!(text.parse::<Workers>(), Err(InvalidWorkers), "{text}");
        }
    }

    #[test]
    fn nodes_without_a_number_have_no_workers() {
        let workers = Workers::from([2, 1]);
        assert_eq!([0, 1, 2].map(|node| workers.of(NodeId(node))), [2, 1, 0]);
        assert_eq!([0, 1, 2, 3].map(|nodes| workers.all(nodes)), [0, 2, 3, 3]);
        assert_eq!(Workers::from(usize::MAX).all(2), usize::MAX);
    }
}
