// Which dialog is open; the browser keeps the focus inside, gives it back afterwards, and closes with Esc.

import { nothing } from "../../vendor/lit-html/lit-html.js";
import { state, paintNow } from "../state.js";
import { keysDialog } from "./keys.js";
import { lossesDialog } from "./losses.js";
import { traceDialog } from "./trace.js";
import { whyDialog } from "./why.js";

const kinds = { trace: traceDialog, why: whyDialog, losses: lossesDialog, keys: keysDialog };

export function openDialog(dialog) {
  state.dialog = dialog;
  paintNow();
}

export function dialogs() {
  return state.dialog ? kinds[state.dialog.kind]({ closed, close }) : nothing;
}

/** After each painting: what was asked to be open is shown as a dialog, once. */
export function keepDialogOpen() {
  const dialog = document.querySelector("dialog");
  if (dialog && !dialog.open) dialog.showModal();
}

function close() {
  document.querySelector("dialog")?.close();
}

function closed() {
  state.dialog = null;
  paintNow();
}
