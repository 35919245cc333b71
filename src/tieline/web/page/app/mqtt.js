// An MQTT 5 client of what the page needs: QoS 0, both directions of one WebSocket, and coming back after a loss.
//
// What the page shows is newer with every message, so nothing is acknowledged, stored or repeated: a connection that is
// lost is made again, with a pause that doubles up to 15 s, and all filters are subscribed anew.

const KEEP_ALIVE_S = 20;
const MOST_PAUSE_S = 15;
const MOST_PACKET = 1 << 20;
const utf8 = new TextEncoder();
const text = new TextDecoder();

const word = (number) => [(number >> 8) & 255, number & 255];
const string = (value) => {
  const bytes = utf8.encode(value);
  return [...word(bytes.length), ...bytes];
};

function packet(first, body) {
  const length = [];
  let rest = body.length;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    length.push(rest ? low | 128 : low);
  } while (rest);
  return Uint8Array.from([first, ...length, ...body]);
}

/** A number of one to four bytes, or null while it is not all there. */
function varint(bytes, at) {
  let value = 0;
  for (let index = 0; index < 4; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) return null;
    value += (byte & 127) * 128 ** index;
    if (byte < 128) return { value, next: at + index + 1 };
  }
  throw new Error("a length of more than four bytes");
}

export class Connection {
  #url; #changed; #received; #socket = null; #buffer = new Uint8Array(0); #wanted = new Map(); #number = 0;
  #pinging = 0; #waiting = 0; #heard = 0; #spoke = 0; #failures = 0; #user = null;
  #client = `page-${[...crypto.getRandomValues(new Uint8Array(4))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;

  /** `changed` is called with the connection whenever `state` is another one; `received` with topic and bytes. */
  constructor(url, { changed, received }) {
    this.#url = url;
    this.#changed = changed;
    this.#received = received;
    this.state = "closed"; // closed, connecting, live, down, refused
    this.reason = ""; // why it is down or refused
    this.code = 0; // the reason code of the broker, where it gave one
    this.downSince = null;
    this.nextTry = null;
    this.denied = new Map(); // filter: reason code
  }

  open(user = null) {
    this.#user = user;
    this.#failures = 0;
    this.#dial();
  }

  close() {
    this.#end();
    this.#become("closed");
  }

  tryNow() {
    if (this.state === "down") this.#dial();
  }

  /** All that is wanted from now on; what is no longer among it is unsubscribed. */
  want(filters) {
    const next = new Set(filters);
    const gone = [...this.#wanted.keys()].filter((filter) => !next.has(filter));
    const fresh = [...next].filter((filter) => !this.#wanted.has(filter));
    for (const filter of gone) {
      this.#wanted.delete(filter);
      this.denied.delete(filter);
      if (this.state === "live") this.#send(packet(0xa2, [...word(this.#next()), 0, ...string(filter)]));
    }
    for (const filter of fresh) this.#wanted.set(filter, 0);
    if (this.state === "live") fresh.forEach((filter) => this.#subscribe(filter));
  }

  #next() {
    this.#number = (this.#number % 65535) + 1;
    return this.#number;
  }

  #subscribe(filter) {
    const number = this.#next();
    this.#wanted.set(filter, number);
    this.#send(packet(0x82, [...word(number), 0, ...string(filter), 0]));
  }

  #dial() {
    this.#end();
    this.#become("connecting");
    let socket;
    try {
      socket = new WebSocket(this.#url, "mqtt");
    } catch (error) {
      this.#down(String(error.message ?? error));
      return;
    }
    this.#socket = socket;
    this.#buffer = new Uint8Array(0);
    this.#heard = Date.now();
    socket.binaryType = "arraybuffer";
    const mine = (act) => (event) => this.#socket === socket && act(event);
    socket.onopen = mine(() => this.#send(this.#connect()));
    socket.onmessage = mine((event) => this.#take(new Uint8Array(event.data)));
    socket.onclose = mine(() => this.#down("the connection was closed"));
    this.#pinging = setInterval(mine(() => this.#watch()), 1000);
  }

  #connect() {
    const flags = 2 | (this.#user ? 0x80 | 0x40 : 0);
    const properties = [0x11, 0, 0, 0, 0, 0x27, 0, MOST_PACKET >> 16, 0, 0]; // no session afterwards, no larger packet
    const body = [...string("MQTT"), 5, flags, ...word(KEEP_ALIVE_S), properties.length, ...properties, ...string(this.#client)];
    if (this.#user) body.push(...string(this.#user.name), ...string(this.#user.password));
    return packet(0x10, body);
  }

  #watch() {
    const silent = Date.now() - this.#heard;
    if (silent > KEEP_ALIVE_S * 750) this.#down("it does not answer");
    // what was promised is to say something, however much is heard meanwhile
    else if (this.state === "live" && Date.now() - this.#spoke > KEEP_ALIVE_S * 250) this.#send(Uint8Array.of(0xc0, 0));
  }

  #send(bytes) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#spoke = Date.now();
    this.#socket.send(bytes);
  }

  #take(bytes) {
    this.#heard = Date.now();
    let all = bytes;
    if (this.#buffer.length) {
      all = new Uint8Array(this.#buffer.length + bytes.length);
      all.set(this.#buffer);
      all.set(bytes, this.#buffer.length);
    }
    let at = 0;
    try {
      for (;;) {
        const length = at + 1 < all.length ? varint(all, at + 1) : null;
        if (length === null) break;
        if (length.value > MOST_PACKET) throw new Error("a packet that is too large");
        const end = length.next + length.value;
        if (end > all.length) break;
        this.#packet(all[at], all.subarray(length.next, end));
        at = end;
      }
      this.#buffer = all.slice(at);
    } catch (error) {
      this.#down(`what came is not MQTT: ${error.message}`);
    }
  }

  #packet(first, body) {
    const kind = first >> 4;
    if (kind === 2) this.#connected(body[1]);
    else if (kind === 3) this.#publish(first, body);
    else if (kind === 9) this.#subscribed((body[0] << 8) | body[1], body[body.length - 1]);
    else if (kind === 14) this.#disconnected(body[0] ?? 0);
  }

  #connected(code) {
    if (code !== 0) {
      this.#refuse(code);
      return;
    }
    this.#failures = 0;
    this.downSince = null;
    this.#become("live");
    for (const filter of this.#wanted.keys()) this.#subscribe(filter);
  }

  #publish(first, body) {
    const topicEnd = 2 + ((body[0] << 8) | body[1]);
    const topic = text.decode(body.subarray(2, topicEnd));
    const properties = varint(body, topicEnd + ((first & 6) ? 2 : 0));
    this.#received(topic, body.subarray(properties.next + properties.value));
  }

  #subscribed(number, code) {
    for (const [filter, asked] of this.#wanted) {
      if (asked !== number) continue;
      if (code >= 128) this.denied.set(filter, code);
      else this.denied.delete(filter);
      this.#changed(this);
    }
  }

  #disconnected(code) {
    if (code === 0x87) this.#refuse(code);
    else this.#down(`the broker ended the connection (0x${code.toString(16).padStart(2, "0")})`);
  }

  /** Of what is refused only a wrong user or password is final; a broker that is busy is asked again. */
  #refuse(code) {
    const isFinal = [0x86, 0x87, 0x8a, 0x8c].includes(code);
    if (!isFinal) {
      this.#down(`the broker refused (0x${code.toString(16)})`);
      return;
    }
    this.#end();
    this.code = code;
    this.#become("refused");
  }

  #down(reason) {
    this.#end();
    this.reason = reason;
    this.downSince ??= Date.now();
    this.#failures += 1;
    const pause = Math.min(MOST_PAUSE_S, 2 ** (this.#failures - 1)) * (0.8 + 0.4 * Math.random());
    this.nextTry = Date.now() + pause * 1000;
    this.#become("down");
    this.#waiting = setTimeout(() => this.#dial(), pause * 1000);
  }

  #end() {
    clearInterval(this.#pinging);
    clearTimeout(this.#waiting);
    const socket = this.#socket;
    this.#socket = null;
    if (socket && socket.readyState <= WebSocket.OPEN) socket.close();
  }

  #become(state) {
    this.state = state;
    if (state !== "down") this.nextTry = null;
    this.#changed(this);
  }
}
