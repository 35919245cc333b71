// The steps in which the broker decides, as `why` and `trace` tell them.

import { html } from "../../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { marked } from "../parts.js";

const signs = { yes: () => icon("ok", 14, "yes"), no: () => icon("close", 14, "no") };
const words = { yes: "yes", no: "no", unknown: "unknown", note: "" };

export function steps(all) {
  return html`<table class="steps" aria-label="Steps of the decision"><tbody>${all.map(({ stage, outcome, text, rule }) => html`<tr>
    <td>${signs[outcome]?.() ?? "·"}<span class="unseen">${words[outcome] ?? ""}</span></td><td>${stage}</td><td>${marked(text)} ${rule ? html`<code>${rule}</code>` : ""}</td></tr>`)}</tbody></table>`;
}
