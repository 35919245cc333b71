// Sessions as rows, the same on every view: who waits, for what, and how much.

import { html } from "../../vendor/lit-html/lit-html.js";
import { openWhy } from "../dialogs/why.js";
import { UNKNOWN, bytes, count, duration } from "../format.js";
import { chip, classTag, nameLink } from "../parts.js";

const CALM = new Set(["caught_up", "away", "rate", ""]);

export const why = (row) => chip(row.why || UNKNOWN, CALM.has(row.why) ? "" : "warn", true);

export function sessionColumns({ isJoined, withText = false }) {
  return [
    { head: "Client", kind: "name", cell: (row) => nameLink(row.client, () => openWhy(row.client)) },
    ...(isJoined ? [{ head: "At", kind: "cut soft at wide", cell: (row) => html`<span title=${row.at ?? ""}>${row.at ?? UNKNOWN}</span>` }] : []),
    { head: "Why", kind: "fixed why", cell: (row) => (withText ? html`${why(row)} <span class="soft wide">${row.text}</span>` : why(row)) },
    { head: "Waiting", kind: "num", quiet: false, cell: (row) => count(row.waiting) },
    { head: "Bytes", kind: "num wide", quiet: false, cell: (row) => bytes(row.waiting_bytes) },
    { head: "Oldest", kind: "num wide", quiet: false, cell: (row) => (row.waiting ? duration(row.oldest_s) : UNKNOWN) },
    { head: "Behind in", kind: "fixed wide apart", cell: (row) => (row.behind?.length ? row.behind.map((level) => classTag(level)) : UNKNOWN) },
    { head: "Dropped", kind: "num wide", cell: (row) => count(row.dropped) },
  ];
}
