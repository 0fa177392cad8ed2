//! Charts with lines.

use std::ops::Range;

use anyhow::anyhow;
use maud::{Markup, PreEscaped, html};
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};
use plotters::element::{Circle, EmptyElement, PathElement, Polygon, Rectangle, Text};
use plotters::style::{Color as _, IntoFont as _, RGBAColor, RGBColor};

use super::axis::Axis;
use super::style::{GRID, INK, LINE_WIDTH, Marker, Style};

/// Width and height, pixels.
pub(super) type Size = (u32, u32);

/// For screens and paper.
const WIDE: Size = (760, 380);
/// For phones.
const NARROW: Size = (380, 320);

/// Of labels, pixels.
const FONT_SIZE: u32 = 15;
const LEFT: u32 = 72;
const BELOW: u32 = 46;
const MARGIN: u32 = 12;

pub(super) type Context<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Span, Span>>;

/// The positions of an [`Axis`], and those of them that are written.
pub(super) struct Span {
    ends: Range<f64>,
    written: Vec<f64>,
}

impl Ranged for Span {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (value - self.ends.start) / (self.ends.end - self.ends.start);
        // The type can't be exceeded: positions lie between the ends, and those on pixels of a
        // page.
        #[allow(clippy::cast_possible_truncation)]
        let pixel = (f64::from(first) + share * f64::from(last - first)).round() as i32;
        pixel
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.written.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }
}

/// A chart with lines.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    pub(super) marks: Vec<Mark>,
}

/// A line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) style: Style,
    /// By x.
    pub(super) points: Vec<Point>,
    /// One point in so many has a marker.
    pub(super) markers_every: usize,
}

/// A point of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The ends of the bar through it.
    pub(super) bar: Option<(f64, f64)>,
}

/// A place that the text speaks of: a vertical line, with a word at its top.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) colour: RGBColor,
    pub(super) x: f64,
    pub(super) word: String,
}

impl Chart {
    /// The chart in two sizes, of which a page shows the one that fits. `description` stands for it
    /// where it can't be seen.
    pub(super) fn markup(&self, description: &str) -> anyhow::Result<Markup> {
        both_sizes(description, |size| {
            draw(size, &self.x, &self.y, |chart| {
                for (mark, row) in self.marks.iter().zip(self.rows_of_marks(size)) {
                    self.draw_mark(chart, mark, row)?;
                }
                for line in &self.lines {
                    self.draw_line(chart, line)?;
                }
                Ok(())
            })
        })
    }

    fn draw_line(&self, chart: &mut Context<'_>, line: &Line) -> anyhow::Result<()> {
        let at = |x: f64, y: f64| (self.x.position(x), self.y.position(y));
        let colour = line.style.colour;
        let path: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|point| at(point.x, point.y))
            .collect();
        let bars = line.points.iter().filter_map(|point| {
            let (low, high) = point.bar?;
            Some(PathElement::new(
                vec![at(point.x, low), at(point.x, high)],
                colour.stroke_width(1),
            ))
        });
        chart.draw_series(bars).map_err(failed)?;
        // Dashes would hide what happens within a second, so a line of many points has none.
        let width = if path.len() < 60 { LINE_WIDTH } else { 1 };
        chart
            .draw_series([PathElement::new(path.clone(), colour.stroke_width(width))])
            .map_err(failed)?;
        let marked: Vec<(f64, f64)> = path
            .iter()
            .copied()
            .step_by(line.markers_every.max(1))
            .collect();
        draw_markers(chart, line.style, &marked)
    }

    /// In which row, from the top, the word of each mark stands, so that no word lies on another
    /// one. A negative row is a word to the left of its line, which has no room to the right.
    fn rows_of_marks(&self, size: Size) -> Vec<i32> {
        let ends = self.x.ends();
        let width = f64::from(size.0.saturating_sub(LEFT + 2 * MARGIN));
        let pixel = |x: f64| (self.x.position(x) - ends.start) / (ends.end - ends.start) * width;
        let mut taken: Vec<(i32, f64, f64)> = Vec::new();
        let mut rows = Vec::new();
        for mark in &self.marks {
            let (at, needed) = (pixel(mark.x), f64::from(label_width(&mark.word)));
            let (from, to, side) = if at + needed > width {
                (at - needed, at, -1)
            } else {
                (at, at + needed, 1)
            };
            let is_free = |row: &i32| {
                let mut others = taken.iter();
                !others.any(|(other, low, high)| other == row && from < *high && *low < to)
            };
            let row = (1..=8).find(is_free).unwrap_or(1);
            taken.push((row, from, to));
            rows.push(row * side);
        }
        rows
    }

    fn draw_mark(&self, chart: &mut Context<'_>, mark: &Mark, row: i32) -> anyhow::Result<()> {
        let x = self.x.position(mark.x);
        let ends = self.y.ends();
        let line = vec![(x, ends.start), (x, ends.end)];
        let stroke = mark.colour.stroke_width(1);
        chart
            .draw_series([PathElement::new(line, stroke)])
            .map_err(failed)?;
        let font = ("sans-serif", FONT_SIZE - 1)
            .into_font()
            .color(&mark.colour);
        let height = i32::try_from(FONT_SIZE).unwrap_or(i32::MAX);
        let left = if row < 0 {
            -i32::try_from(label_width(&mark.word)).unwrap_or(i32::MAX)
        } else {
            4
        };
        let place = (left, 1 + (row.abs() - 1) * height);
        let word = EmptyElement::at((x, ends.end)) + Text::new(mark.word.clone(), place, font);
        chart.draw_series([word]).map_err(failed)?;
        Ok(())
    }
}

fn draw_markers(
    chart: &mut Context<'_>,
    style: Style,
    places: &[(f64, f64)],
) -> anyhow::Result<()> {
    let fill = style.colour.filled();
    let places = places.iter().copied();
    let drawn = match style.marker {
        Marker::Circle => chart
            .draw_series(places.map(|at| Circle::new(at, 4, fill)))
            .map(drop),
        Marker::Square => chart
            .draw_series(
                places.map(|at| EmptyElement::at(at) + Rectangle::new([(-4, -4), (4, 4)], fill)),
            )
            .map(drop),
        Marker::Triangle => chart
            .draw_series(places.map(|at| {
                EmptyElement::at(at) + Polygon::new(vec![(0, -5), (5, 4), (-5, 4)], fill)
            }))
            .map(drop),
        Marker::Diamond => chart
            .draw_series(places.map(|at| {
                EmptyElement::at(at) + Polygon::new(vec![(0, -5), (5, 0), (0, 5), (-5, 0)], fill)
            }))
            .map(drop),
    };
    drawn.map_err(failed)
}

/// A chart in both sizes.
pub(super) fn both_sizes(
    description: &str,
    svg: impl Fn(Size) -> anyhow::Result<String>,
) -> anyhow::Result<Markup> {
    let (wide, narrow) = (svg(WIDE)?, svg(NARROW)?);
    Ok(html! {
        div.wide role="img" aria-label=(description) { (PreEscaped(wide)) }
        div.narrow role="img" aria-label=(description) { (PreEscaped(narrow)) }
    })
}

/// An SVG with axes and grid, and what `contents` draws.
pub(super) fn draw(
    size: Size,
    x: &Axis,
    y: &Axis,
    contents: impl FnOnce(&mut Context<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root: DrawingArea<SVGBackend<'_>, Shift> =
            SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let width = size.0.saturating_sub(LEFT + 2 * MARGIN);
        let height = size.1.saturating_sub(BELOW + 2 * MARGIN);
        let columns = x.positions(width, label_width);
        let rows = y.positions(height, |_| FONT_SIZE + 6);
        let mut chart = ChartBuilder::on(&root)
            .margin(MARGIN)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(
                Span {
                    ends: x.ends(),
                    written: columns,
                },
                Span {
                    ends: y.ends(),
                    written: rows,
                },
            )
            .map_err(failed)?;
        let hidden = RGBAColor(0, 0, 0, 0.0);
        chart
            .configure_mesh()
            .light_line_style(hidden)
            .bold_line_style(GRID.stroke_width(1))
            .axis_style(INK.stroke_width(1))
            .label_style(("sans-serif", FONT_SIZE).into_font().color(&INK))
            .x_desc(x.title())
            .y_desc(y.title())
            .x_label_formatter(&|position| x.label(*position))
            .y_label_formatter(&|position| y.label(*position))
            .set_all_tick_mark_size(4)
            .draw()
            .map_err(failed)?;
        contents(&mut chart)?;
        drop(chart);
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Roughly, with some room.
fn label_width(label: &str) -> u32 {
    let letters = u32::try_from(label.chars().count()).unwrap_or(u32::MAX / 100);
    letters * (FONT_SIZE * 3 / 5) + 8
}

/// An error of the library that draws, whose own type isn't one that lasts.
pub(super) fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("can't draw a chart: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_marks_that_are_near_to_each_other_stand_in_rows() {
        let marks = [10.0, 50.0, 52.0, 99.0].map(|x| Mark {
            colour: INK,
            x,
            word: "12.3 %".to_owned(),
        });
        let chart = Chart {
            x: Axis::of_places("hit ratio", "%", &[0.0, 50.0, 100.0]),
            y: Axis::from_zero("queries/s", [1.0]),
            lines: Vec::new(),
            marks: marks.into(),
        };
        assert_eq!(chart.rows_of_marks(WIDE), [1, 1, 2, -1]);
    }
}
