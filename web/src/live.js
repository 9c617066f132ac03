// What the server says, kept fresh: jobs page by page, events as they happen. Everything that is shown comes from here.
//
// A look is asked for once a second, and at once when an event says that something is another now; where nothing is, the
// answer is a few bytes (304). Whoever hears nothing for four seconds says so: the age of what is shown stands above it. A
// machine that slept, or a network that was cut, is noticed by the clock, and the next answer makes it good again. The
// page does nothing but ask: no change is ever sent a second time by itself.

import { ask, follow, may, reconnect, Silent } from "./api.js";
import { key } from "./status.js";
import { store } from "./store.js";
import { toast } from "./ui.js";

/** Between two looks, while somebody looks at the page, and while nobody does. */
const BEAT = 1000;
const BEAT_HIDDEN = 15_000;
/** What is older is said to be. */
export const STALE = 4000;
/** Jobs of one answer, and of the first one, which is to be there soon. */
const PAGE = 1000;
const FIRST = 100;
/** What is read of a job for the table. */
const FIELDS = [
  "lineage", "leaf", "dir", "target", "target_unknown", "zone", "name", "title", "group", "member", "members", "queue", "position", "priority",
  "held", "reason", "tags", "arguments", "status", "error", "error_origin", "unknown", "pending", "phase", "progress", "stage", "evidence", "next", "needs_person", "intent", "started_at", "worked", "exit_code", "monitor",
].join(",");

export const live = store({
  jobs: [],
  byKey: new Map(),
  loaded: false,
  filter: "",
  user: "",
  problem: null,
  daemon: null,
  /** When the server has answered last, by this machine's clock. */
  heardAt: 0,
  stale: false,
  silentSince: 0,
  events: [],
  ended: new Map(),
});

let pages = [];
let asking = null;
let again = false;
let timer = 0;
let stop = null;
let lastBeat = Date.now();

function heard() {
  const { stale } = live.get();
  live.set({ heardAt: Date.now(), ...(stale ? { stale: false } : {}) });
}

/** Begins to look. */
export function begin() {
  end();
  stop = new AbortController();
  const { signal } = stop;
  pages = [];
  lastBeat = Date.now();
  live.set({ loaded: false, jobs: [], byKey: new Map(), heardAt: Date.now(), stale: false, problem: null });
  look();
  follow("/events", { signal, heard: happened, alive: heard });
  // Asked for once the stream flows, so that nothing falls between the two; what is told twice is shown once.
  setTimeout(() => signal.aborted || history(), 300);
  const clock = setInterval(() => {
    const now = Date.now();
    // Timers stand still while a machine sleeps.
    if (now - lastBeat > STALE) woke();
    lastBeat = now;
    const { heardAt, stale } = live.get();
    if (!stale && now - heardAt > STALE && document.visibilityState === "visible") live.set({ stale: true, silentSince: heardAt });
  }, 500);
  const woken = () => document.visibilityState === "visible" && nudge();
  document.addEventListener("visibilitychange", woken);
  addEventListener("online", woke);
  addEventListener("focus", woken);
  signal.addEventListener("abort", () => {
    clearInterval(clock);
    document.removeEventListener("visibilitychange", woken);
    removeEventListener("online", woke);
    removeEventListener("focus", woken);
  });
}

export function end() {
  stop?.abort();
  stop = null;
  clearTimeout(timer);
}

/** Looks now. */
export function nudge() {
  if (!stop) return;
  clearTimeout(timer);
  look();
}

/** After a sleep, or with another network: what was connected leads nowhere. */
function woke() {
  reconnect();
  nudge();
}

/** Shows only what matches, as the server reads it. */
export function setFilter(filter) {
  if (filter === live.get().filter) return;
  pages = [];
  live.set({ filter });
  nudge();
}

export function setUser(user) {
  pages = [];
  live.set({ user });
  nudge();
}

async function look() {
  if (asking) {
    again = true;
    return;
  }
  const of = stop;
  asking = of;
  try {
    await lookNow(of);
  } catch (error) {
    if (of === stop && !(error instanceof Silent)) {
      heard();
      live.set({ problem: error });
    }
  }
  asking = null;
  if (of !== stop) return void (stop && look());
  clearTimeout(timer);
  if (!stop) return;
  if (again) {
    again = false;
    timer = setTimeout(look, 50);
  } else {
    timer = setTimeout(look, document.visibilityState === "visible" ? BEAT : BEAT_HIDDEN);
  }
}

async function lookNow(of) {
  const { filter, user } = live.get();
  let cursor = "";
  let changed = false;
  const seen = [];
  for (let at = 0; ; at += 1) {
    const query = new URLSearchParams({ limit: at === 0 ? FIRST : PAGE, fields: FIELDS });
    if (filter) query.set("filter", filter);
    if (user) query.set("user", user);
    if (cursor) query.set("cursor", cursor);
    const words = query.toString();
    const known = pages[at]?.words === words ? pages[at] : null;
    const said = await ask(`/jobs?${words}`, { etag: known?.etag, patience: 6000 });
    if (of !== stop || filter !== live.get().filter || user !== live.get().user) return;
    heard();
    if (said === null) {
      seen.push(known);
    } else {
      changed = true;
      seen.push({ words, etag: said.etag, jobs: said.jobs, next: said.next, monitor: said.monitor });
    }
    cursor = seen[at].next;
    if (!cursor) break;
    // Whoever comes sees the first of them at once.
    if (!live.get().loaded) show(seen);
  }
  changed ||= pages.length !== seen.length;
  pages = seen;
  if (!changed && live.get().loaded && !live.get().problem) return;
  show(seen);
}

function show(seen) {
  const jobs = seen.flatMap((page) => page.jobs);
  live.set({
    jobs,
    byKey: new Map(jobs.map((job) => [key(job), job])),
    loaded: true,
    problem: null,
    daemon: seen[0]?.monitor ?? null,
  });
}

/** What has happened before the page came. */
async function history() {
  try {
    const said = await ask("/journal?limit=500");
    told(said.events);
  } catch {
    // The stream says what happens from now on.
  }
}

const ENDS = new Set(["finished", "error", "killed", "failed", "ended"]);

/** Whether any of these events was new. */
function told(events) {
  const known = new Set(live.get().events.slice(-800).map(mark));
  const fresh = events.filter((event) => !known.has(mark(event)));
  if (fresh.length === 0) return false;
  live.set(({ events: before, ended }) => {
    const ends = new Map(ended);
    for (const event of fresh) if (event.job != null && ENDS.has(event.kind)) ends.set(`${event.user}/${event.job}`, event.at);
    const all = [...before, ...fresh].sort((a, b) => (a.at < b.at ? -1 : 1)).slice(-2000);
    return { events: all, ended: ends };
  });
  return true;
}

/** What breaks while somebody looks at something else is said, with the way there. */
function broke({ user, job, text }) {
  const [, word, why] = /^([\w-]+): (.*)$/s.exec(text) ?? [null, "error", text];
  toast(`${user}/${job} broke: ${word === "unknown" ? "error" : word}`, { hint: why, bad: true, to: `job/${encodeURIComponent(user)}/${job}` });
}

const mark = (event) => `${event.at} ${event.kind} ${event.user ?? ""}/${event.job ?? ""} ${event.text}`;

function happened({ data }) {
  try {
    const event = JSON.parse(data);
    const isNew = told([{ ...event, at: event.at ?? event.time }]);
    if (isNew && event.kind === "error" && event.job != null && may.act(event.user)) broke(event);
  } catch {
    return;
  }
  nudge();
}
