// Where would this message go?  The broker says so without sending it.

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { ask } from "../broker.js";
import { UNKNOWN } from "../format.js";
import { chip, command, marked, nameLink, refusal, table } from "../parts.js";
import { state, paintNow } from "../state.js";
import { quoted } from "./quoting.js";
import { steps } from "./steps.js";
import { openWhy } from "./why.js";

const KINDS = { sent: "ok", waits: "warn", squeezes: "bad", dropped: "bad", passed_over: "" };
let asked = { topic: "", payload: "", client: "" }; // what was written stays for the next time

function base64(text) {
  const bytes = new TextEncoder().encode(text);
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

async function submit(event) {
  event.preventDefault();
  const { dialog } = state;
  const form = new FormData(event.target);
  asked = { topic: form.get("topic").trim(), payload: form.get("payload"), client: form.get("client").trim().replace(/^as\s+/, "") };
  Object.assign(dialog, { isAsking: true, trouble: null });
  paintNow();
  const question = { do: "trace", topic: asked.topic, payload: base64(asked.payload), all: true };
  if (asked.client) question.client = asked.client;
  try {
    Object.assign(dialog, { answer: await ask(question), command: commandOf(asked) });
  } catch (trouble) {
    dialog.trouble = trouble;
  }
  dialog.isAsking = false;
  paintNow();
}

function commandOf({ topic, payload, client }) {
  return ["tieline trace", quoted(topic), payload && `--payload ${quoted(payload)}`, client && `--as ${quoted(client)}`].filter(Boolean).join(" ");
}

/** Receivers here, and those that other brokers have told of, which say more than that something is carried to them. */
function receivers({ receivers: here, asked: name, others = {} }) {
  const own = name ?? state.page?.name ?? "";
  const ways = new Map(here.filter((one) => one.broker).map((one) => [one.broker, one.way ?? []]));
  const near = here.filter((one) => !(one.broker in others)).map((one) => ({ ...one, at: own, way: one.way ?? [] }));
  const far = Object.entries(others).flatMap(([at, answer]) => (answer.receivers ?? []).map((one) => ({ ...one, at, way: ways.get(at) ?? [] })));
  return [...near, ...far];
}

/** By which condition or filter; the filter as it was written stands in the title. */
function by(receiver) {
  const filter = receiver.filters?.[0] ?? "";
  return receiver.condition ? `?${receiver.condition}` : filter;
}

function written(receiver) {
  return (receiver.filters ?? []).join("  ") || receiver.condition || "";
}

function found(dialog) {
  const { answer } = dialog;
  const rows = receivers(answer);
  const isJoined = state.page?.joined;
  const silent = answer.silent ?? [];
  return html`${steps(answer.steps)}
    ${rows.length === 0 ? html`<p class="soft">${answer.is_refused ? "The broker would not take this message." : "Nobody would get it: no subscription matches."}</p>` : html`<div class="scroll-y" tabindex="0" role="region" aria-label="Receivers">${table([
      { head: "Subscriber", kind: "name", cell: (row) => nameLink(row.client, () => openWhy(row.client)) },
      { head: "Fate", kind: "fixed", cell: (row) => chip(row.fate.replace("_", " "), KINDS[row.fate] ?? "") },
      ...(isJoined ? [
        { head: "At", kind: "cut soft wide", cell: (row) => row.at },
        { head: "Way", kind: "cut soft wide", cell: (row) => html`<span title=${row.way.join(" → ")}>${row.way.join(" → ") || UNKNOWN}</span>` },
      ] : []),
      { head: "By", kind: "cut", cell: (row) => html`<code title=${written(row)}>${by(row)}</code>` },
      { head: "Why", kind: "soft wide", cell: (row) => marked(row.text || row.why || UNKNOWN) },
    ], rows, { kind: "roomy", label: "Receivers" })}</div>`}
    ${answer.unlisted ? html`<p class="soft">${answer.unlisted} more are not listed.</p>` : nothing}
    ${silent.length ? html`<p class="soft">No answer from ${silent.join(", ")}: what they would say is missing.</p>` : nothing}
    ${command(dialog.command)}`;
}

export function traceDialog({ closed, close }) {
  const { dialog } = state;
  return html`<dialog aria-label="Where would this message go?" @close=${closed}>
    <header><h2>Where would this message go?</h2><span class="sub soft">nothing is sent</span><button type="button" class="key" aria-label="Esc, close" @click=${close}>Esc</button></header>
    <form class="trace-form" @submit=${submit}>
      <input class="field mono" name="topic" aria-label="Topic" placeholder="topic" .defaultValue=${asked.topic} required autofocus spellcheck="false" autocapitalize="none">
      <input class="field mono" name="payload" aria-label="Payload" placeholder=${'{"voltage": 200}'} .defaultValue=${asked.payload} spellcheck="false" autocapitalize="none">
      <input class="field mono" name="client" aria-label="As which client" placeholder="as client" .defaultValue=${asked.client} spellcheck="false" autocapitalize="none">
      <button class="primary" ?disabled=${dialog.isAsking}>Trace</button>
    </form>
    ${refusal(dialog.trouble)}
    ${dialog.answer ? found(dialog) : html`<p class="soft">Name a topic; with a payload, conditions on content are decided too, and with a client its rights.</p>`}
  </dialog>`;
}
