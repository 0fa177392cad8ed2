// What limits the server: read when somebody asks for it.

import { byId, element, words } from "./dom.js";
import { ask, every } from "./poll.js";

const PAUSE_MS = 1000;

function finding(one) {
  return element("li", {},
    element("h3", {}, one.about, " ", element("code", {}, one.rule)),
    element("p", {}, one.meaning),
    element("ul", { class: "quiet" }, ...one.evidence.map((line) => element("li", {}, line))),
    element("p", {}, words(one.remedy)),
    one.settings.length > 0 ? element("pre", {}, one.settings.join("\n")) : null);
}

const names = (rules) => rules.flatMap((rule, at) => [at > 0 ? ", " : "", element("code", {}, rule)]);

function report(answer) {
  return [
    element("p", {}, answer.title),
    answer.findings.length > 0
      ? element("ol", { class: "findings" }, ...answer.findings.map(finding))
      : element("p", {}, "Nothing was found that limits this server now."),
    answer.fine.length > 0 ? element("p", { class: "quiet" }, "No sign of: ", ...names(answer.fine)) : null,
    ...answer.unjudged.map((one) => element("p", { class: "quiet" }, "Not judged: ", ...names(one.rules), ". ", one.why)),
    element("h3", {}, "What Remora could take over"),
    element("pre", {}, answer.takeover.trim()),
  ];
}

function shown(answer) {
  if (answer.state === "not_asked") return [];
  if (answer.state === "no_account") return [element("p", { class: "empty" }, "Remora has no account to read the server with: ", element("code", {}, "follow.user"), " is not set.")];
  if (answer.state === "reading") return [element("p", {}, `Reading the server: ${answer.read_s} of ${answer.length_s} s`)];
  if (answer.state === "failed") return [element("p", {}, "The server could not be read: ", answer.error)];
  return report(answer);
}

/** Makes the part of the page; asks while `wanted()`. */
export function advice(wanted) {
  let last = "";
  const button = element("button", { type: "button", onclick: begin }, "Read the server for 10 s");
  const body = element("div", { role: "status" });
  byId("advice").append(element("p", {}, button), body);

  async function begin() {
    button.disabled = true;
    try {
      await fetch("dashboard/advice", { method: "POST" });
    } finally {
      part.now();
    }
  }

  async function look() {
    const answer = await ask("advice");
    button.disabled = answer.state === "reading" || answer.state === "no_account";
    const text = JSON.stringify(answer);
    if (text === last) return;
    last = text;
    byId("advice").dataset.state = answer.state;
    body.replaceChildren(...shown(answer).filter((child) => child !== null));
  }

  const part = every(() => PAUSE_MS, look, { wanted });
  return part;
}
