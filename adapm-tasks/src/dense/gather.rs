//! Means over lists of rows, such as a node and its neighbours.

use crate::dense::add_scaled;

/// Lists of places of rows, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    ends: Vec<usize>,
    members: Vec<u32>,
}

impl Lists {
    /// Appends a list.
    pub(crate) fn push(&mut self, members: impl IntoIterator<Item = u32>) {
        self.members.extend(members);
        self.ends.push(self.members.len());
    }

    /// Returns the number of lists.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the lists, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.members[start..*end])
    }

    /// Writes the mean of each list's rows: `[lists x width]`.
    pub(crate) fn forward(&self, rows: &[f32], width: usize, means: &mut Vec<f32>) {
        means.clear();
        means.resize(self.len() * width, 0.0);
        for (mean, list) in means.chunks_mut(width).zip(self.iter()) {
            for member in list {
                let at = *member as usize * width;
                add_scaled(mean, 1.0, &rows[at..at + width]);
            }
            mean.iter_mut().for_each(|sum| *sum /= list.len() as f32);
        }
    }

    /// Adds the slopes of the rows, for these slopes of the means.
    pub(crate) fn backward(&self, slopes: &[f32], width: usize, row_slopes: &mut [f32]) {
        for (slope, list) in slopes.chunks(width).zip(self.iter()) {
            for member in list {
                let at = *member as usize * width;
                add_scaled(&mut row_slopes[at..at + width], 1.0 / list.len() as f32, slope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::checking::{assert_gradient, random};
    use crate::dense::inner;

    fn lists() -> Lists {
        let mut lists = Lists::default();
        lists.push([0, 2, 3]);
        lists.push([1]);
        lists.push([3, 0]);
        lists
    }

    #[test]
    fn means_are_over_the_rows_of_each_list() {
        let mut means = Vec::new();
        lists().forward(&[1.0, 0.0, 5.0, 6.0, 2.0, 3.0, 3.0, 0.0], 2, &mut means);
        assert_eq!(means, [2.0, 1.0, 5.0, 6.0, 2.0, 0.0]);
        assert_eq!(lists().iter().map(<[u32]>::len).collect::<Vec<_>>(), [3, 1, 2]);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (lists, rows, slopes) = (lists(), random(4 * 3, 1), random(3 * 3, 2));
        let mut row_slopes = vec![0.0; rows.len()];
        lists.backward(&slopes, 3, &mut row_slopes);
        assert_gradient(&rows, &row_slopes, |rows| {
            let mut means = Vec::new();
            lists.forward(rows, 3, &mut means);
            f64::from(inner(&means, &slopes))
        });
    }
}
