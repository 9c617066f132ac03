// How the page asks the server: with the cookie that only the server sets and reads, a header that says that it is the
// page, and for each change what belongs to the session. A token is sent once, to log in, and kept nowhere.

const BASE = "/api/v1";
/** Nobody waits longer for an answer. */
const PATIENCE = 20_000;

let session = null;
let whenOver = () => {};

/** Something that was not done, in the server's words. */
export class Problem extends Error {
  constructor(status, said) {
    super(said.detail ?? said.title ?? "the server refused");
    Object.assign(this, { status, hint: said.hint ?? "", code: said.code, now: said.now });
  }
}

/** The server did not answer, so that nobody knows what has become of a change. */
export class Silent extends Error {
  constructor() {
    super("the server does not answer");
    this.hint = "it may be down, or the network is; what is shown is as of the last answer";
  }
}

export const who = () => session;
export function onOver(hear) {
  whenOver = hear;
}

/** Asks. `body` makes it JSON; `etag` asks only for what is new: the answer is then null where nothing is. */
export async function ask(path, { method = "GET", body, headers = {}, etag, patience = PATIENCE, raw = false } = {}) {
  const all = { "X-Tpu-Page": "1", Accept: "application/json", ...headers };
  if (method !== "GET" && session?.csrf) all["X-Tpu-Csrf"] = session.csrf;
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (etag) all["If-None-Match"] = etag;
  let answer;
  let text;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(patience),
    });
    text = answer.status === 304 ? "" : await answer.text();
  } catch {
    throw new Silent();
  }
  if (answer.status === 304) return null;
  if (!answer.ok) throw failure(answer.status, text, path);
  if (raw) return { text, headers: answer.headers };
  const said = text ? JSON.parse(text) : {};
  Object.defineProperty(said, "etag", { value: answer.headers.get("etag"), enumerable: false });
  return said;
}

function failure(status, text, path) {
  let said = {};
  try {
    said = JSON.parse(text);
  } catch {
    said = { detail: `the server answered ${status}` };
  }
  if (status === 401 && path !== "/session") {
    session = null;
    remember(false);
    whenOver(said.detail);
  }
  return new Problem(status, said);
}

export async function logIn(how) {
  session = await ask("/session", { method: "POST", body: how });
  remember(true);
  return session;
}

/** Whether this browser was logged in: whoever never was asks for nothing that would be refused, and noted. */
const WAS_IN = "tpu.session";

function remember(isIn) {
  try {
    if (isIn) localStorage.setItem(WAS_IN, "1");
    else localStorage.removeItem(WAS_IN);
  } catch {
    // A browser that keeps nothing asks for the token each time.
  }
}

function wasIn() {
  try {
    return localStorage.getItem(WAS_IN) !== null;
  } catch {
    return false;
  }
}

/** The session that the browser has still, if it has one. */
export async function known() {
  if (!wasIn()) return null;
  try {
    session = await ask("/session");
  } catch (error) {
    if (error instanceof Silent || error.status >= 500) throw error;
    session = null;
    remember(false);
  }
  return session;
}

/** Ends the session. The caller loads the page again; until then no request that is refused shows the form to log in, for
 * what somebody types into it would be gone with the page. */
export async function logOut() {
  whenOver = () => {};
  try {
    await ask("/session/end", { method: "POST" });
  } finally {
    session = null;
    remember(false);
  }
}

/** Whether whoever is logged in may act on a user's jobs, use targets, change what is everybody's. */
export const may = {
  act: (user) => session?.role === "admin" || (session?.role === "operator" && session.users.includes(user)),
  actAtAll: () => session?.role === "admin" || session?.role === "operator",
  targets: () => Boolean(session?.targets),
  administer: () => session?.role === "admin",
};

/** A key of a start: the same request again is answered as before, and starts nothing. */
export function onceKey() {
  return crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** The server says every fifteen seconds that it is there still: a stream that is silent for longer leads nowhere. */
const MUTE = 40_000;

/** What ends each connection of a stream, and not the stream. */
const connections = new Set();

/** Connects each stream anew, behind what was heard last: those of a machine that slept are not there any more. */
export function reconnect() {
  for (const connection of connections) connection.abort();
}

/**
 * Follows a stream of server-sent events until `signal` ends it: `heard({id, event, data})`. Goes on by itself behind what
 * was heard last, sooner or later as the server answers. It is read by fetch, for an EventSource cannot send a header.
 */
export async function follow(path, { heard, alive = () => {}, ended = () => {}, signal, from }) {
  let last = from ?? "";
  let pause = 500;
  while (!signal.aborted) {
    const connection = new AbortController();
    const leave = () => connection.abort();
    signal.addEventListener("abort", leave);
    connections.add(connection);
    let mute = setTimeout(leave, MUTE);
    try {
      const headers = { "X-Tpu-Page": "1", Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = last;
      const answer = await fetch(BASE + path, { headers, credentials: "same-origin", cache: "no-store", signal: connection.signal });
      if (!answer.ok) {
        const said = failure(answer.status, await answer.text(), path);
        if (answer.status !== 503 && answer.status !== 429) return ended(said);
        throw said;
      }
      pause = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        clearTimeout(mute);
        mute = setTimeout(leave, MUTE);
        alive();
        rest += value;
        let end;
        while ((end = rest.indexOf("\n\n")) >= 0) {
          const event = parsed(rest.slice(0, end));
          rest = rest.slice(end + 2);
          if (event.id) last = event.id;
          if (event.event === "end") return ended(null);
          if (event.data !== undefined) heard(event);
        }
      }
    } catch {
      if (signal.aborted) return;
    } finally {
      clearTimeout(mute);
      connections.delete(connection);
      signal.removeEventListener("abort", leave);
    }
    await new Promise((go) => setTimeout(go, pause));
    pause = Math.min(pause * 2, 5000);
  }
}

function parsed(block) {
  const event = { id: undefined, event: "message", data: undefined };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const name = line.slice(0, at);
    const value = line.slice(at + 1).replace(/^ /, "");
    if (name === "data") event.data = event.data === undefined ? value : `${event.data}\n${value}`;
    else if (name in event) event[name] = value;
  }
  return event;
}
