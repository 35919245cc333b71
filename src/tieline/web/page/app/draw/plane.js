// Voltage over frequency: the zones as ground, the nodes where they are now, and the way that their mean took.

import { svg, html, nothing } from "../../vendor/lit-html/lit-html.js";
import { hertz, volts, clock } from "../format.js";
import { zoneOf } from "../nodes.js";
import { spread } from "./spread.js";

const LABELS = 7;
const LABEL_PX = 15;

/** Limits of the picture: both zones and everything that has been seen, with a little air. */
function limits(zones, seen, nominal) {
  const [low, high] = zones.tolerated.voltage;
  const [slow, fast] = zones.normal.frequency;
  const all = (of) => seen.map(of);
  const frequency = Math.max(Math.abs(fast - nominal.hz) * 2.5, ...all((each) => Math.abs(each.frequency - nominal.hz) * 1.3));
  return {
    frequency: [Math.max(nominal.hz - frequency, zones.tolerated.frequency[0] - 1), Math.min(nominal.hz + frequency, zones.tolerated.frequency[1] + 1)],
    voltage: [Math.min(low - (high - low) * 0.42, ...all((each) => each.voltage - 3)), Math.max(high + (high - low) * 0.12, ...all((each) => each.voltage + 3))],
    slow, fast,
  };
}

/** At most so many points: the way keeps its shape, and a long watch costs no more than a short one. */
function thinned(track, most = 300) {
  const step = Math.ceil(track.length / most);
  return step <= 1 ? track : track.filter((_point, index) => index % step === 0 || index === track.length - 1);
}

export function plane({ nodes, track, zones, nominal }) {
  return (width, height) => {
    const small = width < 460;
    const box = { left: 46, top: 14, right: width - 14, bottom: height - 40 };
    const bounds = limits(zones, [...nodes, ...track], nominal);
    const x = (value) => box.left + ((value - bounds.frequency[0]) / (bounds.frequency[1] - bounds.frequency[0])) * (box.right - box.left);
    const y = (value) => box.bottom - ((value - bounds.voltage[0]) / (bounds.voltage[1] - bounds.voltage[0])) * (box.bottom - box.top);
    const held = (value, [least, most]) => Math.max(least, Math.min(most, value));
    const zone = ({ voltage, frequency }) => {
      const [left, right] = frequency.map((value) => x(held(value, bounds.frequency)));
      const [bottom, top] = voltage.map((value) => y(held(value, bounds.voltage)));
      return { left, right, bottom, top };
    };
    const normal = zone(zones.normal);
    const tolerated = zone(zones.tolerated);
    return html`<svg class="plane" width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label="Voltage over frequency: ${says(nodes, zones)}">
      <defs><pattern id="hatch" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="zone-3" width="9" height="9"/><line class="stripe" y2="9"/></pattern></defs>
      <rect x=${box.left} y=${box.top} width=${box.right - box.left} height=${box.bottom - box.top} fill="url(#hatch)"/>
      <rect class="zone-2" x=${tolerated.left} y=${tolerated.top} width=${tolerated.right - tolerated.left} height=${tolerated.bottom - tolerated.top}/>
      <path class="edge-2" d="M${tolerated.left} ${tolerated.top}H${tolerated.right}M${tolerated.left} ${tolerated.bottom}H${tolerated.right}"/>
      <rect class="zone-1" x=${normal.left} y=${normal.top} width=${normal.right - normal.left} height=${normal.bottom - normal.top}/>
      ${axes(bounds, box, x, y, zones, nominal)}
      ${zoneWords(normal, tolerated, box, small)}
      ${way(thinned(track), x, y)}
      ${turns(track, x, y, box)}
      ${dots(nodes, zones, x, y, box)}
    </svg>`;
  };
}

function says(nodes, zones) {
  const in_ = [1, 2, 3].map((zone) => nodes.filter((node) => zoneOf(node, zones) === zone).length);
  return `${in_[0]} nodes in zone 1, ${in_[1]} in zone 2, ${in_[2]} in zone 3`;
}

function axes(bounds, box, x, y, zones, nominal) {
  const [from, to] = bounds.frequency;
  const step = to - from > 12 ? 5 : to - from > 4 ? 1 : to - from > 1.6 ? 0.5 : 0.2;
  const marks = [];
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) marks.push(value);
  const lowest = Math.ceil(bounds.voltage[0] / 20) * 20;
  const voltages = [...new Set([zones.normal.voltage[1], nominal.v, zones.normal.voltage[0], zones.tolerated.voltage[0], lowest])].filter((value) => value > bounds.voltage[0] && value < bounds.voltage[1]);
  const placed = [];
  for (const value of voltages) if (placed.every((other) => Math.abs(y(other) - y(value)) >= 14)) placed.push(value);
  return svg`${marks.map((value) => svg`<path class="tick" d="M${x(value)} ${box.bottom}v4"/><text class="scale" x=${x(value)} y=${box.bottom + 17} text-anchor="middle">${step < 1 ? value.toFixed(1) : value}</text>`)}
    ${placed.map((value) => svg`<text class="scale" x=${box.left - 8} y=${y(value) + 4} text-anchor="end">${value}</text>`)}
    <text class="scale" x=${box.left - 8} y=${box.top + 2} text-anchor="end">V</text><text class="scale" x=${box.right} y=${box.bottom + 33} text-anchor="end">Hz</text>`;
}

function zoneWords(normal, tolerated, box, small) {
  const words = (x, y, kind, head, below) => svg`<text class="zone-name ${kind}" x=${x} y=${y}>${head}</text>${below ? svg`<text class="zone-note" x=${x} y=${y + 15}>${below}</text>` : nothing}`;
  const hasRoom = normal.left - tolerated.left > (small ? 40 : 50);
  return svg`${words(normal.left + 6, normal.top + 13, "one", "Zone 1", normal.right - normal.left > 44 ? "normal" : "")}
    ${hasRoom ? words(tolerated.left + 9, tolerated.top + 13, "two", "Zone 2", normal.left - tolerated.left > 116 ? "tolerated for a while" : "") : nothing}
    ${words(box.left + 9, tolerated.bottom + 14, "three", "Zone 3", "act now")}`;
}

/** The older a part of the way is, the paler. */
function way(track, x, y) {
  const parts = 6;
  const size = Math.ceil(track.length / parts);
  return Array.from({ length: parts }, (_part, number) => {
    const points = track.slice(number * size, (number + 1) * size + 1);
    if (points.length < 2) return nothing;
    return svg`<path class="way" opacity=${0.25 + (0.6 * (number + 1)) / parts} d=${points.map((point, index) => `${index ? "L" : "M"}${x(point.frequency).toFixed(1)} ${y(point.voltage).toFixed(1)}`).join("")}/>`;
  });
}

/** Where the way turned: its beginning, and the lowest of both, if they are apart from where it is now. */
function turns(track, x, y, box) {
  if (track.length < 20) return nothing;
  const least = (of) => track.reduce((one, other) => (of(other) < of(one) ? other : one));
  const now = track.at(-1);
  const far = (one, other) => Math.hypot(x(one.frequency) - x(other.frequency), y(one.voltage) - y(other.voltage)) > 40;
  const candidates = [[track[0], clock(track[0].t)], [least((point) => point.frequency), "lowest frequency"], [least((point) => point.voltage), "lowest voltage"]];
  const shown = [];
  for (const [point, words] of candidates) {
    if (far(point, now) && shown.every(([other]) => far(point, other))) shown.push([point, words]);
  }
  return shown.map(([point, words]) => {
    const isLeft = x(point.frequency) - words.length * 6.4 - 10 > box.left;
    return svg`<circle class="turn" cx=${x(point.frequency)} cy=${y(point.voltage)} r="3.2"/><text class="turn-words" x=${x(point.frequency) + (isLeft ? -9 : 9)} y=${y(point.voltage) + 4} text-anchor=${isLeft ? "end" : "start"}>${words}</text>`;
  });
}

function dots(nodes, zones, x, y, box) {
  const marks = nodes.map((node) => ({ node, zone: zoneOf(node, zones), x: Math.max(box.left, Math.min(box.right, x(node.frequency))), y: Math.max(box.top, Math.min(box.bottom, y(node.voltage))) }));
  const labelled = [...marks].sort((one, other) => other.zone - one.zone || one.node.voltage - other.node.voltage).slice(0, marks.length > LABELS ? LABELS - 1 : LABELS);
  const top = [...marks].sort((one, other) => one.y - other.y)[0];
  if (top && !labelled.includes(top)) labelled.push(top);
  labelled.sort((one, other) => one.y - other.y);
  const labels = labelled.map((mark) => ({ mark, at: mark.y + 4 }));
  spread(labels, LABEL_PX, box.top + 12, box.bottom - 3);
  const furthest = Math.max(...marks.map((mark) => mark.x), box.left);
  const isLeft = furthest + 130 > box.right;
  const nearest = Math.min(...marks.map((mark) => mark.x), box.right);
  return svg`${marks.sort((one, other) => one.zone - other.zone).map(shape)}
    ${labels.map(({ mark, at }) => {
      const begin = isLeft ? nearest - 28 : furthest + 28;
      const way = isLeft ? `M${mark.x - 7} ${mark.y}L${begin + 10} ${at - 4}H${begin + 4}` : `M${mark.x + 7} ${mark.y}L${begin - 10} ${at - 4}H${begin - 4}`;
      return svg`<path class="lead" d=${way}/><text class="node-name" x=${begin} y=${at} text-anchor=${isLeft ? "end" : "start"}>${mark.node.name.slice(0, 14)}<tspan class="node-value" dx="8">${volts(mark.node.voltage)}</tspan></text>`;
    })}`;
}

function shape({ node, zone, x, y }) {
  const title = svg`<title>${node.name}: ${volts(node.voltage)}, ${hertz(node.frequency)}, zone ${zone}</title>`;
  if (zone === 1) return svg`<circle class="dot-1" cx=${x} cy=${y} r="5">${title}</circle>`;
  if (zone === 2) return svg`<path class="dot-2" d="M${x} ${y - 6.4}l6.4 6.4-6.4 6.4-6.4-6.4z">${title}</path>`;
  return svg`<path class="dot-3" d="M${x - 5.4} ${y - 5.4}l10.8 10.8m0-10.8l-10.8 10.8">${title}</path>`;
}
