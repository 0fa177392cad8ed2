// The page: what it asks Remora for, and when.

import { advice } from "./advice.js";
import { charts } from "./charts.js";
import { showConfiguration } from "./configuration.js";
import { control } from "./control.js";
import { byId, element } from "./dom.js";
import { digestPage } from "./digest.js";
import { digestList } from "./digests.js";
import { History } from "./history.js";
import { ask, every } from "./poll.js";
import { figures, showLive, showLost } from "./status.js";
import { totals } from "./totals.js";

const LIVE_MS = 1000;
const MINUTE = 60_000;
const WINDOWS = [2, 5, 10];

/** What several parts need to know. */
const state = { spanMs: 10 * MINUTE, nowMs: null, store_bytes_max: null, lag_ms_max: null, statements_max: null };
const history = new History();
const all = charts(state);
const showFigures = figures();
const flushing = control();
let lostSince = null;
/** Remora's clock is ahead of the browser's by so much. */
let aheadMs = 0;

const isOverview = () => !byId("overview").hidden;

function show() {
  state.nowMs = Date.now() + aheadMs;
  if (!isOverview()) return;
  const samples = history.since(state.nowMs - state.spanMs);
  for (const chart of all) chart.show(samples, state.nowMs, state.spanMs);
  showFigures(history, state.nowMs);
}

async function configure() {
  const options = await ask("configuration");
  const limit = (name) => {
    const found = options.find(({ option }) => option === name);
    return found ? Number(found.value) : null;
  };
  state.lag_ms_max = limit("follow.lag_ms_max");
  state.statements_max = limit("upstream.statements_max");
  showConfiguration(options);
}

async function live() {
  const answer = await ask("live", { run: history.run ?? "", after: history.last });
  aheadMs = answer.now_ms - Date.now();
  state.store_bytes_max = answer.store_bytes_max;
  const isFirst = history.run === null;
  const isAnother = history.take(answer);
  showLive(answer);
  flushing.show(answer.can_flush);
  const wasLost = lostSince !== null;
  lostSince = null;
  // Another Remora may have other options, and counts anew.
  if (isFirst || isAnother) await configure();
  if (isAnother || wasLost) for (const part of parts) part.now();
  show();
}

function lost() {
  lostSince ??= Date.now();
  showLost(lostSince);
  show();
}

function showWindows() {
  const buttons = WINDOWS.map((minutes) => element("button", {
    type: "button",
    "aria-pressed": String(minutes * MINUTE === state.spanMs),
    onclick: () => {
      state.spanMs = minutes * MINUTE;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === `${minutes} min`));
      show();
    },
  }, `${minutes} min`));
  byId("windows").append(...buttons);
}

/** Shows the digest that the address names, or else the overview. */
function route(event) {
  const digest = new URLSearchParams(location.hash.slice(1)).get("digest");
  byId("overview").hidden = digest !== null;
  byId("digest").hidden = digest === null;
  document.title = digest === null ? "Remora" : `Remora: query ${digest}`;
  page.show(digest);
  if (event) {
    window.scrollTo(0, 0);
    byId("main").focus({ preventScroll: true });
  }
  show();
  for (const part of parts) part.now();
}

const page = digestPage();
const parts = [digestList(isOverview), totals(isOverview), advice(isOverview), page];
showWindows();
every(() => LIVE_MS, live, { failed: lost }).now();
window.addEventListener("hashchange", route);
route();
