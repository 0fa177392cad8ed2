// What the runner tells a program (see ../README.md), and how a program answers.

import { readFileSync } from "node:fs";
import { inspect } from "node:util";

const env = process.env;
export const host = env.DRIVER_HOST;
export const ports = { direct: +env.DRIVER_SERVER_PORT, remora: +env.DRIVER_REMORA_PORT };
export const account = { user: env.DRIVER_USER, password: env.DRIVER_PASSWORD };
export const schema = env.DRIVER_SCHEMA;
export const accounts = env.DRIVER_ACCOUNTS.split(" ").filter(Boolean);
export const accountsPassword = env.DRIVER_ACCOUNTS_PASSWORD;
export const tables = env.DRIVER_TABLES.split(" ").filter(Boolean);
export const passedTables = env.DRIVER_PASSED_TABLES.split(" ").filter(Boolean);
export const largeLengths = env.DRIVER_LARGE_LENGTHS.split(" ").filter(Boolean).map(Number);
export const reads = readFileSync(env.DRIVER_READS, "utf8").split("\n").filter(Boolean);
export const tls = env.DRIVER_TLS === "on";
export const authority = tls ? readFileSync(env.DRIVER_TLS_CA) : undefined;
export const wrongAuthority = tls ? readFileSync(env.DRIVER_TLS_WRONG_CA) : undefined;

/** How long reads are repeated until memory answers as many of them as it can. */
export const warmUpMs = 120_000;

/** The driver, or the run, has no such thing. */
export class NotThere extends Error {}

/** Statements that Remora has answered from memory. */
export async function hits() {
  const page = await (await fetch(`http://${env.DRIVER_ADMIN}/metrics`)).text();
  const line = page.split("\n").find((line) => line.startsWith("remora_hits_total "));
  return Number(line.split(" ")[1]);
}

/** Hits since then, at most as many as expected; they are counted after their answers were sent. */
export async function hitsSince(before, expected) {
  for (let tries = 0; tries < 10 && (await hits()) - before < expected; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return Math.min((await hits()) - before, expected);
}

export function say(...words) {
  console.log(words.join(" "));
}

/** Runs one check and reports it in one line. */
export async function check(name, run) {
  const wanted = process.argv.slice(3);
  if (wanted.length > 0 && !wanted.includes(name)) return;
  try {
    await run();
    say("ok", name);
  } catch (error) {
    if (error instanceof NotThere) return say("none", name, error.message);
    if (env.DRIVER_TRACE) console.error(error);
    say("FAIL", name, String(error?.message ?? error).replace(/\s+/g, " ").slice(0, 600));
  }
}

/** A value as text, with its types and all of its parts. */
export function show(value) {
  return inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, breakLength: Infinity });
}

/** The two must be equal; the message shows where they begin to differ. */
export function same(what, seen, expected) {
  const [a, b] = [show(seen), show(expected)];
  if (a === b) return;
  let at = 0;
  while (a[at] === b[at]) at++;
  const start = Math.max(0, at - 40);
  throw new Error(`${what}: through Remora …${a.slice(start, at + 120)} instead of …${b.slice(start, at + 120)}`);
}

export function expect(condition, what) {
  if (!condition) throw new Error(typeof what === "string" ? what : show(what));
}
