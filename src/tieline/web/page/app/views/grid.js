// Which nodes are outside, and how did the grid get there?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { Repeated } from "../broker.js";
import { openWhy } from "../dialogs/why.js";
import { plane } from "../draw/plane.js";
import { clock, count, duration, hertz, percent, rate, span, volts } from "../format.js";
import { card, chip, facts, nameLink, refusal, segments, table } from "../parts.js";
import { crossings, distance, grid, outsideBy, zoneOf } from "../nodes.js";
import { state, changed, paintNow } from "../state.js";

const FEW = 8;
const WORDS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"];
const conditions = new Repeated(() => ({ do: "conditions", most: 50 }), 3);
const zonesNow = () => state.page.grid.zones[state.chosen.system];

export const gridView = {
  draw: () => (state.page.grid ? drawn(state.page.grid) : undeclared()),
  verdict,
  beside: () => (state.page?.grid ? segments("System", [["island", "Island"], ["interconnected", "Interconnected"]].filter(([name]) => state.page.grid.zones[name]), state.chosen.system, (system) => {
    state.chosen.system = system;
    paintNow();
  }, false) : nothing),
  forget: () => conditions.forget(),
};

function undeclared() {
  return html`<section class="card first"><h2>This view draws what nodes say of their voltage and frequency.</h2>
    <p>Declare an event type with both attributes, and it is here:</p>
    <pre class="command"><code>[event.reading]
topic = "microgrid/+/+/reading"
attributes = [{ name = "voltage", bounds = [0, 400] }, { name = "frequency", bounds = [40, 60] }]</code></pre></section>`;
}

/** Which nodes are outside is not the broker's to say: it reads no more of messages than it was asked to. */
function verdict() {
  const declared = state.page?.grid;
  if (!declared) return null;
  const zones = zonesNow();
  const nodes = [...grid.nodes.values()];
  const system = state.chosen.system === "island" ? "an island" : "an interconnected grid";
  const last = crossings(zones.normal.frequency).at(-1);
  const since = last?.isOut ? `Frequency outside since ${clock(last.t)} · ` : grid.begun ? `Watched since ${clock(grid.begun)} · ` : "";
  const detail = `${since}zones of EN 50160 for ${system}, ${declared.nominal_v} V and ${declared.nominal_hz} Hz · \`${declared.filter}\``;
  if (nodes.length === 0) return { state: "none", text: "No reading has come yet.", detail };
  const [low, high] = zones.normal.voltage;
  const below = nodes.filter(({ voltage }) => voltage < low).length;
  const above = nodes.filter(({ voltage }) => voltage > high).length;
  const worst = Math.max(...nodes.map((node) => zoneOf(node, zones)));
  const number = (value) => WORDS[value] ?? count(value);
  const are = (value, where) => `${number(value)} of ${count(nodes.length)} nodes ${value === 1 ? "is" : "are"} ${where}.`;
  const voltage = below && above ? `${are(below, `below ${low} V`)} ${are(above, `above ${high} V`)}` : below ? are(below, `below ${low} V`) : above ? are(above, `above ${high} V`) : "";
  const frequency = frequencyWords(nodes, zones);
  const text = voltage || frequency.isOutside ? `${voltage} ${frequency.words}`.trim() : `All ${count(nodes.length)} nodes are in their normal range.`;
  return { state: { 1: "ok", 2: "warn", 3: "bad" }[worst], text, detail };
}

function frequencyWords(nodes, zones) {
  const [slow, fast] = zones.normal.frequency;
  const off = nodes.filter(({ frequency }) => frequency < slow || frequency > fast);
  if (off.length) {
    const isLow = off[0].frequency < slow;
    return { isOutside: true, words: `Frequency is ${isLow ? "below" : "above"} ${isLow ? slow : fast} Hz${off.length < nodes.length ? ` at ${count(off.length)} of them` : ""}.` };
  }
  const wasOff = grid.track.some(({ frequency }) => frequency < slow || frequency > fast);
  return { isOutside: false, words: wasOff ? "Frequency is back in its normal range." : "Frequency is in its normal range." };
}

function drawn(declared) {
  const zones = zonesNow();
  const nodes = [...grid.nodes.values()];
  const nominal = { v: declared.nominal_v, hz: declared.nominal_hz };
  const has3 = nodes.some((node) => zoneOf(node, zones) === 3);
  return html`<div class="grid-view"><div class="stack">
    ${card("Voltage over frequency", "nodes now, and the way their mean took", html`<tieline-figure class="plane-box" .draw=${plane({ nodes, track: grid.track, zones, nominal })}></tieline-figure>`,
      { end: html`<span class="zone-key"><span class="zone-dot one"></span>zone 1 <span class="zone-dot two"></span>zone 2${has3 ? html` <span class="zone-dot three">×</span>zone 3` : nothing}</span>` })}
    ${frequencyCard(zones, declared)}</div>
    <div class="stack">${nodeTable(nodes, zones, declared)}${askers(declared)}${watched(zones)}</div></div>`;
}

function frequencyCard(zones, declared) {
  const track = grid.track.slice(-Math.min(state.span, 1800));
  const [slow, fast] = zones.normal.frequency;
  const values = track.map(({ frequency }) => frequency);
  const reach = Math.max(fast - declared.nominal_hz, ...values.map((value) => Math.abs(value - declared.nominal_hz) * 1.1)) * 1.25;
  const range = () => [declared.nominal_hz - reach, declared.nominal_hz + Math.min(reach, (fast - declared.nominal_hz) * 1.5)];
  const bands = [[0, slow, "--zone-2"], [slow, fast, "--zone-1"], [fast, 1e3, "--zone-2"]];
  const lines = [{ kind: "steel", values, format: hertz, width: 2 }];
  const events = crossings([slow, fast]);
  return card("Frequency", track.length > 1 ? `the mean of all nodes, last ${span(track.at(-1).t - track[0].t)}` : "", html`<tieline-chart class="chart frequency" .data=${
    { times: track.map(({ t }) => t), lines, bands, range, axis: (value) => (Number.isInteger(value) ? value : value.toFixed(1)), events, says: `Frequency, now ${hertz(values.at(-1))}` }}></tieline-chart>`);
}

function nodeTable(nodes, zones, declared) {
  const { all, system } = state.chosen;
  const sorted = [...nodes].sort((one, other) => zoneOf(other, zones) - zoneOf(one, zones) || distance(other, declared) - distance(one, declared));
  const rows = all.nodes ? sorted.slice(0, 500) : sorted.slice(0, FEW);
  const now = Date.now() / 1000;
  const outside = (node) => {
    const watchedS = now - node.seen;
    const time = (node.times[system] ?? 0) + (zoneOf(node, zones) === 1 ? 0 : now - node.changed);
    return watchedS > 2 ? time / watchedS : null;
  };
  const more = nodes.length > FEW ? html`<button type="button" class="link" @click=${() => ((all.nodes = !all.nodes), paintNow())}>${all.nodes ? "Fewer" : `All ${count(nodes.length)}`}</button>` : nothing;
  return card("Nodes", "those furthest from normal first", rows.length ? html`<div class="scroll-y" tabindex="0" role="region" aria-label="Nodes">${table([
    { head: "Node", kind: "cut strong", cell: (row) => html`<span title=${row.name}>${row.name}</span>` },
    { head: "Voltage", kind: "num", cell: (row) => volts(row.voltage) },
    { head: "Frequency", kind: "num", cell: (row) => hertz(row.frequency) },
    { head: "Zone", kind: "snug fixed", cell: (row) => zoneChip(row, zones) },
    { head: "Outside", kind: "num soft wide", cell: (row) => percent(outside(row)) },
  ], rows, { key: (row) => row.name, kind: "roomy", label: "Nodes" })}</div>${grid.beyond ? html`<p class="soft">More than 2,000 nodes report; the rest is left out.</p>` : nothing}`
    : html`<p class="empty">Waiting for readings${grid.unreadable ? `; ${count(grid.unreadable)} could not be read` : " …"}</p>`, { end: more });
}

function zoneChip(node, zones) {
  const zone = zoneOf(node, zones);
  return chip(zone === 1 ? "1" : `${zone}, ${outsideBy(node, zones)}`, { 1: "ok", 2: "warn", 3: "bad" }[zone]);
}

/** Whether some topic could match both filters, level by level. */
function meet(one, other) {
  const [left, right] = [one.split("/"), other.split("/")];
  for (let level = 0; ; level += 1) {
    if (left[level] === "#" || right[level] === "#") return true;
    if (left[level] === undefined || right[level] === undefined) return left[level] === right[level];
    if (left[level] !== right[level] && left[level] !== "+" && right[level] !== "+") return false;
  }
}

function askers(declared) {
  const { answer, trouble } = conditions.look(changed);
  const rows = (answer?.conditions ?? []).filter(({ client, filter }) => meet(filter, declared.filter) && !client.startsWith("page-")).slice(0, 6);
  return card("Who asked to hear of it", "", rows.length ? table([
    { head: "Client", kind: "name", cell: (row) => nameLink(row.client, () => openWhy(row.client)) },
    { head: "Condition", kind: "cut condition", cell: (row) => html`<code title=${row.condition}>${row.condition}</code>` },
    { head: "Hears", kind: "num soft", cell: (row) => html`${rate(row.wanted_per_s)} /s` },
  ], rows, { label: "Who asked to hear of it" }) : trouble ? refusal(trouble) : html`<p class="empty">${answer ? "Nobody asks for these readings by content." : "Asking …"}</p>`);
}

function watched(zones) {
  const { track } = grid;
  if (track.length < 2) return nothing;
  const least = (of) => track.reduce((one, other) => (of(other) < of(one) ? other : one));
  const [lowV, lowHz] = [least(({ voltage }) => voltage), least(({ frequency }) => frequency)];
  const [slow, fast] = zones.normal.frequency;
  let outside = 0;
  track.forEach(({ t, frequency }, index) => {
    if (index && (frequency < slow || frequency > fast)) outside += t - track[index - 1].t;
  });
  const urgent = state.page.tiles.urgent.p99_s;
  return card(`Since ${clock(track[0].t)}`, "while this page was open", facts([
    ["Lowest mean voltage", `${volts(lowV.voltage)} at ${clock(lowV.t)}`],
    ["Lowest frequency", `${hertz(lowHz.frequency)} at ${clock(lowHz.t)}`],
    ["Outside zone 1 by frequency", outside ? span(outside) : "never"],
    ["Urgent messages, p99", urgent === null ? "nothing waits" : duration(urgent)],
  ]));
}
