//! ComplEx: `Re<s, r, conj o>` over complex numbers (Trouillon et al., ICML'16).

use crate::kge::model::score::{ScoreFunction, Side};

/// The score function.
pub(crate) struct Complex;

impl ScoreFunction for Complex {
    fn is_complex(&self) -> bool {
        true
    }

    /// Writes `s * r`, or `conj r * o`.
    fn query(&self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        let half = query.len() / 2;
        let (real, imaginary) = query.split_at_mut(half);
        let ((e_re, e_im), (r_re, r_im)) = (given.split_at(half), relation.split_at(half));
        match side {
            Side::Object => {
                for i in 0..half {
                    real[i] = e_re[i] * r_re[i] - e_im[i] * r_im[i];
                    imaginary[i] = e_re[i] * r_im[i] + e_im[i] * r_re[i];
                }
            }
            Side::Subject => {
                for i in 0..half {
                    real[i] = r_re[i] * e_re[i] + r_im[i] * e_im[i];
                    imaginary[i] = r_re[i] * e_im[i] - r_im[i] * e_re[i];
                }
            }
        }
    }

    fn query_gradient(
        &self,
        side: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        let half = of_query.len() / 2;
        let (g_re, g_im) = of_query.split_at(half);
        let ((e_re, e_im), (r_re, r_im)) = (given.split_at(half), relation.split_at(half));
        let (de_re, de_im) = of_given.split_at_mut(half);
        let (dr_re, dr_im) = of_relation.split_at_mut(half);
        match side {
            Side::Object => {
                for i in 0..half {
                    de_re[i] += g_re[i] * r_re[i] + g_im[i] * r_im[i];
                    de_im[i] += g_im[i] * r_re[i] - g_re[i] * r_im[i];
                    dr_re[i] += g_re[i] * e_re[i] + g_im[i] * e_im[i];
                    dr_im[i] += g_im[i] * e_re[i] - g_re[i] * e_im[i];
                }
            }
            Side::Subject => {
                for i in 0..half {
                    de_re[i] += g_re[i] * r_re[i] - g_im[i] * r_im[i];
                    de_im[i] += g_re[i] * r_im[i] + g_im[i] * r_re[i];
                    dr_re[i] += g_re[i] * e_re[i] + g_im[i] * e_im[i];
                    dr_im[i] += g_re[i] * e_im[i] - g_im[i] * e_re[i];
                }
            }
        }
    }
}
