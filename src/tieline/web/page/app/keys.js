// What keys do, wherever the focus is, as long as nobody writes.

import { state, paintNow, VIEWS } from "./state.js";

const isWriting = (target) => target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;

export function followKeys() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || state.stage !== "open") return;
    if (event.key === "Escape" && state.open !== null) {
      const button = document.querySelector(`[data-menu="${state.open}"]`);
      state.open = null;
      paintNow();
      button?.focus();
      return;
    }
    if (isWriting(event.target) || state.dialog !== null) return;
    const view = VIEWS[Number(event.key) - 1];
    if (view && isOffered(view[0])) location.hash = `#/${view[0]}`;
    else if (event.key === "/") state.dialog = { kind: "trace" };
    else if (event.key === "?") state.dialog = { kind: "keys" };
    else return;
    event.preventDefault();
    paintNow();
  });
  addEventListener("click", (event) => {
    if (state.open === null || event.target.closest?.(".menu-home")) return;
    state.open = null;
    paintNow();
  });
}

/** Without readings of voltage and frequency there is nothing that a grid could be drawn from. */
export function isOffered(view) {
  return view !== "grid" || state.page === null || Boolean(state.page.grid);
}
