// Brokers and links: width is capacity, filling is use, and every mark that means trouble also says so in words.

import { html, svg, nothing } from "../../vendor/lit-html/lit-html.js";
import { UNKNOWN, count, duration, percent, short } from "../format.js";

const CROWD = 30; // from so many brokers on, only those in trouble and the chosen one are named
const LETTER = 6.3; // the mean width of a letter of 12 px

export const linkKey = ({ ends }) => [...ends].sort().join(" – ");

/** How full a link is, in the three words that colours stand for. */
export function useKind(link) {
  if (link.state === "down" || link.used >= 0.95) return "bad";
  return link.used >= 0.8 ? "warn" : "";
}

const linkWords = (link, isShort) => {
  if (link.state === "down") return isShort ? "down" : `down${link.down_s === null || link.down_s === undefined ? "" : ` ${duration(link.down_s)}`}`;
  const used = link.used === null || link.used === undefined ? "" : percent(link.used);
  const trip = link.round_trip_s === null || link.round_trip_s === undefined || isShort ? "" : duration(link.round_trip_s);
  return [used, trip].filter(Boolean).join(" · ");
};

/** `place` gives every broker a place between 0 and 1; without one of all, the drawing is still being arranged. */
export function graph({ nodes, links, place, isSmall = false, chosen = "", chosenNode = "", choose = null }) {
  return (width, height) => {
    if (!place) return html`<p class="soft arranging">Arranging ${count(nodes.length)} brokers …</p>`;
    const isCrowd = nodes.length > CROWD;
    const small = isSmall || width < 520;
    const margin = isCrowd ? { x: 26, top: 26, bottom: 26 } : { x: small ? 44 : 76, top: small ? 40 : 62, bottom: small ? 40 : 62 };
    const most = Math.max(1, ...nodes.map(({ clients }) => clients ?? 0));
    const radius = (node) => (isCrowd ? 5 : small ? (node.is_here ? 10 : 8) : 20 + 5 * Math.sqrt((node.per_s ?? 0) / Math.max(1, ...nodes.map(({ per_s: rate }) => rate ?? 0))) * (most > 0 ? 1 : 0));
    const known = new Map(nodes.filter(({ name }) => place.has(name)).map((node) => {
      const { x, y } = place.get(node.name);
      return [node.name, { node, r: radius(node), x: margin.x + x * (width - 2 * margin.x), y: margin.top + y * (height - margin.top - margin.bottom) }];
    }));
    const capacity = Math.max(1, ...links.map((link) => link.capacity_bps ?? 0));
    const drawn = links.filter(({ ends }) => ends.every((end) => known.has(end))).map((link) => line(link, known, capacity, isCrowd, small));
    const pills = isCrowd ? [] : placePills(drawn, known, small);
    const isNamed = ({ node }) => !isCrowd || node.state !== "ok" || node.is_here || node.name === chosenNode;
    const order = [...drawn].sort((one, other) => weight(one.link) - weight(other.link));
    return html`<svg class="graph ${isCrowd ? "crowd" : ""} ${small ? "small" : ""}" width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="group" aria-label="Brokers and links">
      ${order.map((each) => drawLink(each, chosen, choose))}
      ${[...known.values()].map((each) => drawNode(each, { isCrowd, small, chosenNode }))}
      ${[...known.values()].filter(isNamed).map((each) => drawName(each, drawn, pills, { small, isCrowd, width, height }))}
      ${pills.map((pill) => drawPill(pill))}
    </svg>`;
  };
}

const weight = (link) => ({ bad: 2, warn: 1 })[useKind(link)] ?? 0;

function line(link, known, capacity, isCrowd, small) {
  const [from, to] = link.ends.map((end) => known.get(end));
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const gap = isCrowd ? 0 : 3;
  const wide = isCrowd ? 2.5 : (small ? 0.75 : 1) * (link.capacity_bps ? 4 + 7 * Math.sqrt(link.capacity_bps / capacity) : 4);
  return {
    link, length, wide,
    filled: link.used === null || link.used === undefined ? 1.4 : Math.max(1.4, wide * Math.min(1, link.used)),
    x1: from.x + dx * (from.r + gap), y1: from.y + dy * (from.r + gap),
    x2: to.x - dx * (to.r + gap), y2: to.y - dy * (to.r + gap),
  };
}

function drawLink({ link, wide, filled, x1, y1, x2, y2 }, chosen, choose) {
  const isChosen = linkKey(link) === chosen;
  const words = `${link.ends.join(" – ")}: ${linkWords(link, false) || "up"}`;
  return svg`<g class="link ${useKind(link)} ${link.state} ${isChosen ? "chosen" : ""}" tabindex=${choose ? 0 : nothing} role=${choose ? "button" : nothing} aria-label=${words}
      @click=${choose ? () => choose(link) : nothing} @keydown=${choose ? (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(link)) : nothing}>
    <title>${words}</title>
    <line class="reach" x1=${x1} y1=${y1} x2=${x2} y2=${y2} stroke-width="16"/>
    <line class="room" x1=${x1} y1=${y1} x2=${x2} y2=${y2} stroke-width=${link.state === "down" ? 3.5 : wide}/>
    <line class="use" x1=${x1} y1=${y1} x2=${x2} y2=${y2} stroke-width=${link.state === "down" ? 2 : filled}/></g>`;
}

function drawNode({ node, x, y, r }, { isCrowd, small, chosenNode }) {
  const words = `${node.name}: ${node.state}${node.clients === null || node.clients === undefined ? "" : `, ${count(node.clients)} clients`}${node.per_s === null || node.per_s === undefined ? "" : `, ${short(node.per_s)} messages per second`}`;
  return svg`<g class="node ${node.state} ${node.name === chosenNode ? "chosen" : ""}" tabindex=${isCrowd ? nothing : 0} role="img" aria-label=${words}>
    <title>${words}</title><circle cx=${x} cy=${y} r=${r}/>
    ${isCrowd || small ? nothing : svg`<text class="inside" x=${x} y=${y + 4} text-anchor="middle">${node.per_s === null || node.per_s === undefined ? (node.state === "silent" ? "?" : UNKNOWN) : short(node.per_s)}</text>`}</g>`;
}

/** Words on a link stand near its middle, where they lie over no broker and no other words. */
function placePills(drawn, known, small) {
  const pills = [];
  for (const { link, x1, y1, x2, y2, length } of drawn) {
    const words = linkWords(link, small);
    if (!words) continue;
    const width = words.length * (small ? 6 : 5.9) + 16;
    if (length < (small ? 34 : 50)) continue;
    let best = null;
    for (const share of [0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73]) {
      const pill = { link, words, width, height: 19, x: x1 + (x2 - x1) * share, y: y1 + (y2 - y1) * share };
      const cost = Math.abs(share - 0.5) + 10 * pills.filter((other) => overlap(boxOf(pill), boxOf(other))).length
        + 10 * [...known.values()].filter(({ x, y, r }) => overlap(boxOf(pill), { x: x - r - 2, y: y - r - 2, w: 2 * r + 4, h: 2 * r + 4 })).length;
      if (best === null || cost < best.cost) best = { ...pill, cost };
    }
    if (best.cost < 10 || useKind(link)) pills.push(best);
  }
  return pills;
}

const boxOf = ({ x, y, width, height }) => ({ x: x - width / 2, y: y - height / 2, w: width, h: height });
const overlap = (one, other) => one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;

function drawPill({ link, words, x, y, width, height }) {
  return svg`<g class="pill ${useKind(link)}" aria-hidden="true"><rect x=${x - width / 2} y=${y - height / 2} width=${width} height=${height} rx=${height / 2}/>
    <text x=${x} y=${y + 4} text-anchor="middle">${words}</text></g>`;
}

/** A name stands on that side of its broker where the fewest lines and words are. */
function drawName({ node, x, y, r }, drawn, pills, { small, isCrowd, width, height }) {
  const cut = node.name.length > 22 ? `${node.name.slice(0, 21)}…` : node.name;
  const below = small || isCrowd || node.clients === null || node.clients === undefined ? "" : `${count(node.clients)} ${node.clients === 1 ? "client" : "clients"}`;
  const wide = Math.max(cut.length * (LETTER + 0.9), below.length * 5.6);
  const high = below ? 29 : 16;
  const sides = [
    { x, y: y - r - 5 - high, anchor: "middle" },
    { x, y: y + r + 5, anchor: "middle" },
    { x: x + r + 7, y: y - high / 2, anchor: "start" },
    { x: x - r - 7, y: y - high / 2, anchor: "end" },
  ].map((side, index) => {
    const left = { middle: side.x - wide / 2, start: side.x, end: side.x - wide }[side.anchor];
    const box = { x: left, y: side.y, w: wide, h: high };
    const lines = drawn.filter((each) => crosses(each, box)).length;
    const words = pills.filter((pill) => overlap(box, boxOf(pill))).length;
    const isOut = box.x < 2 || box.x + box.w > width - 2 || box.y < 0 || box.y + box.h > height;
    return { ...side, cost: 3 * lines + 5 * words + (isOut ? 20 : 0) + index * 0.1 };
  });
  const { x: at, y: top, anchor } = sides.reduce((one, other) => (other.cost < one.cost ? other : one));
  return svg`<g class="name" aria-hidden="true"><text x=${at} y=${top + 12} text-anchor=${anchor}>${cut}</text>
    ${below ? svg`<text class="below" x=${at} y=${top + 25} text-anchor=${anchor}>${below}</text>` : nothing}</g>`;
}

/** Whether a line passes through a box, looked at in steps that are smaller than any box. */
function crosses({ x1, y1, x2, y2, length }, box) {
  const steps = Math.ceil(length / 6);
  for (let step = 0; step <= steps; step += 1) {
    const x = x1 + ((x2 - x1) * step) / steps;
    const y = y1 + ((y2 - y1) * step) / steps;
    if (x > box.x - 2 && x < box.x + box.w + 2 && y > box.y - 2 && y < box.y + box.h + 2) return true;
  }
  return false;
}
