// Dropping all results, where Remora has a token that allows it. The token is typed each time and kept nowhere.

import { byId, element, setText } from "./dom.js";

const SAID = {
  200: "All results were dropped.",
  401: "That is not the token. Nothing was dropped.",
};

/** Makes the part of the page; `show(canFlush)` says whether there is something to allow it. */
export function control() {
  const token = element("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false" });
  const said = element("span", { role: "status", class: "quiet" });
  const button = element("button", { type: "button", onclick: flush }, "Drop all results");
  byId("control").append(
    element("h2", {}, "Drop all results"),
    element("p", {}, "The next queries all go to the server. The token is the one in ", element("code", {}, "admin.token_file"), "."),
    element("p", {}, element("label", { for: "token" }, "Token"), token, " ", button, " ", said));

  async function flush() {
    if (!token.value || !window.confirm("Drop every result? Until they are asked for again, all queries go to the server.")) return;
    const headers = { Authorization: `Bearer ${token.value}` };
    token.value = "";
    try {
      const answer = await fetch("flush", { method: "POST", headers });
      setText(said, SAID[answer.status] ?? `Remora says: ${await answer.text()}`);
    } catch {
      setText(said, "Remora can’t be reached.");
    }
  }

  return { show: (canFlush) => { byId("control").hidden = !canFlush; } };
}
