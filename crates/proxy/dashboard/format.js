// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** 12,345 */
export const count = (value) => whole.format(value);

/** A rate: one digit behind the point below ten. */
export const rate = (value) => (value > 0 && value < 9.95 ? tenth : whole).format(value);

/** 12.3 %; none without a value. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  if (share >= 1) return "100 %";
  // Almost all is not all.
  return `${tenth.format(Math.min(share * 100, 99.9))} %`;
}

function scaled(value, units, step) {
  let at = 0;
  while (at + 1 < units.length && value >= step(at)) {
    value /= step(at);
    at += 1;
  }
  const text = value >= 100 || Number.isInteger(value) ? whole.format(value)
    : new Intl.NumberFormat("en", { maximumSignificantDigits: value < 10 ? 2 : 3 }).format(value);
  return `${text} ${units[at]}`;
}

/** 12.3 MiB */
export const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], () => 1024);

/** A duration from microseconds: 4.2 µs, 13 ms, 2.5 s, 3 min. */
export function micros(value) {
  if (value === null || value === undefined) return "–";
  const steps = [1000, 1000, 60, 60, 24];
  return scaled(value, ["µs", "ms", "s", "min", "h", "days"], (at) => steps[at]);
}

export const millis = (value) => (value === null || value === undefined ? "–" : micros(value * 1000));

/** A long time in two units: 3 h 12 min. */
export function age(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(0, parts.findIndex(([unit]) => seconds >= unit));
  if (seconds < 1) return "0 s";
  const [unit, name] = parts[at];
  const next = parts[at + 1];
  const rest = next ? Math.floor((seconds % unit) / next[0]) : 0;
  const first = `${whole.format(Math.floor(seconds / unit))} ${name}`;
  return rest > 0 ? `${first} ${rest} ${next[1]}` : first;
}

/** The time of day. */
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
