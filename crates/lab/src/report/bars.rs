//! Charts with bars: for each place on the x axis a group, in it a bar for each arm.

use maud::Markup;
use plotters::element::{PathElement, Rectangle};
use plotters::style::Color as _;

use super::axis::Axis;
use super::chart::{Context, both_sizes, draw, failed};
use super::style::Style;

/// How strong the upper part of a bar is: 0 can't be seen, 1 is like the lower part.
const UPPER_STRENGTH: f64 = 0.45;

/// A chart with bars.
#[derive(Debug)]
pub(super) struct Bars {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// As many as the x axis has names.
    pub(super) groups: Vec<Vec<Bar>>,
}

/// A bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) style: Style,
    /// Its lower part.
    pub(super) lower: f64,
    /// A paler part on top of it.
    pub(super) upper: f64,
    /// The ends of a line through its top.
    pub(super) ends: Option<(f64, f64)>,
}

impl Bars {
    /// As for [`super::chart::Chart::markup`].
    pub(super) fn markup(&self, description: &str) -> anyhow::Result<Markup> {
        both_sizes(description, |size| {
            draw(size, &self.x, &self.y, |chart| {
                let mut start = -0.5;
                for group in &self.groups {
                    self.draw_group(chart, start, group)?;
                    start += 1.0;
                }
                Ok(())
            })
        })
    }

    fn draw_group(&self, chart: &mut Context<'_>, start: f64, bars: &[Bar]) -> anyhow::Result<()> {
        let count = u32::try_from(bars.len()).unwrap_or(u32::MAX).max(1);
        let width = 0.86 / f64::from(count);
        let mut left = start + 0.07;
        for bar in bars {
            // A gap between neighbours, and no bar as broad as a barn.
            let shown = (width * 0.9).min(0.16);
            let from = left + (width - shown) / 2.0;
            self.draw_bar(chart, *bar, from, from + shown)?;
            left += width;
        }
        Ok(())
    }

    fn draw_bar(
        &self,
        chart: &mut Context<'_>,
        bar: Bar,
        left: f64,
        right: f64,
    ) -> anyhow::Result<()> {
        let colour = bar.style.colour;
        let (middle, top) = (bar.lower, bar.lower + bar.upper);
        let part = |from: f64, to: f64, strength: f64| {
            let corners = [(left, self.y.position(to)), (right, self.y.position(from))];
            Rectangle::new(corners, colour.mix(strength).filled())
        };
        chart
            .draw_series([part(0.0, middle, 1.0)])
            .map_err(failed)?;
        if bar.upper > 0.0 {
            chart
                .draw_series([part(middle, top, UPPER_STRENGTH)])
                .map_err(failed)?;
        }
        if let Some((low, high)) = bar.ends {
            let x = f64::midpoint(left, right);
            let line = vec![(x, self.y.position(low)), (x, self.y.position(high))];
            let stroke = super::style::INK.stroke_width(1);
            chart
                .draw_series([PathElement::new(line, stroke)])
                .map_err(failed)?;
        }
        Ok(())
    }
}
