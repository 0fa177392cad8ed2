// What was counted by reason, and which limits were reached.

import { byId, element, named, table } from "./dom.js";
import { count, rate } from "./format.js";
import { ask, every } from "./poll.js";

const PAUSE_MS = 3000;

function counted(caption, name, all, none) {
  if (all.length === 0) return element("p", { class: "empty" }, none);
  const rows = all.map((one) => [named(one.reason, one.meaning), count(one.count)]);
  return table(caption, [{ name }, { name: "Times", class: "number" }], rows);
}

/** Changes of each table, with how many there were a second since the answer before. */
function tables(answer, before) {
  const seconds = before ? (answer.at - before.at) / 1000 : 0;
  const known = new Map(before?.tables.map((one) => [nameOf(one), one.count]));
  const perSecond = (one) => {
    const then = known.get(nameOf(one));
    return seconds > 0 && then !== undefined && one.count >= then ? rate((one.count - then) / seconds) : "–";
  };
  const rows = answer.tables.map((one) => [element("code", {}, nameOf(one)), count(one.count), perSecond(one)]);
  const rest = answer.tables_counted - answer.tables.length;
  const notes = [];
  if (rest > 0) notes.push(`${count(rest)} more tables were changed less often.`);
  if (answer.tables_others > 0) notes.push(`${count(answer.tables_others)} changes were of tables beyond follow.table_counts_max.`);
  if (answer.commits_of_everything > 0) notes.push(`${count(answer.commits_of_everything)} commits counted as a change of everything.`);
  if (rows.length === 0) return [element("p", { class: "empty" }, "The log has shown no change of a table yet."), ...notes.map(note)];
  const columns = [{ name: "Table" }, { name: "Commits", class: "number" }, { name: "a second", class: "number" }];
  return [table("Commits by the table that they changed", columns, rows), ...notes.map(note)];
}

const nameOf = (one) => `${one.schema}.${one.table}`;
const note = (text) => element("p", { class: "quiet" }, text);

/** Shows the tables; asks while `wanted()`. */
export function totals(wanted) {
  let shown = "";
  let before = null;
  async function work() {
    const answer = { at: Date.now(), ...(await ask("totals")) };
    byId("tables").replaceChildren(...tables(answer, before));
    before = answer;
    const now = JSON.stringify([answer.reasons, answer.limits]);
    if (now === shown) return;
    shown = now;
    byId("reasons").replaceChildren(counted("Why statements went to the server", "Reason", answer.reasons,
      "No statement was refused a place in memory yet."));
    byId("limits").replaceChildren(counted("Limits that were reached", "Option", answer.limits,
      "None: no limit of the configuration has kept anything from happening."));
  }
  return every(() => PAUSE_MS, work, { wanted });
}
