//! Colours, dashes and markers of the arms, and the page's style sheet.
//!
//! A chart is drawn once, in the colours for light pages; a dark page swaps them by rules that name
//! the colours. Each colour has at least 3 : 1 against its background, and arms differ by dash and
//! marker too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};
use plotters::style::RGBColor;

use super::figures::{BASELINE, OURS};

/// Of axes and text in charts.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Of the grid.
pub(super) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Width of the lines that are dashed, pixels. Others are thinner.
pub(super) const LINE_WIDTH: u32 = 2;

/// What stands at a line's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// How an arm is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Style {
    pub(super) colour: RGBColor,
    pub(super) marker: Marker,
    /// As SVG's `stroke-dasharray`.
    dashes: &'static str,
    /// The colour on dark pages.
    dark: &'static str,
}

const fn style(
    colour: (u8, u8, u8),
    dark: &'static str,
    dashes: &'static str,
    marker: Marker,
) -> Style {
    Style {
        colour: RGBColor(colour.0, colour.1, colour.2),
        marker,
        dashes,
        dark,
    }
}

/// The first four belong to certain arms.
const PALETTE: [Style; 9] = [
    style((0x4d, 0x4d, 0x4d), "#c8c8c8", "none", Marker::Circle),
    style((0x00, 0x67, 0xa5), "#5cb8f2", "none", Marker::Square),
    style((0x00, 0x7a, 0x5a), "#35c99b", "2 3", Marker::Triangle),
    style((0x8f, 0x3f, 0x97), "#d796e0", "9 3 2 3", Marker::Diamond),
    style((0xc4, 0x46, 0x01), "#ff9350", "7 4", Marker::Circle),
    style((0x7a, 0x64, 0x00), "#e3c54a", "4 2", Marker::Square),
    style((0x88, 0x22, 0x55), "#f07aa8", "12 3", Marker::Triangle),
    style((0x2b, 0x2b, 0xb0), "#a6a6ff", "1 3", Marker::Diamond),
    style((0x6b, 0x4a, 0x2f), "#d1a37e", "9 3 2 3 2 3", Marker::Circle),
];

/// The style of each arm.
pub(super) type Styles = BTreeMap<String, Style>;

/// A style for each arm: the same for well-known ones in every report.
pub(super) fn styles<'a>(arms: impl IntoIterator<Item = &'a str>) -> Styles {
    let mut styles = Styles::new();
    let mut others = PALETTE[4..].iter().cycle();
    for arm in arms {
        if styles.contains_key(arm) {
            continue;
        }
        let known = [BASELINE, OURS, "hop", "proxysql"];
        let found = match known.iter().position(|&name| name == arm) {
            Some(index) => PALETTE[index],
            None => *others.next().unwrap_or(&PALETTE[4]),
        };
        styles.insert(arm.to_owned(), found);
    }
    styles
}

/// An arm's name as a person would write it: `query cache of 64 MiB` for `builtin_64mib`.
pub(super) fn arm_name(arm: &str) -> String {
    match arm {
        "hop" => "HAProxy".to_owned(),
        "proxysql" => "ProxySQL".to_owned(),
        OURS => "Remora".to_owned(),
        _ => arm
            .strip_prefix("builtin_")
            .and_then(|size| size.strip_suffix("mib"))
            .map_or_else(|| arm.to_owned(), |mib| format!("query cache of {mib} MiB")),
    }
}

/// A colour as charts write it.
fn hexadecimal(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The page's style sheet.
pub(super) fn sheet() -> String {
    let mut sheet = include_str!("report.css").to_owned();
    let (mut dashes, mut dark) = (String::new(), String::new());
    for style in PALETTE {
        let colour = hexadecimal(style.colour);
        // Writing to a string can't fail.
        let _ = writeln!(
            dashes,
            "polyline[stroke=\"{colour}\"][stroke-width=\"{LINE_WIDTH}\"] {{ stroke-dasharray: {} }}",
            style.dashes
        );
        let _ = writeln!(
            dark,
            "[stroke=\"{colour}\"] {{ stroke: {0} }} [fill=\"{colour}\"] {{ fill: {0} }}",
            style.dark
        );
    }
    for (colour, variable) in [(INK, "--ink"), (GRID, "--grid")] {
        let colour = hexadecimal(colour);
        let _ = writeln!(
            dark,
            "[stroke=\"{colour}\"] {{ stroke: var({variable}) }} [fill=\"{colour}\"] {{ fill: var({variable}) }}"
        );
    }
    let _ = write!(
        sheet,
        "{dashes}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"
    );
    sheet
}

/// What tells the arms apart. With lines or, for bars, patches of colour.
pub(super) fn legend(arms: &[&str], styles: &Styles, with_lines: bool) -> Markup {
    html! {
        ul.legend {
            @for arm in arms {
                @if let Some(style) = styles.get(*arm) {
                    li { (sample(*style, with_lines)) " " (arm_name(arm)) }
                }
            }
        }
    }
}

fn sample(style: Style, with_line: bool) -> Markup {
    let colour = hexadecimal(style.colour);
    let shape = match (with_line, style.marker) {
        (false, _) => {
            format!("<rect x=\"10\" y=\"2\" width=\"20\" height=\"12\" fill=\"{colour}\"/>")
        }
        (true, Marker::Circle) => format!("<circle cx=\"20\" cy=\"8\" r=\"4\" fill=\"{colour}\"/>"),
        (true, Marker::Square) => {
            format!("<rect x=\"16\" y=\"4\" width=\"8\" height=\"8\" fill=\"{colour}\"/>")
        }
        (true, Marker::Triangle) => {
            format!("<polygon points=\"20,3 25,12 15,12\" fill=\"{colour}\"/>")
        }
        (true, Marker::Diamond) => {
            format!("<polygon points=\"20,3 25,8 20,13 15,8\" fill=\"{colour}\"/>")
        }
    };
    let line = format!(
        "<polyline points=\"1,8 39,8\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{LINE_WIDTH}\"/>"
    );
    let line = if with_line { line.as_str() } else { "" };
    html! {
        svg width="40" height="16" viewBox="0 0 40 16" aria-hidden="true" {
            (PreEscaped(line)) (PreEscaped(shape))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As WCAG defines it.
    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let luminance = |(red, green, blue): (u8, u8, u8)| {
            let part = |value: u8| {
                let share = f64::from(value) / 255.0;
                if share <= 0.040_45 {
                    share / 12.92
                } else {
                    ((share + 0.055) / 1.055).powf(2.4)
                }
            };
            0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn parsed(text: &str) -> (u8, u8, u8) {
        let part = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (part(1), part(3), part(5))
    }

    #[test]
    fn every_colour_stands_out_from_its_page() {
        for style in PALETTE {
            let RGBColor(red, green, blue) = style.colour;
            assert!(
                contrast((red, green, blue), (255, 255, 255)) >= 3.0,
                "{style:?}"
            );
            assert!(
                contrast(parsed(style.dark), parsed("#16181b")) >= 3.0,
                "{style:?}"
            );
        }
        assert!(sheet().contains("--page: #16181b"));
    }

    #[test]
    fn arms_have_styles_of_their_own() {
        let arms = [
            "direct",
            "builtin_64mib",
            "builtin_256mib",
            "hop",
            "proxysql",
            "remora",
        ];
        let styles = styles(arms);
        for (index, a) in arms.iter().enumerate() {
            for b in &arms[index + 1..] {
                let (a, b) = (styles[*a], styles[*b]);
                assert!(a.colour != b.colour && (a.dashes != b.dashes || a.marker != b.marker));
            }
        }
        assert_eq!(arm_name("builtin_64mib"), "query cache of 64 MiB");
    }
}
