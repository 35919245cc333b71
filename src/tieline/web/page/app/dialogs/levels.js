// The broker calls a class by its level, by its name, or by a class of the configuration: here all become a level.

import { state } from "../state.js";

/** What the levels are called, here as everywhere. */
export const LEVELS = ["low", "normal", "important", "urgent"];

export function levelOf(name) {
  if (typeof name === "number") return name;
  const known = (state.page?.classes ?? []).find((one) => one.name === name || one.event_classes?.includes(name));
  return known?.level ?? Math.max(0, LEVELS.indexOf(name));
}
