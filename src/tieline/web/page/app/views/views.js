// The six views by their names; each has `draw`, and may judge for itself or stand something beside its verdict.

import { clientsView } from "./clients.js";
import { gridView } from "./grid.js";
import { messagesView } from "./messages.js";
import { networkView } from "./network.js";
import { overviewView } from "./overview.js";
import { planView } from "./plan.js";

export const views = {
  overview: overviewView,
  messages: messagesView,
  clients: clientsView,
  network: networkView,
  grid: gridView,
  plan: planView,
};

/** Whoever signs in next may have other rights: answers of before are not theirs. */
export function forgetAnswers() {
  for (const view of Object.values(views)) view.forget?.();
}
