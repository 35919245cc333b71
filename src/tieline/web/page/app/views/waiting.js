// How long messages wait and how many do, over time and by class: shown on two views.

import { html } from "../../vendor/lit-html/lit-html.js";
import { LEVELS as LEVEL_NAMES } from "../dialogs/levels.js";
import { clock, count, duration, rate, short } from "../format.js";
import { card } from "../parts.js";
import { state } from "../state.js";

const LEVELS = [3, 2, 1, 0];

function frameOf() {
  const { history, span, page } = state;
  const end = history.times.at(-1) ?? page.time;
  return { times: history.times, window: [end - span, end], events: page.events };
}

/** The 99th percentile of how long messages wait, with gaps where nothing was congested; or else what came at all. */
export function waitingCard(title, sub, { withClock = false }, options) {
  const { history, page } = state;
  const lines = LEVELS.map((level) => ({ kind: `c${level}`, level, values: history.of(`p99/${level}`), format: duration }));
  if (lines.every(({ values }) => values.every((value) => value === null))) {
    return card("Messages received", "by class, msg/s; no queue was congested in this time", received(), options);
  }
  const { events, ...frame } = frameOf();
  const named = withClock ? events.map(({ t, text }) => ({ t, text: `${text} ${clock(t)}` })) : events;
  const says = `How long messages wait, 99 of 100 less: ${page.classes.map((one) => `${LEVEL_NAMES[one.level]} ${duration(one.p99_s)}`).join(", ")}`;
  return card(title, sub, html`<tieline-chart class="chart" .data=${{ ...frame, events: named, lines, isLog: true, axis: duration, says }}></tieline-chart>`, options);
}

function received() {
  const lines = LEVELS.map((level) => ({ kind: `c${level}`, level, values: state.history.of(`received/${level}`), format: rate }));
  const says = `Messages received each second: ${state.page.classes.map((one) => `${LEVEL_NAMES[one.level]} ${rate(one.received_per_s)}`).join(", ")}`;
  return html`<tieline-chart class="chart" .data=${{ ...frameOf(), lines, axis: short, says }}></tieline-chart>`;
}

/** How many messages wait, the less urgent below, so that the top of all is the sum. */
export function waitingCounts() {
  const { history, page } = state;
  const sum = new Array(history.times.length).fill(0);
  const stacked = [...LEVELS].reverse().map((level) => {
    const labels = history.of(`waiting/${level}`);
    labels.forEach((value, index) => {
      sum[index] += value ?? 0;
    });
    const isEmpty = labels.every((value) => !value);
    return { kind: `c${level}`, level, values: [...sum], labels, format: count, isFilled: true, isHidden: isEmpty };
  }).filter((line) => !line.isHidden);
  const says = `Messages waiting: ${page.classes.map((one) => `${LEVEL_NAMES[one.level]} ${count(one.waiting)}`).join(", ")}`;
  if (stacked.length === 0) return html`<div class="chart calm"><p class="soft">Nothing waits, and nothing has in this time.</p></div>`;
  return html`<tieline-chart class="chart" .data=${{ ...frameOf(), lines: stacked.reverse(), axis: (value) => (value < 10_000 ? count(value) : short(value)), says }}></tieline-chart>`;
}
