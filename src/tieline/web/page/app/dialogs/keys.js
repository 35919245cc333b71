// All keys on one card.

import { html } from "../../vendor/lit-html/lit-html.js";
import { VIEWS } from "../state.js";

export function keysDialog({ closed, close }) {
  const keys = [...VIEWS.map(([, words], index) => [String(index + 1), words]), ["/", "Where would a message go?"], ["Esc", "Close what is open"], ["?", "These keys"]];
  return html`<dialog class="narrow" aria-label="Keys" @close=${closed}>
    <header><h2>Keys</h2><button type="button" class="key" aria-label="Esc, close" @click=${close}>Esc</button></header>
    <table aria-label="Keys"><tbody>${keys.map(([key, words]) => html`<tr><td><span class="key">${key}</span></td><td>${words}</td></tr>`)}</tbody></table>
  </dialog>`;
}
