// One client: how it is doing, what it waits for, and what it lost.

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { ask } from "../broker.js";
import { UNKNOWN, count, duration } from "../format.js";
import { command, refusal, table, classTag } from "../parts.js";
import { state, paintNow } from "../state.js";
import { quoted } from "./quoting.js";
import { steps } from "./steps.js";
import { levelOf } from "./levels.js";

export function openWhy(client) {
  const dialog = { kind: "why", client, answer: null, drops: null, trouble: null };
  state.dialog = dialog;
  paintNow();
  Promise.all([ask({ do: "why", client }), ask({ do: "drops", client, most: 20 })])
    .then(([answer, drops]) => Object.assign(dialog, { answer, drops }), (trouble) => Object.assign(dialog, { trouble }))
    .then(paintNow);
}

/** A client that this broker does not know may be with another one, which was asked too. */
function whereKnown(answer) {
  const others = Object.entries(answer?.others ?? {});
  return (answer?.is_known === false && others.find(([, other]) => other.is_known)) || ["", answer];
}

export function whyDialog({ closed, close }) {
  const { client, drops, trouble } = state.dialog;
  const [at, answer] = whereKnown(state.dialog.answer);
  return html`<dialog class="drawer" aria-label="Why ${client}" @close=${closed}>
    <header><h2>${client}</h2><button type="button" class="key" aria-label="Esc, close" @click=${close}>Esc</button></header>
    ${refusal(trouble)}
    ${answer === null && trouble === null ? html`<p class="soft">Asking …</p>` : nothing}
    ${answer ? html`${at ? html`<p class="soft">It is at broker <b>${at}</b>, which says:</p>` : nothing}${steps(answer.steps)}` : nothing}
    ${drops ? html`<h3>What it lost</h3>${drops.drops.length ? table([
      { head: "Why", kind: "fixed", cell: (drop) => html`<code>${drop.why}</code> ${classTag(levelOf(drop.class))}` },
      { head: "Topic", kind: "cut", cell: (drop) => html`<span title=${drop.topic ?? ""}>${drop.topic ?? UNKNOWN}</span>` },
      { head: "Messages", kind: "num", cell: (drop) => count(drop.messages) },
      { head: "Ago", kind: "num", cell: (drop) => duration(drop.ago_s) },
    ], drops.drops, { label: "What it lost" }) : html`<p class="soft">Nothing.</p>`}` : nothing}
    ${command(`tieline why ${quoted(client)}`)}
  </dialog>`;
}
