// Which link is full, which is down, and what passes in vain?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { graph, linkKey, useKind } from "../draw/graph.js";
import { quoted } from "../dialogs/quoting.js";
import { LEVELS } from "../dialogs/levels.js";
import { Layout } from "../draw/layout.js";
import { UNKNOWN, count, duration, kilobits, percent, plural, rate, span } from "../format.js";
import { card, chip, classTag, command, facts, meter, nameLink, table } from "../parts.js";
import { state, changed, paintNow } from "../state.js";

const FEW = 5;
export const layout = new Layout();

export const networkView = {
  draw: () => (state.page.joined ? joined() : alone()),
};

function alone() {
  const { page } = state;
  return html`<section class="card first roomy"><h2>Several brokers can be one to their clients.</h2>
    <p>Whoever subscribes at one gets what is published at any. On this machine, in another terminal:</p>
    ${command("tieline serve --name second --listen tcp://127.0.0.1:1884 --listen peer://127.0.0.1:7883")}
    <p>and ${page.name} is started with</p>
    ${command(`tieline serve --name ${quoted(page.name)} --join peer://127.0.0.1:7883`)}</section>`;
}

const isOwn = (link) => link.ends.includes(state.page.name);
const order = (link) => (link.state === "down" ? 2 : link.used ?? -1);

/** The link that a person chose, or else the one that is in most need of being looked at. */
function chosenLink(links) {
  const { link } = state.chosen;
  return links.find((each) => linkKey(each) === link || each.ends.join(" – ") === link || each.ends.join("-") === link) ?? links.find((each) => each.state === "up" && isOwn(each)) ?? links[0] ?? null;
}

function joined() {
  const { page, chosen } = state;
  const links = [...page.links].sort((one, other) => order(other) - order(one));
  const link = chosenLink(links);
  const choose = (each) => {
    chosen.link = linkKey(each);
    paintNow();
  };
  const place = layout.of(page.brokers, page.links, changed);
  return html`<div class="network">
    ${card("Brokers and links", page.brokers.length > 30 ? "those in trouble are named" : "width is capacity, filling is use; in the circles msg/s",
      html`<tieline-figure class="net" .draw=${graph({ nodes: page.brokers, links: page.links, place, chosen: link ? linkKey(link) : "", chosenNode: chosen.broker ?? "", choose })}></tieline-figure>`,
      { kind: "graph-card", end: html`<span class="keys-of-colour"><span class="stroke"></span>in use <span class="stroke warn"></span>over 80 % <span class="stroke bad"></span>full or down</span>` })}
    ${link ? html`<div class="stack side-panel">${linkCard(link)}${useOf(link)}</div>` : nothing}
    <div class="stack tables">${linkTable(links, link, choose)}${page.brokers.length > 1 ? card("Brokers", "", brokerTable()) : nothing}</div>
  </div>`;
}

function linkTable(links, link, choose) {
  const { all } = state.chosen;
  const rows = all.links ? links : links.slice(0, FEW);
  const more = links.length > FEW ? html`<button type="button" class="link" @click=${() => ((all.links = !all.links), paintNow())}>${all.links ? "Fewer" : `All ${count(links.length)}`}</button>` : nothing;
  return card("Links", "", html`<div class="scroll-y" tabindex="0" role="region" aria-label="Links">${table([
    { head: "Link", kind: "name", cell: (row) => nameLink(row.ends.join(" – "), () => choose(row)) },
    { head: "Used", kind: "fixed", cell: used },
    { head: "kbit/s", kind: "num wide", quiet: false, cell: (row) => kilobits(row.bps) },
    { head: "Capacity", kind: "num soft wide", cell: (row) => kilobits(row.capacity_bps) },
    { head: "Round trip", kind: "num", quiet: false, cell: (row) => duration(row.round_trip_s) },
    { head: "Useless", kind: "num wide", quiet: false, cell: (row) => percent(row.useless) },
    { head: "Waiting", kind: "num", cell: (row) => count(row.waiting) },
  ], rows, { key: linkKey, selected: (row) => row === link, label: "Links" })}</div>`, { end: more });
}

function used(link) {
  if (link.state === "down") return chip(`down${link.down_s === null ? "" : ` ${duration(link.down_s)}`}`, "bad");
  if (link.used === null) return html`<span class="soft">${link.capacity_bps === null && isOwn(link) ? "no capacity given" : UNKNOWN}</span>`;
  return html`<span class="metered">${meter(link.used, useKind(link), 90)} ${percent(link.used)}</span>`;
}

function linkCard(link) {
  const kind = useKind(link);
  const word = link.state === "down" ? `down ${duration(link.down_s)}` : link.used === null ? "up" : `${percent(link.used)} full`;
  const [one, other] = link.ends;
  const of = link.capacity_bps === null ? "" : ` of ${kilobits(link.capacity_bps)}`;
  const trip = link.round_trip_p99_s ? `${duration(link.round_trip_s)}, p99 ${duration(link.round_trip_p99_s)}` : duration(link.round_trip_s);
  return html`<section class="card"><header><h2>${link.ends.join(" – ")}</h2>${chip(word, kind || "ok")}</header>
    ${facts([
      ["Carried", link.bps === null ? UNKNOWN : `${kilobits(link.bps)}${of} kbit/s`],
      [html`To ${other}, to ${one}`, link.to_bps ? `${kilobits(link.to_bps[1])} and ${kilobits(link.to_bps[0])} kbit/s` : UNKNOWN],
      ["Round trip", trip],
      ["Useless forwards", percent(link.useless)],
      ["Waiting here", link.waiting === null ? UNKNOWN : plural(link.waiting, "message")],
      link.state === "down" ? ["Why", link.why || UNKNOWN] : ["Up since", span(link.up_s)],
    ])}
    ${link.classes?.length ? byClass(link) : html`<p class="soft small">What passes by class is known at its ends.</p>`}</section>`;
}

function byClass(link) {
  const sum = link.classes.reduce((total, each) => total + (each.bps ?? 0), 0);
  const width = 318;
  let at = 0;
  const parts = link.classes.map((each) => {
    const wide = sum ? ((each.bps ?? 0) / sum) * width : 0;
    const part = { level: each.level, at, wide };
    at += wide;
    return part;
  });
  return html`<p class="soft by-class">By class</p>
    <svg class="shares" viewBox="0 0 ${width} 10" preserveAspectRatio="none" width="100%" height="10" aria-hidden="true">${shares(parts, width)}</svg>
    ${table([
      { head: "", says: "Class", cell: (row) => html`${classTag(row.level, true)} &nbsp;${LEVELS[row.level]}` },
      { head: "", says: "Carried", kind: "num", quiet: false, cell: (row) => html`${kilobits(row.bps)} kbit/s` },
      { head: "", says: "Waiting", kind: "num", quiet: false, cell: (row) => (row.p99_s === null || row.p99_s === undefined ? html`${count(row.waiting)} <span class="unit">wait</span>` : html`${duration(row.p99_s)} <span class="unit">p99</span>`) },
    ], link.classes, { key: (row) => row.level, kind: "headless", label: "By class" })}`;
}

function shares(parts, width) {
  return parts.some(({ wide }) => wide > 0)
    ? parts.map(({ level, at, wide }) => html`<svg class="share c${level}" x=${at} width=${Math.max(0, wide - 1)} height="10"><rect width="100%" height="10"/></svg>`)
    : html`<svg class="share none" width=${width} height="10"><rect width="100%" height="10"/></svg>`;
}

function useOf(link) {
  const { history, page } = state;
  const peer = link.ends.find((end) => end !== page.name);
  const values = isOwn(link) ? history.of(`link/${peer}`) : [];
  if (values.length === 0) return nothing;
  const end = history.times.at(-1) ?? page.time;
  const lines = [{ kind: "steel", values: values.map((value) => (value === null ? null : value / 1000)), isFilled: true, isHidden: true, format: count }];
  const capacity = link.capacity_bps === null ? null : link.capacity_bps / 1000;
  const range = (_least, most) => [0, Math.max(most ?? 0, capacity ?? 0) * 1.08 || 1];
  const says = `kbit/s on ${link.ends.join(" – ")} over time`;
  return card("Use of this link", "kbit/s", html`<tieline-chart class="chart link-use" .data=${{ times: history.times, window: [end - state.span, end], lines, limit: capacity, range, axis: (value) => rate(value), events: page.events, room: 24, says }}></tieline-chart>`);
}

function brokerTable() {
  const order = { bad: 0, silent: 1, warn: 2, ok: 3 };
  const { broker } = state.chosen;
  const rows = [...state.page.brokers].sort((one, other) => order[one.state] - order[other.state]);
  return html`<div class="scroll-y brokers-all" tabindex="0" role="region" aria-label="Brokers">${table([
    { head: "Name", kind: "name", cell: (row) => html`<span class="named"><span class="dot ${row.state}"></span>${row.name}${row.is_here ? html`<span class="soft">&nbsp; here</span>` : nothing}</span>` },
    { head: "State", kind: "fixed", cell: (row) => (row.state === "silent" ? chip(row.age_s === null ? "silent" : `silent ${span(row.age_s)}`) : row.state === "ok" ? html`<span class="soft">ok</span>` : chip(row.state === "bad" ? "in trouble" : "to look at", row.state)) },
    { head: "msg/s", kind: "num", quiet: false, cell: (row) => rate(row.per_s) },
    { head: "Clients", kind: "num", quiet: false, cell: (row) => count(row.clients) },
    { head: "Lag", kind: "num wide", quiet: false, cell: (row) => duration(row.lag_s) },
  ], rows, { key: (row) => row.name, rowKind: (row) => row.state, selected: (row) => row.name === broker, label: "Brokers" })}</div>`;
}
