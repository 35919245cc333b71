// Signs drawn with strokes of one width; what they mean is always said in words beside them, or in a label.

import { svg, html } from "../vendor/lit-html/lit-html.js";

const shapes = {
  overview: svg`<path d="M2.5 8.2 9 2.8l6.5 5.4M4.3 7v8h9.4V7M7.3 15v-4.4h3.4V15"/>`,
  messages: svg`<path d="M2.5 4h13M2.5 9h8.5M2.5 14h5.5"/>`,
  clients: svg`<circle cx="7" cy="6" r="3"/><path d="M1.8 15.2c.3-3 2.4-4.4 5.2-4.4s4.9 1.4 5.2 4.4M11.6 3.3a3 3 0 0 1 0 5.5M13.5 11.3c1.6.6 2.5 1.9 2.7 3.9"/>`,
  network: svg`<circle cx="4.3" cy="9" r="2"/><circle cx="13.5" cy="4.2" r="2"/><circle cx="13.5" cy="13.8" r="2"/><path d="m6.1 8.1 5.6-2.9M6.1 9.9l5.6 2.9"/>`,
  grid: svg`<path d="M10.3 1.8 4.2 9.8h4l-.9 6.4 6.4-8.4H9.6z"/>`,
  plan: svg`<circle cx="3.8" cy="14" r="1.8"/><circle cx="14.2" cy="4" r="1.8"/><path d="M12.4 4H6.6a2.5 2.5 0 0 0 0 5h4.8a2.5 2.5 0 0 1 0 5H5.6"/>`,
  moon: svg`<path d="M15 10.6A6.4 6.4 0 0 1 7.4 3a6.4 6.4 0 1 0 7.6 7.6z"/>`,
  sun: svg`<circle cx="9" cy="9" r="3.1"/><path d="M9 1.3v1.9M9 14.8v1.9M1.3 9h1.9M14.8 9h1.9M3.6 3.6l1.3 1.3M13.1 13.1l1.3 1.3M3.6 14.4l1.3-1.3M13.1 4.9l1.3-1.3"/>`,
  user: svg`<circle cx="9" cy="6" r="3"/><path d="M4.2 15.5c.3-3.1 2-4.7 4.8-4.7s4.5 1.6 4.8 4.7"/>`,
  chevron: svg`<path d="m5 7 4 4 4-4"/>`,
  search: svg`<circle cx="8" cy="8" r="4.6"/><path d="m11.6 11.6 4 4"/>`,
  ok: svg`<path d="m3.6 9.6 3.6 3.6 7.4-8"/>`,
  warn: svg`<path d="M9 2.4 1.9 15h14.2zM9 7.2v3.6M9 12.7v.3"/>`,
  bad: svg`<path d="M6.1 1.9h5.8l4.2 4.2v5.8l-4.2 4.2H6.1l-4.2-4.2V6.1zM9 5.6v4M9 12v.3"/>`,
  none: svg`<path d="M4 9h10"/>`,
  plug: svg`<path d="M6 1.8v4M12 1.8v4M3.8 5.8h10.4v2.4a4 4 0 0 1-4 4H7.8a4 4 0 0 1-4-4zM9 12.2v4"/>`,
  close: svg`<path d="m4.5 4.5 9 9M13.5 4.5l-9 9"/>`,
};

/** One sign; it is for the eye alone, so whoever uses it gives the words. */
export function icon(name, size = 18, kind = "") {
  return html`<svg class=${kind} width=${size} height=${size} viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${shapes[name] ?? shapes.none}</svg>`;
}

export const mark = html`<svg width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.4" aria-hidden="true"><circle cx="5.5" cy="16.6" r="3.4"/><path d="m8.3 14.8 7.4-5.2"/><circle cx="18.5" cy="7.4" r="3.7" fill="currentColor"/></svg>`;
