//! What is told of a measurement: a figure with its floor and its goal, or why there is none.

/// What was measured, in its unit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// What it is, in a few words.
    pub what: String,
    /// Its unit, and that of floor and goal.
    pub unit: &'static str,
    /// The median of what was measured.
    pub value: f64,
    /// The median of the floor, measured in turns with it.
    pub floor: Option<f64>,
    /// The median of the ratios to the floor turn by turn, where a turn is so long that the machine's speed changes from one to the
    /// next.
    pub ratio_of_turns: Option<f64>,
    /// What is to be reached.
    pub goal: Option<Goal>,
    /// What the predecessor in C++ reached on a machine of this kind, one number or several.
    pub reference: Option<&'static str>,
}

impl Figure {
    /// A figure without a floor, a goal and a reference.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            value,
            floor: None,
            ratio_of_turns: None,
            goal: None,
            reference: None,
        }
    }

    /// With this floor.
    #[must_use]
    pub fn beside(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    /// With this goal.
    #[must_use]
    pub fn towards(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// With what the predecessor reached.
    #[must_use]
    pub fn after(self, reference: &'static str) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// How many times the floor it is.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.ratio_of_turns.or_else(|| self.floor.map(|floor| self.value / floor))
    }

    /// Whether the goal is reached, by the ratio of turns where there is one; `None` without a goal.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        let by_turns = self.ratio_of_turns.zip(self.floor).map(|(ratio, floor)| ratio * floor);
        let value = by_turns.unwrap_or(self.value);
        self.goal.map(|goal| match goal {
            Goal::AtMost(bound) => value <= bound,
            Goal::AtLeast(bound) => value >= bound,
        })
    }
}

/// A bound that a figure is to keep, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Less is better.
    AtMost(f64),
    /// More is better.
    AtLeast(f64),
}

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A figure.
    Measured(Figure),
    /// None, as this machine lacks what it needs.
    Skipped {
        /// What would have been measured.
        what: String,
        /// What is missing.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_decide_where_there_are_some() {
        let figure = Figure::new("a rate", "1/s", 90.0).beside(100.0).towards(Goal::AtLeast(80.0));
        assert_eq!((figure.ratio(), figure.is_reached()), (Some(0.9), Some(true)));
        let figure = Figure { ratio_of_turns: Some(0.75), ..figure };
        assert_eq!((figure.ratio(), figure.is_reached()), (Some(0.75), Some(false)));
    }
}
