// The last messages that were discarded, one by one.

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { ask } from "../broker.js";
import { UNKNOWN, count, duration } from "../format.js";
import { classTag, command, refusal, table } from "../parts.js";
import { state, paintNow } from "../state.js";
import { levelOf } from "./levels.js";

const MOST = 1000;

export function openLosses() {
  const dialog = { kind: "losses", answer: null, trouble: null };
  state.dialog = dialog;
  paintNow();
  ask({ do: "drops", most: MOST }).then((answer) => Object.assign(dialog, { answer }), (trouble) => Object.assign(dialog, { trouble })).then(paintNow);
}

export function lossesDialog({ closed, close }) {
  const { answer, trouble } = state.dialog;
  return html`<dialog aria-label="What was dropped" @close=${closed}>
    <header><h2>What was dropped</h2><span class="sub soft">${answer ? `the last ${count(answer.drops.length)} of ${count(answer.total)} since the start` : nothing}</span>
      <button type="button" class="key" aria-label="Esc, close" @click=${close}>Esc</button></header>
    ${refusal(trouble)}
    ${answer ? html`<div class="scroll-y" tabindex="0" role="region" aria-label="Records">${table([
      { head: "Why", kind: "fixed", cell: (drop) => html`<code>${drop.why}</code>` },
      { head: "", says: "Class", kind: "fixed", cell: (drop) => (drop.class === "" || drop.class === null ? "" : classTag(levelOf(drop.class))) },
      { head: "Client", kind: "cut", cell: (drop) => html`<span title=${drop.client ?? ""}>${drop.client ?? UNKNOWN}</span>` },
      { head: "Topic", kind: "cut", cell: (drop) => html`<code title=${drop.topic ?? ""}>${drop.topic ?? UNKNOWN}</code>` },
      { head: "Messages", kind: "num", cell: (drop) => count(drop.messages) },
      { head: "Queued", kind: "num wide", cell: (drop) => count(drop.queued) },
      { head: "Age", kind: "num wide", cell: (drop) => duration(drop.age_s) },
      { head: "Ago", kind: "num", cell: (drop) => duration(drop.ago_s) },
    ], answer.drops, { label: "What was dropped" })}</div>` : trouble ? nothing : html`<p class="soft">Asking …</p>`}
    ${command("tieline why '*' dropped")}
  </dialog>`;
}
