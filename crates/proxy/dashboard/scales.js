// From values to places: linear and logarithmic axes with round marks.

const STEPS = [1, 2, 2.5, 5, 10];

/** An axis from 0 with three to five round marks. Bytes get powers of two. */
export function linear(max, { inBytes = false, least = 1 } = {}) {
  const top = Math.max(max, least);
  const unit = inBytes ? 1024 ** Math.floor(Math.log2(top) / 10) : 1;
  const rough = top / unit / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = STEPS.find((step) => step * power >= rough * 0.999) * power * unit;
  const end = Math.ceil(top / step - 1e-9) * step;
  const marks = [];
  for (let at = 0; at <= Math.round(end / step); at += 1) marks.push(at * step);
  return { marks, place: (value) => Math.min(value / end, 1) };
}

/** An axis of powers of ten that holds all values. */
export function logarithmic(min, max) {
  const low = Math.floor(Math.log10(Math.max(min, 1e-3)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(max, 1e-3))), low + 2);
  const marks = [];
  for (let at = low; at <= high; at += 1) marks.push(10 ** at);
  const place = (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
  return { marks, place };
}

/** A share: the marks are quarters. */
export function share() {
  return { marks: [0, 0.25, 0.5, 0.75, 1], place: (value) => value };
}
