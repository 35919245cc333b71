// What is shown before anything may be seen: who are you, and why not.

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { mark, icon } from "./icons.js";
import { state } from "./state.js";

const logo = html`<div class="logo">${mark}<span>Tieline</span></div>`;

export function loading() {
  return html`<main class="login"><div class="calm"><p class="note" aria-live="polite">${state.said || "Asking the broker …"}</p></div></main>`;
}

export function login({ enter }) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    enter({ name: form.get("user"), password: form.get("password") });
  };
  return html`<main class="login"><form @submit=${submit}>
    ${logo}
    <h1>Sign in to ${state.config.name}</h1>
    ${state.said ? html`<p class="said" role="alert">${state.said}</p>` : nothing}
    <label>User<input class="field" name="user" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus></label>
    <label>Password<input class="field" name="password" type="password" autocomplete="current-password"></label>
    <button class="primary" ?disabled=${state.isAsking}>${state.isAsking ? "Signing in …" : "Sign in"}</button>
    <p class="note">The same users and rules as for MQTT. You need the right to subscribe to ${state.config.right ?? "$SYS/#"}.</p>
  </form></main>`;
}

export function forbidden({ leave }) {
  return html`<main class="login"><form @submit=${(event) => (event.preventDefault(), leave())}>
    ${logo}
    <h1>${icon("bad", 18)} ${state.user?.name ?? "Nobody in particular"} may not see this broker</h1>
    <p class="said" role="alert">What decided: ${state.rule}</p>
    <p class="note">Whoever looks here needs the right to subscribe to ${state.config.right ?? "$SYS/#"}. It is given by a rule
      whose filter is <code>$SYS/#</code> and that allows <code>["read", "subscribe"]</code>.</p>
    ${state.config.users ? html`<button class="primary">Sign in as somebody else</button>` : nothing}
  </form></main>`;
}
