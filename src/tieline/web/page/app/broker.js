// Everything that is asked of the broker by HTTP; answers are values, refusals are a Refusal with a sentence.

import { state } from "./state.js";

const PATIENCE_MS = 12_000;
/** Questions take turns at the broker: one that finds it busy is asked again, so often and after so long. */
const TRIES = 6;
const PAUSE_MS = 500;

export class Refusal extends Error {
  constructor(status, body) {
    super(body.error || `the broker answered ${status}`);
    this.status = status;
    this.rule = body.rule ?? "";
    this.triesLeft = body.tries_left ?? null;
    this.retryS = body.retry_s ?? null;
  }
}

function credentials(user) {
  if (!user) return {};
  const bytes = new TextEncoder().encode(`${user.name}:${user.password}`);
  return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

async function get(path, { user = state.user, body } = {}) {
  const headers = credentials(user);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "omit", // or the browser would ask for a password in a window of its own
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(answer.status, said);
  return said;
}

export const config = () => get("config.json", { user: null });
export const past = (span, user = state.user) => get(`../v1/history?span=${span}`, { user });

export async function ask(question) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await get("../v1/ask", { body: question });
    } catch (error) {
      if (error.status !== 503 || left <= 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** An answer that is asked for again while somebody looks at it; one question at a time, and the last answer stays. */
export class Repeated {
  #everyMs; #question; #asked = ""; #at = -Infinity; #isUnderWay = false;

  constructor(question, everyS) {
    this.#question = question;
    this.#everyMs = everyS * 1000;
    this.answer = null;
    this.trouble = null;
  }

  /** Called by whoever shows the answer, each time that it is painted. */
  look(then) {
    const question = this.#question();
    const asked = JSON.stringify(question);
    const isDue = asked !== this.#asked || performance.now() - this.#at > this.#everyMs;
    if (isDue && !this.#isUnderWay && state.link.state === "live") this.#ask(question, asked, then);
    return this;
  }

  forget() {
    this.answer = this.trouble = null;
    this.#at = -Infinity;
  }

  async #ask(question, asked, then) {
    this.#isUnderWay = true;
    this.#at = performance.now();
    this.#asked = asked;
    const user = state.user;
    try {
      const answer = await ask(question);
      if (state.user !== user) return; // for somebody else
      this.answer = answer;
      this.trouble = null;
    } catch (error) {
      this.trouble = error;
      if (error.status === 403) this.answer = null;
    } finally {
      this.#isUnderWay = false;
      then();
    }
  }
}
