//! The objects of `bench --json`. Names of fields are an interface: programs read them.
//!
//! Figure, floor and goal are in `unit`. What there is none of is `null`.

use adapm_tasks::measure::bench::{Goal, Outcome};
use serde::Serialize;

/// One figure, or why there is none.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    group: &'static str,
    what: &'a str,
    value: Option<f64>,
    unit: Option<&'static str>,
    floor: Option<f64>,
    ratio: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    reached: Option<bool>,
    /// What the predecessor in C++ reached, one number or several.
    reference: Option<&'static str>,
    skipped: Option<&'a str>,
}

impl<'a> Row<'a> {
    pub(super) fn new(group: &'static str, outcome: &'a Outcome) -> Self {
        let empty = Self {
            group,
            what: "",
            value: None,
            unit: None,
            floor: None,
            ratio: None,
            at_most: None,
            at_least: None,
            reached: None,
            reference: None,
            skipped: None,
        };
        match outcome {
            Outcome::Skipped { what, why } => Self { what, skipped: Some(why), ..empty },
            Outcome::Measured(figure) => Self {
                what: &figure.what,
                value: Some(figure.value),
                unit: Some(figure.unit),
                floor: figure.floor,
                ratio: figure.ratio(),
                at_most: figure.goal.and_then(|goal| match goal {
                    Goal::AtMost(bound) => Some(bound),
                    Goal::AtLeast(_) => None,
                }),
                at_least: figure.goal.and_then(|goal| match goal {
                    Goal::AtLeast(bound) => Some(bound),
                    Goal::AtMost(_) => None,
                }),
                reached: figure.is_reached(),
                reference: figure.reference,
                ..empty
            },
        }
    }
}
