// The queries: found, sorted and cut off by Remora, so that a page costs the same with ten and with many thousands.

import { byId, element, setText } from "./dom.js";
import { count, micros, percent } from "./format.js";
import { ask, every } from "./poll.js";

const PAUSE_MS = 3000;
/** Remora is asked so rarely that its answers take at most this share of a core. */
const SHARE_MAX = 0.005;
const SHOWN_FIRST = 25;
const TYPING_MS = 150;

/** What a row shows: the heading, what Remora sorts it by, its class, and the cell. */
const COLUMNS = [
  { name: "Statement", sort: "statement", class: "statement", cell: statement },
  { name: "Calls", sort: "calls", class: "number", cell: (one) => count(one.calls) },
  { name: "Hits", sort: "hit_ratio", class: "number", cell: (one) => (one.calls > one.writes ? bar(one.hits / one.calls) : "–") },
  { name: "Time", sort: "time", class: "number", cell: (one) => micros(one.hit_us + one.miss_us) },
  { name: "Saved", sort: "saved", class: "number", cell: (one) => (one.saved_us > 0 ? micros(one.saved_us) : "–") },
  { name: "Miss p99", sort: "miss_p99", class: "number", cell: (one) => micros(one.miss_p99_us) },
  { name: "Outdated", sort: "outdated", class: "number", cell: (one) => (one.outdated > 0 ? count(one.outdated) : "–") },
  { name: "Mostly not kept because", class: "reason", cell: (one) => one.refusals[0]?.reason ?? "–" },
];

function statement(one) {
  const number = one.digest ?? "others";
  const text = one.text ?? "all queries without a place of their own";
  return element("a", { href: `#digest=${number}`, title: text, class: one.text === null ? "" : "sql" }, text);
}

function bar(share) {
  const meter = element("meter", { min: 0, max: 1, value: share.toFixed(3), "aria-hidden": "true" });
  return element("span", { class: "bar" }, meter, element("span", {}, percent(share)));
}

/** Makes the list; it asks while `wanted()`. */
export function digestList(wanted) {
  const asked = { search: "", sort: "time", direction: "descending", count: SHOWN_FIRST };
  let pauseMs = PAUSE_MS;
  let shown = "";
  const buttons = COLUMNS.map((column) => column.sort && element("button", { type: "button", onclick: () => sort(column) },
    column.name, element("span", { class: "arrow", "aria-hidden": "true" })));
  const heads = COLUMNS.map((column, at) => element("th", { scope: "col", class: column.class }, buttons[at] ?? column.name));
  const body = element("tbody");
  byId("digests").append(element("table", {},
    element("caption", { class: "unseen" }, "Queries, by what is sorted by; buttons in the head sort"),
    element("thead", {}, element("tr", {}, ...heads)), body));

  function markSorted() {
    COLUMNS.forEach((column, at) => {
      if (column.sort === asked.sort) heads[at].setAttribute("aria-sort", asked.direction);
      else heads[at].removeAttribute("aria-sort");
    });
  }

  function sort(column) {
    const first = column.sort === "statement" ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    asked.direction = asked.sort === column.sort && asked.direction === first ? other : first;
    asked.sort = column.sort;
    markSorted();
    poll.now();
  }

  const row = (one) => element("tr", {}, ...COLUMNS.map((column, at) =>
    element(at === 0 ? "th" : "td", { class: column.class, scope: at === 0 ? "row" : null }, column.cell(one))));

  function explainNone(answer) {
    const text = answer.counted === 0
      ? "Nothing asked yet. Point an application at Remora, and its queries appear here, without their values."
      : `None of the ${count(answer.counted)} queries holds “${asked.search}”.`;
    return element("tr", {}, element("td", { colspan: COLUMNS.length, class: "empty" }, text));
  }

  function show(answer) {
    const text = answer.found < answer.counted
      ? `${count(answer.found)} of ${count(answer.counted)}` : `${count(answer.counted)}`;
    setText(byId("digests-count"), text);
    byId("more").hidden = answer.found <= answer.digests.length || answer.digests.length >= answer.shown_max;
    // Whoever holds the focus or selects text keeps it while nothing changes.
    const now = JSON.stringify(answer.digests) + (answer.found === 0 ? text + asked.search : "");
    if (now === shown) return;
    shown = now;
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    body.replaceChildren(...(answer.digests.length > 0 ? answer.digests.map(row) : [explainNone(answer)]));
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  async function work() {
    const search = asked.search;
    const answer = await ask("digests", asked);
    pauseMs = Math.max(PAUSE_MS, answer.took_us / 1000 / SHARE_MAX);
    // Typed meanwhile: the next answer is on its way.
    if (search === asked.search) show(answer);
  }

  const poll = every(() => pauseMs, work, { wanted });
  let typing = null;
  byId("search").addEventListener("input", (event) => {
    asked.search = event.target.value.trim();
    asked.count = SHOWN_FIRST;
    clearTimeout(typing);
    typing = setTimeout(poll.now, TYPING_MS);
  });
  byId("more").addEventListener("click", () => {
    asked.count += 100;
    poll.now();
  });
  markSorted();
  return poll;
}
