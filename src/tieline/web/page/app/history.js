// The past of some numbers: what the broker kept, and what has come since, never more than one span of it.

const MOST_SERIES = 64;

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.step = 1;
    this.span = 600;
    this.times = [];
    this.series = new Map();
  }

  /** Take the broker's answer in the place of everything here. */
  load(answer, span) {
    this.clear();
    this.step = answer.step_s;
    this.span = span;
    this.times = answer.time;
    for (const [name, values] of Object.entries(answer.series).slice(0, MOST_SERIES)) this.series.set(name, values);
  }

  /** Add a point if it is due; returns whether so much is missing before it that the broker should be asked. */
  append(time, point) {
    const last = this.times.at(-1) ?? -Infinity;
    if (time < last - 5) this.clear(); // the clock of the broker was set back
    else if (time - last < this.step * 0.9) return false;
    const at = this.times.length;
    this.times.push(time);
    for (const [name, values] of this.series) values.push(point[name] ?? null);
    for (const [name, value] of Object.entries(point)) {
      if (this.series.has(name) || this.series.size >= MOST_SERIES) continue;
      this.series.set(name, [...new Array(at).fill(null), value]);
    }
    this.#trim(time - this.span);
    return at > 0 && time - last > 5 * this.step;
  }

  of(name) {
    return this.series.get(name) ?? [];
  }

  #trim(from) {
    let gone = 0;
    while (gone < this.times.length && this.times[gone] < from) gone += 1;
    if (gone === 0) return;
    this.times.splice(0, gone);
    for (const values of this.series.values()) values.splice(0, gone);
  }
}
