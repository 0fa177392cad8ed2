// The options in force.

import { byId, element, table, words } from "./dom.js";

/** Shows them: those that differ from their defaults at once, all on demand. */
export function showConfiguration(options) {
  const columns = [{ name: "Option" }, { name: "Value" }, { name: "Default" }, { name: "Meaning" }];
  const row = (one) => [element("code", {}, one.option), one.value ?? "–", one.default ?? "none", words(one.meaning)];
  const changed = options.filter((one) => (one.value ?? one.default) !== one.default);
  const scroll = (name, rows) => element("div", { class: "scroll", role: "region", "aria-label": name, tabindex: 0 }, table(name, columns, rows));
  byId("configuration").replaceChildren(
    changed.length > 0
      ? scroll("Options that differ from their defaults", changed.map(row))
      : element("p", { class: "empty" }, "All options have their defaults."),
    element("details", {}, element("summary", {}, `All ${options.length} options`), scroll("All options", options.map(row))));
}
