// Where brokers stand in a drawing: as they say themselves (`at`), or where forces put them, once; then they stay.
//
// Forces run in slices of a few milliseconds, so that two hundred brokers do not hold up anything that a person does.

const SLICE_MS = 10;
const TICKS = 260;
const FEW = 24; // up to so many brokers, the best of several drawings is taken
const TRIES = 16;

export class Layout {
  #key = ""; #run = 0; #positions = null;

  /** Places between 0 and 1 for all names, or null while they are still being found; `then` is called when they are. */
  of(nodes, links, then) {
    const key = JSON.stringify([nodes.map(({ name, at }) => [name, at]), links.map(({ ends }) => ends)]);
    if (key === this.#key) return this.#positions;
    this.#key = key;
    const placed = nodes.every(({ at }) => Array.isArray(at));
    if (placed) this.#positions = squared(new Map(nodes.map(({ name, at }) => [name, { x: at[0], y: at[1] }])), false);
    else this.#start(nodes, links, then);
    return this.#positions;
  }

  #start(nodes, links, then) {
    this.#run += 1;
    const run = this.#run;
    const known = new Set(nodes.map(({ name }) => name));
    const edges = links.map(({ ends }) => ends).filter((ends) => ends.every((end) => known.has(end)));
    const isSmall = nodes.length <= FEW;
    if (this.#positions && !nodes.every(({ name }) => this.#positions.has(name))) this.#positions = null;
    let best = null;
    let tries = isSmall ? TRIES : 1;
    let attempt = new Attempt(nodes, edges, tries);
    const step = () => {
      if (run !== this.#run) return; // the network is another one by now
      const end = performance.now() + SLICE_MS;
      while (performance.now() < end) {
        if (!attempt.tick()) continue;
        const places = attempt.places();
        const cost = isSmall ? tangle(places, edges) : 0;
        if (best === null || cost < best.cost) best = { places, cost };
        tries = best.cost === 0 ? 0 : tries - 1;
        if (tries === 0) {
          this.#positions = best.places;
          then();
          return;
        }
        attempt = new Attempt(nodes, edges, tries);
      }
      setTimeout(step, 0);
    };
    step();
  }
}

/** One run of forces from one beginning; numbers of other beginnings lead to other drawings, always the same ones. */
class Attempt {
  #points; #simulation; #ticks = 0;

  constructor(nodes, edges, number) {
    const { d3 } = globalThis;
    this.#points = nodes.map(({ name, at }, index) => {
      const angle = (index * 2.399963 * number) % (2 * Math.PI);
      const far = 40 * Math.sqrt(1 + ((index * (2 * number + 1)) % nodes.length));
      return { id: name, x: far * Math.cos(angle), y: far * Math.sin(angle), ...(at ? { fx: at[0], fy: at[1] } : {}) };
    });
    this.#simulation = d3.forceSimulation(this.#points).stop()
      .alphaDecay(1 - 0.001 ** (1 / TICKS))
      .force("link", d3.forceLink(edges.map(([source, target]) => ({ source, target }))).id(({ id }) => id).distance(90).strength(0.7))
      .force("charge", d3.forceManyBody().strength(-420))
      .force("x", d3.forceX(0).strength(0.03))
      .force("y", d3.forceY(0).strength(0.05))
      .force("collide", d3.forceCollide(34));
  }

  /** One tick; returns whether it was the last. */
  tick() {
    this.#simulation.tick();
    this.#ticks += 1;
    return this.#ticks >= TICKS;
  }

  places() {
    return squared(new Map(this.#points.map(({ id, x, y }) => [id, { x, y }])), !this.#points.some(({ fx }) => fx !== undefined));
  }
}

/** What makes a drawing hard to read: lines that cross, lines that pass a broker closely, brokers that lie together. */
function tangle(places, edges) {
  const wide = ({ x, y }) => ({ x: x * 1.7, y }); // as it is shown: wider than it is high
  const point = new Map([...places].map(([name, place]) => [name, wide(place)]));
  let cost = 0;
  edges.forEach(([a, b], index) => {
    const [from, to] = [point.get(a), point.get(b)];
    for (const [c, d] of edges.slice(index + 1)) {
      if (![a, b].includes(c) && ![a, b].includes(d) && cross(from, to, point.get(c), point.get(d))) cost += 1;
    }
    for (const [name, place] of point) {
      if (name !== a && name !== b && away(place, from, to) < 0.13) cost += 3;
    }
  });
  const all = [...point.values()];
  all.forEach((one, index) => {
    for (const other of all.slice(index + 1)) if (Math.hypot(one.x - other.x, one.y - other.y) < 0.3) cost += 2;
  });
  return cost;
}

function cross(a, b, c, d) {
  const side = (p, q, r) => Math.sign((q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x));
  return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
}

/** How far a point is from a line between two others. */
function away(point, from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const share = Math.max(0, Math.min(1, ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(point.x - from.x - share * dx, point.y - from.y - share * dy);
}

/** Positions in a square of one by one; the longest way through them is laid across, where there is most room. */
function squared(positions, mayTurn) {
  const all = [...positions.values()];
  if (all.length === 0) return positions;
  const mean = (of) => all.reduce((sum, point) => sum + of(point), 0) / all.length;
  const [middleX, middleY] = [mean(({ x }) => x), mean(({ y }) => y)];
  const [xx, yy, xy] = [mean(({ x }) => (x - middleX) ** 2), mean(({ y }) => (y - middleY) ** 2), mean(({ x, y }) => (x - middleX) * (y - middleY))];
  const angle = mayTurn ? 0.5 * Math.atan2(2 * xy, xx - yy) : 0;
  const [cos, sin] = [Math.cos(-angle), Math.sin(-angle)];
  const turned = [...positions].map(([name, { x, y }]) => [name, { x: (x - middleX) * cos - (y - middleY) * sin, y: (x - middleX) * sin + (y - middleY) * cos }]);
  const bounds = (axis) => [Math.min(...turned.map(([, point]) => point[axis])), Math.max(...turned.map(([, point]) => point[axis]))];
  const [left, right] = bounds("x");
  const [top, bottom] = bounds("y");
  const wide = Math.max(right - left, 1e-9);
  const high = Math.max(bottom - top, wide * 0.02);
  return new Map(turned.map(([name, { x, y }]) => [name, { x: right - left < 1e-9 ? 0.5 : (x - left) / wide, y: bottom - top < wide * 0.02 ? 0.5 : (y - top) / high }]));
}
