// Which charts there are.

import { Chart } from "./chart.js";
import { byId } from "./dom.js";
import { bytes, count, micros, millis, percent, rate } from "./format.js";
import { hitRatio, perSecond } from "./history.js";
import { linear, logarithmic, share } from "./scales.js";

const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
const smallest = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);

const throughput = () => new Chart({
  title: "Statements per second",
  stacked: true,
  series: [
    { name: "writes and others", class: "other", value: (one) => perSecond(one, one.writes + one.passed), format: rate },
    { name: "misses", class: "miss", value: (one) => perSecond(one, one.misses), format: rate },
    { name: "hits", class: "hit", value: (one) => perSecond(one, one.hits), format: rate },
  ],
  axis: (values) => linear(largest(values), { least: 4 }),
  mark: count,
});

const latency = () => new Chart({
  title: "Time of a statement",
  note: "logarithmic",
  series: [
    { name: "misses p99", class: "miss", value: (one) => one.miss_p99_us, format: micros, fold: "max" },
    { name: "misses p50", class: "miss dashed", value: (one) => one.miss_p50_us, format: micros },
    { name: "hits p99", class: "hit", value: (one) => one.hit_p99_us, format: micros, fold: "max" },
    { name: "hits p50", class: "hit dashed", value: (one) => one.hit_p50_us, format: micros },
  ],
  axis: (values) => (values.length ? logarithmic(smallest(values), largest(values)) : logarithmic(1, 1000)),
  mark: micros,
});

const ratio = () => new Chart({
  title: "Hit ratio",
  note: "of what was looked up",
  series: [{ name: "hits", class: "hit", value: hitRatio, format: percent }],
  axis: share,
  mark: (value) => (value === 1 ? "100 %" : percent(value)),
});

const memory = (state) => new Chart({
  title: "Memory for results",
  series: [
    { name: "limit", class: "limit dashed", value: () => state.store_bytes_max ?? null, format: bytes },
    { name: "held", class: "hit", value: (one) => one.store_bytes, format: bytes },
  ],
  axis: (values) => linear(largest(values), { inBytes: true, least: 1024 }),
  mark: bytes,
});

const dropped = () => new Chart({
  title: "Results that left memory",
  note: "per second",
  empty: "None left in this time.",
  stacked: true,
  series: [
    { name: "outdated by a change", class: "miss", value: (one) => perSecond(one, one.invalidated), format: rate },
    { name: "made room", class: "other", value: (one) => perSecond(one, one.evicted), format: rate },
  ],
  axis: (values) => linear(largest(values), { least: 4 }),
  mark: count,
});

const lag = (state) => new Chart({
  title: "Behind the server",
  note: "at most",
  empty: "The log is not followed.",
  series: [
    { name: "limit", class: "limit dashed", value: (one) => (one.lag_ms === null ? null : state.lag_ms_max ?? null), format: millis },
    { name: "follower", class: "hit", value: (one) => one.lag_ms, format: millis, fold: "max" },
  ],
  // A follower that was lost for an hour must not flatten everything else for ever: what is cut off is far over the limit.
  axis: (values) => linear(Math.min(largest(values), 4 * (state.lag_ms_max ?? Infinity))),
  mark: millis,
});

const statements = (state) => new Chart({
  title: "Statements at the server",
  empty: "Their number is not limited (upstream.statements_max).",
  series: [
    { name: "limit", class: "limit dashed", value: (one) => (one.statements_running === null ? null : state.statements_max ?? null), format: count },
    { name: "waiting", class: "miss", value: (one) => one.statements_waiting, format: count, fold: "max" },
    { name: "running", class: "hit", value: (one) => one.statements_running, format: count, fold: "max" },
  ],
  axis: (values) => linear(largest(values), { least: 4 }),
  mark: count,
});

/** Makes the charts; `state` holds the limits, which come later. */
export function charts(state) {
  const all = [throughput(), latency(), ratio(), memory(state), dropped(), lag(state), statements(state)];
  byId("charts").append(...all.map((chart) => chart.root));
  return all;
}
