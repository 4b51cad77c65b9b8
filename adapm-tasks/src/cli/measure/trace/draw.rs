//! A trace as a picture, as AdaPM Figure 15: a panel for each key, a row for each node, time from
//! left to right.
//!
//! A pixel column stands for a stretch of time, and is the fainter the smaller a part of it a state
//! took up; whatever is there at all can be seen.

use adapm_core::NodeId;
use adapm_runtime::trace::{Span, Spans, Trace};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::cli::measure::plot::{COLOURS, FAINT, GRID, GROUND, INK, heading, label, ticks};
use crate::cli::measure::trace::error::TraceFailure;
use crate::cli::measure::trace::shares::shares;
use crate::cli::measure::trace::text;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns the picture of `window` as SVG.
pub(super) fn picture(trace: &Trace, window: Span) -> Result<String, TraceFailure> {
    let rows = trace.nodes().saturating_mul(trace.keys().len());
    if rows > ROWS_MAX {
        return Err(TraceFailure::Rows { rows, most: ROWS_MAX });
    }
    let mut svg = String::new();
    let frame = Frame::of(trace, window);
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, frame.height() as u32))
            .into_drawing_area();
        frame.draw(&area).map_err(|error| TraceFailure::Drawing(error.to_string()))?;
        area.present().map_err(|error| TraceFailure::Drawing(error.to_string()))?;
    }
    Ok(svg)
}

/// The layout of the picture, in pixels.
struct Frame<'t> {
    trace: &'t Trace,
    window: Span,
    /// Height of a node's row.
    row: i32,
    /// Every which node has a label.
    labelled: usize,
    /// Left edge of the data: wide enough for the labels.
    left: i32,
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl<'t> Frame<'t> {
    fn of(trace: &'t Trace, window: Span) -> Self {
        let nodes = i32::try_from(trace.nodes()).unwrap_or(i32::MAX);
        let row = (PANEL_HEIGHT / nodes).clamp(ROW_MIN, ROW_MAX);
        let labelled = usize::try_from(LABEL_HEIGHT / row).unwrap_or(0).max(1);
        let digits = (trace.nodes().max(2) - 1).to_string().len();
        Self { trace, window, row, labelled, left: MARGIN + 16 + 8 * digits as i32 }
    }

    fn rows(&self) -> i32 {
        self.row * self.trace.nodes() as i32
    }

    fn panel(&self) -> i32 {
        TITLE + self.rows() + GAP
    }

    fn height(&self) -> i32 {
        HEAD + self.panel() * self.trace.keys().len() as i32 - GAP + FOOT
    }

    fn columns(&self) -> usize {
        usize::try_from(WIDTH - self.left - MARGIN).unwrap_or(1)
    }

    /// Returns the place of a moment.
    fn x(&self, seconds: f64) -> i32 {
        let (start, length) =
            (self.window.start.nanos() as f64 / 1e9, self.window.nanos() as f64 / 1e9);
        self.left + ((seconds - start) / length * self.columns() as f64).round() as i32
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        area.fill(&WHITE)?;
        let title = "Where the copies of each key were";
        area.draw_text(title, &heading(19, &INK, HPos::Left), (MARGIN, 24))?;
        area.draw_text(
            &text::headline(self.trace, self.window),
            &label(13, &FAINT, HPos::Left),
            (MARGIN, 46),
        )?;
        self.legend(area)?;
        for (index, (key, title)) in self.trace.keys().iter().enumerate() {
            let top = HEAD + self.panel() * index as i32;
            let titled = shortened(&format!("{title} ({key})"), TITLE_CHARS);
            area.draw_text(
                &titled,
                &heading(13, &INK, HPos::Left),
                (self.left, top + TITLE / 2 - 2),
            )?;
            self.draw_panel(area, top + TITLE, &self.trace.spans(*key))?;
        }
        self.time(area)
    }

    fn legend(&self, area: &Area<'_>) -> Drawn {
        let entries =
            [("main copy", MAIN, BAR), ("replica", REPLICA, BAR), ("active intent", INTENT, STRIP)];
        let mut right = WIDTH - MARGIN;
        for (name, colour, height) in entries.iter().rev() {
            let width = 7 * name.len() as i32;
            area.draw_text(name, &label(13, &INK, HPos::Left), (right - width, 24))?;
            let half = (12.0 * height) as i32 / 2;
            let swatch =
                [(right - width - 26, 24 - half.max(2)), (right - width - 7, 24 + half.max(2))];
            area.draw(&Rectangle::new(swatch, colour.filled()))?;
            right -= width + 50;
        }
        let note = "faint: a part of a pixel's time";
        area.draw_text(note, &label(12, &FAINT, HPos::Right), (WIDTH - MARGIN, 46))?;
        Ok(())
    }

    /// Returns the rows of one key, below `top`.
    fn draw_panel(&self, area: &Area<'_>, top: i32, nodes: &[Spans]) -> Drawn {
        let (left, right) = (self.left, self.left + self.columns() as i32);
        for index in 0..nodes.len() {
            let y = top + self.row * index as i32;
            let node = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
            let is_known = self.trace.parts().is_empty() || self.trace.parts().contains(&node);
            if index % 2 == 0 || !is_known {
                let ground = if is_known { GROUND } else { GRID };
                area.draw(&Rectangle::new([(left, y), (right, y + self.row)], ground.filled()))?;
            }
            if index % self.labelled == 0 {
                let style = label(11, &FAINT, HPos::Right);
                area.draw_text(&node.to_string(), &style, (left - 6, y + self.row / 2))?;
            }
        }
        self.grid(area, top)?;
        for (index, spans) in nodes.iter().enumerate() {
            let y = top + self.row * index as i32;
            let bar = ((f64::from(self.row) * BAR).round() as i32).max(1);
            let strip = ((f64::from(self.row) * STRIP).round() as i32).max(1);
            let edge = (self.row - bar - strip) / 2;
            self.band(area, &spans.replica, REPLICA, (y + edge, bar))?;
            self.band(area, &spans.main, MAIN, (y + edge, bar))?;
            self.band(area, &spans.intent, INTENT, (y + edge + bar, strip))?;
        }
        let border = [(left, top), (right, top + self.rows())];
        area.draw(&Rectangle::new(border, GRID.stroke_width(1)))?;
        Ok(())
    }

    /// Lines at round seconds, and at the program's marks.
    fn grid(&self, area: &Area<'_>, top: i32) -> Drawn {
        let bottom = top + self.rows();
        for second in self.ticks().0 {
            let x = self.x(second);
            area.draw(&PathElement::new([(x, top), (x, bottom)], GRID.stroke_width(1)))?;
        }
        for (at, _) in text::marks(self.trace, self.window) {
            let x = self.x(at.end.nanos() as f64 / 1e9);
            area.draw(&PathElement::new(
                [(x, top - 3), (x, bottom)],
                FAINT.mix(0.55).stroke_width(1),
            ))?;
        }
        Ok(())
    }

    /// Returns one state of one row: stretches of columns of about the same share.
    fn band(
        &self,
        area: &Area<'_>,
        spans: &[Span],
        colour: RGBColor,
        (y, height): (i32, i32),
    ) -> Drawn {
        let levels: Vec<u8> =
            shares(spans, self.window, self.columns()).into_iter().map(level).collect();
        let mut start = 0;
        for stretch in levels.chunk_by(|a, b| a == b) {
            let end = start + stretch.len();
            if stretch[0] > 0 {
                let opacity = f64::from(stretch[0]) / f64::from(LEVELS);
                let corners = [(self.left + start as i32, y), (self.left + end as i32, y + height)];
                area.draw(&Rectangle::new(corners, colour.mix(opacity).filled()))?;
            }
            start = end;
        }
        Ok(())
    }

    /// Returns the axis below the last panel, and the names of the program's marks above the first.
    fn time(&self, area: &Area<'_>) -> Drawn {
        let bottom = self.height() - FOOT;
        let (seconds, digits) = self.ticks();
        for second in seconds {
            let at = (self.x(second), bottom + 14);
            area.draw_text(&format!("{second:.digits$}"), &label(12, &INK, HPos::Center), at)?;
        }
        let middle = self.left + self.columns() as i32 / 2;
        area.draw_text(
            "seconds since the start",
            &label(12, &FAINT, HPos::Center),
            (middle, bottom + 34),
        )?;
        let mut free = i32::MIN;
        for (at, what) in text::marks(self.trace, self.window) {
            let (x, what) = (self.x(at.end.nanos() as f64 / 1e9), shortened(what, 24));
            if x >= free && x + 6 * what.len() as i32 <= WIDTH {
                area.draw_text(&what, &label(11, &FAINT, HPos::Left), (x + 2, HEAD - 6))?;
                free = x + 6 * what.len() as i32 + 10;
            }
        }
        Ok(())
    }

    fn ticks(&self) -> (Vec<f64>, usize) {
        ticks(self.window.start.nanos() as f64 / 1e9, self.window.end.nanos() as f64 / 1e9, 10)
    }
}

/// Returns a share as one of a few steps; any share above 0 is visible.
fn level(share: f64) -> u8 {
    if share <= 0.0 {
        0
    } else {
        (LEVELS / 2 - 1).max((share * f64::from(LEVELS)).round() as u8).min(LEVELS)
    }
}

fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars - 3).chain("...".chars()).collect()
}

const MAIN: RGBColor = COLOURS[0];
const REPLICA: RGBColor = COLOURS[1];
const INTENT: RGBColor = COLOURS[2];

const WIDTH: i32 = 1200;
const MARGIN: i32 = 24;
/// Above the panels.
const HEAD: i32 = 84;
/// Below the panels.
const FOOT: i32 = 52;
/// Height of a panel's title.
const TITLE: i32 = 24;
const GAP: i32 = 16;
const TITLE_CHARS: usize = 150;
/// Height of a panel's rows together, as far as the bounds of a row allow.
const PANEL_HEIGHT: i32 = 136;
const ROW_MIN: i32 = 4;
const ROW_MAX: i32 = 24;
/// From one label to the next.
const LABEL_HEIGHT: i32 = 17;
/// Parts of a row: the copy, and the intent below it.
const BAR: f64 = 0.58;
const STRIP: f64 = 0.18;
/// Rows of all panels together.
const ROWS_MAX: usize = 10_000;
/// Steps of opacity.
const LEVELS: u8 = 6;
