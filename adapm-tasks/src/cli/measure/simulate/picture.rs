//! Speed-up and traffic of one workload over the number of nodes, as SVG.

use crate::measure::simulate::{Contender, Task};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::results::{Results, speed_up};
use crate::cli::measure::plot::{FAINT, GRID, GROUND, INK, Look, heading, label};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A line of a panel: points of (nodes, figure).
struct Line {
    contender: Contender,
    points: Vec<(f64, f64)>,
}

/// A panel with logarithmic axes.
struct Panel {
    title: &'static str,
    unit: &'static str,
    lines: Vec<Line>,
    /// A diagonal shows perfect scaling.
    ideal: bool,
}

/// Returns the picture of `task`; what cannot be drawn is left out.
pub(super) fn draw(task: Task, results: &Results) -> String {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
    let drawn = picture(&area, task, results).and_then(|()| Ok(area.present()?));
    drop(area);
    drawn.map_or_else(|_| String::new(), |()| text)
}

fn picture(area: &Area<'_>, task: Task, results: &Results) -> Drawn {
    area.fill(&WHITE)?;
    let title = format!("{} ({task}), modelled", task.title());
    area.draw(&Text::new(title, (MARGIN, 26), heading(19, &INK, HPos::Left)))?;
    let speed = panel(task, results, "raw speed-up over one node (thin: perfect)", "x", true);
    let bytes = panel(task, results, "sent per node and epoch", "GB", false);
    legend(area, &bytes.lines)?;
    speed.draw(area, LEFT)?;
    bytes.draw(area, LEFT + PANEL + GAP)
}

fn panel(
    task: Task,
    results: &Results,
    title: &'static str,
    unit: &'static str,
    ideal: bool,
) -> Panel {
    let mut lines: Vec<Line> = Vec::new();
    for (run, figures) in results.iter().filter(|(run, _)| run.task == task && run.nodes > 1) {
        let value = if ideal {
            speed_up(results, run, figures).unwrap_or(0.0)
        } else {
            figures.bytes_per_node / 1e9
        };
        if value <= 0.0 {
            continue;
        }
        let point = (run.nodes as f64, value);
        match lines.iter_mut().find(|line| line.contender == run.contender) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { contender: run.contender, points: vec![point] }),
        }
    }
    Panel { title, unit, lines, ideal }
}

fn legend(area: &Area<'_>, lines: &[Line]) -> Drawn {
    let mut x = MARGIN;
    for line in lines {
        Look::of(line.contender).draw_mark(area, (x + 5, 52), 5)?;
        let name = line.contender.to_string();
        area.draw(&Text::new(name.clone(), (x + 16, 52), label(14, &INK, HPos::Left)))?;
        x += 44 + (6.6 * name.len() as f64) as i32;
    }
    Ok(())
}

impl Panel {
    fn draw(&self, area: &Area<'_>, left: i32) -> Drawn {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let (mut low_x, mut high_x) = (f64::INFINITY, 2.0_f64);
        let (mut low_y, mut high_y) = (f64::INFINITY, f64::MIN_POSITIVE);
        for (x, y) in points() {
            (low_x, high_x) = (low_x.min(x), high_x.max(x));
            (low_y, high_y) = (low_y.min(y), high_y.max(y));
        }
        if !low_y.is_finite() {
            return Ok(());
        }
        let (low_x, high_x) = (low_x.log2() - 0.25, high_x.log2() + 0.25);
        let base: f64 = if self.ideal { 2.0 } else { 10.0 };
        let (low_y, high_y) =
            (low_y.log(base).floor(), (high_y.log(base).ceil()).max(low_y.log(base).floor() + 1.0));
        let place = |x: f64, y: f64| {
            let right = (x.log2() - low_x) / (high_x - low_x);
            let up = (y.log(base) - low_y) / (high_y - low_y);
            (
                left + (right * f64::from(PANEL)) as i32,
                BOTTOM - (up * f64::from(BOTTOM - TOP)) as i32,
            )
        };
        area.draw(&Rectangle::new([(left, TOP), (left + PANEL, BOTTOM)], GROUND.filled()))?;
        area.draw(&Text::new(self.title, (left, TOP - 14), heading(15, &INK, HPos::Left)))?;
        for power in low_y as i32..=high_y as i32 {
            let value = base.powi(power);
            let (_, y) = place(2.0, value);
            area.draw(&PathElement::new([(left, y), (left + PANEL, y)], GRID.stroke_width(1)))?;
            let text = figure(value, self.unit);
            area.draw(&Text::new(text, (left - 8, y), label(13, &FAINT, HPos::Right)))?;
        }
        let mut nodes: Vec<u64> = points().map(|(x, _)| x as u64).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for count in &nodes {
            let (x, _) = place(*count as f64, base.powf(low_y));
            area.draw(&PathElement::new([(x, TOP), (x, BOTTOM)], GRID.stroke_width(1)))?;
            area.draw(&Text::new(
                count.to_string(),
                (x, BOTTOM + 14),
                label(13, &FAINT, HPos::Center),
            ))?;
        }
        let middle = (left + PANEL / 2, BOTTOM + 34);
        area.draw(&Text::new("nodes", middle, label(13, &FAINT, HPos::Center)))?;
        if self.ideal {
            let ends = nodes.iter().map(|count| *count as f64).filter(|n| n.log2() <= high_y);
            let diagonal: Vec<_> = ends.map(|n| place(n, n)).collect();
            area.draw(&PathElement::new(diagonal, FAINT.mix(0.6).stroke_width(1)))?;
        }
        for (behind, line) in self.lines.iter().enumerate().rev() {
            let look = Look::of(line.contender);
            let places: Vec<_> = line.points.iter().map(|(x, y)| place(*x, *y)).collect();
            area.draw(&PathElement::new(places.clone(), look.colour.stroke_width(2)))?;
            for place in places {
                // What is hidden by a mark in front of it still shows around it.
                look.draw_mark(area, place, 4 + behind as i32)?;
            }
        }
        Ok(())
    }
}

fn figure(value: f64, unit: &str) -> String {
    let (value, unit) =
        if unit == "GB" && value >= 1_000.0 { (value / 1_000.0, "TB") } else { (value, unit) };
    let (value, unit) =
        if unit == "GB" && value < 1.0 { (value * 1_000.0, "MB") } else { (value, unit) };
    let space = if unit == "x" { "" } else { " " };
    // A power of two or ten: four digits after the decimal point are enough, and most need none.
    format!("{}{space}{unit}", (value * 1e4).round() / 1e4)
}

const SIZE: (u32, u32) = (980, 470);
const MARGIN: i32 = 24;
const LEFT: i32 = 84;
const PANEL: i32 = 380;
const GAP: i32 = 100;
const TOP: i32 = 112;
const BOTTOM: i32 = 416;

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_at_the_axes_are_short_and_exact() {
        let texts = [(0.25, "x"), (16.0, "x"), (100.0, "GB"), (1e4, "GB"), (0.01, "GB")];
        let texts = texts.map(|(value, unit)| figure(value, unit));
        assert_eq!(texts, ["0.25x", "16x", "100 GB", "10 TB", "10 MB"]);
    }
}
