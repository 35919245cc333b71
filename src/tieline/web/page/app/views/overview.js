// Is all well?  If not, what is it, and who?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { openWhy } from "../dialogs/why.js";
import { spark } from "../draw/spark.js";
import { UNKNOWN, bytes, bytesParts, count, duration, durationParts, plural, rate, span } from "../format.js";
import { card, command, copyButton, marked, nameLink, table } from "../parts.js";
import { state, paintNow } from "../state.js";
import { sessionColumns } from "./sessions.js";
import { waitingCard } from "./waiting.js";

export const overviewView = {
  draw() {
    return isFresh() ? first() : html`<div class="overview">${tiles()}
      ${waitingCard("How long messages wait", "99 of 100 wait less, by class", { withClock: true }, { end: html`<a href="#/messages">Messages</a>`, kind: "chart-card" })}
      ${attention()}${slowest()}${brokers()}</div>`;
  },
};

/** Nobody but those who look has been here, and nothing was ever said. */
function isFresh() {
  const { page, history } = state;
  const heard = history.of("received").some((value) => value > 0.05) || page.classes.some((one) => one.received > 0);
  return page.sessions.all <= 1 && !heard && !page.joined && page.dropped_total === 0 && page.attention.length === 0;
}

function first() {
  const { page } = state;
  const url = page.listeners.find((each) => each.startsWith("tcp://"));
  const port = url?.match(/:(\d+)$/)?.[1];
  const option = port && port !== "1883" ? ` -p ${port}` : "";
  return html`<section class="card first">
    <h2>Ready. Nobody has said anything yet.</h2>
    <p>${page.name} listens on ${page.listeners.slice(0, 3).join(" and ")}. In two terminals:</p>
    ${command(`tieline sub${option} -t 'hello/#' -v`)}
    ${command(`tieline pub${option} -t hello/world -m "good morning"`)}
    ${url ? html`<p>Or a whole microgrid: <code>tieline sim microgrid --to ${url.replace("tcp:", "mqtt:")}</code></p>` : nothing}
  </section>`;
}

function tile(title, [value, unit], note, name, kind = "") {
  return html`<section class="tile"><h2>${title}</h2>${spark(state.history.of(name), kind)}
    <p class="value">${value} <small>${unit}</small></p><p class="note" title=${note}>${note}</p></section>`;
}

function tiles() {
  const { tiles: now } = state.page;
  const { urgent } = now;
  const fan = now.received_per_s > 0 ? ` · fan-out ${(now.sent_per_s / now.received_per_s).toFixed(1)}` : "";
  const lost = state.page.dropped_total;
  const limit = typeof now.waiting_limit_bytes === "number" ? `of ${bytes(now.waiting_limit_bytes)} · ` : "";
  const isWaiting = urgent.p99_s !== null;
  return html`<div class="tiles five">
    ${tile("Urgent, p99", isWaiting ? durationParts(urgent.p99_s) : [UNKNOWN, "nothing waits"], `limit ${duration(urgent.limit_s)} · oldest ${duration(urgent.oldest_s)}`, "p99/3", "c3")}
    ${tile("Received", [rate(now.received_per_s), "msg/s"], received(now), "received")}
    ${tile("Delivered", [rate(now.sent_per_s), "msg/s"], `${bytes(now.bytes_out_per_s)}/s${fan}`, "sent")}
    ${tile("Waiting", bytesParts(now.waiting_bytes), `${limit}${plural(now.waiting_messages, "message")}`, "waiting_bytes")}
    ${tile("Dropped", [count(now.dropped_hour), "last hour"], `${count(now.dropped_urgent_hour)} urgent${lost ? " · all have a name" : ""}`, "dropped", "quiet")}
  </div>`;
}

/** A broker gets messages from its clients, and from the brokers that it is joined with. */
function received(now) {
  if (!state.page.joined) return `${bytes(now.bytes_in_per_s)}/s · ${plural(now.connected, "client")}`;
  return `${rate(Math.max(0, now.received_per_s - now.of_brokers_per_s))} of clients · ${rate(now.of_brokers_per_s)} of brokers`;
}

function attention() {
  const { attention: all, attention_more: more } = state.page;
  const body = all.length ? html`<ul class="attention">${all.map((one) => html`<li>${icon(one.state, 16, one.state)}<div>
      <h3>${marked(one.title)}</h3><p class="text">${marked(one.text)}</p>
      <p class="do">${one.verb ? html`<a href="#/${one.view}" @click=${(event) => follow(event, one)}>${one.verb}</a>` : nothing}${one.command ? html`<code title=${one.command}>${one.command}</code>${copyButton(one.command)}` : nothing}</p>
    </div></li>`)}</ul>${more ? html`<p class="soft">${plural(more, "more thing")} of less weight.</p>` : nothing}` : html`<p class="empty">Nothing. Whatever does will stand here, with what to do about it.</p>`;
  return card("Needs attention", "", body, { kind: "attention-card" });
}

/** A finding leads to where its evidence is: a client's own page, a link, or a view. */
function follow(event, { view, subject }) {
  if (view === "clients" && subject) {
    event.preventDefault();
    openWhy(subject);
  } else if (view === "network" && subject) {
    state.chosen.link = subject;
  }
  paintNow();
}

function slowest() {
  const { slowest: rows, sessions, joined } = state.page;
  return card("Slowest clients", "and what each of them waits for",
    rows.length ? table(sessionColumns({ isJoined: joined }), rows.slice(0, 5), { key: (row) => `${row.at} ${row.client}`, kind: "roomy", label: "Slowest clients" }) : html`<p class="empty">Everybody is caught up.</p>`,
    { end: html`<a href="#/clients">All ${count(sessions.all)}</a>` });
}

function brokers() {
  const { brokers: all } = state.page;
  const order = { bad: 0, silent: 1, warn: 2, ok: 3 };
  const rows = all.length > 6 ? [...all].sort((one, other) => order[one.state] - order[other.state]) : all;
  return card("Brokers", all.length > 6 ? "those in trouble first" : "", table([
    { head: "Name", kind: "name", cell: (row) => html`<span class="named"><span class="dot ${row.state}" title=${row.state}></span>${nameLink(row.name, () => toBroker(row.name))}</span>` },
    { head: "msg/s", kind: "num", cell: (row) => (row.state === "silent" ? row.age_s === null ? "silent" : `silent ${span(row.age_s)}` : rate(row.per_s)) },
    { head: "Clients", kind: "num", quiet: false, cell: (row) => count(row.clients) },
    { head: "Lag", kind: "num", quiet: false, cell: (row) => duration(row.lag_s) },
  ], rows.slice(0, 6), { key: (row) => row.name, rowKind: (row) => row.state, label: "Brokers" }), { end: html`<a href="#/network">${all.length > 6 ? `All ${count(all.length)}` : "Network"}</a>` });
}

function toBroker(name) {
  state.chosen.broker = name;
  location.hash = "#/network";
}
