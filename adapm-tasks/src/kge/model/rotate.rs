//! RotatE: `-sum |s_k u_k - o_k|` over complex numbers, where `u` rotates (Sun et al., ICLR'19).
//!
//! # Departure
//! The paper keeps phases. Here a relation has complex numbers `r`, and rotates by their directions
//! `u_k = r_k / |r_k|` (1 where that is 0): no sine whose last bit depends on the machine.

use crate::kge::comparison::Comparison;
use crate::kge::model::complex::Complex;
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
        Complex.query(side, given, &rotation(relation), query);
    }

    fn query_gradient(
        &self,
        side: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        let (unit, mut of_unit) = (rotation(relation), vec![0.0; relation.len()]);
        Complex.query_gradient(side, (given, &unit), of_query, (of_given, &mut of_unit));
        // Of the gradient only what turns counts, what stretches does not.
        let half = relation.len() / 2;
        for (re, im) in (0..half).map(|k| (k, k + half)) {
            let turn = of_unit[im] * unit[re] - of_unit[re] * unit[im];
            let modulus = modulus(relation[re], relation[im]);
            let factor = if modulus == 0.0 { 0.0 } else { turn / modulus };
            of_relation[re] -= factor * unit[im];
            of_relation[im] += factor * unit[re];
        }
    }
}

/// Returns the directions of complex numbers; 1 for 0.
fn rotation(relation: &[f32]) -> Vec<f32> {
    let half = relation.len() / 2;
    let mut unit = relation.to_vec();
    for (re, im) in (0..half).map(|k| (k, k + half)) {
        match modulus(unit[re], unit[im]) {
            0.0 => unit[re] = 1.0,
            modulus => [unit[re], unit[im]] = [unit[re] / modulus, unit[im] / modulus],
        }
    }
    unit
}

fn modulus(re: f32, im: f32) -> f32 {
    (re * re + im * im).sqrt()
}
