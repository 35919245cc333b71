// Is what is urgent first?  What was lost?  What is hot?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { Repeated } from "../broker.js";
import { openLosses } from "../dialogs/losses.js";
import { openWhy } from "../dialogs/why.js";
import { LEVELS } from "../dialogs/levels.js";
import { spark } from "../draw/spark.js";
import { UNKNOWN, count, duration, rate, span } from "../format.js";
import { card, classTag, marked, meter, nameLink, refusal, table } from "../parts.js";
import { state, changed } from "../state.js";
import { waitingCard, waitingCounts } from "./waiting.js";

const top = new Repeated(() => ({ do: "top" }), 5);
const SPAN = { 120: "last 2 minutes", 600: "last 10 minutes", 3600: "last hour" };

export const messagesView = {
  draw() {
    return html`<div class="messages">${classes()}
      ${waitingCard("Waiting, p99", SPAN[state.span], {}, { kind: "half" })}
      ${card("Messages waiting", "all queues, by class", waitingCounts(), { kind: "half" })}
      ${drops()}${hottest(top.look(changed))}</div>`;
  },
  forget: () => top.forget(),
};

function classes() {
  return card("Classes", "waiting time in congested queues; the bar is the oldest message of what its class allows", table([
    { head: "Class", kind: "class-name", cell: (row) => html`${classTag(row.level, true)} <b>${LEVELS[row.level]}</b> <span class="soft wide">${(row.event_classes ?? []).join(", ")}</span>` },
    { head: "Received", kind: "num", cell: (row) => html`${rate(row.received_per_s)} <span class="unit">/s</span>` },
    { head: "", says: "Received over time", kind: "wide spark-cell", cell: (row) => spark(state.history.of(`received/${row.level}`), `c${row.level}`, 76, 24) },
    { head: "p50", kind: "num wide", cell: (row) => duration(row.p50_s) },
    { head: "p99", kind: "num strong", cell: (row) => duration(row.p99_s) },
    { head: "Oldest", kind: "oldest wide apart", cell: oldest },
    { head: "Waiting", kind: "num", cell: (row) => count(row.waiting) },
    { head: "Congested", kind: "num wide", cell: (row) => count(row.congested) },
    { head: "Dropped", kind: "num", cell: (row) => count(row.dropped) },
  ], state.page.classes, { key: (row) => row.level, kind: "tall", label: "Classes" }));
}

function oldest(row) {
  const share = row.limit_s ? row.oldest_s / row.limit_s : 0;
  return html`<span class="metered">${meter(share, share > 1 ? "bad" : share > 0.8 ? "warn" : "", 110)} ${duration(row.oldest_s)}${row.limit_s ? ` of ${duration(row.limit_s)}` : ""}</span>`;
}

function drops() {
  const { drops: rows, dropped_total: total } = state.page;
  const sub = total ? `${count(total)} since the start; nothing is dropped without a name` : "nothing is dropped without a name";
  return card("Dropped, by name", sub, rows.length ? table([
    { head: "Why", kind: "fixed", cell: (row) => html`<code>${row.why}</code>` },
    { head: "", says: "Class", kind: "fixed", cell: (row) => (row.level === null ? "" : classTag(row.level)) },
    { head: "Messages", kind: "num", cell: (row) => count(row.messages) },
    { head: "Of", kind: "name", cell: (row) => (row.of ? nameLink(row.of, () => openWhy(row.of)) : UNKNOWN) },
    { head: "What helps", kind: "soft wide", cell: (row) => marked(row.helps) },
  ], rows, { label: "Dropped, by name" }) : html`<p class="empty">Nothing was dropped since the start.</p>`,
    { end: total ? html`<button type="button" class="link" @click=${openLosses}>Last 1,000</button>` : nothing });
}

function hottest({ answer, trouble }) {
  const rows = (answer?.hottest ?? []).slice(0, 8).map(([topic, heat, source], index) => ({ topic, heat, source, level: answer.hottest_levels?.[index] ?? null }));
  const heat = answer?.heat ?? {};
  const sub = heat.source === "given" ? `table of the pipeline, for another ${span(heat.left_s)}` : "as the broker counts who wants them";
  const most = Math.max(...rows.map((row) => row.heat), 0);
  const body = rows.length ? table([
    { head: "Topic", kind: "cut topic", cell: (row) => html`<code title=${row.topic}>${row.topic}</code>` },
    { head: "", says: "Class", kind: "fixed", cell: (row) => (row.level === null ? "" : classTag(row.level)) },
    { head: "Heat", kind: "num", cell: (row) => row.heat.toFixed(1) },
    { head: "", says: "Share of the hottest", kind: "fixed wide", cell: (row) => meter(most ? row.heat / most : 0, "", 70) },
    { head: "Source", kind: "soft fixed wide", cell: (row) => row.source },
  ], rows, { key: (row) => row.topic, label: "Hottest topics" }) : trouble ? refusal(trouble) : html`<p class="empty">${answer ? "No topic is hot: nothing was published lately." : "Asking …"}</p>`;
  return card("Hottest topics", rows.length ? sub : "", body);
}
