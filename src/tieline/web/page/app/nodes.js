// The nodes of a grid as their readings tell of them, and the way that their mean took while somebody looked.

const MOST_NODES = 2000;
const MOST_TRACK = 1800; // points of the way: half an hour of seconds
const text = new TextDecoder();

export const grid = {
  nodes: new Map(), // name: {name, voltage, frequency, outside, since}
  track: [], // {t, voltage, frequency}
  begun: null,
  beyond: 0, // nodes that there was no room for
  unreadable: 0,
};

export function forgetNodes() {
  grid.nodes.clear();
  Object.assign(grid, { track: [], begun: null, beyond: 0, unreadable: 0 });
}

const along = (value, path) => path.split(".").reduce((part, name) => (part !== null && typeof part === "object" ? part[name] : undefined), value);
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** Take in one reading; what cannot be read is counted and changes nothing. */
export function hearNode(topic, payload, declared) {
  if (!declared) return;
  let voltage = null;
  let frequency = null;
  try {
    const reading = JSON.parse(text.decode(payload));
    voltage = number(along(reading, declared.paths.voltage));
    frequency = number(along(reading, declared.paths.frequency));
  } catch {
    // counted below
  }
  if (voltage === null || frequency === null) {
    grid.unreadable += 1;
    return;
  }
  const name = topic.split("/")[declared.node_level] ?? topic;
  const now = Date.now() / 1000;
  let node = grid.nodes.get(name);
  if (!node) {
    if (grid.nodes.size >= MOST_NODES) {
      grid.beyond += 1;
      return;
    }
    node = { name, voltage, frequency, changed: now, seen: now, times: {} };
    grid.nodes.set(name, node);
  }
  note(node, now, declared);
  Object.assign(node, { voltage, frequency, changed: now });
  followMean(now);
}

/** How long a node was outside, for each system by whose zones it may be judged. */
function note(node, now, declared) {
  for (const [system, zones] of Object.entries(declared.zones)) {
    node.times[system] ??= 0;
    if (zoneOf(node, zones) !== 1) node.times[system] += now - node.changed;
  }
}

function followMean(now) {
  grid.begun ??= now;
  const last = grid.track.at(-1);
  if (last && now - last.t < 0.8) return;
  let voltage = 0;
  let frequency = 0;
  for (const node of grid.nodes.values()) {
    voltage += node.voltage;
    frequency += node.frequency;
  }
  const { size } = grid.nodes;
  grid.track.push({ t: now, voltage: voltage / size, frequency: frequency / size });
  if (grid.track.length > MOST_TRACK) grid.track.splice(0, grid.track.length - MOST_TRACK);
}

/** When the mean frequency left its normal range, and came back; what grid a microgrid is on, no reading says. */
export function crossings([slow, fast]) {
  const found = [];
  let wasOut = false;
  for (const { t, frequency } of grid.track) {
    const isOut = frequency < slow || frequency > fast;
    if (isOut !== wasOut) found.push({ t, isOut, text: isOut ? (frequency < slow ? `below ${slow} Hz` : `above ${fast} Hz`) : "back" });
    wasOut = isOut;
  }
  return found;
}

const within = (value, [least, most]) => value >= least && value <= most;

/** 1 where both are normal, 2 where both are tolerated for a while, 3 elsewhere. */
export function zoneOf({ voltage, frequency }, { normal, tolerated }) {
  if (within(voltage, normal.voltage) && within(frequency, normal.frequency)) return 1;
  return within(voltage, tolerated.voltage) && within(frequency, tolerated.frequency) ? 2 : 3;
}

/** Which of the two is not normal, in words. */
export function outsideBy({ voltage, frequency }, { normal }) {
  const by = [];
  if (!within(voltage, normal.voltage)) by.push("voltage");
  if (!within(frequency, normal.frequency)) by.push("frequency");
  return by.length === 2 ? "both" : by[0] ?? "";
}

/** How far from normal, as a share of the nominal value; the further of the two counts. */
export function distance({ voltage, frequency }, { nominal_v: volts, nominal_hz: hertz }) {
  return Math.max(Math.abs(voltage - volts) / volts, Math.abs(frequency - hertz) / hertz);
}
