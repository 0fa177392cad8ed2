// Opens the dashboard in Chromium, looks at it and does what a person would. Ends with 0 if all was as it should be.
//
//   node browser.mjs URL CHROMIUM MODULES WISHES PRIVATE
//
// What it needs done outside (a load, Remora's end, its start) it asks for by a file in WISHES.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [url, chromiumPath, modules, wishes, privateValue] = process.argv.slice(2);
const require = createRequire(path.join(modules, "from-here.js"));
const { chromium } = require("playwright-core");
const axePath = require.resolve("axe-core/axe.min.js");

// A condition takes a few seconds at most where the machine has nothing else to do.
const PATIENCE_MS = 120_000;

/** Waits until `ready` gives something true; what it gave. */
async function waitFor(what, ready) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  for (;;) {
    last = await ready();
    if (last) return last;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const wish = (name) => writeFileSync(path.join(wishes, name), "");

function step(name) {
  console.log(`${new Date().toISOString()} ${name}`);
}

/** Everything that the browser complains about and every request to somewhere else, in `complaints`. */
function watch(page, complaints, isDown) {
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    // While Remora is down the browser says so for each request.
    if (isDown() && /Failed to load resource/.test(message.text())) return;
    // A wrong token is refused, which the browser reports as well.
    if (/status of 401/.test(message.text()) && message.location().url.endsWith("/flush")) return;
    complaints.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) complaints.push(`request: ${request.url()}`);
  });
}

/** Lets axe judge the page as it is. */
async function audit(page, what) {
  const violations = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} (${node.failureSummary})`).join("; ")}`);
  });
  assert.deepEqual(violations, [], `axe, ${what}`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `${what}: the page is ${overflow} px wider than the window`);
}

const WIDE_AND_PHONE = [["light", 1280], ["dark", 390]];
const ALL_LOOKS = [...WIDE_AND_PHONE, ["dark", 1280], ["light", 390]];

/** In these colours and widths. */
async function auditAll(page, what, looks) {
  for (const [colorScheme, width] of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    step(`audit: ${what}, ${colorScheme}, ${width} px`);
    await audit(page, `${what}, ${colorScheme}, ${width} px`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** A figure's text as a number. */
async function figure(page, name) {
  const text = await page.textContent(`[data-figure="${name}"] dd`);
  return Number(text.replace(/[^0-9.]/g, "") || NaN);
}

/** The text of a column of the queries, row by row. */
const column = (page, name) => page.$$eval(`#digests tbody tr > .${name}`, (cells) => cells.map((cell) => cell.textContent));

async function emptyStates(page) {
  step("empty");
  await page.waitForSelector("text=Nothing asked yet");
  await waitFor("the state", async () => (await page.textContent("#status")).includes("Caching on"));
  await auditAll(page, "nothing asked", WIDE_AND_PHONE);
}

/** What the server says takes ten seconds; other steps go on meanwhile. */
async function serverIsRead(page) {
  step("advice asked for");
  await page.click("#advice button");
  await page.waitForSelector("text=Reading the server: ");
  assert.ok(await page.isDisabled("#advice button"));
}

async function adviceIsShown(page) {
  step("advice");
  await page.waitForSelector("#advice[data-state=done]");
  const shown = await page.textContent("#advice");
  assert.match(shown, /read \d+ times in [\d.]+ s/);
  assert.match(shown, /No sign of: .*connections_exhausted/);
  assert.match(shown, /What Remora could take over/);
  await auditAll(page, "advice", WIDE_AND_PHONE);
}

async function numbersUpdate(page) {
  step("numbers");
  await waitFor("hits", async () => (await figure(page, "Hits")) > 0);
  const samples = await page.getAttribute("#charts figure:first-child svg.chart", "aria-label");
  assert.match(samples, /^Statements per second, last 10 minutes\. Now: /);
  await waitFor("other numbers", async () =>
    (await page.getAttribute("#charts figure:first-child svg.chart", "aria-label")) !== samples);
  const drawn = await page.$$eval("#charts figure:first-child path.area", (paths) => paths.map((path) => path.getAttribute("d")));
  assert.equal(drawn.length, 3);
  assert.ok(drawn.every((d) => d.startsWith("M")), drawn.join());
  // Written by the load, and read from the log.
  await waitFor("changes of the table", async () =>
    /shop\.stock\s*[1-9]/.test(await page.textContent("#tables")));
  await page.click("#windows button:has-text('2 min')");
  assert.match(await page.getAttribute("#charts figure:first-child svg.chart", "aria-label"), /last 2 minutes/);
  await page.click("#charts figure:first-child summary");
  await waitFor("the chart's table", () => page.$("#charts figure:first-child details tbody tr"));
}

async function queriesAreFound(page) {
  step("search and sort");
  await waitFor("all queries", async () => (await column(page, "statement")).length >= 6);
  await page.fill("#search", "STOCK update");
  await waitFor("what was searched", async () => {
    const found = await column(page, "statement");
    return found.length === 1 && found[0].startsWith("UPDATE stock");
  });
  await page.fill("#search", "no such words");
  await page.waitForSelector("text=holds “no such words”");
  await page.fill("#search", "");
  await waitFor("all queries again", async () => (await column(page, "statement")).length >= 6);
}

async function queriesAreSorted(page) {
  const head = page.locator("#digests th:has(button:has-text('Statement'))");
  const sorted = async (compare) => {
    const shown = (await column(page, "statement")).filter((text) => !text.startsWith("all queries"));
    return shown.length >= 5 && shown.every((text, at) => at === 0 || compare(shown[at - 1], text));
  };
  await head.locator("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  await waitFor("the order", () => sorted((one, next) => one < next));
  await page.keyboard.press("Enter");
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  await waitFor("the other order", () => sorted((one, next) => one > next));
  await page.click("#digests th button:has-text('Calls')");
  assert.equal(await head.getAttribute("aria-sort"), null);
  await waitFor("the order of calls", async () => (await column(page, "statement"))[0].startsWith("SELECT name, price_cents"));
}

async function queryIsOpened(page) {
  step("one query");
  await page.click("#digests a:has-text('SELECT NOW()')");
  await page.waitForSelector("#digest h1:has-text('Query ')");
  assert.match(page.url(), /#digest=[0-9a-f]{16}$/);
  await waitFor("its text", async () =>
    (await page.textContent("#digest pre")) === "SELECT NOW(), sold FROM stock WHERE product_id <> ?");
  const reason = await page.textContent("#digest .named");
  assert.match(reason, /^statement_clock_function.* the time of the call/);
  const calls = () => page.textContent("#digest .counts dd");
  await waitFor("its calls", async () => (await calls()) !== "–");
  const before = await calls();
  await waitFor("more calls", async () => (await calls()) !== before);
  await auditAll(page, "one query", ALL_LOOKS);
  // By its address alone.
  await page.reload();
  await page.waitForSelector("#digest pre:has-text('SELECT NOW()')");
  await page.click("#digest a.back");
  await page.waitForSelector("#digests tbody tr a");
  assert.ok(await page.isHidden("#digest"));
}

async function noValueIsShown(page) {
  step("no value");
  const shown = await waitFor("the statement", async () => {
    const shown = await page.evaluate(() => document.documentElement.outerHTML);
    return shown.includes("price_cents = ?") && shown;
  });
  assert.ok(!shown.includes(privateValue), "its value is not there");
}

async function hiddenTabRests(context, page, requests) {
  step("hidden");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  // What was under way ends before another page has asked three times.
  const other = await context.newPage();
  let asked = 0;
  other.on("requestfinished", (request) => { asked += request.url().includes("/live"); });
  await other.goto(url);
  await waitFor("another page's first requests", () => asked >= 2);
  const before = requests();
  const first = asked;
  await waitFor("more of them", () => asked >= first + 3);
  assert.equal(requests(), before, "requests of a hidden page");
  await other.close();
  await page.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await waitFor("requests when it is seen again", () => requests() > before);
}

async function tokenDropsAll(page) {
  step("token");
  page.on("dialog", (dialog) => dialog.accept());
  const drop = async (token) => {
    await page.fill("#token", token);
    await page.click("#control button");
  };
  await drop("wrong");
  await page.waitForSelector("text=That is not the token");
  await drop("the-right-token");
  await page.waitForSelector("text=All results were dropped");
  assert.equal(await page.inputValue("#token"), "", "the token is not kept");
}

async function survivesRestart(page, down) {
  step("restart");
  const run = await page.textContent("#run");
  assert.match(run, /^Remora \d+\.\d+/);
  down.is = true;
  wish("stop");
  await page.waitForSelector("text=Remora can’t be reached");
  await waitFor("the announcement", async () => (await page.textContent("#announce")).includes("can’t be reached"));
  await auditAll(page, "unreachable", WIDE_AND_PHONE);
  wish("start");
  await waitFor("the state", async () => (await page.textContent("#status")).includes("Caching on"));
  down.is = false;
  assert.ok(await page.isHidden("#trouble"));
  await waitFor("hits again", async () => (await figure(page, "Hits")) > 0);
  await waitFor("queries again", async () => (await column(page, "statement")).some((text) => text.startsWith("SELECT name")));
}

const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  await context.addInitScript({ path: axePath });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  const down = { is: false };
  let requests = 0;
  page.on("request", () => { requests += 1; });
  watch(page, complaints, () => down.is);
  const answer = await page.goto(url);
  assert.match(answer.headers()["content-security-policy"], /default-src 'none'/);
  await emptyStates(page);
  wish("load");
  await numbersUpdate(page);
  await serverIsRead(page);
  await queriesAreFound(page);
  await queriesAreSorted(page);
  await auditAll(page, "overview", ALL_LOOKS);
  await noValueIsShown(page);
  await queryIsOpened(page);
  await noValueIsShown(page);
  await adviceIsShown(page);
  await noValueIsShown(page);
  await hiddenTabRests(context, page, () => requests);
  await tokenDropsAll(page);
  await survivesRestart(page, down);
  assert.deepEqual(complaints, []);
  step("done");
} finally {
  await browser.close();
}
