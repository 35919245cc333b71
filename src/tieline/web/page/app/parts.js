// The parts of which every view is made.  Text from clients only ever becomes text: no part takes markup.

import { html, svg, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { icon } from "./icons.js";
import { UNKNOWN, count } from "./format.js";
import { state, paintNow } from "./state.js";

/** A sentence in which `names a machine knows` are set apart. */
export function marked(text) {
  return String(text ?? "").split("`").map((piece, index) => (index % 2 ? html`<code>${piece}</code>` : piece));
}

export function card(title, sub, body, { end = nothing, kind = "", inkEnd = false } = {}) {
  return html`<section class="card ${kind}">
    <header><h2>${title}</h2>${sub ? html`<span class="sub">${sub}</span>` : nothing}${
      end === nothing ? nothing : html`<span class="end ${inkEnd ? "ink" : ""}">${end}</span>`}</header>
    ${body}
  </section>`;
}

export function classTag(level, large = false) {
  return html`<span class="class c${level} ${large ? "large" : ""}">${level}</span>`;
}

export const chip = (text, kind = "", mono = false) => html`<span class="chip ${kind} ${mono ? "mono" : ""}" title=${text}>${text}</span>`;

/** A bar of which a share is filled; the number stands beside it. */
export function meter(share, kind = "", width = 80) {
  const filled = Math.max(0, Math.min(1, share ?? 0)) * width;
  return html`<svg class="meter ${kind}" width=${width} height="6" viewBox="0 0 ${width} 6" preserveAspectRatio="none" aria-hidden="true">${
    svg`<rect width=${width} height="6" rx="3"/><rect width=${filled > 0 ? Math.max(4, filled) : 0} height="6" rx="3"/>`}</svg>`;
}

/** A table of rows that are known by a key; columns are `{head, cell, kind}`, and `kind` is for both head and cell. */
export function table(columns, rows, { key = (_row, index) => index, kind = "", rowKind = () => "", selected = () => false, label = "" } = {}) {
  return html`<table class=${kind} aria-label=${label || nothing}>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${(column.kind ?? "").replace("name", "").replace("cut", "")}>${column.head || html`<span class="unseen">${column.says ?? ""}</span>`}</th>`)}</tr></thead>
    <tbody>${repeat(rows, key, (row) => html`<tr class=${rowKind(row)} aria-selected=${selected(row) ? "true" : nothing}>${columns.map((column) => {
      const cell = column.cell(row);
      const isZero = cell === "0" || cell === UNKNOWN;
      return html`<td class="${column.kind ?? ""} ${isZero && column.quiet !== false ? "zero" : ""}">${cell}</td>`;
    })}</tr>`)}</tbody>
  </table>`;
}

/** A name that leads somewhere, shown whole on hovering where it is too long. */
export function nameLink(name, act, label = "") {
  return html`<button type="button" class="link" title=${name} aria-label=${label || nothing} @click=${act}>${name}</button>`;
}

export const counted = (value) => count(value);

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text); // without https, on an address that is not this machine
  }
  state.copied = text;
  paintNow();
  setTimeout(() => {
    if (state.copied !== text) return;
    state.copied = "";
    paintNow();
  }, 1500);
}

function copyByHand(text) {
  const field = document.createElement("textarea");
  field.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function copyButton(text, words = "Copy") {
  const shown = state.copied === text ? "Copied" : words;
  return html`<button type="button" class="link copy" aria-label="${shown} ${text}" @click=${() => copy(text)}>${shown}</button>`;
}

export function command(text) {
  return html`<div class="command"><code title=${text}>${text}</code>${copyButton(text)}</div>`;
}

export function facts(rows) {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A choice of a few, of which one holds. */
export function segments(label, choices, chosen, choose, small = true) {
  return html`<div class="seg ${small ? "small" : ""}" role="group" aria-label=${label}>${choices.map(
    ([value, words]) => html`<button type="button" aria-pressed=${value === chosen ? "true" : "false"} @click=${() => choose(value)}>${words}</button>`)}</div>`;
}

/** Why a part of the page has nothing to show: what the broker said, with the rule. */
export function refusal(trouble) {
  if (!trouble) return nothing;
  const text = trouble.status === 403 ? "This user may not ask the broker" : trouble.message;
  return html`<p class="empty">${icon("warn", 16)} ${text}${trouble.rule ? html`: <code>${trouble.rule}</code>` : ""}</p>`;
}
