// The page of one query: #digest=…

import { Chart } from "./chart.js";
import { byId, element, named, setText, table } from "./dom.js";
import { age, bytes, count, micros, percent, rate } from "./format.js";
import { perSecond } from "./history.js";
import { ask, every } from "./poll.js";
import { linear } from "./scales.js";

const PAUSE_MS = 2000;
const MINUTE = 60_000;

const COUNTS = [
  ["Calls", (one) => count(one.calls)],
  ["Hits", (one) => count(one.hits)],
  ["Hit ratio", (one) => percent(one.calls > 0 ? one.hits / one.calls : null)],
  ["Answered by the server", (one) => count(one.misses)],
  ["Results kept", (one) => count(one.fills)],
  ["Writes", (one) => count(one.writes)],
  ["Found outdated", (one) => count(one.outdated)],
  ["Time at the server", (one) => micros(one.miss_us)],
  ["Time from memory", (one) => micros(one.hit_us)],
  ["Saved", (one) => micros(one.saved_us)],
  ["Miss, p99", (one) => micros(one.miss_p99_us)],
  ["Hit, p99", (one) => micros(one.hit_p99_us)],
  ["Sent from memory", (one) => bytes(one.hit_bytes)],
];

const calls = () => new Chart({
  title: "Calls per second",
  note: "in steps of ten seconds",
  stacked: true,
  empty: "Not asked in this time.",
  series: [
    { name: "answered by the server", class: "miss", value: (one) => perSecond(one, one.misses), format: rate },
    { name: "hits", class: "hit", value: (one) => perSecond(one, one.hits), format: rate },
  ],
  axis: (values) => linear(values.reduce((most, value) => Math.max(most, value), 0)),
  mark: rate,
});

/** The steps of `dashboard/digest` as samples of a chart. */
function samples({ ended_ms, step_ms, steps }) {
  return steps.map((step, at) => ({ ...step, over_ms: step_ms, at_ms: ended_ms - (steps.length - 1 - at) * step_ms }));
}

function reasons(one) {
  const rows = one.refusals.map((refused, at) => [named(refused.reason, one.meanings[at]), count(refused.count)]);
  if (one.refusals_of_other_reasons > 0) rows.push([named("others", "Further reasons are counted together."), count(one.refusals_of_other_reasons)]);
  if (rows.length === 0) return element("p", { class: "empty" }, "Every result was kept, or there was none to keep.");
  return table("Why results were not kept", [{ name: "Reason" }, { name: "Times", class: "number" }], rows);
}

/** By what results were outdated. */
function changes(one) {
  const rows = one.outdated_by.map((by) => [`${by.schema}.${by.table}`, count(by.count)]);
  const others = [
    ["other tables", "Further tables are counted together.", one.outdated_by_other_tables],
    ["everything", "A commit may have changed anything, or the log was lost.", one.outdated_by_everything],
    ["unknown", "Something else shared a place with what the result depends on, or its tables were not known any more.", one.outdated_by_unknown],
  ];
  for (const [name, meaning, times] of others) if (times > 0) rows.push([named(name, meaning), count(times)]);
  if (rows.length === 0) return element("p", { class: "empty" }, "No result was found outdated.");
  return table("What outdated results", [{ name: "Changes of" }, { name: "Results", class: "number" }], rows);
}

function durations(one) {
  const used = one.hit_counts.map((hits, at) => hits + one.miss_counts[at]);
  const first = used.findIndex((of) => of > 0);
  if (first < 0) return element("p", { class: "empty" }, "None was measured yet.");
  const last = used.findLastIndex((of) => of > 0);
  const most = Math.max(...one.hit_counts, ...one.miss_counts);
  const cell = (value, kind) => element("span", { class: "bar" },
    element("meter", { class: kind, min: 0, max: most, value, "aria-hidden": "true" }), element("span", {}, count(value)));
  const rows = [];
  for (let at = first; at <= last; at += 1) {
    const bound = one.bounds_us[at];
    const name = bound === undefined ? `over ${micros(one.bounds_us.at(-1))}` : `up to ${micros(bound)}`;
    rows.push([name, cell(one.hit_counts[at], "hit"), cell(one.miss_counts[at], "miss")]);
  }
  const columns = [{ name: "Time" }, { name: "Hits", class: "number" }, { name: "Answered by the server", class: "number" }];
  return table("How long statements took", columns, rows);
}

/** Makes the page; `show(digest)` chooses what it shows. */
export function digestPage() {
  let digest = null;
  const chart = calls();
  const heading = element("h1", {}, "Query");
  const text = element("pre", { class: "sql" });
  const about = element("p", { class: "quiet" });
  const values = COUNTS.map(() => element("dd", {}, "–"));
  const boxes = { reasons: element("div", { class: "scroll" }), changes: element("div", { class: "scroll" }), durations: element("div", { class: "scroll" }) };
  const rest = element("div", {},
    element("dl", { class: "counts" }, ...COUNTS.map(([name], at) => element("div", {}, element("dt", {}, name), values[at]))),
    element("div", { class: "halves" },
      element("section", {}, element("h2", {}, "Lately"), chart.root),
      element("section", {}, element("h2", {}, "How long it took"), boxes.durations)),
    element("div", { class: "halves" },
      element("section", {}, element("h2", {}, "Why results were not kept"), boxes.reasons),
      element("section", {}, element("h2", {}, "What outdated results"), boxes.changes)));
  byId("digest").append(
    element("p", {}, element("a", { href: "#", class: "back" }, "← All queries")),
    heading, text, about, rest);

  function show(one) {
    rest.hidden = false;
    const since = one.digest === null ? one.uptime_ms : one.uptime_ms - one.since_ms;
    setText(heading, one.digest === null ? "All queries without a place of their own" : `Query ${one.digest}`);
    setText(text, one.text ?? "");
    text.hidden = one.text === null;
    setText(about, `Counted for ${age(Math.max(since, 0))}. Values of statements are never kept.`);
    COUNTS.forEach(([, value], at) => setText(values[at], value(one)));
    boxes.durations.replaceChildren(durations(one));
    boxes.reasons.replaceChildren(reasons(one));
    boxes.changes.replaceChildren(changes(one));
    chart.root.hidden = one.history === null;
    if (one.history) chart.show(samples(one.history), one.history.ended_ms, 10 * MINUTE);
  }

  async function work() {
    const asked = digest;
    try {
      const one = await ask("digest", { number: asked });
      if (asked === digest) show(one);
    } catch (error) {
      // Only an answer says something about the query; that there is none is told above.
      if (error.status === undefined || asked !== digest) throw error;
      setText(about, `Remora says: ${error.message}.`);
      rest.hidden = true;
    }
  }

  const poll = every(() => PAUSE_MS, work, { wanted: () => digest !== null });
  return {
    ...poll,
    show(chosen) {
      if (digest === chosen) return;
      digest = chosen;
      rest.hidden = true;
      setText(heading, chosen === null ? "" : `Query ${chosen}`);
      setText(text, "");
      setText(about, "");
    },
  };
}
