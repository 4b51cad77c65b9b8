//! Pictures of a comparison, as SVG: quality over time and epochs, speed-up over nodes, shares of
//! accesses and bytes. What cannot be drawn is left out.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::System;
use crate::cli::measure::compare::figures::{ACCESSES, BYTES, COLUMNS, Merit, Point, Range, Row};
use crate::cli::measure::plot::{COLOURS, FAINT, GRID, GROUND, INK, Look, heading, label, ticks};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A line with the range of its runs around it: points of x, and of y mean, min and max.
struct Line {
    name: String,
    look: Look,
    points: Vec<(f64, Range)>,
}

/// A panel of lines.
struct Panel {
    title: String,
    below: &'static str,
    /// Both axes are logarithmic, and a diagonal shows perfect scaling.
    is_scaling: bool,
    lines: Vec<Line>,
}

/// Returns all pictures by the names of their files.
pub(crate) fn all(rows: &[Row<'_>], merit: &Merit) -> Vec<(&'static str, String)> {
    let over = |below, x: fn(&Point) -> f64| curves(rows, merit, below, x);
    vec![
        ("quality-over-time.svg", panels(over("seconds of training", |point| point.seconds))),
        ("quality-over-epochs.svg", panels(over("epochs", |point| point.epochs))),
        (
            "speed-up.svg",
            panels(vec![
                scaling(rows, "raw_speed_up", "raw speed-up: time of an epoch"),
                scaling(rows, "effective_speed_up", "effective speed-up: time to the target"),
            ]),
        ),
        ("shares.svg", bars(rows)),
    ]
}

/// Returns the systems in the order of their colours.
fn systems(rows: &[Row<'_>]) -> Vec<System> {
    let mut systems: Vec<System> = Vec::new();
    for row in rows {
        if !systems.contains(&row.system) {
            systems.push(row.system);
        }
    }
    systems
}

fn look(rows: &[Row<'_>], system: System) -> Look {
    Look::nth(systems(rows).iter().position(|other| *other == system).unwrap_or(0))
}

/// Returns a panel a number of nodes, with the line of each system.
fn curves(
    rows: &[Row<'_>],
    merit: &Merit,
    below: &'static str,
    x: fn(&Point) -> f64,
) -> Vec<Panel> {
    let mut counts: Vec<usize> = rows.iter().map(|row| row.nodes).collect();
    counts.sort_unstable();
    counts.dedup();
    let reference = System::default();
    let panel = |nodes: usize| {
        let title = format!("{}, {}", merit.name, crate::cli::format::plural(nodes, "node"));
        let is_reference = |row: &&Row<'_>| nodes > 1 && row.nodes == 1 && row.system == reference;
        let alone = rows.iter().filter(is_reference).map(|row| Line {
            name: format!("{} alone", row.system),
            look: Look { colour: FAINT, ..Look::nth(0) },
            points: curve(row, x),
        });
        let lines = rows.iter().filter(|row| row.nodes == nodes).map(|row| Line {
            name: row.system.to_string(),
            look: look(rows, row.system),
            points: curve(row, x),
        });
        Panel { title, below, is_scaling: false, lines: lines.chain(alone).collect() }
    };
    counts.into_iter().map(panel).collect()
}

/// Returns the points that all runs of a row have, epoch by epoch; a run without any, such as one
/// that was stopped before, is left out.
fn curve(row: &Row<'_>, x: fn(&Point) -> f64) -> Vec<(f64, Range)> {
    let curves = row.runs.iter().map(|run| run.curve()).filter(|curve| !curve.is_empty());
    let curves: Vec<Vec<Point>> = curves.collect();
    let epochs = curves.iter().map(Vec::len).min().unwrap_or(0);
    let point = |at: usize| {
        let mean = Range::of(curves.iter().map(|curve| x(&curve[at])))?.mean;
        Some((mean, Range::of(curves.iter().map(|curve| curve[at].quality))?))
    };
    (0..epochs).filter_map(point).collect()
}

fn scaling(rows: &[Row<'_>], field: &str, title: &str) -> Panel {
    let column = COLUMNS.iter().find(|column| column.field == field);
    let line = |system: System| {
        let own = rows.iter().filter(|row| row.system == system);
        let points = own.filter_map(|row| Some((row.nodes as f64, row.range(column?)?)));
        let points = points.filter(|(_, range)| range.min > 0.0).collect();
        Line { name: system.to_string(), look: look(rows, system), points }
    };
    let lines = systems(rows).into_iter().map(line).collect();
    Panel { title: title.to_owned(), below: "nodes", is_scaling: true, lines }
}

fn panels(mut panels: Vec<Panel>) -> String {
    panels.retain_mut(|panel| {
        panel.lines.retain(|line| !line.points.is_empty());
        !panel.lines.is_empty()
    });
    let columns = panels.len().clamp(1, COLUMNS_MAX);
    let lines = panels.len().div_ceil(columns).max(1);
    let size = (columns as i32 * (LEFT + WIDTH) + RIGHT, lines as i32 * LINE);
    drawn(size, |area| {
        for (at, panel) in panels.iter().enumerate() {
            let left = LEFT + (at % columns) as i32 * (LEFT + WIDTH);
            panel.draw(area, (left, (at / columns) as i32 * LINE))?;
        }
        Ok(())
    })
}

/// Draws a picture of this size.
fn drawn((width, height): (i32, i32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let drawn = area
        .fill(&WHITE)
        .map_err(Into::into)
        .and_then(|()| draw(&area))
        .and_then(|()| Ok(area.present()?));
    drop(area);
    drawn.map_or_else(|_| String::new(), |()| text)
}

impl Panel {
    fn draw(&self, area: &Area<'_>, (left, above): (i32, i32)) -> Drawn {
        let scale = |value: f64| if self.is_scaling { value.log2() } else { value };
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let xs = points().map(|(x, _)| scale(*x));
        let ys = points().flat_map(|(_, y)| [y.min, y.max]).map(scale);
        let (Some(xs), Some(mut ys)) = (Range::of(xs), Range::of(ys)) else { return Ok(()) };
        if self.is_scaling {
            // As far up as to the right: the diagonal ends where it would be reached.
            (ys.min, ys.max) = (ys.min.min(xs.min), ys.max.max(xs.max));
        }
        let ends = |ends: Range| {
            let margin =
                ((ends.max - ends.min) * 0.05).max(if self.is_scaling { 0.25 } else { 1e-3 });
            (ends.min - margin, ends.max + margin)
        };
        let (low_x, high_x) = if self.is_scaling { ends(xs) } else { (0.0, ends(xs).1) };
        let (low_y, high_y) = ends(ys);
        let (top, bottom) = (above + TOP, above + TOP + HEIGHT);
        let place = |x: f64, y: f64| {
            let right = (x - low_x) / (high_x - low_x) * f64::from(WIDTH);
            let up = (y - low_y) / (high_y - low_y) * f64::from(HEIGHT);
            (left + right.round() as i32, bottom - up.round() as i32)
        };
        area.draw(&Rectangle::new([(left, top), (left + WIDTH, bottom)], GROUND.filled()))?;
        area.draw(&Text::new(
            self.title.clone(),
            (left, above + 24),
            heading(15, &INK, HPos::Left),
        ))?;
        let (values, texts) = self.axis(low_y, high_y);
        for (value, text) in values.into_iter().zip(texts) {
            let (_, y) = place(low_x, value);
            area.draw(&PathElement::new([(left, y), (left + WIDTH, y)], GRID.stroke_width(1)))?;
            area.draw(&Text::new(text, (left - 8, y), label(13, &FAINT, HPos::Right)))?;
        }
        let (values, texts) = self.axis(low_x, high_x);
        for (value, text) in values.into_iter().zip(texts) {
            let (x, _) = place(value, low_y);
            area.draw(&PathElement::new([(x, top), (x, bottom)], GRID.stroke_width(1)))?;
            area.draw(&Text::new(text, (x, bottom + 14), label(13, &FAINT, HPos::Center)))?;
        }
        let middle = (left + WIDTH / 2, bottom + 34);
        area.draw(&Text::new(self.below, middle, label(13, &FAINT, HPos::Center)))?;
        if self.is_scaling {
            let (low, high) = (low_x.max(low_y), high_x.min(high_y));
            if low < high {
                let diagonal = [place(low, low), place(high, high)];
                area.draw(&PathElement::new(diagonal, FAINT.mix(0.6).stroke_width(1)))?;
            }
        }
        self.legend(area, (left, above + 48))?;
        for line in self.lines.iter().rev() {
            let at = |(x, y): (f64, f64)| place(scale(x), scale(y));
            let upper = line.points.iter().map(|(x, y)| at((*x, y.max)));
            let lower = line.points.iter().rev().map(|(x, y)| at((*x, y.min)));
            let colour = line.look.colour;
            area.draw(&Polygon::new(
                upper.chain(lower).collect::<Vec<_>>(),
                colour.mix(0.15).filled(),
            ))?;
            let means: Vec<_> = line.points.iter().map(|(x, y)| at((*x, y.mean))).collect();
            area.draw(&PathElement::new(means.clone(), colour.stroke_width(2)))?;
            // Marks would hide a line of many points.
            let every = means.len().div_ceil(MARKS_MAX);
            for place in means.into_iter().step_by(every.max(1)) {
                line.look.draw_mark(area, place, 4)?;
            }
        }
        Ok(())
    }

    /// Returns round places of an axis, and what they say.
    fn axis(&self, low: f64, high: f64) -> (Vec<f64>, Vec<String>) {
        if self.is_scaling {
            let powers: Vec<f64> =
                (low.ceil() as i32..=high.floor() as i32).map(f64::from).collect();
            let texts = powers.iter().map(|power| power.exp2().to_string()).collect();
            return (powers, texts);
        }
        let (values, digits) = ticks(low, high, 5);
        let texts = values.iter().map(|value| format!("{value:.digits$}")).collect();
        (values, texts)
    }

    fn legend(&self, area: &Area<'_>, (left, y): (i32, i32)) -> Drawn {
        let mut x = left;
        for line in &self.lines {
            line.look.draw_mark(area, (x + 5, y), 4)?;
            area.draw(&Text::new(line.name.clone(), (x + 14, y), label(12, &INK, HPos::Left)))?;
            x += 30 + (6.4 * line.name.len() as f64) as i32;
        }
        Ok(())
    }
}

/// Draws a bar for each row: on the left its accesses, on the right its bytes, by kind.
fn bars(rows: &[Row<'_>]) -> String {
    let rows: Vec<&Row<'_>> = rows.iter().filter(|row| row.nodes > 1).collect();
    let height = BARS + rows.len() as i32 * BAR + 40;
    let sum = |row: &Row<'_>, column: &str| row.mean(column).unwrap_or(0.0);
    let most = rows.iter().map(|row| sum(row, "bytes_per_node")).fold(0.0, f64::max);
    drawn((NAMES + 2 * (BAR_WIDTH + GAP), height), |area| {
        let right = NAMES + BAR_WIDTH + GAP;
        keys(area, NAMES, "accesses", &ACCESSES.map(str::to_owned))?;
        let kinds = BYTES
            .map(|field| KINDS.iter().find(|(other, _)| *other == field).map_or("", |kind| kind.1));
        keys(area, right, "bytes per node and epoch", &kinds.map(str::to_owned))?;
        for (at, row) in rows.iter().enumerate() {
            let y = BARS + at as i32 * BAR;
            let name = format!("{}, {}", row.system, crate::cli::format::plural(row.nodes, "node"));
            area.draw(&Text::new(name, (NAMES - 10, y + 9), label(13, &INK, HPos::Right)))?;
            let shares = ACCESSES.map(|field| sum(row, &format!("{field}_share")));
            stacked(area, (NAMES, y), f64::from(BAR_WIDTH), &shares)?;
            let bytes = sum(row, "bytes_per_node");
            let shares = BYTES.map(|field| sum(row, &field.replace("_bytes", "_share")));
            let end = if most > 0.0 { bytes / most * f64::from(BAR_WIDTH) } else { 0.0 };
            stacked(area, (right, y), end, &shares)?;
            let text = crate::cli::format::bytes(bytes as u64);
            let place = (right + end as i32 + 6, y + 9);
            area.draw(&Text::new(text, place, label(12, &FAINT, HPos::Left)))?;
        }
        Ok(())
    })
}

/// Draws a bar of this length in parts.
fn stacked(area: &Area<'_>, (left, y): (i32, i32), length: f64, shares: &[f64]) -> Drawn {
    let mut from = 0.0;
    for (share, colour) in shares.iter().zip(COLOURS) {
        let to = from + share * length;
        let ends = [(left + from.round() as i32, y), (left + to.round() as i32, y + BAR - 8)];
        area.draw(&Rectangle::new(ends, colour.filled()))?;
        from = to;
    }
    Ok(())
}

/// Draws a title and which colour is what.
fn keys(area: &Area<'_>, left: i32, title: &str, names: &[String]) -> Drawn {
    area.draw(&Text::new(title.to_owned(), (left, 24), heading(15, &INK, HPos::Left)))?;
    let (mut x, mut y) = (left, 48);
    for (name, colour) in names.iter().zip(COLOURS) {
        let width = 26 + (6.4 * name.len() as f64) as i32;
        if x + width > left + BAR_WIDTH + GAP / 2 {
            (x, y) = (left, y + 18);
        }
        area.draw(&Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()))?;
        area.draw(&Text::new(name.clone(), (x + 15, y), label(12, &INK, HPos::Left)))?;
        x += width;
    }
    Ok(())
}

/// What bytes are for, in the words of tables.
const KINDS: [(&str, &str); BYTES.len()] = [
    ("delta_bytes", "changes"),
    ("refresh_bytes", "refreshes"),
    ("replica_bytes", "replicas"),
    ("relocation_bytes", "relocations"),
    ("operation_bytes", "pushes"),
    ("answer_bytes", "pulls"),
    ("head_bytes", "heads"),
];

const COLUMNS_MAX: usize = 3;
const LEFT: i32 = 84;
const RIGHT: i32 = 24;
const WIDTH: i32 = 360;
const HEIGHT: i32 = 280;
const TOP: i32 = 72;
const LINE: i32 = TOP + HEIGHT + 56;
const MARKS_MAX: usize = 12;
const NAMES: i32 = 190;
const BAR_WIDTH: i32 = 300;
const GAP: i32 = 110;
const BARS: i32 = 92;
const BAR: i32 = 26;
