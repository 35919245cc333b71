// Begins: who may look, the connection, and the loop that paints what is known.

import { render } from "../vendor/lit-html/lit-html.js";
import "./draw/figure.js";
import "./draw/chart.js";
import * as broker from "./broker.js";
import { frame } from "./frame.js";
import { followKeys } from "./keys.js";
import { keepDialogOpen } from "./dialogs/dialogs.js";
import { login, forbidden, loading } from "./login.js";
import { Connection } from "./mqtt.js";
import { forgetNodes, hearNode } from "./nodes.js";
import { state, changed, paintNow, paintWith, VIEWS } from "./state.js";
import { forgetAnswers } from "./views/views.js";

const PAGE = "$SYS/broker/tieline/page";
const text = new TextDecoder();
let connection = null;

paintWith(() => {
  const app = document.getElementById("app");
  const acts = { enter, leave, tryNow: () => connection.tryNow(), chooseSpan };
  const stages = { loading, login, forbidden, open: frame };
  render(stages[state.stage](acts), app);
  keepDialogOpen();
  wantWhatIsShown();
});

/** The address says which view is shown, so that it can be kept, sent, and gone back from. */
function route() {
  const name = location.hash.replace(/^#\/?/, "");
  state.view = VIEWS.some(([view]) => view === name) ? name : "overview";
  state.open = state.dialog = null;
  document.title = `${VIEWS.find(([view]) => view === state.view)[1]} · ${state.config?.name ?? "Tieline"}`;
  window.scrollTo(0, 0);
  paintNow();
}

async function begin() {
  try {
    state.config = await broker.config();
  } catch {
    state.said = "The broker does not answer. Next try in 3 s.";
    paintNow();
    setTimeout(begin, 3000);
    return;
  }
  state.said = "";
  if (state.config.users) {
    state.stage = "login";
    paintNow();
  } else {
    await enter(null);
  }
}

/** Ask for the past with this user; whoever may see it may see the rest, and who may not is told why. */
async function enter(user) {
  state.isAsking = true;
  paintNow();
  try {
    const past = await broker.past(state.span, user);
    Object.assign(state, { user, stage: "open", said: "", rule: "" });
    state.history.load(past, state.span);
    dial();
  } catch (error) {
    turnAway(error, user);
  } finally {
    state.isAsking = false;
    route();
  }
}

function turnAway(error, user) {
  state.stage = "login";
  if (error.status === 403) {
    Object.assign(state, { stage: "forbidden", rule: error.rule || error.message, user });
  } else if (error.status === 401) {
    state.said = user === null ? "" : "User or password is wrong.";
    if (user !== null && error.triesLeft !== null) state.said += ` ${error.triesLeft} more ${error.triesLeft === 1 ? "try" : "tries"}, then a pause.`;
  } else if (error.status === 429) {
    state.said = `Too many tries have failed. Try again in ${Math.ceil(error.retryS ?? 10)} s.`;
  } else {
    state.said = error.status ? `The broker is busy: ${error.message}.` : "The broker does not answer.";
    if (user === null && !state.config.users) setTimeout(() => enter(null), 3000);
  }
}

function leave() {
  connection?.close();
  forgetAnswers();
  forgetNodes();
  Object.assign(state, { user: null, page: null, said: "", stage: state.config.users ? "login" : "loading", dialog: null, open: null });
  state.history.clear();
  paintNow();
}

function dial() {
  connection?.close();
  const url = new URL(state.config.websocket, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  connection = new Connection(url.href, { changed: moved, received });
  state.link = connection;
  connection.want([PAGE]);
  connection.open(state.user);
}

let wasDown = false;

function moved(link) {
  if (link.state === "refused") {
    leave();
    state.said = link.code === 0x87 ? "The broker does not let this user in any more." : "User or password is not accepted any more.";
  } else if (link.denied.has(PAGE)) {
    state.stage = "forbidden";
    state.rule = `subscribe ${PAGE}`;
    link.close();
  }
  if (link.state === "down") wasDown = true;
  if (link.state === "live" && wasDown) {
    wasDown = false;
    refreshPast();
    broker.config().then((config) => noteBuild(config.build), () => {});
  }
  changed();
}

function noteBuild(build) {
  if (build && state.config.build && build !== state.config.build) state.isOutdated = true;
}

async function refreshPast() {
  const { span } = state;
  try {
    const past = await broker.past(span);
    if (state.span === span) state.history.load(past, span);
  } catch {
    // what is known stays; the banner says whether there is a connection
  }
  changed();
}

function chooseSpan(span) {
  state.span = span;
  paintNow();
  refreshPast();
}

function received(topic, payload) {
  if (topic !== PAGE) {
    hearNode(topic, payload, state.page?.grid);
    changed();
    return;
  }
  let page;
  try {
    page = JSON.parse(text.decode(payload));
  } catch {
    return; // cut off, or of a broker that means something else by it: what is known stays
  }
  if (page.v !== 1) {
    state.isOutdated = true;
    changed();
    return;
  }
  state.page = { events: [], attention: [], drops: [], slowest: [], brokers: [], links: [], ...page };
  state.pageAt = performance.now();
  noteBuild(page.build);
  if (page.point && state.history.append(page.time, page.point)) refreshPast();
  speak(page.views.overview);
  changed();
}

let spoken = "";

/** Whoever listens is told of a change of the verdict, and of nothing else. */
function speak(verdict) {
  const said = `${verdict.state}: ${verdict.text}`;
  if (said === spoken) return;
  spoken = said;
  document.getElementById("speak").textContent = verdict.text;
}

/** Readings are only asked for while the view that shows them is on the screen. */
function wantWhatIsShown() {
  if (state.stage !== "open" || !connection) return;
  const where = state.view === "grid" && !document.hidden ? state.page?.grid?.where ?? [] : [];
  connection.want([PAGE, ...where]);
}

addEventListener("hashchange", route);
followKeys();
setInterval(changed, 1000);
begin();
