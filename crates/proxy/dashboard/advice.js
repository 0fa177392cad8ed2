// What limits the server: read when somebody asks for it.

import { byId, element, words } from "./dom.js";
import { ask, every } from "./poll.js";

const PAUSE_MS = 10_000;
/** While the server is being read. */
const READING_PAUSE_MS = 1000;

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
      : element("p", {}, "No rule found a limit."),
    answer.fine.length > 0 ? element("p", { class: "quiet" }, "No sign of: ", ...names(answer.fine)) : null,
    ...answer.unjudged.map((one) => element("p", { class: "quiet" }, "Not judged: ", ...names(one.rules), ". ", one.why)),
    element("pre", {}, answer.takeover.trim()),
  ];
}

function shown(answer) {
  if (answer.state === "not_asked") return [];
  if (answer.state === "no_account") return [element("p", { class: "empty" }, "Remora has no account to read the server with. Set ", element("code", {}, "follow.user"), " and restart it.")];
  if (answer.state === "reading") return [element("p", {}, `Reading the server: ${answer.read_s} of ${answer.length_s} s`)];
  if (answer.state === "failed") return [element("p", {}, answer.error)];
  return report(answer);
}

/** Makes the part of the page; asks while `wanted()`. */
export function advice(wanted) {
  let last = "";
  const button = element("button", { type: "button", onclick: begin }, "Read the server for 10 s");
  const body = element("div", { role: "status" });
  const about = "Reads what the server counts, and changes nothing. For a longer time: ";
  byId("advice").append(element("p", {}, about, element("code", {}, "remora advise"), "."), element("p", {}, button), body);

  async function begin() {
    button.disabled = true;
    try {
      await fetch("dashboard/advice", { method: "POST", headers: { "X-Remora-Page": "advice" } });
    } catch {
      body.replaceChildren(element("p", {}, "Remora can’t be reached."));
    }
    part.now();
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

  const pause = () => (byId("advice").dataset.state === "reading" ? READING_PAUSE_MS : PAUSE_MS);
  const part = every(pause, look, { wanted });
  return part;
}
