//! Every model: its score against the definition, gradients against finite differences, and the
//! property it is known for.

use super::*;

const DIM: usize = 6;

fn vector(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 + seed * 101) % 17) as f32 / 8.0 - 1.0).collect()
}

fn models() -> impl Iterator<Item = Model> {
    ModelKind::ALL.iter().map(|kind| Model { kind: *kind, dim: DIM })
}

fn score(model: Model, side: Side, given: &[f32], relation: &[f32], candidate: &[f32]) -> f32 {
    let mut query = vec![0.0; model.dim];
    model.query(side, given, relation, &mut query);
    model.comparison().score(&query, candidate)
}

/// Returns the product of two complex numbers.
fn times((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    (a * c - b * d, a * d + b * c)
}

/// Returns the score by its definition in the paper.
fn defined_score(model: Model, subject: &[f32], relation: &[f32], object: &[f32]) -> f64 {
    let real = |x: &[f32], i: usize| f64::from(x[i]);
    let complex = |x: &[f32], k: usize| (real(x, k), real(x, k + x.len() / 2));
    let (s, r, o) = (subject, relation, object);
    let (all, halves) = (0..model.dim, 0..model.dim / 2);
    match model.kind {
        ModelKind::Complex => {
            let term = |k| {
                times(times(complex(s, k), complex(r, k)), {
                    let (re, im) = complex(o, k);
                    (re, -im)
                })
            };
            halves.map(|k| term(k).0).sum()
        }
        ModelKind::Rescal => {
            let row = |i: usize| {
                (0..model.dim).map(|j| real(r, i * model.dim + j) * real(o, j)).sum::<f64>()
            };
            all.map(|i| real(s, i) * row(i)).sum()
        }
        ModelKind::TransE => {
            let square = |i| (real(s, i) + real(r, i) - real(o, i)).powi(2);
            -all.map(square).sum::<f64>().sqrt()
        }
        ModelKind::DistMult => all.map(|i| real(s, i) * real(r, i) * real(o, i)).sum(),
        ModelKind::RotatE => {
            let modulus = |k| {
                let phase = complex(r, k).1.atan2(complex(r, k).0);
                let (re, im) = times(complex(s, k), (phase.cos(), phase.sin()));
                (re - complex(o, k).0).hypot(im - complex(o, k).1)
            };
            -halves.map(modulus).sum::<f64>()
        }
    }
}

#[test]
fn both_sides_of_a_triple_have_the_score_of_the_definition() {
    for model in models() {
        for seed in 0..20 {
            let (subject, object) = (vector(DIM, 3 * seed), vector(DIM, 3 * seed + 1));
            let relation = vector(model.relation_len(), 3 * seed + 2);
            let expected = defined_score(model, &subject, &relation, &object);
            for (side, given, candidate) in
                [(Side::Object, &subject, &object), (Side::Subject, &object, &subject)]
            {
                let score = score(model, side, given, &relation, candidate);
                let error = (f64::from(score) - expected).abs();
                assert!(error < 1e-5, "{} {side:?}: {score} {expected}", model.kind);
            }
        }
    }
}

/// Checks a gradient of `f` at `x` against central differences.
fn check(what: &str, gradient: &[f32], x: &[f32], f: impl Fn(&[f32]) -> f32) {
    const STEP: f32 = 1.0 / 256.0;
    for (i, gradient) in gradient.iter().enumerate() {
        let moved = |step: f32| {
            let mut moved = x.to_vec();
            moved[i] += step;
            f(&moved)
        };
        let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        assert!((gradient - expected).abs() < 2e-3, "{what} {i}: {gradient} {expected}");
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for model in models() {
        let (given, candidate) = (vector(DIM, 1), vector(DIM, 2));
        let relation = vector(model.relation_len(), 3);
        for side in [Side::Object, Side::Subject] {
            let mut query = vec![0.0; DIM];
            model.query(side, &given, &relation, &mut query);
            let (mut of_query, mut of_candidate) = (vec![0.0; DIM], vec![0.0; DIM]);
            let gradients = (&mut of_query[..], &mut of_candidate[..]);
            model.comparison().add_gradients(1.0, (&query, &candidate), gradients);
            let (mut of_given, mut of_relation) = (vec![0.0; DIM], vec![0.0; relation.len()]);
            let gradients = (&mut of_given[..], &mut of_relation[..]);
            model.query_gradient(side, (&given, &relation), &of_query, gradients);
            let what = |part: &str| format!("{} {side:?} {part}", model.kind);
            check(&what("given"), &of_given, &given, |x| {
                score(model, side, x, &relation, &candidate)
            });
            check(&what("relation"), &of_relation, &relation, |x| {
                score(model, side, &given, x, &candidate)
            });
            check(&what("candidate"), &of_candidate, &candidate, |x| {
                score(model, side, &given, &relation, x)
            });
        }
    }
}

/// Returns the score of an object.
fn of_object(model: Model, subject: &[f32], relation: &[f32], object: &[f32]) -> f32 {
    score(model, Side::Object, subject, relation, object)
}

#[test]
fn complex_is_asymmetric_through_the_imaginary_part_of_the_relation() {
    let model = Model { kind: ModelKind::Complex, dim: 2 };
    // s = 1, r = i, o = i: Re<s, r, conj o> = Re(i * -i) = 1; swapped: Re(i * i * 1) = -1.
    let (s, r, o) = ([1.0, 0.0], [0.0, 1.0], [0.0, 1.0]);
    assert_eq!((of_object(model, &s, &r, &o), of_object(model, &o, &r, &s)), (1.0, -1.0));
}

#[test]
fn transe_translates_whatever_the_origin() {
    let model = Model { kind: ModelKind::TransE, dim: DIM };
    let add = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
    let (s, r, other, by) = (vector(DIM, 1), vector(DIM, 2), vector(DIM, 3), vector(DIM, 4));
    assert_eq!(of_object(model, &s, &r, &add(&s, &r)), 0.0, "the best that is possible");
    let here = of_object(model, &s, &r, &other);
    let there = of_object(model, &add(&s, &by), &r, &add(&other, &by));
    assert!(here < 0.0 && (here - there).abs() < 1e-6, "{here} {there}");
}

#[test]
fn distmult_is_symmetric() {
    let model = Model { kind: ModelKind::DistMult, dim: DIM };
    let (s, r, o) = (vector(DIM, 1), vector(DIM, 2), vector(DIM, 3));
    assert!((of_object(model, &s, &r, &o) - of_object(model, &o, &r, &s)).abs() < 1e-6);
}

#[test]
fn rotate_keeps_moduli_composes_and_inverts() {
    let model = Model { kind: ModelKind::RotatE, dim: DIM };
    let half = DIM / 2;
    let turned = |side, entity: &[f32], relation: &[f32]| {
        let mut turned = vec![0.0; DIM];
        model.query(side, entity, relation, &mut turned);
        turned
    };
    let moduli = |x: &[f32]| (0..half).map(|k| x[k].hypot(x[k + half])).collect::<Vec<_>>();
    let is_near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
    let (s, first, second) = (vector(DIM, 1), vector(DIM, 2), vector(DIM, 3));
    let there = turned(Side::Object, &s, &first);
    assert!(is_near(&moduli(&there), &moduli(&s)) && !is_near(&there, &s));
    assert!(is_near(&turned(Side::Subject, &there, &first), &s), "the subject side goes back");
    // The product of two relations is one after the other, however long their numbers are.
    let mut both = vec![0.0; DIM];
    Model { kind: ModelKind::Complex, dim: DIM }.query(Side::Object, &first, &second, &mut both);
    both.iter_mut().for_each(|x| *x *= 3.0);
    let composed = turned(Side::Object, &there, &second);
    assert!(is_near(&turned(Side::Object, &s, &both), &composed));
    // What has no direction leaves an entity where it is, and is not moved by a gradient.
    assert_eq!(turned(Side::Object, &s, &[0.0; DIM]), s);
    let mut of_relation = [0.0; DIM];
    let gradients = (&mut [0.0; DIM][..], &mut of_relation[..]);
    model.query_gradient(Side::Object, (&s, &[0.0; DIM]), &second, gradients);
    assert_eq!(of_relation, [0.0; DIM]);
}

#[test]
fn n3_gradient_equals_finite_differences() {
    for model in models() {
        let x = vector(DIM, 7);
        let penalty = |x: &[f32]| -> f64 {
            let cube = |square: f32| f64::from(square).powf(1.5) * 0.1;
            if model.kind.is_complex() {
                (0..3).map(|i| cube(x[i] * x[i] + x[i + 3] * x[i + 3])).sum()
            } else {
                x.iter().map(|x| cube(x * x)).sum()
            }
        };
        let mut gradient = vec![0.0; DIM];
        model.n3_gradient(0.1, &x, &mut gradient);
        for i in 0..DIM {
            let mut moved = x.clone();
            moved[i] = x[i] + 1e-3;
            let above = penalty(&moved);
            moved[i] = x[i] - 1e-3;
            let expected = (above - penalty(&moved)) / 2e-3;
            assert!((f64::from(gradient[i]) - expected).abs() < 1e-3, "{} {i}", model.kind);
        }
    }
}

#[test]
fn names_are_read_as_they_are_written_and_others_are_told_all() {
    for kind in ModelKind::ALL {
        assert_eq!(kind.name().parse(), Ok(*kind));
    }
    let error = "distmul".parse::<ModelKind>().expect_err("no model").to_string();
    assert!(ModelKind::NAMES.iter().all(|name| error.contains(name)), "{error}");
}

#[test]
fn values_depend_on_seed_and_key_alone_and_have_the_deviation() {
    let of = |seed, key| {
        let mut cells = vec![0.0; 2000];
        initial_value(seed, 0.1, Key(key), &mut cells);
        cells
    };
    assert_eq!(of(1, 2), of(1, 2));
    assert_ne!(of(1, 2), of(1, 3));
    assert_ne!(of(1, 2), of(2, 2));
    let cells = of(1, 2);
    let square = cells[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
    assert!((square.sqrt() - 0.1).abs() < 0.01, "{}", square.sqrt());
    assert!(cells[1000..].iter().all(|x| *x == AdaGrad::INITIAL));
}
