// Who is slow, and why?  Who asked for what by content?

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { Repeated } from "../broker.js";
import { openWhy } from "../dialogs/why.js";
import { count, percent, plural, rate } from "../format.js";
import { card, chip, meter, nameLink, refusal, segments, table } from "../parts.js";
import { state, changed, paintNow } from "../state.js";
import { sessionColumns } from "./sessions.js";

const MOST = 100;
const list = new Repeated(() => {
  const { sessions, pattern } = state.chosen;
  const question = { do: "sessions", most: MOST };
  if (sessions !== "all") question.state = sessions;
  if (pattern) question.client = /[*?]/.test(pattern) ? pattern : `*${pattern}*`;
  return question;
}, 3);
const conditions = new Repeated(() => ({ do: "conditions", most: 50 }), 2);
const NOBODY = { waiting: "Nobody waits: everybody is caught up.", held: "Nobody is held.", away: "Nobody is away.", all: "Nobody is here." };

export const clientsView = {
  draw: () => html`<div class="stack">${sessions(list.look(changed))}${byContent(conditions.look(changed))}</div>`,
  forget() {
    list.forget();
    conditions.forget();
  },
};

function sessions({ answer, trouble }) {
  const { page, chosen } = state;
  const now = page.sessions;
  const isClosed = trouble?.status === 403;
  const rows = isClosed ? page.slowest : answer?.sessions ?? [];
  const choices = [["waiting", `Waiting ${count(now.waiting)}`], ["held", `Held ${count(now.held)}`], ["away", `Away ${count(now.away)}`], ["all", `All ${count(now.all)}`]];
  const find = (event) => {
    chosen.pattern = event.target.value.trim().slice(0, 200);
    paintNow();
  };
  const choose = (choice) => {
    chosen.sessions = choice;
    list.answer = null;
    paintNow();
  };
  const body = rows.length ? html`<div class="scroll-y tallest" tabindex="0" role="region" aria-label="Sessions">${table(sessionColumns({ isJoined: page.joined, withText: true }), rows, { key: (row) => row.client, kind: "roomy", label: "Sessions" })}</div>`
    : html`<p class="empty">${answer === null && !trouble ? "Asking …" : chosen.pattern ? "No client is called like that." : NOBODY[chosen.sessions]}</p>`;
  const cut = answer?.more ? html`<p class="soft more">The first ${MOST}, those that wait longest first; name a part of the client id to narrow it down.</p>` : nothing;
  return card("Sessions", isClosed ? "those that wait longest" : "those that wait first", html`${isClosed ? refusal(trouble) : nothing}${body}${cut}`, {
    kind: "sessions-card",
    end: isClosed ? nothing : html`<input class="field find" type="search" aria-label="Find a client" placeholder="Find a client" .defaultValue=${chosen.pattern} @input=${find} spellcheck="false" autocapitalize="none">${segments("Which sessions", choices, chosen.sessions, choose)}`,
  });
}

function byContent({ answer, trouble }) {
  const { conditions: now } = state.page;
  const isPage = ({ client }) => client.startsWith("page-");
  // those who only look come last
  const rows = [...(answer?.conditions ?? [])].sort((one, other) => isPage(one) - isPage(other));
  const share = (row) => (row.looked_per_s ? row.wanted_per_s / row.looked_per_s : row.looked_per_s === 0 ? 0 : null);
  const sub = rows.length ? `${rows.length < now.total ? `${rows.length} of ` : ""}${plural(now.total, "condition")}; how many of the messages they looked at each second were wanted` : "";
  const body = rows.length ? html`<div class="scroll-y" tabindex="0" role="region" aria-label="Conditions">${table([
    { head: "Client", kind: "name", cell: (row) => nameLink(row.client, () => openWhy(row.client)) },
    { head: "Condition", kind: "cut condition", cell: (row) => html`<code title=${row.condition}>${row.condition}</code>` },
    { head: "On", kind: "cut wide", cell: (row) => html`<code class="soft" title=${row.filter}>${row.filter}</code>` },
    { head: "Looked at", kind: "num wide", quiet: false, cell: (row) => html`${rate(row.looked_per_s)} /s` },
    { head: "Wanted", kind: "num", quiet: false, cell: (row) => html`${rate(row.wanted_per_s)} /s` },
    { head: "Share", kind: "snug fixed share wide", cell: (row) => html`<span class="metered">${meter(share(row))} ${percent(share(row))}</span>` },
    { head: "Index", kind: "fixed wide", cell: (row) => (row.indexed ? html`<span class="soft">indexed</span>` : chip("one by one", "warn")) },
  ], rows, { key: (row) => `${row.client} ${row.filter} ${row.condition}`, label: "Asked for by content" })}</div>` : trouble ? refusal(trouble) : html`<p class="empty">${answer ? html`Nobody asks by content. <code>tieline sub -t 'grid/+/pcc?voltage&lt;207'</code> would.` : now.total ? "Counting …" : "Nobody asks by content."}</p>`;
  return card("Asked for by content", sub, body, {
    inkEnd: true,
    end: now.total ? html`${rate(now.read_per_s)} messages read each second · ${rate(now.unreadable_per_s)} unreadable` : nothing,
  });
}
