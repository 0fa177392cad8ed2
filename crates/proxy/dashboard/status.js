// The state in the page's head, the figures below it, and what is announced when the state changes.

import { byId, element, setText } from "./dom.js";
import { age, bytes, clock, micros, millis, percent, rate } from "./format.js";
import { hitRatio } from "./history.js";

/** Figures are of the last so many milliseconds. */
const FIGURES_MS = 10_000;

const UPSTREAM = {
  reachable: ["good", "Server reachable"],
  unreachable: ["bad", "Server unreachable"],
  untried: ["open", "Server not tried yet"],
};

const MARKS = { good: "●", bad: "▲", open: "○" };

let announced = null;

/** Says a change of the state to screen readers; not how it was when the page was opened. */
function announce(text) {
  if (announced !== null && announced !== text) setText(byId("announce"), text);
  announced = text;
}

function showStates(states) {
  const text = states.map(([, name]) => name).join(". ");
  announce(text);
  const list = byId("status");
  if (list.dataset.shown === text) return;
  list.dataset.shown = text;
  list.replaceChildren(...states.map(([kind, name]) => element("li", { class: kind },
    element("span", { class: "dot", "aria-hidden": "true" }, MARKS[kind]), name)));
}

function showTrouble(lines, kind) {
  const box = byId("trouble");
  const text = lines.join("\n");
  box.hidden = lines.length === 0;
  if (box.dataset.shown === text) return;
  box.dataset.shown = text;
  box.className = kind;
  box.replaceChildren(...lines.map((line) => element("p", {}, line)));
}

/** Shows what an answer of `dashboard/live` says. */
export function showLive(live) {
  document.body.classList.remove("lost");
  const off = live.caching_off;
  showStates([
    off ? ["bad", `Caching off (${off.reason})`] : ["good", "Caching on"],
    UPSTREAM[live.upstream],
  ]);
  const lines = [];
  if (off) lines.push(`Nothing is served from memory: ${off.meaning} Statements pass through to the server.`);
  if (live.upstream_error) lines.push(`The last connection to the server failed: ${live.upstream_error}`);
  showTrouble(lines, "warning");
  setText(byId("run"), `Remora ${live.version}, up ${age(live.uptime_ms)}`);
}

/** Remora can't be reached since `sinceMs`. */
export function showLost(sinceMs) {
  document.body.classList.add("lost");
  showStates([["bad", "Remora can’t be reached"]]);
  showTrouble([`No answer from ${location.host} since ${clock(sinceMs)}. What is shown is from before; the page goes on by itself when Remora is back.`], "lost");
}

const FIGURES = [
  ["Hits", "/s", ({ sum, seconds }) => seconds && rate(sum.hits / seconds)],
  ["Misses", "/s", ({ sum, seconds }) => seconds && rate(sum.misses / seconds)],
  ["Hit ratio", "", ({ sum }) => percent(hitRatio(sum))],
  ["Hit, p99", "", ({ latest }) => micros(latest?.hit_p99_us)],
  ["Miss, p99", "", ({ latest }) => micros(latest?.miss_p99_us)],
  ["Results held", "", ({ latest }) => latest && `${bytes(latest.store_bytes)}`],
  ["Behind at most", "", ({ latest }) => millis(latest?.lag_ms)],
  ["Clients", "", ({ latest }) => latest && rate(latest.connections)],
];

/** Makes the figures; gives what shows them. */
export function figures() {
  const values = FIGURES.map(() => element("dd", {}, "–"));
  byId("figures").append(...FIGURES.map(([name, unit], at) =>
    element("div", { "data-figure": name }, element("dt", {}, name, unit ? element("span", { class: "quiet" }, unit) : null), values[at])));
  return (history, nowMs) => {
    const sum = history.sum(FIGURES_MS, nowMs);
    const shown = { sum, seconds: sum.over_ms / 1000, latest: history.latest() };
    FIGURES.forEach(([, , value], at) => setText(values[at], value(shown) || "–"));
  };
}
