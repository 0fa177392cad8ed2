// One chart: lines or stacked areas over time, as SVG, with a legend that tells values and a table for those who
// can't see it.

import { element, setText, shape, table } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 168;
const EDGE = { top: 10, right: 10, bottom: 22, left: 58 };
/** Between two samples that are further apart than so many times their length Remora was not running. */
const GAP = 4;
const MINUTE = 60_000;

/** The time that the pointer is at, in all charts together; none while it is in none. */
let pointed = null;
const charts = [];

function point(ms) {
  pointed = ms;
  for (const chart of charts) chart.showPointed();
}

/** Marks of the time axis: milliseconds before now, and what to call them. */
function timeMarks(spanMs, width) {
  const fine = spanMs <= 2 * MINUTE ? MINUTE / 2 : spanMs <= 5 * MINUTE ? MINUTE : 2 * MINUTE;
  // On a phone they would overlap.
  const step = width < 60 * (spanMs / fine + 1) ? 2 * fine : fine;
  const marks = [];
  for (let before = 0; before <= spanMs; before += step) {
    const name = before === 0 ? "now" : before % MINUTE ? `−${before / 1000} s` : `−${before / MINUTE} min`;
    marks.push([before, name]);
  }
  return marks;
}

/** Runs of points without a gap in time or value between them. */
function runs(points) {
  const all = [[]];
  let before = null;
  for (const one of points) {
    if (one.value === null || (before && one.at - before.at > GAP * one.overMs)) all.push([]);
    if (one.value !== null) all.at(-1).push(one);
    before = one;
  }
  return all.filter((run) => run.length > 0);
}

const pair = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

export class Chart {
  /**
   * `series`: name, class, `value(sample)`, `format(value)` and, for the table, `fold` ("mean" or "max") each.
   * `axis(values)` gives the scale of the values, `mark(value)` the text of a mark. `stacked`: the first lies at the bottom.
   */
  constructor({ title, note, series, axis, mark, stacked = false, empty = "Nothing was asked in this time." }) {
    Object.assign(this, { title, series, axis, mark, stacked, empty });
    this.samples = [];
    this.svg = shape("svg", { role: "img", class: "chart" });
    this.values = series.map(() => element("b", {}, "–"));
    const key = (one, at) => element("li", { class: one.class },
      shape("svg", { class: "key", viewBox: "0 0 18 10", "aria-hidden": "true" },
        stacked ? shape("rect", { class: "area", width: 18, height: 10 }) : shape("path", { class: "line", d: "M0 5H18" })),
      `${one.name} `, this.values[at]);
    // The legend in the order of the picture: the uppermost first.
    const keys = series.map(key);
    this.when = element("span", { class: "when quiet" });
    this.details = element("details", { ontoggle: () => this.showTable() }, element("summary", {}, "As a table",
      element("span", { class: "unseen" }, `: ${title}`)), element("div", { class: "scroll", role: "region", "aria-label": `${title}, minute by minute`, tabindex: 0 }));
    this.root = element("figure", {},
      element("figcaption", {}, element("h3", {}, title), note ? element("span", { class: "quiet" }, note) : null, this.when),
      element("ul", { class: "legend" }, ...(stacked ? keys.reverse() : keys)),
      this.svg, this.details);
    this.svg.addEventListener("pointermove", (event) => point(this.timeAt(event)));
    this.svg.addEventListener("pointerleave", () => point(null));
    charts.push(this);
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  /** Shows these samples, the last `spanMs` before `nowMs`. */
  show(samples, nowMs, spanMs) {
    Object.assign(this, { samples, nowMs, spanMs });
    this.draw();
    this.showPointed();
    if (this.details.open) this.showTable();
  }

  draw() {
    const width = this.svg.clientWidth;
    if (!this.nowMs || width === 0) return;
    this.inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
    const lines = this.series.map((one) =>
      this.samples.map((sample) => ({ at: sample.at_ms, overMs: sample.over_ms, value: one.value(sample) })));
    const heights = this.stacked ? stack(lines) : lines;
    const seen = heights.flat().map((one) => one.value).filter((value) => value !== null);
    this.scale = this.axis(seen);
    this.pointer = shape("line", { class: "pointer", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    const isEmpty = seen.length === 0 || (this.stacked && !seen.some((value) => value > 0));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(...this.grid(), ...this.series.map((one, at) => this.path(one, heights, at)),
      ...(isEmpty ? [this.text(EDGE.left + this.inner.width / 2, HEIGHT / 2 - 6, this.empty, "empty")] : []), this.pointer);
    this.svg.setAttribute("aria-label", this.summary());
    this.showPointed();
  }

  x(ms) {
    return EDGE.left + this.inner.width * (1 - (this.nowMs - ms) / this.spanMs);
  }

  y(value) {
    return EDGE.top + this.inner.height * (1 - Math.max(0, this.scale.place(value)));
  }

  text(x, y, text, name) {
    return shape("text", { x: x.toFixed(1), y: y.toFixed(1), class: name }, text);
  }

  grid() {
    const right = EDGE.left + this.inner.width;
    const drawn = [];
    for (const mark of this.scale.marks) {
      const y = this.y(mark);
      drawn.push(shape("line", { class: "grid", x1: EDGE.left, x2: right, y1: y, y2: y }),
        this.text(EDGE.left - 6, y + 3.5, this.mark(mark), "mark value"));
    }
    for (const [before, name] of timeMarks(this.spanMs, this.inner.width)) {
      const x = this.x(this.nowMs - before);
      drawn.push(this.text(x, HEIGHT - 6, name, before === 0 ? "mark last" : before === this.spanMs ? "mark first" : "mark"));
    }
    return drawn;
  }

  path(one, heights, at) {
    if (!this.stacked) {
      const lines = runs(heights[at]).map((run) => this.line(run, run.length === 1));
      return shape("path", { class: `line ${one.class}`, d: lines.join("") });
    }
    // The floor of each place is the height of the series below.
    const floors = new Map(at > 0 ? heights[at - 1].map((one) => [one.at, one.value]) : []);
    const areas = runs(heights[at]).map((run) => {
      const back = run.toReversed().map((one) => ({ at: one.at, value: floors.get(one.at) ?? 0 }));
      return `${this.line(run)}${this.line(back).replace("M", "L")}Z`;
    });
    return shape("path", { class: `area ${one.class}`, d: areas.join("") });
  }

  line(run, isDot = false) {
    const places = run.map((one) => pair(Math.max(this.x(one.at), EDGE.left), this.y(one.value)));
    return `M${places.join("L")}${isDot ? "h1" : ""}`;
  }

  timeAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE.left) / this.inner.width;
    return this.nowMs - (1 - Math.min(Math.max(share, 0), 1)) * this.spanMs;
  }

  /** What was at the pointer, or else is now. */
  showPointed() {
    if (!this.inner) return;
    const distance = (sample) => Math.abs(sample.at_ms - pointed);
    const nearest = pointed === null ? this.samples.at(-1)
      : this.samples.reduce((best, sample) => (best && distance(best) <= distance(sample) ? best : sample), undefined);
    this.series.forEach((one, at) => {
      const value = nearest ? one.value(nearest) : null;
      setText(this.values[at], value === null ? "–" : one.format(value));
    });
    const isShown = pointed !== null && nearest !== undefined;
    setText(this.when, isShown ? `at ${clock(nearest.at_ms)}` : "");
    this.pointer.setAttribute("visibility", isShown ? "visible" : "hidden");
    if (isShown) {
      const x = this.x(nearest.at_ms).toFixed(1);
      this.pointer.setAttribute("x1", x);
      this.pointer.setAttribute("x2", x);
    }
  }

  summary() {
    const latest = this.samples.at(-1);
    if (!latest) return `${this.title}: no data yet`;
    const told = this.series.map((one) => {
      const value = one.value(latest);
      return `${one.name} ${value === null ? "none" : one.format(value)}`;
    });
    return `${this.title}, last ${this.spanMs / MINUTE} minutes. Now: ${told.join(", ")}.`;
  }

  showTable() {
    if (!this.details.open || !this.nowMs) return;
    const rows = [];
    for (let end = this.nowMs; end > this.nowMs - this.spanMs; end -= MINUTE) {
      const within = this.samples.filter((sample) => sample.at_ms <= end && sample.at_ms > end - MINUTE);
      if (within.length === 0) continue;
      rows.push([clock(end), ...this.series.map((one) => folded(one, within))]);
    }
    const name = (one) => `${one.name}${one.fold === "max" ? ", highest" : ""}`;
    const columns = [{ name: "minute to" }, ...this.series.map((one) => ({ name: name(one), class: "number" }))];
    this.details.lastChild.replaceChildren(table(this.title, columns, rows));
  }
}

function folded(one, samples) {
  const values = samples.map(one.value).filter((value) => value !== null);
  if (values.length === 0) return "–";
  if (one.fold === "max") return one.format(Math.max(...values));
  return one.format(values.reduce((sum, value) => sum + value, 0) / values.length);
}

/** Each series on top of those before it. */
function stack(lines) {
  const heights = [];
  for (const line of lines) {
    const below = heights.at(-1);
    heights.push(line.map((one, at) => ({ ...one, value: (one.value ?? 0) + (below ? below[at].value : 0) })));
  }
  return heights;
}
