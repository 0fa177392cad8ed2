// The samples of the last minutes, as Remora has taken them.

/** Keeps samples; those of an earlier run of Remora stay, with a gap, until they are too old. */
export class History {
  run = null;
  last = 0;
  samples = [];
  spanMs = 600_000;

  /** Takes an answer of `dashboard/live`. Whether it is of another run than the one before. */
  take(live) {
    const isAnother = this.run !== null && this.run !== live.run;
    if (this.run !== live.run) this.last = 0;
    this.run = live.run;
    for (const sample of live.samples) {
      this.samples.push(sample);
      this.last = sample.number;
    }
    const oldest = live.now_ms - this.spanMs;
    const keep = this.samples.findIndex((sample) => sample.at_ms >= oldest);
    if (keep > 0) this.samples.splice(0, keep);
    if (keep < 0) this.samples.length = 0;
    return isAnother;
  }

  /** Those since a time. */
  since(ms) {
    const from = this.samples.findIndex((sample) => sample.at_ms >= ms);
    return from < 0 ? [] : this.samples.slice(from);
  }

  latest() {
    return this.samples.at(-1);
  }

  /** What happened within the last `ms`, all together. */
  sum(ms, nowMs) {
    const total = { over_ms: 0, hits: 0, misses: 0, writes: 0, passed: 0 };
    for (const sample of this.since(nowMs - ms)) {
      for (const name of Object.keys(total)) total[name] += sample[name];
    }
    return total;
  }
}

/** How often a second something of a sample happened. */
export const perSecond = (sample, value) => (sample.over_ms > 0 ? (value * 1000) / sample.over_ms : 0);

/** The share of hits in what was looked up; none if nothing was. */
export function hitRatio({ hits, misses }) {
  return hits + misses > 0 ? hits / (hits + misses) : null;
}
