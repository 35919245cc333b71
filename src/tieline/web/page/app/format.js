// Numbers as people read them: few digits, always the unit, "–" for what is unknown and 0 for none.

export const UNKNOWN = "–";
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const clockOf = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

/** Two significant digits where one would be too coarse: 4.2, 38, 341. */
const rounded = (value) => (Math.abs(value) < 9.95 ? value.toFixed(1) : grouped.format(value));

export function count(value) {
  return isKnown(value) ? grouped.format(value) : UNKNOWN;
}

/** Something per second: small ones keep a digit, so that one every other second is not none. */
export function rate(value) {
  if (!isKnown(value)) return UNKNOWN;
  return value > 0 && value < 9.95 ? value.toFixed(1) : grouped.format(value);
}

export function short(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value < 1000) return value < 9.95 && !Number.isInteger(value) ? value.toFixed(1) : grouped.format(value);
  return value < 999_500 ? `${rounded(value / 1e3)}k` : `${rounded(value / 1e6)}M`;
}

/** A number and its unit apart, for figures that print them in two sizes. */
export function durationParts(seconds) {
  if (!isKnown(seconds)) return [UNKNOWN, ""];
  if (seconds <= 0) return ["0", "ms"];
  if (seconds < 0.9995) return [rounded(seconds * 1e3), "ms"];
  if (seconds < 119.5) return [rounded(seconds), "s"];
  if (seconds < 7170) return [grouped.format(seconds / 60), "min"];
  return [grouped.format(seconds / 3600), "h"];
}

export function duration(seconds) {
  return durationParts(seconds).join(" ").trimEnd();
}

/** How long something has lasted, in two units: 2 min 40 s, 3 d 4 h. */
export function span(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => whole >= size);
  const [[large, size], [small, part]] = [units[first], units[first + 1]];
  const rest = Math.floor((whole % size) / part);
  return `${Math.floor(whole / size)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

export function bytesParts(value) {
  if (!isKnown(value)) return [UNKNOWN, ""];
  if (value < 1000) return [grouped.format(value), "B"];
  if (value < 999_500) return [rounded(value / 1e3), "kB"];
  return value < 999.5e6 ? [rounded(value / 1e6), "MB"] : [rounded(value / 1e9), "GB"];
}

export function bytes(value) {
  if (value === 0) return "0";
  return bytesParts(value).join(" ").trimEnd();
}

export function percent(share) {
  if (!isKnown(share)) return UNKNOWN;
  const value = share * 100;
  return `${value < 9.95 ? value.toFixed(1) : grouped.format(value)} %`;
}

/** Bits in a second as kbit/s, the unit of links. */
export function kilobits(value) {
  if (!isKnown(value)) return UNKNOWN;
  return value > 0 ? rounded(value / 1e3) : "0";
}

export function volts(value) {
  return isKnown(value) ? `${value.toFixed(1)} V` : UNKNOWN;
}

export function hertz(value) {
  return isKnown(value) ? `${value.toFixed(2)} Hz` : UNKNOWN;
}

/** The time of day of a moment in seconds since 1970, by the clock of whoever reads. */
export function clock(moment) {
  return isKnown(moment) ? clockOf.format(new Date(moment * 1000)) : UNKNOWN;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
