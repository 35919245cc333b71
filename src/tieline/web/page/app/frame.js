// What stands around a view: the list of views, the bar above, the banner, and the verdict in one sentence.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon, mark } from "./icons.js";
import { isOffered } from "./keys.js";
import { dialogs, openDialog } from "./dialogs/dialogs.js";
import { count, clock, rate, span } from "./format.js";
import { marked, segments } from "./parts.js";
import { state, paintNow, VIEWS } from "./state.js";
import { views } from "./views/views.js";

const SILENT_MS = 6000;
const SPANS = [[120, "2 min"], [600, "10 min"], [3600, "1 h"]];
const toggle = (menu) => () => {
  state.open = state.open === menu ? null : menu;
  paintNow();
};

export function frame(acts) {
  const view = views[state.view];
  const isStale = state.link.state !== "live" && state.page !== null;
  const verdict = view.verdict?.() ?? state.page?.views[state.view];
  return html`
    <a class="skip" href="#main" @click=${skip}>Skip to the content</a>
    <div class="frame">
      <nav class="side" aria-label="Views">
        <a class="logo" href="#/overview" aria-label="Tieline, overview">${mark}<span>Tieline</span></a>
        <div class="views">${VIEWS.map(tab)}</div>
        ${about()}
      </nav>
      <div class="work">
        ${bar(acts)}
        <main id="main" tabindex="-1" class=${isStale ? "stale" : ""} data-view=${state.view}>
          ${banner(acts)}
          ${verdict ? verdictOf(verdict, view.beside?.()) : html`<div class="verdict"><span class="sign none">${icon("none")}</span><div class="text"><h1>${
            state.view === "grid" && state.page ? "No readings of voltage and frequency are declared." : "Waiting for the first figures …"}</h1></div></div>`}
          <div class="content">${state.page ? view.draw() : nothing}</div>
        </main>
      </div>
    </div>
    ${dialogs()}`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function tab([view, words]) {
  if (!isOffered(view)) return nothing;
  const verdict = state.page?.views[view];
  const badge = verdict?.badge ?? 0;
  return html`<a href="#/${view}" aria-current=${view === state.view ? "page" : nothing}>${icon(view)}<span>${words}</span>${
    badge ? html`<span class="badge ${verdict.state === "bad" && view !== "overview" ? "bad" : ""}" aria-label="${badge} to look at">${badge}</span>` : nothing}</a>`;
}

function about() {
  const { page, config } = state;
  const logged = page?.logged;
  return html`<footer class="about">
    <p title=${config.name}><b>${config.name}</b> ${page?.version ?? config.version}</p>
    ${page ? html`<p>up ${span(page.uptime_s)}</p>` : nothing}
    ${page && !page.kept ? html`<p>not kept: no data directory</p>` : nothing}
    ${typeof logged === "number" ? html`<p title="captured messages since it began">${logged >= 1e6 ? `${(logged / 1e6).toFixed(1)} M` : count(logged)} logged since</p>` : nothing}
  </footer>`;
}

function bar(acts) {
  const dark = document.documentElement.dataset.theme === "dark";
  return html`<header class="bar">
    ${brokers()}
    ${freshness()}
    <span class="gap"></span>
    <button type="button" class="control search soft" aria-label="Where would a message go?" aria-keyshortcuts="/" @click=${() => openDialog({ kind: "trace" })}>
      <span class="search-words soft">Where would a message go?</span><span class="search-icon">${icon("search")}</span><span class="key" aria-hidden="true">/</span></button>
    ${segments("Time that charts show", SPANS, state.span, acts.chooseSpan, false)}
    <button type="button" class="icon-button" aria-label=${dark ? "Light colours" : "Dark colours"} @click=${() => (globalThis.tielineTheme.toggle(), paintNow())}>${icon(dark ? "sun" : "moon")}</button>
    <div class="menu-home who"><button type="button" class="icon-button" data-menu="who" aria-label="Who looks" aria-expanded=${state.open === "who"} @click=${toggle("who")}>${icon("user")}</button>
      ${state.open === "who" ? who(acts) : nothing}</div>
  </header>`;
}

function who({ leave }) {
  if (!state.user) return html`<div class="menu right"><p>No user: this broker knows none, and shows itself to programs on its machine alone.</p></div>`;
  return html`<div class="menu right"><p>Signed in as <b>${state.user.name}</b></p><button type="button" @click=${leave}>Sign out</button></div>`;
}

const worst = (all) => ["bad", "silent", "warn"].find((kind) => all.some((broker) => broker.state === kind)) ?? "ok";

/** Whose figures these are; the list goes on to the network, where a broker has its place. */
function brokers() {
  const all = state.page?.brokers ?? [];
  const kind = state.link.state !== "live" ? "bad" : worst(all);
  const isOne = all.length < 2;
  const go = (broker) => () => {
    state.open = null;
    state.chosen.broker = broker.name;
    location.hash = "#/network";
    paintNow();
  };
  return html`<div class="menu-home">
    <button type="button" class="control brokers" data-menu="brokers" aria-expanded=${state.open === "brokers"} @click=${toggle("brokers")}>
      <span class="dot ${kind}"></span>${isOne ? html`<b>This broker</b> <span class="count">${state.page?.name ?? state.config.name}</span>` : html`<b>${state.page.name}</b> <span class="count soft">one of ${all.length} brokers</span>`}${icon("chevron", 16)}</button>
    ${state.open === "brokers" ? html`<div class="menu">
      ${all.map((broker) => html`<button type="button" @click=${go(broker)}><span class="dot ${broker.state}"></span>${broker.name}<span class="right-text">${broker.state === "silent" ? (broker.age_s === null ? "silent" : `silent for ${span(broker.age_s)}`) : `${rate(broker.per_s)} msg/s`}</span></button>`)}
      ${isOne ? html`<p>It listens on</p>${(state.page?.listeners ?? []).map((url) => html`<p><code>${url}</code></p>`)}` : nothing}
    </div>` : nothing}</div>`;
}

function freshness() {
  if (state.link.state === "down") return html`<span class="fresh bad">not connected</span>`;
  if (state.link.state !== "live" || !state.page) return html`<span class="fresh">connecting …</span>`;
  const age = performance.now() - state.pageAt;
  if (age > SILENT_MS) return html`<span class="fresh bad">silent for ${span(age / 1000)}</span>`;
  return html`<span class="fresh">live<span class="age">&nbsp; ${Math.max(0, Math.round(age / 1000))} s ago</span></span>`;
}

function banner({ tryNow }) {
  if (state.isOutdated) {
    return html`<div class="banner calm">${icon("plug")}<p><b>${state.config.name} runs another version now.</b> This page is of the one before.</p>
      <button type="button" @click=${() => location.reload()}>Reload</button></div>`;
  }
  const { link } = state;
  const isComing = link.state === "connecting" && link.downSince !== null;
  if (link.state !== "down" && !isComing) return nothing;
  const left = Math.max(0, Math.ceil(((link.nextTry ?? 0) - Date.now()) / 1000));
  return html`<div class="banner" role="alert">${icon("plug")}
    <p><b title=${link.reason}>No connection to ${state.page?.name ?? state.config.name} since ${clock(link.downSince / 1000)}.</b>
      ${state.page ? "What you see is from then." : ""} <span aria-live="off">${isComing ? "Trying …" : `Next try in ${left} s.`}</span></p>
    <button type="button" @click=${tryNow}>Try now</button></div>`;
}

function verdictOf(verdict, beside = nothing) {
  return html`<div class="verdict"><span class="sign ${verdict.state}">${icon(verdict.state)}</span>
    <div class="text"><h1>${marked(verdict.text)}</h1>${verdict.detail ? html`<p>${marked(verdict.detail)}</p>` : nothing}</div>${beside}</div>`;
}
