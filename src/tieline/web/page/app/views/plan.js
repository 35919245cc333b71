// Is the plan worth applying, and how good can one be?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { Repeated } from "../broker.js";
import { graph } from "../draw/graph.js";
import { icon } from "../icons.js";
import { bytes, clock, count, duration, kilobits, percent, plural, span } from "../format.js";
import { card, chip, command, copy, marked, refusal, table } from "../parts.js";
import { state, changed, paintNow } from "../state.js";
import { layout } from "./network.js";

const FEW = 3;
const plan = new Repeated(() => ({ do: "plan", detail: true }), 5);
const isKnown = (value) => value !== null && value !== undefined;

export const planView = {
  draw: drawn,
  beside: () => (plan.answer?.proposal?.command ? html`<button type="button" class="control" @click=${() => copy(plan.answer.proposal.command)}>${state.copied === plan.answer.proposal.command ? "Copied" : "Copy command to apply"}</button>` : nothing),
  forget: () => plan.forget(),
};

function drawn() {
  const { page } = state;
  if (!page.joined) {
    return html`<section class="card first"><h2>One broker needs no plan.</h2>
      <p>A plan says over which links topics go when several brokers are joined. The view Network says how to join some.</p></section>`;
  }
  const { answer, trouble } = plan.look(changed);
  if (trouble && !answer) return card("Plan", "", refusal(trouble));
  if (!answer) return html`<p class="soft">Asking …</p>`;
  const { in_force: now, proposal: next, is_applied: isApplied } = answer;
  const pictures = isApplied
    ? html`${picture("Before", now, inForce(now), "")}${picture("In force", next, appliedAt(next), "")}`
    : html`${picture("In force", now, inForce(now), "No plan is in force: messages take the shortest way.")}
    ${picture("Proposed", next, decided(next), "No plan waits. How what brokers carry becomes one is said below.")}`;
  return html`<div class="plan">${next ? tiles(now, next, isApplied) : nothing}${pictures}
    ${next ? html`<div class="stack moves">${next.verdict && next.links?.length ? planner(next) : nothing}${next.moves ? moves(next, isApplied) : nothing}${isKnown(next.cost) ? journey(now, next) : nothing}</div>${bound(next)}` : howTo()}</div>`;
}

/** Which plan it is; without one, messages take the shortest ways, and links carry something all the same. */
function inForce(now) {
  if (!now) return "";
  if (!now.epoch) return "no plan: the shortest ways";
  return [`plan ${now.epoch}`, now.since && `since ${clock(now.since)}`].filter(Boolean).join(", ");
}

function appliedAt(next) {
  return [`plan ${next.epoch}`, next.applied && `since ${clock(state.page.time - next.applied.ago_s)}`].filter(Boolean).join(", ");
}

/** Why what was found is not in force; that a plan is proposed says the heading. */
const decided = (next) => (!next || next.status === "proposed" ? "" : next.status);

/** What the planner that stands by has decided, in its own sentences. */
function planner(next) {
  const reasons = [...(next.reasons ?? []), next.checker].filter(Boolean);
  return card("What the planner says", isKnown(next.age_s) ? `${span(next.age_s)} ago` : "", html`<p>${marked(next.verdict)}</p>
    ${reasons.length ? html`<ul class="reasons">${reasons.map((reason) => html`<li>${marked(reason)}</li>`)}</ul>` : nothing}`);
}

function howTo() {
  return html`<section class="card wide-card"><header><h2>From traffic to plan</h2></header>
    ${command("tieline plan import running --out net.json")}${command("tieline plan solve net.json --out plan.json")}${command("tieline plan apply net.json plan.json --dry")}<p class="soft small">Or a planner stands by, and does so whenever the traffic has changed:</p>${command("tieline plan watch")}</section>`;
}

function tile(title, before, after, note) {
  if (!isKnown(before) && !isKnown(after)) return nothing;
  return html`<section class="tile"><h2>${title}</h2><p class="value">${isKnown(before) && isKnown(after) ? html`<span class="was">${before} →</span> ` : nothing}${after ?? before}</p><p class="note" title=${note}>${note}</p></section>`;
}

const figure = (value, of) => (isKnown(value) ? of(value) : null);

function tiles(now, next, isApplied) {
  const cheaper = isKnown(now?.cost) && isKnown(next.cost) && now.cost && count(now.cost) !== count(next.cost) ? `${next.cost <= now.cost ? "−" : "+"}${percent(Math.abs(next.cost / now.cost - 1))}; ` : "";
  const amount = (value) => (next.unit === "messages" ? count(value) : kilobits(value * 8));
  const unit = next.unit === "messages" ? "messages a second" : "kbit/s";
  const waited = now?.passing?.waiting;
  return html`<div class="tiles four">
    ${tile("Would not get through", figure(next.shortfall?.before, amount), figure(next.shortfall?.after, amount), `${unit}${isKnown(next.requests) ? `; ${plural(next.requests - next.unmet, "request")} of ${count(next.requests)} served` : ""}`)}
    ${tile("Busiest link", figure(now?.busiest?.used, percent), figure(next.busiest?.used, percent), (now?.busiest ?? next.busiest)?.ends.join(" – ") ?? "")}
    ${tile("Cost", figure(now?.cost, count), figure(next.cost, count), `${cheaper}${isKnown(next.bound) ? `no plan is below ${count(next.bound)}` : ""}`)}
    ${isApplied ? tile("Waits for links", figure(waited, bytes), figure(next.passing?.waiting, bytes), "measured, all links together") : tile("Over all links", figure(now?.load, amount), figure(next.load, amount), unit)}</div>`;
}

function fullness(links) {
  const up = links.filter((link) => link.state !== "down" && isKnown(link.used));
  const full = up.filter(({ used }) => used >= 0.95).length;
  const over = up.filter(({ used }) => used >= 0.8 && used < 0.95).length;
  if (!full && !over) return chip("none over 80 %", "ok");
  return chip([full && `${full} full`, over && `${over} over 80 %`].filter(Boolean).join(", "), full ? "bad" : "warn");
}

function picture(title, one, sub, without) {
  const links = one?.links ?? [];
  if (links.length === 0) return card(title, sub, html`<p class="empty">${one ? one.verdict ? marked(one.verdict) : "What it puts on each link is not known here." : without}</p>`, { kind: "half" });
  const capacity = new Map(state.page.links.map((link) => [[...link.ends].sort().join("\n"), link]));
  const drawnLinks = links.map((link) => ({ capacity_bps: null, ...capacity.get([...link.ends].sort().join("\n")), ...link, round_trip_s: null }));
  const place = layout.of(state.page.brokers, state.page.links, changed);
  return card(title, sub, html`<tieline-figure class="net plan-net" .draw=${graph({ nodes: state.page.brokers, links: drawnLinks, place, isSmall: true })}></tieline-figure>`, { kind: "half", end: fullness(drawnLinks) });
}

/** A way by its brokers; those that the way of now does not have are set apart. */
function wayOf(way, known = way) {
  return way.map((broker, index) => html`${index ? " → " : ""}${known.includes(broker) ? broker : html`<b>${broker}</b>`}`);
}

function moves(next, isApplied) {
  const title = isApplied ? "What moved" : "What would move";
  const { all } = state.chosen;
  const rows = all.moves ? next.moves : next.moves.slice(0, FEW);
  const total = next.moves_total ?? next.moves.length;
  const sub = `${plural(total, "flow")}${isKnown(next.topics_total) ? ` of ${plural(next.topics_total, "topic")}` : ""}${total > rows.length ? "; the largest" : ""}`;
  const more = next.moves.length > FEW ? html`<button type="button" class="link" @click=${() => ((all.moves = !all.moves), paintNow())}>${all.moves ? "Fewer" : total > next.moves.length ? `The largest ${next.moves.length}` : `All ${count(total)}`}</button>` : nothing;
  return card(title, sub, rows.length ? html`<div class="scroll-y" tabindex="0" role="region" aria-label=${title}>${table([
    { head: "Topic", kind: "cut topic", cell: (row) => html`<code title=${row.topic}>${row.topic}</code>` },
    next.unit === "messages" ? { head: "msg/s", kind: "num", cell: (row) => count(row.rate) } : { head: "kbit/s", kind: "num", cell: (row) => kilobits(row.bps) },
    { head: isApplied ? "Went over" : "Goes over now", kind: "soft wide way", cell: (row) => wayOf(row.now) },
    { head: isApplied ? "Goes over" : "Would go over", kind: "way", cell: (row) => wayOf(row.then, row.now) },
  ], rows, { label: title })}</div>` : html`<p class="empty">Nothing: all topics go over the same links.</p>`, { end: more });
}

function journey(now, next) {
  const { measured, solved, applied } = next;
  const isProven = isKnown(next.checker);
  const carried = (passing) => (passing ? `${kilobits(passing.carried * 8)} kbit/s, ${bytes(passing.waiting)} waiting` : "");
  const published = next.unit === "messages" ? `${count(measured.published)} msg/s` : `${kilobits(measured.published * 8)} kbit/s`;
  const steps = [
    ["Measured", true, `${duration(measured.seconds)}${isKnown(measured.published) ? `, ${published}` : ""}`],
    ["Solved", Boolean(solved), solved ? duration(solved.seconds) : "not yet"],
    ["Proven", isProven, isProven ? "shares no code with the solver" : "not yet"],
    ["Applied", Boolean(applied), applied ? `at ${clock(state.page.time - applied.ago_s)}` : "waits"],
    ["Compared", Boolean(next.passing), next.passing ? `${carried(now?.passing)}; now ${carried(next.passing)}` : applied ? "at the next look" : "when it is applied"],
  ];
  return card("From traffic to plan", "", html`<ol class="journey">${steps.map(([name, isDone, note]) => html`<li class=${isDone ? "done" : ""}>${isDone ? icon("ok", 14) : html`<span class="ring"></span>`}<b>${name}</b><p>${note}</p></li>`)}</ol>`);
}

function bound(next) {
  const { steps } = next;
  if (!isKnown(next.bound)) return nothing;
  if (!(steps?.length > FEW)) return card("How good can it be", "cost", html`<p class="empty">The plan costs ${count(next.cost)}; no plan is below ${count(next.bound)}.</p>`, { kind: "bound-card" });
  const times = steps.map(({ seconds }) => seconds);
  const lines = [
    { kind: "accent", values: steps.map(({ objective }) => objective ?? null), name: "plan", format: count, isStepped: true, width: 2 },
    { kind: "soft", values: steps.map(({ bound: value }) => value ?? null), name: "bound", format: count, isStepped: true, dash: [5, 4] },
  ];
  const range = (least, most) => [least - (most - least) * 0.08, most + (most - least) * 0.08 || most + 1];
  return card("How good can it be", "cost, over the seconds of solving", html`<tieline-chart class="chart bound" .data=${{ times, lines, range, isTime: false, axis: count, room: 92, says: `The plan costs ${count(next.cost)}, and no plan is below ${count(next.bound)}` }}></tieline-chart>`, { kind: "bound-card" });
}
