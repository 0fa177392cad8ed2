//! Tables, figures and the page around them.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::style;

/// Longer tables under charts are collapsed.
const ROWS_MAX: usize = 20;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    caption: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    /// So many columns on the left are names, not figures.
    names: usize,
}

impl Table {
    pub(super) fn new<T: Into<String>>(
        caption: impl Into<String>,
        names: usize,
        heads: impl IntoIterator<Item = T>,
    ) -> Table {
        Table {
            caption: caption.into(),
            heads: heads.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            names,
        }
    }

    pub(super) fn row(&mut self, fields: impl IntoIterator<Item = String>) {
        self.rows.push(fields.into_iter().collect());
    }

    /// As such, or to be opened if it is long.
    fn under_a_chart(&self) -> Markup {
        if self.rows.len() > ROWS_MAX {
            collapsed("The same figures in a table", &self.markup())
        } else {
            self.markup()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// It scrolls by itself where it is too broad, with the keyboard too.
    pub(super) fn markup(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table {
                    caption { (self.caption) }
                    thead {
                        tr {
                            @for (column, head) in self.heads.iter().enumerate() {
                                th scope="col" .name[column < self.names] { (head) }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (column, field) in row.iter().enumerate() {
                                    @if column < self.names {
                                        th scope="row" .name { (field) }
                                    } @else {
                                        td { (field) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A chart with what belongs to it: legend above, table below.
pub(super) fn figure(title: &str, legend: &Markup, chart: &Markup, table: &Table) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            div.drawn { (legend) (chart) }
            (table.under_a_chart())
        }
    }
}

/// What can be opened.
pub(super) fn collapsed(summary: &str, contents: &Markup) -> Markup {
    html! {
        details {
            summary { (summary) }
            (contents)
        }
    }
}

/// A box that should not be overlooked. `kind`: `good`, `bad` or `note`.
pub(super) fn notice(kind: &str, contents: &Markup) -> Markup {
    html! { p.notice.(kind) { (contents) } }
}

/// A whole page. It asks for nothing but itself.
pub(super) fn page(title: &str, contents: &Markup) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (title) }
                style { (PreEscaped(style::sheet())) }
            }
            body {
                main { (contents) }
            }
        }
    }
    .into_string()
}
