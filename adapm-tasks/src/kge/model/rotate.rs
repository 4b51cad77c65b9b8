//! RotatE: `-sum |s_k u_k - o_k|` over complex numbers, where `u` rotates (Sun et al., ICLR'19).
//!
//! # Departure
//! The paper keeps phases. Here a relation has complex numbers `r`, and rotates by their directions
//! `u_k = r_k / |r_k|` (1 where that is 0): no sine whose last bit depends on the machine.

use crate::kge::comparison::Comparison;
use crate::kge::model::score::{ScoreFunction, Side};

/// The score function.
pub(crate) struct RotatE;

impl ScoreFunction for RotatE {
    fn comparison(&self) -> Comparison {
        Comparison::Moduli
    }

    fn is_complex(&self) -> bool {
        true
    }

    /// Writes `s * u`, or `conj u * o`: the inverse of a rotation is its conjugate.
    fn query(&self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        let (half, sign) = (query.len() / 2, sign(side));
        for (re, im) in (0..half).map(|k| (k, k + half)) {
            let (_, unit_re, unit_im) = direction(relation[re], sign * relation[im]);
            query[re] = given[re] * unit_re - given[im] * unit_im;
            query[im] = given[re] * unit_im + given[im] * unit_re;
        }
    }

    fn query_gradient(
        &self,
        side: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        let (half, sign) = (of_query.len() / 2, sign(side));
        for (re, im) in (0..half).map(|k| (k, k + half)) {
            let (over_modulus, unit_re, unit_im) = direction(relation[re], sign * relation[im]);
            let (of_re, of_im) = (of_query[re], of_query[im]);
            of_given[re] += of_re * unit_re + of_im * unit_im;
            of_given[im] += of_im * unit_re - of_re * unit_im;
            // Of the gradient only what turns counts, what stretches does not.
            let of_unit_re = of_re * given[re] + of_im * given[im];
            let of_unit_im = of_im * given[re] - of_re * given[im];
            let factor = (of_unit_im * unit_re - of_unit_re * unit_im) * over_modulus;
            of_relation[re] -= factor * unit_im;
            of_relation[im] += sign * factor * unit_re;
        }
    }
}

/// Returns the sign of the rotation: back to the subject, or forth to the object.
fn sign(side: Side) -> f32 {
    match side {
        Side::Object => 1.0,
        Side::Subject => -1.0,
    }
}

/// Returns one over the modulus of a complex number, and its direction; 0 and the direction 1 for
/// 0, which has none.
fn direction(re: f32, im: f32) -> (f32, f32, f32) {
    match (re * re + im * im).sqrt() {
        0.0 => (0.0, 1.0, 0.0),
        modulus => (1.0 / modulus, re / modulus, im / modulus),
    }
}
