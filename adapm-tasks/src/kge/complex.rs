//! ComplEx: `score = Re<s, r, conj o>`, vectors in the complex numbers.
//!
//! A vector of `dim` reals is `dim / 2` complex numbers, real parts first. Every score is the inner product of a query
//! (made of the relation and the entity that is given) and the candidate's vector.

/// Writes the query of the object side, `s * r`.
pub(crate) fn object_query(subject: &[f32], relation: &[f32], query: &mut [f32]) {
    let half = query.len() / 2;
    let (real, imaginary) = query.split_at_mut(half);
    let ((s_re, s_im), (r_re, r_im)) = (subject.split_at(half), relation.split_at(half));
    for i in 0..half {
        real[i] = s_re[i] * r_re[i] - s_im[i] * r_im[i];
        imaginary[i] = s_re[i] * r_im[i] + s_im[i] * r_re[i];
    }
}

/// Writes the query of the subject side, `conj r * o`.
pub(crate) fn subject_query(object: &[f32], relation: &[f32], query: &mut [f32]) {
    let half = query.len() / 2;
    let (real, imaginary) = query.split_at_mut(half);
    let ((o_re, o_im), (r_re, r_im)) = (object.split_at(half), relation.split_at(half));
    for i in 0..half {
        real[i] = r_re[i] * o_re[i] + r_im[i] * o_im[i];
        imaginary[i] = r_re[i] * o_im[i] - r_im[i] * o_re[i];
    }
}

/// Adds to the gradients of subject and relation what the gradient `slope` of the object-side query means for them.
pub(crate) fn object_query_gradient(
    subject: &[f32],
    relation: &[f32],
    slope: &[f32],
    subject_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let half = slope.len() / 2;
    let (g_re, g_im) = slope.split_at(half);
    let ((s_re, s_im), (r_re, r_im)) = (subject.split_at(half), relation.split_at(half));
    let (ds_re, ds_im) = subject_gradient.split_at_mut(half);
    let (dr_re, dr_im) = relation_gradient.split_at_mut(half);
    for i in 0..half {
        ds_re[i] += g_re[i] * r_re[i] + g_im[i] * r_im[i];
        ds_im[i] += g_im[i] * r_re[i] - g_re[i] * r_im[i];
        dr_re[i] += g_re[i] * s_re[i] + g_im[i] * s_im[i];
        dr_im[i] += g_im[i] * s_re[i] - g_re[i] * s_im[i];
    }
}

/// Adds to the gradients of object and relation what the gradient `slope` of the subject-side query means for them.
pub(crate) fn subject_query_gradient(
    object: &[f32],
    relation: &[f32],
    slope: &[f32],
    object_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let half = slope.len() / 2;
    let (g_re, g_im) = slope.split_at(half);
    let ((o_re, o_im), (r_re, r_im)) = (object.split_at(half), relation.split_at(half));
    let (do_re, do_im) = object_gradient.split_at_mut(half);
    let (dr_re, dr_im) = relation_gradient.split_at_mut(half);
    for i in 0..half {
        do_re[i] += g_re[i] * r_re[i] - g_im[i] * r_im[i];
        do_im[i] += g_re[i] * r_im[i] + g_im[i] * r_re[i];
        dr_re[i] += g_re[i] * o_re[i] + g_im[i] * o_im[i];
        dr_im[i] += g_re[i] * o_im[i] - g_im[i] * o_re[i];
    }
}
