// Small helpers to make elements. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** An HTML element with attributes (`onclick` and the like are listeners) and children. */
export function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function shape(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

/** Sets the text only if it is another, so that screen readers and the layout are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A sentence in which `code` stands between backticks. */
export function words(sentence) {
  const parts = sentence.split("`");
  return element("span", {}, ...parts.map((part, at) => (at % 2 ? element("code", {}, part) : part)));
}

/** A name as it stands in metrics and the configuration, with what it means below. */
export const named = (name, meaning) => element("span", { class: "named" }, element("code", {}, name), words(meaning));

/** A table with a caption for those who don't see what is around it. */
export function table(caption, columns, rows) {
  const head = columns.map((column) => element("th", { scope: "col", class: column.class }, column.name));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((cell, at) => element(at === 0 ? "th" : "td",
      { scope: at === 0 ? "row" : null, class: columns[at].class }, cell))));
  return element("table", {},
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...body));
}
