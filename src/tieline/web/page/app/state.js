// What the page knows, in one value; whoever changes it says so, and it is painted at most four times a second.

import { History } from "./history.js";

const PAINT_MS = 250;

export const VIEWS = [
  ["overview", "Overview"],
  ["messages", "Messages"],
  ["clients", "Clients"],
  ["network", "Network"],
  ["grid", "Grid"],
  ["plan", "Plan"],
];

export const state = {
  stage: "loading", // loading, login, forbidden, open
  view: "overview",
  span: 600, // seconds that charts show
  config: null,
  user: null, // name and password, kept here and nowhere else
  said: "", // what was wrong with the last login
  isAsking: false,
  rule: "", // what forbids this user to look
  link: { state: "closed", downSince: null, nextTry: null, reason: "" },
  page: null, // the last object of the broker
  pageAt: 0, // when it came, by this machine's clock
  isOutdated: false, // the broker has other files than those that run here
  history: new History(),
  open: null, // the menu that is open
  dialog: null,
  copied: "",
  chosen: { sessions: "waiting", pattern: "", link: "", system: "island", all: {} },
};

let draw = () => {};
let due = 0;
let last = -PAINT_MS;

export function paintWith(paint) {
  draw = paint;
  document.addEventListener("visibilitychange", () => changed());
}

/** Say that something is different; several changes make one picture, and a hidden page makes none. */
export function changed() {
  if (due || document.hidden) return;
  due = setTimeout(() => requestAnimationFrame(paint), Math.max(0, last + PAINT_MS - performance.now()));
}

/** For what a person did: an answer to a key or a click does not wait. */
export function paintNow() {
  clearTimeout(due);
  due = 0;
  if (!document.hidden) paint();
}

function paint() {
  due = 0;
  if (document.hidden) return;
  last = performance.now();
  draw();
  performance.measure("tieline-paint", { start: last, end: performance.now() });
  performance.clearMeasures("tieline-paint");
}
