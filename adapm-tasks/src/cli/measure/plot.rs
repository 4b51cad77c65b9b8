//! The style of all pictures: one font, a colour and a mark for each system, ticks at round
//! numbers.
//!
//! Pictures are SVG: text stays text, and nothing but the standard library is needed to write them.

use crate::System;
use crate::measure::simulate::Contender;
use plotters::coord::Shift;
use plotters::element::{Circle, Polygon};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x27, 0x2e);
/// Text that steps back.
pub(crate) const FAINT: RGBColor = RGBColor(0x6b, 0x72, 0x80);
/// Lines behind the data.
pub(crate) const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
/// The colour of the ground.
pub(crate) const GROUND: RGBColor = RGBColor(0xf6, 0xf7, 0xf9);
/// Colours of data, the most important first (after Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 10] = [
    RGBColor(0x0b, 0x5f, 0xa5),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x8f, 0x6b),
    RGBColor(0xc8, 0x55, 0x0a),
    RGBColor(0x9a, 0x5b, 0x9d),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x4d, 0x4d, 0x4d),
    RGBColor(0x9c, 0x96, 0x0b),
    RGBColor(0x7a, 0x1f, 0x3d),
    RGBColor(0xd4, 0x3f, 0x8d),
];

/// The shape of a point, for those who do not tell colours apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Disc,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Ring,
    Plus,
    Frame,
    Cross,
    Bar,
}

const MARKS: [Mark; COLOURS.len()] = [
    Mark::Disc,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::TriangleDown,
    Mark::Ring,
    Mark::Plus,
    Mark::Frame,
    Mark::Cross,
    Mark::Bar,
];

/// The look of a system in every picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) colour: RGBColor,
    pub(crate) mark: Mark,
}

impl Look {
    /// Returns the look of a system, which no other one has.
    pub(crate) fn of(contender: Contender) -> Self {
        let Contender::System(system) = contender;
        let at = System::ALL.iter().position(|other| other.name() == system.name());
        let at = at.expect("it is one of all");
        // Once all colours are taken, each comes with another mark.
        let looks = COLOURS.len();
        Self { colour: COLOURS[at % looks], mark: MARKS[(at + at / looks) % looks] }
    }

    /// Returns the look of the contender at this place, where no picture but one shows them: those
    /// more than there are colours begin anew.
    pub(crate) fn nth(at: usize) -> Self {
        Self { colour: COLOURS[at % COLOURS.len()], mark: MARKS[at % MARKS.len()] }
    }

    /// Draws the mark, `radius` pixels around a place.
    pub(crate) fn draw_mark<DB: DrawingBackend>(
        self,
        area: &DrawingArea<DB, Shift>,
        (x, y): (i32, i32),
        radius: i32,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let (fill, line) = (self.colour.filled(), self.colour.stroke_width(2));
        let r = radius;
        let polygon = |points: Vec<(i32, i32)>| area.draw(&Polygon::new(points, fill));
        match self.mark {
            Mark::Disc => area.draw(&Circle::new((x, y), r, fill)),
            Mark::Ring => area.draw(&Circle::new((x, y), r, line)),
            Mark::Square => area.draw(&Rectangle::new([(x - r, y - r), (x + r, y + r)], fill)),
            Mark::Frame => area.draw(&Rectangle::new([(x - r, y - r), (x + r, y + r)], line)),
            Mark::Triangle => polygon(vec![(x, y - r - 1), (x + r + 1, y + r), (x - r - 1, y + r)]),
            Mark::TriangleDown => {
                polygon(vec![(x, y + r + 1), (x + r + 1, y - r), (x - r - 1, y - r)])
            }
            Mark::Bar => area.draw(&Rectangle::new([(x - r - 1, y - 1), (x + r + 1, y + 1)], fill)),
            Mark::Diamond => {
                polygon(vec![(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)])
            }
            Mark::Plus | Mark::Cross => {
                let ends = match self.mark {
                    Mark::Plus => [[(x - r, y), (x + r, y)], [(x, y - r), (x, y + r)]],
                    _ => [[(x - r, y - r), (x + r, y + r)], [(x - r, y + r), (x + r, y - r)]],
                };
                ends.into_iter().try_for_each(|ends| {
                    area.draw(&PathElement::new(ends, self.colour.stroke_width(3)))
                })
            }
        }
    }
}

/// Text of `size` pixels in `colour`, placed by its `horizontal` edge and vertical middle.
pub(crate) fn label(size: u32, colour: &RGBColor, horizontal: HPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Returns the same, bold.
pub(crate) fn heading(size: u32, colour: &RGBColor, horizontal: HPos) -> TextStyle<'static> {
    (FONT, size, FontStyle::Bold).into_font().color(colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Returns round numbers in `low..=high`, about `wanted` of them, and the digits after the decimal
/// point that tell them apart.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> (Vec<f64>, usize) {
    let rough = (high - low) / wanted.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return (vec![low], 0);
    }
    let scale = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * scale)
        .find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * scale);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let digits = (-step.log10()).ceil().max(0.0) as usize;
    ((first..=last).map(|tick| tick as f64 * step).collect(), digits)
}

const FONT: &str = "Helvetica, Arial, DejaVu Sans, sans-serif";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distance between two colours, in 0..=441.
    fn distance(one: RGBColor, other: RGBColor) -> f64 {
        let parts = [(one.0, other.0), (one.1, other.1), (one.2, other.2)];
        parts.iter().map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn no_two_systems_look_alike() {
        let mut all: Vec<Contender> = System::ALL.map(Contender::System).to_vec();
        all.extend(
            Contender::all().filter(|contender| !all.contains(contender)).collect::<Vec<_>>(),
        );
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                let (first, second) = (Look::of(*one), Look::of(*other));
                let apart = distance(first.colour, second.colour);
                let same_colour = first.colour == second.colour;
                assert!(apart > 60.0 || same_colour, "{one} and {other} are {apart:.0} apart");
                assert!(!same_colour || first.mark != second.mark, "{one} and {other}");
            }
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0, 5), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0));
        let (values, digits) = ticks(0.5, 0.72, 5);
        let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
        assert_eq!(texts, ["0.50", "0.55", "0.60", "0.65", "0.70"]);
        assert_eq!(ticks(3.0, 3.0, 5).0, [3.0]);
    }
}
