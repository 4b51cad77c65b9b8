//! What all pictures share: one font, a few colours that also the colour-blind tell apart, ticks at round numbers.
//!
//! Pictures are SVG: text stays text, and nothing but the standard library is needed to write them.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x27, 0x2e);
/// Text that steps back.
pub(crate) const FAINT: RGBColor = RGBColor(0x6b, 0x72, 0x80);
/// Lines behind the data.
pub(crate) const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
/// What the data lies on.
pub(crate) const GROUND: RGBColor = RGBColor(0xf6, 0xf7, 0xf9);
/// Colours of data, the most important first (after Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0x0b, 0x5f, 0xa5),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x8f, 0x6b),
    RGBColor(0xc8, 0x55, 0x0a),
    RGBColor(0x9a, 0x5b, 0x9d),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x4d, 0x4d, 0x4d),
];

/// Text of `size` pixels in `colour`, placed by its `horizontal` edge and vertical middle.
pub(crate) fn label(size: u32, colour: &RGBColor, horizontal: HPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(colour).pos(Pos::new(horizontal, VPos::Center))
}

/// The same, bold.
pub(crate) fn heading(size: u32, colour: &RGBColor, horizontal: HPos) -> TextStyle<'static> {
    (FONT, size, FontStyle::Bold).into_font().color(colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Round numbers in `low..=high`, about `wanted` of them, and the digits behind the point that tell them apart.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> (Vec<f64>, usize) {
    let rough = (high - low) / wanted.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return (vec![low], 0);
    }
    let scale = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * scale).find(|step| *step >= rough * 0.999);
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

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0, 5), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0));
        let (values, digits) = ticks(0.5, 0.72, 5);
        let texts: Vec<String> = values.iter().map(|value| format!("{value:.digits$}")).collect();
        assert_eq!(texts, ["0.50", "0.55", "0.60", "0.65", "0.70"]);
        assert_eq!(ticks(3.0, 3.0, 5).0, [3.0]);
    }
}
